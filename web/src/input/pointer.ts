/** Drags tiles and whole melds with a mouse, a pen or a finger. A press without movement stays a click. */
import type { Arranging } from "../control/arranging.js";
import { targetAt } from "./places.js";

const THRESHOLD = 6;
const EDGE = 40;

/** Makes the tiles inside an element movable. Returns a function that ends it. */
export function followPointer(root: HTMLElement, arranging: Arranging): () => void {
  let drag: Drag | undefined;
  let press: { id: number; x: number; y: number; ids: number[]; source: HTMLElement } | undefined;
  let suppressClick = false;

  const onDown = (event: PointerEvent) => {
    if (event.button !== 0 || drag !== undefined) return;
    const source = (event.target as Element).closest<HTMLElement>("[data-piece],[data-grip]");
    if (source === null) return;
    const ids = movedBy(source, arranging);
    if (ids.length > 0) press = { id: event.pointerId, x: event.clientX, y: event.clientY, ids, source };
  };
  const onMove = (event: PointerEvent) => {
    if (press?.id === event.pointerId && Math.hypot(event.clientX - press.x, event.clientY - press.y) > THRESHOLD) {
      drag = new Drag(press.ids, press.source, press.x, press.y);
      document.body.classList.add("is-dragging");
      press = undefined;
    }
    if (drag === undefined) return;
    event.preventDefault();
    drag.moveTo(event.clientX, event.clientY);
    scrollNearEdge(root, event.clientY);
    scrollGrid(event.clientX, event.clientY);
    arranging.carry(drag.ids, targetAt(event.clientX, event.clientY));
  };
  const onUp = (event: PointerEvent) => {
    press = undefined;
    if (drag === undefined) return;
    const { ids } = drag;
    end();
    // The click that follows a drag is none; often there is none, because the tile is another element by then.
    suppressClick = true;
    setTimeout(() => (suppressClick = false));
    if (event.type !== "pointerup") return arranging.putBack();
    // Events of the movement may be skipped: the place is where the finger leaves.
    arranging.carry(ids, targetAt(event.clientX, event.clientY));
    arranging.drop();
  };
  const onClick = (event: MouseEvent) => {
    if (!suppressClick) return;
    suppressClick = false;
    event.stopPropagation();
    event.preventDefault();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || drag === undefined) return;
    end();
    arranging.putBack();
  };
  const end = () => {
    drag?.end();
    drag = undefined;
    document.body.classList.remove("is-dragging");
  };

  root.addEventListener("pointerdown", onDown);
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", onUp);
  window.addEventListener("pointercancel", onUp);
  window.addEventListener("click", onClick, true);
  window.addEventListener("keydown", onKey);
  return () => {
    end();
    root.removeEventListener("pointerdown", onDown);
    window.removeEventListener("pointermove", onMove);
    window.removeEventListener("pointerup", onUp);
    window.removeEventListener("pointercancel", onUp);
    window.removeEventListener("click", onClick, true);
    window.removeEventListener("keydown", onKey);
  };
}

/** Scrolls a table that is higher than the window: at its upper edge, and above the hand. */
function scrollNearEdge(root: HTMLElement, y: number): void {
  const hand = root.querySelector(".hand")?.getBoundingClientRect().top ?? window.innerHeight;
  if (y < EDGE) window.scrollBy(0, y - EDGE);
  else if (Math.abs(y - hand) < EDGE / 2) window.scrollBy(0, EDGE / 4);
}

/** Scrolls a grid near its edges. */
function scrollGrid(x: number, y: number): void {
  const view = document.elementFromPoint(x, y)?.closest(".grid-view");
  const box = view?.getBoundingClientRect();
  if (view == null || box === undefined) return;
  const beyond = (at: number, from: number, to: number) => Math.min(0, at - from - EDGE) || Math.max(0, at - to + EDGE);
  view.scrollBy(beyond(x, box.left, box.right) / 4, beyond(y, box.top, box.bottom) / 4);
}

/** Returns the pieces that a press on an element moves: a whole meld, the selection, or one tile. */
function movedBy(source: HTMLElement, arranging: Arranging): number[] {
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

/** The tiles under the pointer: copies of those that are moved. */
class Drag {
  readonly ids: readonly number[];
  readonly #ghost = document.createElement("div");

  constructor(ids: readonly number[], source: HTMLElement, x: number, y: number) {
    this.ids = ids;
    this.#ghost.className = "ghost";
    this.#ghost.setAttribute("aria-hidden", "true");
    for (const id of ids) {
      const tile = document.querySelector(`[data-piece="${id}"]`)?.cloneNode(true) as HTMLElement | undefined;
      tile?.removeAttribute("data-piece");
      if (tile !== undefined) this.#ghost.append(tile);
    }
    document.body.append(this.#ghost);
    // A finger hides what is under it, so the tiles hang above it.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    this.#ghost.classList.toggle("above", isTouch && source.dataset.grip === undefined);
    this.moveTo(x, y);
  }

  moveTo(x: number, y: number): void {
    this.#ghost.style.transform = `translate(${x}px, ${y}px)`;
  }

  end(): void {
    this.#ghost.remove();
  }
}
