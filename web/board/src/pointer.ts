/**
 * Drags tiles and whole melds with a mouse, a pen or a finger. A press without movement stays a click. A finger that
 * swipes over tiles which scroll, scrolls: there a long press carries.
 */

const THRESHOLD = 6;
const EDGE = 40;
const LONG_PRESS_MS = 280;
const SCROLL_EVERY_MS = 16;
/** How long tiles are held at an edge before it scrolls: on their way to the table they only pass it. */
const HELD_MS = 200;

/** In which directions the browser scrolls with a pointer on a tile. */
export type Scrolls = "all" | "x" | "y" | "none";

/** What a pointer moves, over what. `T` is a place. */
export interface Hands<T> {
  /** Returns the ids of the pieces that a press on an element with `data-piece` or `data-grip` moves; empty if none. */
  movedBy(source: HTMLElement): readonly number[];
  /** Returns the place at a point of the window. */
  placeAt(x: number, y: number): T | undefined;
  carry(ids: readonly number[], place: T | undefined): void;
  drop(): void;
  putBack(): void;
  scrolls(event: PointerEvent, source: HTMLElement): Scrolls;
  /** What scrolls under tiles that are carried to its edge. */
  scrollers(): Iterable<Element>;
  /** Whether one of them scrolls to the left and right too. */
  scrollsAcross(view: Element): boolean;
  /** Returns copies of the tiles, which follow the pointer. They are in the document. */
  ghost(ids: readonly number[], source: HTMLElement): HTMLElement;
  /** Called when a drag begins or ends. */
  onDrag(isDragging: boolean): void;
}

interface Press {
  readonly id: number;
  readonly x: number;
  readonly y: number;
  readonly ids: readonly number[];
  readonly source: HTMLElement;
  readonly scrolls: Scrolls;
}

interface Drag {
  readonly ids: readonly number[];
  readonly ghost: HTMLElement;
  readonly scrolling: ReturnType<typeof setInterval>;
  x: number;
  y: number;
}

