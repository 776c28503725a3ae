/** The check of a recorded game's deals, which needs no code of the server (docs/fair-deal.md). */
import type { GameRecord } from "rummikub-client";
import { useState } from "preact/hooks";
import { seats } from "../control/lobby.js";
import { t } from "../i18n/index.js";
import { dealsTexts } from "../model/deals.js";
import { hexOf } from "../model/hex.js";

export function DealsSection({ record, gameId }: { record: GameRecord; gameId: string | undefined }) {
  const [texts, setTexts] = useState<string[]>();
  if (record.dealCommitment.length === 0) return null;
  const check = () => setTexts(dealsTexts(record, gameId === undefined ? undefined : seats.find(gameId)));
  return (
    <section class="card review" aria-label={t("fairDeals")}>
      <h2>{t("fairDeals")}</h2>
      {texts === undefined ? (
        <button type="button" onClick={check}>
          {t("checkDeals")}
        </button>
      ) : (
        <div role="status">
          <ul>
            {texts.map((text) => (
              <li key={text}>{text}</li>
            ))}
            <li class="help long-word">{t("commitmentIs", { hex: hexOf(record.dealCommitment) })}</li>
          </ul>
        </div>
      )}
    </section>
  );
}
