/** An illegal play that is shown to all, who may object to it. */
import type { Game } from "rummikub-client";
import type { Acting } from "../control/acting.js";
import { t } from "../i18n/index.js";
import { playerOf } from "../model/turn.js";
import { ShownTable } from "./shown-table.js";

export function ShownClaim({ game, acting }: { game: Game; acting: Acting }) {
  const { turn } = game;
  const name = playerOf(game, turn?.seat ?? 0)?.name ?? "";
  return (
    <section class="card">
      <h2>{t("claimTitle", { name })}</h2>
      <ShownTable table={turn?.shownPlay?.table} before={game.table} />
      <div class="actions">
        <button type="button" class="primary" onClick={() => acting.claim(true)}>
          {t("claim")}
        </button>
        <button type="button" onClick={() => acting.claim(false)}>
          {t("accept")}
        </button>
      </div>
    </section>
  );
}