/** Makes the tiles inside an element movable; it may be in a shadow root. Returns a function that ends it. */
export function followPointer<T>(root: HTMLElement, hands: Hands<T>): () => void {
  let drag: Drag | undefined;
  let press: Press | undefined;
  let heldSince: number | undefined;
  let suppressClick = false;
  const listening = new AbortController();

  const onDown = (event: PointerEvent) => {
    if (event.button !== 0 || drag !== undefined) return;
    if (!event.isPrimary) return void (press = undefined); // a second finger zooms, wherever the first one is
    const source = sourceOf(event);
    const ids = source === undefined ? [] : hands.movedBy(source);
    if (source === undefined || ids.length === 0) return;
    press = { id: event.pointerId, x: event.clientX, y: event.clientY, ids, source, scrolls: hands.scrolls(event, source) };
    const mine = press;
    if (event.pointerType === "touch") setTimeout(() => press === mine && start(), LONG_PRESS_MS);
  };
  const start = () => {
    if (press === undefined) return;
    const { ids, source, x, y } = press;
    drag = { ids, ghost: hands.ghost(ids, source), scrolling: setInterval(scroll, SCROLL_EVERY_MS), x, y };
    press = undefined;
    hands.onDrag(true);
    moveTo(x, y);
  };
  const moveTo = (x: number, y: number) => {
    if (drag === undefined) return;
    drag.x = x;
    drag.y = y;
    drag.ghost.style.transform = `translate(${x}px, ${y}px)`;
    hands.carry(drag.ids, hands.placeAt(x, y));
  };
  const onMove = (event: PointerEvent) => {
    if (press?.id === event.pointerId) {
      const [along, across] = [Math.abs(event.clientX - press.x), Math.abs(event.clientY - press.y)];
      const isScroll = { all: true, x: along >= across, y: across >= along, none: false }[press.scrolls];
      if (Math.hypot(along, across) > THRESHOLD) isScroll ? (press = undefined) : start();
    }
    if (drag === undefined) return;
    event.preventDefault();
    moveTo(event.clientX, event.clientY);
  };
  /** Scrolls what lies under the tiles as long as they are at its edge. */
  const scroll = () => {
    if (drag === undefined) return;
    const edge = edgeAt(hands, drag.x, drag.y);
    heldSince = edge === undefined ? undefined : (heldSince ?? performance.now());
    if (edge === undefined || performance.now() - heldSince! < HELD_MS) return;
    edge.view.scrollBy(edge.dx, edge.dy);
    moveTo(drag.x, drag.y);
  };
  const onUp = (event: PointerEvent) => {
    press = undefined;
    if (drag === undefined) return;
    // Events of the movement may be skipped: the place is where the finger leaves.
    if (event.type === "pointerup") moveTo(event.clientX, event.clientY);
    end();
    // The click that follows a drag is none; often there is none, because the tile is elsewhere by then.
    suppressClick = true;
    setTimeout(() => (suppressClick = false));
    event.type === "pointerup" ? hands.drop() : hands.putBack();
  };
  const end = () => {
    if (drag === undefined) return;
    clearInterval(drag.scrolling);
    drag.ghost.remove();
    drag = undefined;
    hands.onDrag(false);
  };

  const { signal } = listening;
  root.addEventListener("pointerdown", onDown, { signal });
  // The browser must not scroll with a finger that carries tiles.
  const onTouchMove = (event: TouchEvent) => {
    if ((drag !== undefined || press?.scrolls === "none") && event.cancelable) event.preventDefault();
  };
  root.addEventListener("touchmove", onTouchMove, { passive: false, signal });
  root.addEventListener("contextmenu", (event) => drag !== undefined && event.preventDefault(), { signal });
  window.addEventListener("pointermove", onMove, { signal });
  window.addEventListener("pointerup", onUp, { signal });
  window.addEventListener("pointercancel", onUp, { signal });
  const onClick = (event: MouseEvent) => {
    if (!suppressClick) return;
    suppressClick = false;
    event.stopPropagation();
    event.preventDefault();
  };
  window.addEventListener("click", onClick, { capture: true, signal });
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || drag === undefined) return;
    end();
    hands.putBack();
  };
  window.addEventListener("keydown", onKey, { signal });
  return () => {
    end();
    listening.abort();
  };
}

/** Returns the tile or the grip that was pressed, also in a shadow root. */
function sourceOf(event: Event): HTMLElement | undefined {
  const path = event.composedPath().filter((node) => node instanceof HTMLElement);
  return path.find(({ dataset }) => dataset.piece !== undefined || dataset.grip !== undefined);
}

/** Returns what can scroll at a point near its edge, or just beyond its upper or lower one, and by how much it should. */
function edgeAt(hands: Pick<Hands<unknown>, "scrollers" | "scrollsAcross">, x: number, y: number): { view: Element; dx: number; dy: number } | undefined {
  const beyond = (at: number, from: number, to: number) => Math.min(0, at - from - EDGE) || Math.max(0, at - to + EDGE);
  const canScroll = (by: number, at: number, most: number) => (by < 0 ? at > 0 : by > 0 && at < most - 1);
  for (const view of hands.scrollers()) {
    const { left, right, top, bottom } = view.getBoundingClientRect();
    if (x < left || x > right || y < top - EDGE / 2 || y > bottom + EDGE / 2) continue;
    const dx = hands.scrollsAcross(view) ? beyond(x, left, right) / 4 : 0;
    const dy = beyond(y, top, bottom) / 4;
    const isScrolling =
      canScroll(dx, view.scrollLeft, view.scrollWidth - view.clientWidth) ||
      canScroll(dy, view.scrollTop, view.scrollHeight - view.clientHeight);
    if (isScrolling) return { view, dx, dy };
  }
  return undefined;
}
