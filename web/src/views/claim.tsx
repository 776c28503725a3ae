/** An illegal play that is shown to all, who may object to it. */
import type { Game } from "rummikub-client";
import type { GameSession } from "../control/game-session.js";
import { t } from "../i18n/index.js";
import { playerOf } from "../model/turn.js";
import { StaticTable } from "./tile.js";

export function ShownClaim({ game, session }: { game: Game; session: GameSession }) {
  const { turn } = game;
  const name = playerOf(game, turn?.seat ?? 0)?.name ?? "";
  return (
    <section class="card">
      <h2>{t("claimTitle", { name })}</h2>
      <StaticTable melds={turn?.shownPlay?.table?.melds ?? []} />
      <div class="actions">
        <button type="button" class="primary" onClick={() => session.claim(true)}>
          {t("claim")}
        </button>
        <button type="button" onClick={() => session.claim(false)}>
          {t("accept")}
        </button>
      </div>
    </section>
  );
}
