/** The rack of a game of discards, ıstaka: two rows of slots, in which a player arranges a hand with gaps. */
import type { Tile } from "rummikub-client";
import { type Arrangement, EMPTY, type Piece, type Target } from "./arrangement.js";
import { compareTiles, type RackOrder } from "./tiles.js";

export interface Stand extends Arrangement {
  /** The slots from left to right, the upper row first. */
  readonly slots: readonly (Piece | undefined)[];
}

/** The slots of a row. Four melds and the tile that goes fit in two rows with gaps between them. */
export const COLUMNS = 12;
export const SLOTS = 2 * COLUMNS;

export function isStand(arrangement: Arrangement): arrangement is Stand {
  return "slots" in arrangement;
}

/**
 * Returns the stand with the tiles of a rack. Tiles that were there before keep their ids and slots, unless most tiles
 * are others: then a new round was dealt.
 */
export function arrangeStand(rack: readonly Tile[], before: Arrangement = EMPTY): Stand {
  const left = [...rack];
  const kept = (isStand(before) ? before.slots : []).map((piece) => {
    const index = piece === undefined ? -1 : left.indexOf(piece.tile);
    if (index >= 0) left.splice(index, 1);
    return index < 0 ? undefined : piece;
  });
  let { nextId } = before;
  const added = (tile: Tile): Piece => ({ id: nextId++, tile, origin: "rack" });
  if (left.length > rack.length / 2) return standOf(inTwoRows(rack.map(added)), nextId);
  const slots = [...kept];
  for (const tile of left) slots[freeSlot(slots)] = added(tile);
  return standOf(slots, nextId);
}

/** Returns the stand with pieces moved to slots from the one of the target on. Others there make way. */
export function moveOnStand(stand: Stand, ids: readonly number[], target: Target): Stand {
  const moved = ids.flatMap((id) => stand.slots.find((piece) => piece?.id === id) ?? []);
  if (moved.length === 0 || target.to !== "rack") return stand;
  const slots = stand.slots.map((piece) => (piece !== undefined && ids.includes(piece.id) ? undefined : piece));
  const first = Math.max(0, Math.min(target.index, SLOTS - moved.length));
  moved.forEach((piece, i) => {
    makeWay(slots, first + i);
    slots[first + i] = piece;
  });
  return slots.every((piece, i) => piece === stand.slots[i]) ? stand : standOf(slots, stand.nextId);
}

/** Returns the stand in an order, without gaps, half of it in each row. */
export function sortStand(stand: Stand, order: RackOrder): Stand {
  const compare = compareTiles(order);
  return standOf(inTwoRows([...stand.rack].sort((a, b) => compare(a.tile, b.tile))), stand.nextId);
}

/** Returns the slot of a piece; -1 if it is not on the stand. */
export function slotOf({ slots }: Stand, id: number | undefined): number {
  return slots.findIndex((piece) => piece !== undefined && piece.id === id);
}

function standOf(pieces: readonly (Piece | undefined)[], nextId: number): Stand {
  const slots = Array.from({ length: SLOTS }, (_, i) => pieces[i]);
  return { melds: [], rack: slots.filter((piece) => piece !== undefined), slots, nextId };
}

function inTwoRows(pieces: readonly Piece[]): (Piece | undefined)[] {
  const upper = Math.min(COLUMNS, Math.ceil(pieces.length / 2));
  const gap = Array.from({ length: COLUMNS - upper }, () => undefined);
  return [...pieces.slice(0, upper), ...gap, ...pieces.slice(upper)];
}

/** Returns the slot for a tile that is taken: after the last tile, or else the last gap. */
function freeSlot(slots: readonly (Piece | undefined)[]): number {
  const last = slots.findLastIndex((piece) => piece !== undefined);
  return last + 1 < SLOTS ? last + 1 : slots.lastIndexOf(undefined);
}

/** Empties a slot: moves the tiles between it and the nearest gap, of its row if that has one, toward the gap. */
function makeWay(slots: (Piece | undefined)[], at: number): void {
  const gap = gapNear(slots, at);
  if (gap === undefined) return;
  slots.splice(gap, 1);
  slots.splice(at, 0, undefined);
}

function gapNear(slots: readonly (Piece | undefined)[], at: number): number | undefined {
  const gaps = slots.flatMap((piece, i) => (piece === undefined ? [i] : []));
  const row = Math.floor(at / COLUMNS);
  const isInRow = (slot: number) => Math.floor(slot / COLUMNS) === row;
  /** Orders gaps: of the row before others, then to the right before to the left, then near before far. */
  const cost = (slot: number) => (isInRow(slot) ? 0 : 1_000) + (slot < at ? 100 : 0) + Math.abs(slot - at);
  return gaps.sort((a, b) => cost(a) - cost(b))[0];
}
