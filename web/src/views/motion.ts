/** Moves tiles from where they were to where they are when the table or the rack has changed (FLIP). */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import type { LastPlay, SessionStore } from "../control/session-state.js";

const DURATION_MS = 260;
const AGAIN_MS = 400;
/** Tiles that move less than this many pixels are not animated. */
const LEAST = 2;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where a tile is, and what moves with all its tiles when the hand grows or something scrolls. */
interface Place extends Point {
  readonly parent: Element | null;
  readonly origin: Point;
}

/** Animates the tiles below an element. Returns a function that shows the last play of another player again. */
export function useMotion(root: RefObject<HTMLElement | null>, state: SessionStore): () => void {
  const motion = useMemo(() => new Motion(state), [state]);
  useEffect(() => state.subscribe(() => motion.look(root.current)), [state]);
  // The parts of the table are rendered before the table itself is: now all tiles are where they will be.
  useLayoutEffect(() => motion.play(root.current));
  return () => motion.playAgain(root.current);
}

class Motion {
  readonly #state: SessionStore;
  /** Where the tiles were before the change that is not rendered yet. */
  #before: Map<number, Place> | undefined;
  #shown: unknown;
  #carried: readonly number[] = [];
  /** The tiles that were dropped: they are already where they lie. */
  #dropped: readonly number[] = [];
  #lastPlay: LastPlay | undefined;
  /** Where the tiles of the last play came from, seen from the corner of the page's table. */
  #origins = new Map<number, Point>();

  constructor(state: SessionStore) {
    this.#state = state;
  }

  /** Notes where the tiles are. The state has changed already, but the page has not. */
  look(root: HTMLElement | null): void {
    const { history, carried } = this.#state.value;
    if (carried === undefined && this.#carried.length > 0) this.#dropped = this.#carried;
    this.#carried = carried?.ids ?? [];
    if (root === null || history.present === this.#shown || this.#before !== undefined) return;
    this.#shown = history.present;
    this.#before = new Map(tilesIn(root).map((tile) => [idOf(tile), placeOf(tile)]));
  }

  play(root: HTMLElement | null): void {
    const [before, dropped] = [this.#before, this.#dropped];
    this.#before = undefined;
    this.#dropped = [];
    if (root === null || before === undefined || before.size === 0) return;
    const { fresh, lastPlay } = this.#state.value;
    const isPlay = lastPlay !== this.#lastPlay;
    this.#lastPlay = lastPlay;
    const origins = new Map<number, Point>();
    for (const tile of tilesIn(root)) {
      const id = idOf(tile);
      const old = before.get(id);
      const from = (old && shifted(old, tile)) ?? (fresh.has(id) ? sourceOf(tile, root, lastPlay) : undefined);
      if (from !== undefined && !dropped.includes(id)) {
        move(tile, from, DURATION_MS);
        origins.set(id, from);
      }
    }
    if (!isPlay) return;
    const corner = cornerOf(root);
    this.#origins = new Map([...origins].map(([id, { x, y }]) => [id, { x: x - corner.x, y: y - corner.y }]));
  }

  playAgain(root: HTMLElement | null): void {
    if (root === null) return;
    const corner = cornerOf(root);
    for (const tile of tilesIn(root)) {
      const from = this.#origins.get(idOf(tile));
      if (from !== undefined) move(tile, { x: from.x + corner.x, y: from.y + corner.y }, AGAIN_MS);
    }
  }
}

function tilesIn(root: HTMLElement): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>("[data-piece]")];
}

function idOf(tile: HTMLElement): number {
  return Number(tile.dataset.piece);
}

function cornerOf(element: Element): Point {
  const { left: x, top: y } = element.getBoundingClientRect();
  return { x, y };
}

function placeOf(tile: HTMLElement): Place {
  const parent = parentOf(tile);
  return { ...cornerOf(tile), parent, origin: parent === null ? { x: 0, y: 0 } : cornerOf(parent) };
}

function parentOf(tile: HTMLElement): Element | null {
  return tile.closest(".melds, .rack");
}

/** Returns where a tile was, as if the part of the table in which it stays had not moved. */
function shifted({ x, y, parent, origin }: Place, tile: HTMLElement): Point {
  if (parent === null || parentOf(tile) !== parent) return { x, y };
  const now = cornerOf(parent);
  return { x: x + now.x - origin.x, y: y + now.y - origin.y };
}

/** Returns from where a tile comes that was not there before: the pool, or the player who laid it. */
function sourceOf(tile: HTMLElement, root: HTMLElement, play: LastPlay | undefined): Point | undefined {
  const isOnRack = tile.closest(".rack") !== null;
  const source = root.querySelector(isOnRack ? "[data-pool]" : `[data-seat="${play?.seat}"]`);
  return source === null ? undefined : cornerOf(source);
}

/** Whether nothing should move. */
export function isCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function move(tile: HTMLElement, from: Point, duration: number): void {
  if (isCalm()) return;
  const to = cornerOf(tile);
  const [dx, dy] = [from.x - to.x, from.y - to.y];
  if (Math.hypot(dx, dy) < LEAST) return;
  tile.animate({ translate: [`${dx}px ${dy}px`, "0 0"], zIndex: [5, 5] }, { duration, easing: "ease-out" });
}
