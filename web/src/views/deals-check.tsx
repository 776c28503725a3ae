/** The check of a recorded game's deals, which needs no code of the server (docs/fair-deal.md). */
import type { GameRecord } from "rummikub-client";
import { checkDeals, type DealsCheck } from "rummikub-client/fair-deal";
import { useState } from "preact/hooks";
import { seats } from "../control/lobby.js";
import { t } from "../i18n/index.js";
import { hexOf } from "../model/hex.js";

export function DealsSection({ record, gameId }: { record: GameRecord; gameId: string | undefined }) {
  const [check, setCheck] = useState<DealsCheck>();
  if (record.dealCommitment.length === 0) return null;
  const commitment = hexOf(record.dealCommitment);
  const noted = gameId === undefined ? undefined : seats.find(gameId)?.commitment;
  return (
    <section class="card review" aria-label={t("fairDeals")}>
      <h2>{t("fairDeals")}</h2>
      {check === undefined ? (
        <button type="button" onClick={() => setCheck(checkDeals(record))}>
          {t("checkDeals")}
        </button>
      ) : (
        <div role="status">
          <ul>
            {resultsOf(check).map((text) => (
              <li key={text}>{text}</li>
            ))}
            {noted !== undefined && <li>{t(noted === commitment ? "commitmentNoted" : "commitmentOther")}</li>}
            <li class="help long-word">{t("commitmentIs", { hex: commitment })}</li>
          </ul>
        </div>
      )}
    </section>
  );
}

function resultsOf({ isFair, problem, deals }: DealsCheck): string[] {
  if (isFair) return [t("dealsFair", { count: deals.length })];
  if (problem) return [t("seedsBroken")];
  return deals.filter((one) => one.problem).map(({ deal }) => t("dealUnfair", { deal }));
}
