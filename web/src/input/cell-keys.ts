/**
 * Keys on the cells of a grid: arrows move the cursor; Enter lays the selected tiles in its cell, or takes back what
 * the player has laid there.
 */
import type { Arranging } from "../control/arranging.js";
import type { Target } from "../model/arrangement.js";
import { isGrid, neighborOf, pieceAt } from "../model/grid.js";
import { focusWhenRendered } from "./focus.js";
import type { Direction } from "./keyboard.js";

const STEPS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] } as const;

type CellTarget = Extract<Target, { to: "cell" }>;

/** Returns the cell beside another one. */
export function cellBeside(from: CellTarget, direction: Direction): CellTarget {
  return { to: "cell", ...neighborOf(from, STEPS[direction]) };
}

/** Handles a key on a cell. Returns whether there was anything to do. */
export function onCellKey(
  event: KeyboardEvent,
  direction: Direction | undefined,
  root: HTMLElement,
  arranging: Arranging,
): boolean {
  const { arrangement } = arranging;
  const cell = (event.target as Element).closest<HTMLElement>("[data-x]");
  if (cell === null || !isGrid(arrangement)) return false;
  const cursor = { x: Number(cell.dataset.x), y: Number(cell.dataset.y) };
  if (direction !== undefined) arranging.state.set({ cursor: neighborOf(cursor, STEPS[direction]) });
  else if (event.key === "Enter") layOrTakeBack(arranging, { to: "cell", ...cursor });
  else return false;
  focusWhenRendered(() => root.querySelector<HTMLElement>(".is-cursor"));
  return true;
}

function layOrTakeBack(arranging: Arranging, cell: CellTarget): void {
  const { arrangement } = arranging;
  const { selection } = arranging.state.value;
  const lying = isGrid(arrangement) ? pieceAt(arrangement, cell) : undefined;
  if (selection.length > 0) arranging.move(selection, cell);
  else if (lying !== undefined && arranging.mayMove(lying.id))
    arranging.move([lying.id], { to: "rack", index: arrangement.rack.length });
}
