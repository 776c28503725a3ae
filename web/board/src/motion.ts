/** Moves tiles from where they were to where they are (FLIP). */

/** Tiles that move less than this many pixels are not animated. */
const LEAST = 2;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Returns the tiles in an element: those with `data-piece`. */
export function tilesIn(root: ParentNode): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>("[data-piece]")];
}

export function idOf(tile: HTMLElement): number {
  return Number(tile.dataset.piece);
}

export function cornerOf(element: Element): Point {
  const { left: x, top: y } = element.getBoundingClientRect();
  return { x, y };
}

/** Returns where the tiles in an element are, by their ids. */
export function cornersIn(root: ParentNode): Map<number, Point> {
  return new Map(tilesIn(root).map((tile) => [idOf(tile), cornerOf(tile)]));
}

/** Whether nothing should move. */
export function isCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Moves a tile from a point to where it is. Returns whether it moves. */
export function moveFrom(tile: HTMLElement, from: Point, duration: number): boolean {
  const to = cornerOf(tile);
  const [dx, dy] = [from.x - to.x, from.y - to.y];
  if (isCalm() || Math.hypot(dx, dy) < LEAST) return false;
  tile.animate({ translate: [`${dx}px ${dy}px`, "0 0"], zIndex: [5, 5] }, { duration, easing: "ease-out" });
  return true;
}

/** Shows a tile that was not there. Returns whether it moves. */
export function appear(tile: HTMLElement, duration: number): boolean {
  if (isCalm()) return false;
  tile.animate({ opacity: [0, 1], scale: [0.6, 1] }, duration);
  return true;
}
