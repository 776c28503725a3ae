/** Places where tiles can be dropped: under the pointer, and one after the other for the keyboard. */
import type { Arrangement, Target } from "../model/arrangement.js";
import type { Cell } from "../model/grid.js";

/**
 * Returns the target at a point of the page. Views mark containers with `data-drop` (`meld`, `rack`, `new`, `cell` for a
 * grid, `wild`, `discard` and `finish` in a game of discards), melds with `data-meld`, tiles with `data-piece`, and the slots of
 * a rack, if it has any, with `data-slot`.
 */
export function targetAt(x: number, y: number): Target | undefined {
  const container = document.elementFromPoint(x, y)?.closest<HTMLElement>("[data-drop]");
  switch (container?.dataset.drop) {
    case "new":
      return { to: "new" };
    case "meld":
      return { to: "meld", meld: Number(container.dataset.meld), index: indexAt(container, x, y) };
    case "wild":
      return { to: "wild", piece: Number(container.dataset.piece) };
    case "cell":
      return { to: "cell", ...cellAt(container.querySelector<HTMLElement>(".plane")!, x, y) };
    case "rack":
      return { to: "rack", index: slotAt(container, x, y) ?? indexAt(container, x, y) };
    case "discard":
    case "finish":
      return { to: container.dataset.drop };
    default:
      return undefined;
  }
}

/** Returns the cell of a grid at a point of the page. */
export function cellAt(plane: HTMLElement, x: number, y: number): Cell {
  const box = plane.getBoundingClientRect();
  const { left, top, columns, rows } = plane.dataset;
  return {
    x: Number(left) + Math.floor(((x - box.left) / box.width) * Number(columns)),
    y: Number(top) + Math.floor(((y - box.top) / box.height) * Number(rows)),
  };
}

/** Returns the slot that is nearest to a point; undefined if a rack has none. */
function slotAt(container: HTMLElement, x: number, y: number): number | undefined {
  const distance = (slot: Element) => {
    const box = slot.getBoundingClientRect();
    return Math.hypot(box.left + box.width / 2 - x, box.top + box.height / 2 - y);
  };
  const slots = [...container.querySelectorAll<HTMLElement>("[data-slot]")];
  const [nearest] = slots.sort((a, b) => distance(a) - distance(b));
  return nearest === undefined ? undefined : Number(nearest.dataset.slot);
}

/** Returns how many tiles of a container come before a point, in reading order. */
function indexAt(container: HTMLElement, x: number, y: number): number {
  const boxes = [...container.querySelectorAll("[data-piece]")].map((tile) => tile.getBoundingClientRect());
  return boxes.filter((box) => box.bottom < y || (box.top <= y && box.left + box.width / 2 < x)).length;
}

/** Returns all places in order: in each meld before, between and after its tiles, then a new meld, then the rack. */
export function places(arrangement: Arrangement): Target[] {
  const inMelds = arrangement.melds.flatMap(({ id, pieces }) =>
    Array.from({ length: pieces.length + 1 }, (_, index): Target => ({ to: "meld", meld: id, index })),
  );
  return [...inMelds, { to: "new" }, { to: "rack", index: arrangement.rack.length }];
}

/** Returns the place after or before another one (`by` 1 or -1), or the first of the next or previous container. */
export function nextPlace(all: readonly Target[], from: Target | undefined, by: 1 | -1, isContainer: boolean): Target {
  const container = (target: Target) => (target.to === "meld" ? `meld${target.meld}` : target.to);
  const isIt = (target: Target) => JSON.stringify(target) === JSON.stringify(from);
  const start = from === undefined ? -1 : all.findIndex(isIt);
  const at = (index: number) => all[(index + all.length) % all.length]!;
  if (start < 0) return all.find(({ to }) => to === "new") ?? all[0]!;
  if (!isContainer) return at(start + by);
  const other = all.findIndex((_, i) => container(at(start + i * by)) !== container(all[start]!));
  // In another player's turn the rack is the only container.
  const next = container(at(start + Math.max(0, other) * by));
  return all.find((target) => container(target) === next)!;
}
