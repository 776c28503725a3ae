/** What a pointer does on the page: it carries tiles and melds, as far as the player may. */
import { followPointer as follow, type Scrolls } from "rummikub-board/pointer";
import type { Arranging } from "../control/arranging.js";
import type { Target } from "../model/arrangement.js";
import { targetAt } from "./places.js";

/** What scrolls under tiles that are carried to its edge. */
const SCROLLERS = ".felt > .melds, .grid-view, .rack";

/** Makes the tiles inside an element movable. Returns a function that ends it. */
export function followPointer(root: HTMLElement, arranging: Arranging): () => void {
  return follow<Target>(root, {
    movedBy: (source) => movedBy(source, arranging),
    placeAt: targetAt,
    carry: (ids, target) => arranging.carry(ids, target),
    drop: () => arranging.drop(),
    putBack: () => arranging.putBack(),
    scrolls: scrollsOf,
    scrollers: () => document.querySelectorAll(SCROLLERS),
    // Melds are never wider than the table; a place beside the last one in a row must not move away from the pointer.
    scrollsAcross: (view) => !view.matches(".melds"),
    ghost: ghostOf,
    onDrag: (isDragging) => document.body.classList.toggle("is-dragging", isDragging),
  });
}

/** Returns in which directions a pointer on a tile scrolls, as the style says. A table that fits its place does not. */
function scrollsOf({ pointerType }: PointerEvent, source: HTMLElement): Scrolls {
  if (pointerType !== "touch") return "none";
  const { touchAction } = getComputedStyle(source);
  if (touchAction === "pan-x" || touchAction === "pan-y") return touchAction === "pan-x" ? "x" : "y";
  const table = source.closest(".felt > .melds");
  return table !== null && table.scrollHeight > table.clientHeight + 1 ? "all" : "none";
}

/** Returns the pieces that a press on an element moves: a whole meld, the selection, or one tile. */
function movedBy(source: HTMLElement, arranging: Arranging): readonly number[] {
  const { arrangement } = arranging;
  if (source.dataset.grip !== undefined) {
    const meld = arrangement.melds.find(({ id }) => id === Number(source.dataset.grip));
    return meld?.pieces.map((piece) => piece.id) ?? [];
  }
  const id = Number(source.dataset.piece);
  if (!arranging.mayMove(id)) return [];
  const { selection } = arranging.state.value;
  return selection.includes(id) ? [...selection] : [id];
}

/** Returns copies of the tiles that are moved, at the pointer. */
function ghostOf(ids: readonly number[], source: HTMLElement): HTMLElement {
  const ghost = document.createElement("div");
  ghost.className = "ghost";
  ghost.setAttribute("aria-hidden", "true");
  for (const id of ids) {
    const tile = document.querySelector(`[data-piece="${id}"]`)?.cloneNode(true) as HTMLElement | undefined;
    tile?.removeAttribute("data-piece");
    if (tile !== undefined) ghost.append(tile);
  }
  document.body.append(ghost);
  // A finger hides what is under it, so the tiles hang above it.
  const isTouch = matchMedia("(pointer: coarse)").matches;
  ghost.classList.toggle("above", isTouch && source.dataset.grip === undefined);
  return ghost;
}
