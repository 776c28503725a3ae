/** Places where tiles can be dropped: under the pointer, and one after the other for the keyboard. */
import { boxesBefore } from "rummikub-board/places";
import type { Target } from "../model/arrangement.js";
import type { Cell } from "../model/grid.js";

export { nextPlace, places } from "rummikub-board/places";

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
  return boxesBefore(boxes, x, y);
}
