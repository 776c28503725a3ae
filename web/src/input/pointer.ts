/**
 * Drags tiles and whole melds with a mouse, a pen or a finger. A press without movement stays a click. A finger that
 * swipes over tiles which scroll, scrolls: there a long press carries, or a start across the way in which they scroll,
 * which the style leaves to the page (touch-action).
 */
import type { Arranging } from "../control/arranging.js";
import { targetAt } from "./places.js";

const THRESHOLD = 6;
const EDGE = 40;
const LONG_PRESS_MS = 280;
const SCROLL_EVERY_MS = 16;
/** How long tiles are held at an edge before it scrolls: on their way to the table they only pass it. */
const HELD_MS = 200;
/** What scrolls under tiles that are carried to its edge. */
const SCROLLERS = ".felt > .melds, .grid-view, .rack";

/** Makes the tiles inside an element movable. Returns a function that ends it. */
export function followPointer(root: HTMLElement, arranging: Arranging): () => void {
  let drag: Drag | undefined;
  let scrolling: ReturnType<typeof setInterval> | undefined;
  let heldSince: number | undefined;
  let press: Press | undefined;
  let suppressClick = false;

  const onDown = (event: PointerEvent) => {
    if (event.button !== 0 || drag !== undefined) return;
    const source = (event.target as Element).closest<HTMLElement>("[data-piece],[data-grip]");
    if (source === null) return;
    const ids = movedBy(source, arranging);
    if (ids.length === 0) return;
    press = { id: event.pointerId, x: event.clientX, y: event.clientY, ids, source, scrolls: scrollsOf(event, source) };
    const mine = press;
    if (event.pointerType === "touch") setTimeout(() => press === mine && start(), LONG_PRESS_MS);
  };
  const start = () => {
    if (press === undefined) return;
    drag = new Drag(press.ids, press.source, press.x, press.y);
    document.body.classList.add("is-dragging");
    press = undefined;
    scrolling = setInterval(scroll, SCROLL_EVERY_MS);
  };
  const onMove = (event: PointerEvent) => {
    if (press?.id === event.pointerId) {
      const [along, across] = [Math.abs(event.clientX - press.x), Math.abs(event.clientY - press.y)];
      const isScroll = { all: true, x: along >= across, y: across >= along, none: false }[press.scrolls];
      if (Math.hypot(along, across) > THRESHOLD) isScroll ? (press = undefined) : start();
    }
    if (drag === undefined) return;
    event.preventDefault();
    drag.moveTo(event.clientX, event.clientY);
    arranging.carry(drag.ids, targetAt(event.clientX, event.clientY));
  };
  /** Scrolls what lies under the tiles as long as they are at its edge. */
  const scroll = () => {
    if (drag === undefined) return;
    const [view, dx, dy] = edgeAt(drag.x, drag.y) ?? [];
    if (view === undefined) heldSince = undefined;
    heldSince ??= performance.now();
    if (view === undefined || performance.now() - heldSince < HELD_MS) return;
    view.scrollBy(dx!, dy!);
    arranging.carry(drag.ids, targetAt(drag.x, drag.y));
  };
  // The browser must not scroll with a finger that carries tiles.
  const onTouchMove = (event: TouchEvent) => {
    if ((drag !== undefined || press?.scrolls === "none") && event.cancelable) event.preventDefault();
  };
  const onContextMenu = (event: Event) => drag !== undefined && event.preventDefault();
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
    clearInterval(scrolling);
    drag?.end();
    drag = undefined;
    document.body.classList.remove("is-dragging");
  };

  root.addEventListener("pointerdown", onDown);
  root.addEventListener("touchmove", onTouchMove, { passive: false });
  root.addEventListener("contextmenu", onContextMenu);
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", onUp);
  window.addEventListener("pointercancel", onUp);
  window.addEventListener("click", onClick, true);
  window.addEventListener("keydown", onKey);
  return () => {
    end();
    root.removeEventListener("pointerdown", onDown);
    root.removeEventListener("touchmove", onTouchMove);
    root.removeEventListener("contextmenu", onContextMenu);
    window.removeEventListener("pointermove", onMove);
    window.removeEventListener("pointerup", onUp);
    window.removeEventListener("pointercancel", onUp);
    window.removeEventListener("click", onClick, true);
    window.removeEventListener("keydown", onKey);
  };
}

interface Press {
  readonly id: number;
  readonly x: number;
  readonly y: number;
  readonly ids: number[];
  readonly source: HTMLElement;
  /** In which directions the browser scrolls with the pointer. */
  readonly scrolls: "all" | "x" | "y" | "none";
}

/** Returns in which directions a pointer on a tile scrolls, as the style says. A table that fits its place does not. */
function scrollsOf({ pointerType }: PointerEvent, source: HTMLElement): Press["scrolls"] {
  if (pointerType !== "touch") return "none";
  const { touchAction } = getComputedStyle(source);
  if (touchAction === "pan-x" || touchAction === "pan-y") return touchAction === "pan-x" ? "x" : "y";
  const table = source.closest(".felt > .melds");
  return table !== null && table.scrollHeight > table.clientHeight + 1 ? "all" : "none";
}

/** Returns what can scroll at a point near its edge, or just beyond its upper or lower one, and by how much it should. */
function edgeAt(x: number, y: number): [Element, number, number] | undefined {
  const beyond = (at: number, from: number, to: number) => Math.min(0, at - from - EDGE) || Math.max(0, at - to + EDGE);
  const canScroll = (by: number, at: number, most: number) => (by < 0 ? at > 0 : by > 0 && at < most - 1);
  for (const view of document.querySelectorAll(SCROLLERS)) {
    const { left, right, top, bottom } = view.getBoundingClientRect();
    if (x < left || x > right || y < top - EDGE / 2 || y > bottom + EDGE / 2) continue;
    // Melds are never wider than the table; a place beside the last one in a row must not move away from the pointer.
    const dx = view.matches(".melds") ? 0 : beyond(x, left, right) / 4;
    const dy = beyond(y, top, bottom) / 4;
    const isScrolling =
      canScroll(dx, view.scrollLeft, view.scrollWidth - view.clientWidth) ||
      canScroll(dy, view.scrollTop, view.scrollHeight - view.clientHeight);
    if (isScrolling) return [view, dx, dy];
  }
  return undefined;
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
  x = 0;
  y = 0;
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
    this.x = x;
    this.y = y;
    this.#ghost.style.transform = `translate(${x}px, ${y}px)`;
  }

  end(): void {
    this.#ghost.remove();
  }
}
