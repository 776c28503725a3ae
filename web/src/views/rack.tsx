/** The player's rack. */
import type { Arranging } from "../control/arranging.js";
import { useStore } from "../control/store.js";
import { t, tileText } from "../i18n/index.js";
import type { Piece } from "../model/arrangement.js";
import { type TabStop, tabStopOf } from "./arranged-table.js";
import { MovableTile } from "./tile.js";

/** Whether a tile of the table is in the player's hand and has to be laid again. */
function isInHand({ origin }: Piece): boolean {
  return origin === "table";
}

export function Rack({ arranging, tabStop }: { arranging: Arranging; tabStop: TabStop }) {
  const { history, selection, carried, hinted, fresh } = useStore(arranging.state, (state) => [
    state.history,
    state.selection,
    state.hinted,
    state.fresh,
    state.carried?.ids,
    state.carried?.target?.to === "rack" && state.carried.target.index,
  ]);
  const { rack } = history.present;
  const left = [...hinted];
  const stop = tabStopOf(tabStop, rack);
  const index = carried?.target?.to === "rack" ? carried.target.index : -1;
  const canReturn = selection.some((id) => !rack.some((piece) => piece.id === id));
  return (
    <section class="rack" aria-label={t("rack")} data-drop="rack">
      {rack.flatMap((piece, i) => {
        const at = left.indexOf(piece.tile);
        if (at >= 0) left.splice(at, 1);
        return [
          index === i && <span key="caret" class="caret" />,
          <MovableTile
            key={piece.id}
            piece={piece}
            {...(isInHand(piece) && { name: t("layAgain", { tile: tileText(piece.tile) }) })}
            mark={`${fresh.has(piece.id) ? "fresh" : ""} ${at >= 0 ? "hinted" : ""} ${piece.origin === "river" ? "from-river" : ""} ${isInHand(piece) ? "in-hand" : ""} ${carried?.ids.includes(piece.id) ? "carried" : ""}`}
            isSelected={selection.includes(piece.id)}
            isTabStop={piece.id === stop}
            onSelect={() => arranging.select(piece.id)}
            onDoubleTap={() => arranging.layWhereItFits(piece.id)}
            onFocus={() => tabStop.set(piece.id)}
          />,
        ];
      })}
      {index >= rack.length && <span class="caret" />}
      {canReturn && carried === undefined && (
        <button
          type="button"
          class="slot"
          aria-label={t("placeRack")}
          onClick={() => arranging.move(selection, { to: "rack", index: rack.length })}
        >
          +
        </button>
      )}
    </section>
  );
}
