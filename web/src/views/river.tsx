/** The River: an open row of tiles. A player may take one of them with all newer ones. */
import { type Game, type Tile, tileName } from "rummikub-client";
import type { Acting } from "../control/acting.js";
import type { Arranging } from "../control/arranging.js";
import { useStore } from "../control/store.js";
import { t, tilesList, tileText } from "../i18n/index.js";
import { choices } from "../model/turn.js";
import { StaticTile } from "./tile.js";

export function River({ game, arranging }: { game: Game; arranging: Arranging }) {
  const { riverIndex } = useStore(arranging.state).history.present;
  const { mayPull } = choices(game);
  return (
    <section class="river" aria-label={t("river")}>
      <h2>{t("river")}</h2>
      <div class="river-tiles">
        {game.river.map((tile, i) => {
          const isTaken = riverIndex !== undefined && i >= riverIndex;
          if (!mayPull || isTaken) return <StaticTile key={i} tile={tile} mark={isTaken ? "carried" : ""} />;
          const count = game.river.length - i - 1;
          return (
            <button
              key={i}
              type="button"
              class="plain"
              data-river={i}
              aria-label={t("pullFrom", { tile: tileText(tile), count })}
              onClick={() => arranging.pull(i)}
            >
              <StaticTile tile={tile} />
            </button>
          );
        })}
      </div>
      {riverIndex === undefined ? (
        mayPull && <p class="help">{t("pullHelp")}</p>
      ) : (
        <p class="help">
          {t("pulled", { tiles: tilesList(game.river.slice(riverIndex)), key: tileText(game.river[riverIndex]!) })}{" "}
          <button type="button" class="quiet" onClick={() => arranging.pull()}>
            {t("putRiverBack")}
          </button>
        </p>
      )}
    </section>
  );
}

/** The choice of the drawn tile that goes to the River. */
export function RiverChoice({ tiles, acting }: { tiles: readonly Tile[]; acting: Acting }) {
  return (
    <section class="card choice" aria-label={t("layTitle")}>
      <h2>{t("layTitle")}</h2>
      <div class="actions">
        {tiles.map((tile, i) => (
          <button
            key={i}
            type="button"
            class="plain"
            data-lay={tileName(tile)}
            aria-label={t("layTile", { tile: tileText(tile) })}
            onClick={() => acting.lay(tile)}
          >
            <StaticTile tile={tile} />
          </button>
        ))}
      </div>
    </section>
  );
}
