/** The table of the cross layout: the tiles in their cells, and the player's own as they are laid. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import type { Game } from "rummikub-client";
import { useEffect, useRef } from "preact/hooks";
import type { Arranging } from "../control/arranging.js";
import { useStore } from "../control/store.js";
import { cellText, t } from "../i18n/index.js";
import { cellAt } from "../input/places.js";
import type { Arrangement } from "../model/arrangement.js";
import {
  type Box,
  boxesOf,
  type Cell,
  freshCells,
  type Grid,
  type GridPiece,
  isGrid,
  isInBox,
  neighborOf,
  pieceAt,
} from "../model/grid.js";
import { choices } from "../model/turn.js";
import { GridFrame, inBox, inCell, lyingText } from "./grid.js";
import { MovableTile, StaticTile } from "./tile.js";

export { StaticGrid } from "./grid.js";

export function GridTable({ game, grid, arranging }: { game: Game; grid: Grid; arranging: Arranging }) {
  const { history, selection, carried, judgment, lastPlay, cursor } = useStore(arranging.state);
  const felt = useRef<HTMLElement>(null);
  const { mayPlay } = choices(game);
  const isJudged = judgment !== undefined && judgment.arrangement === (carried?.preview ?? grid);
  const faults = isJudged ? boxesOf(judgment.marks.table) : [];
  const state = isJudged && judgment.marks.isLegal ? "legal" : "";
  const coming = comingPieces(carried?.preview, carried?.ids ?? []);
  const fresh = history.past.length === 0 ? freshCells(lastPlay?.before?.placements ?? grid.cells, grid.cells) : [];
  const isPlacing = mayPlay && selection.length > 0 && carried === undefined;
  const target = carried?.target?.to === "cell" ? carried.target : undefined;
  useEffect(() => {
    // Keys may choose a cell out of sight; a pointer cannot.
    if (target === undefined || document.body.classList.contains("is-dragging")) return;
    felt.current?.querySelector(".is-target")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [target?.x, target?.y]);
  const onClick = (event: MouseEvent) => {
    const place = clickedCell(event);
    if (isPlacing && place !== undefined) arranging.move(selection, { to: "cell", ...place });
  };
  return (
    <section ref={felt} class="felt grid-felt" aria-label={t("table")}>
      <GridFrame
        cells={grid.cells}
        fitKey={game.turn?.revision}
        hint={grid.cells.length === 0 ? t("emptyGrid") : ""}
        mayDrop={mayPlay}
        class={`${state} ${isPlacing ? "is-placing" : ""}`}
        onClick={onClick}
      >
        {isPlacing &&
          freeNeighbors(grid).map((cell) => <Mark key={`${cell.x},${cell.y}`} kind="spot" box={boxAt(cell)} />)}
        {grid.cells.map((piece) => (
          <CellTile
            key={piece.id}
            piece={piece}
            arranging={arranging}
            isCursor={piece.x === cursor.x && piece.y === cursor.y}
            isSelected={selection.includes(piece.id)}
            mark={[
              carried?.ids.includes(piece.id) && "carried",
              fresh.includes(piece) && "fresh",
              piece.origin !== "table" && "mine",
              piece.origin !== "table" && faults.some((box) => isInBox(piece, box)) && "faulty",
            ]}
          />
        ))}
        {pieceAt(grid, cursor) === undefined && (
          <button
            type="button"
            class="cell cursor is-cursor"
            style={inCell(cursor)}
            data-x={cursor.x}
            data-y={cursor.y}
            aria-label={t("cellEmpty", { place: cellText(cursor) })}
          />
        )}
        {coming.map((piece) => (
          <div key={`coming${piece.id}`} class="cell coming" style={inCell(piece)} aria-hidden="true">
            <StaticTile tile={piece.tile} />
          </div>
        ))}
        {faults.map((box) => (
          <Mark key={Object.values(box).join()} kind="fault" box={box} />
        ))}
        {target !== undefined && (
          <Mark kind={`is-target ${carried?.preview === undefined ? "refused" : ""}`} box={boxAt(target)} />
        )}
      </GridFrame>
    </section>
  );
}

interface CellTileProps {
  piece: GridPiece;
  arranging: Arranging;
  isCursor: boolean;
  isSelected: boolean;
  mark: readonly (string | false | undefined)[];
}

function CellTile({ piece, arranging, isCursor, isSelected, mark }: CellTileProps) {
  const mayMove = arranging.mayMove(piece.id);
  return (
    <div class="cell" style={inCell(piece)} data-x={piece.x} data-y={piece.y}>
      <MovableTile
        piece={piece}
        name={t("placedAt", { tile: lyingText(piece.tile, piece.faces), place: cellText(piece) })}
        mark={[...mark, !mayMove && "fixed", isCursor && "is-cursor"].filter(Boolean).join(" ")}
        isSelected={isSelected}
        isTabStop={isCursor}
        onSelect={() => mayMove && arranging.select(piece.id)}
        onFocus={() => arranging.state.set({ cursor: { x: piece.x, y: piece.y } })}
      />
    </div>
  );
}

function Mark({ kind, box }: { kind: string; box: Box }) {
  return <div class={`cell mark ${kind}`} style={inBox(box)} aria-hidden="true" />;
}

function boxAt({ x, y }: Cell): Box {
  return { left: x, top: y, right: x, bottom: y };
}

/** Returns the carried pieces where they would be laid. */
function comingPieces(preview: Arrangement | undefined, ids: readonly number[]): readonly GridPiece[] {
  return preview !== undefined && isGrid(preview) ? preview.cells.filter(({ id }) => ids.includes(id)) : [];
}

/** Returns the free cells beside tiles. */
function freeNeighbors(grid: Grid): Cell[] {
  const beside = grid.cells.flatMap((cell) =>
    ([[-1, 0], [1, 0], [0, -1], [0, 1]] as const).map((step) => neighborOf(cell, step)),
  );
  const free = beside.filter((cell) => pieceAt(grid, cell) === undefined);
  return [...new Map(free.map((cell) => [`${cell.x},${cell.y}`, cell])).values()];
}

/** Returns the cell that was clicked; none if a tile was that can be selected. */
function clickedCell(event: MouseEvent): Cell | undefined {
  const clicked = event.target as Element;
  if (clicked.closest(".movable:not(.fixed)") !== null) return undefined;
  const cell = clicked.closest<HTMLElement>("[data-x]");
  if (cell !== null) return { x: Number(cell.dataset.x), y: Number(cell.dataset.y) };
  const plane = (event.currentTarget as HTMLElement).querySelector<HTMLElement>(".plane")!;
  return cellAt(plane, event.clientX, event.clientY);
}
