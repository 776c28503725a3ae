/**
 * The rack of a game of discards, ıstaka: two rows of slots, in which a player arranges a hand with gaps. In 101 Okey
 * also what the player lays on the table in the next step: melds there only grow.
 */
import { type HandPart, MeldKind, type Tile } from "rummikub-client";
import { type ArrangedMeld, type Arrangement, EMPTY, type Piece, piecesOfMelds, sameIds, takePiece, type Target } from "./arrangement.js";
import { compareTiles, type RackOrder } from "./tiles.js";

export interface Stand extends Arrangement {
  /** The slots from left to right, the upper row first. */
  readonly slots: Slots;
  /** The slots of a row. */
  readonly columns: number;
}

type Slots = readonly (Piece | undefined)[];

/** The slots of a row in Okey. Four melds and the tile that goes fit in two rows with gaps between them. */
export const COLUMNS = 12;
/** The slots of a row for the 22 tiles of 101 Okey. */
export const WIDE_COLUMNS = 15;

export function isStand(arrangement: Arrangement): arrangement is Stand {
  return "slots" in arrangement;
}

/**
 * Returns the stand with the tiles of a rack, and the melds of the table if there are any. Tiles that were there before
 * keep their ids and slots, unless most tiles are others: then a new round was dealt.
 */
export function arrangeStand(
  rack: readonly Tile[],
  before: Arrangement = EMPTY,
  table: readonly Pick<HandPart, "tiles">[] = [],
  columns = COLUMNS,
): Stand {
  let { nextId } = before;
  const melds = table.map(({ tiles }, place): ArrangedMeld => {
    const old = before.melds[place];
    const left = [...(old?.pieces ?? [])];
    const pieces = tiles.map((tile): Piece => ({ id: takePiece(left, tile)?.id ?? nextId++, tile, origin: "table" }));
    return { id: old?.id ?? nextId++, pieces, kind: MeldKind.UNSPECIFIED, declaredFaces: [] };
  });
  const left = [...rack];
  const kept = (isStand(before) ? before.slots : []).map((piece) => {
    const index = piece === undefined ? -1 : left.indexOf(piece.tile);
    if (index >= 0) left.splice(index, 1);
    return index < 0 ? undefined : piece;
  });
  const added = (tile: Tile): Piece => ({ id: nextId++, tile, origin: "rack" });
  if (left.length > rack.length / 2) {
    const slots = inTwoRows(rack.map(added), columns);
    return standOf({ columns, melds, nextId }, slots);
  }
  const slots = Array.from({ length: 2 * columns }, (_, i) => kept[i]);
  for (const tile of left) slots[freeSlot(slots)] = added(tile);
  return standOf({ columns, melds, nextId }, slots);
}

/**
 * Returns the stand with pieces moved: to slots from the one of the target on, where others make way, or to the table.
 * What lay on the table before stays there, but for a wild tile whose place a piece takes: it goes to the rack.
 */
export function moveOnStand(stand: Stand, ids: readonly number[], target: Target): Stand {
  const all = [...stand.rack, ...piecesOfMelds(stand)];
  const moved = ids.flatMap((id) => all.find((piece) => piece.id === id) ?? []);
  if (moved.length === 0 || moved.some(({ id }) => !isOwn(stand, id))) return stand;
  const next = laidAt(stand, moved, target);
  return next === undefined || isSame(next, stand) ? stand : next;
}

/** Whether a piece is the player's: it is on the rack, or was when the turn's step began. */
export function isOwn(stand: Stand, id: number): boolean {
  return slotOf(stand, id) >= 0 || piecesOfMelds(stand).some((piece) => piece.id === id && piece.origin !== "table");
}

/** Returns the stand with pieces at a target; undefined if they cannot go there. */
function laidAt(stand: Stand, moved: readonly Piece[], target: Target): Stand | undefined {
  const free = moved.map(({ replaced: _, ...piece }): Piece => piece);
  const [first, ...others] = free;
  const lifted = lift(stand, moved);
  switch (target.to) {
    case "rack":
      return standOf(lifted, withPieces(lifted.slots, free, target.index));
    case "new": {
      const meld = { id: stand.nextId, pieces: free, kind: MeldKind.UNSPECIFIED, declaredFaces: [] };
      return { ...lifted, melds: [...lifted.melds, meld], nextId: stand.nextId + 1 };
    }
    case "meld": {
      const before = stand.melds.find(({ id }) => id === target.meld)?.pieces.slice(0, target.index) ?? [];
      const at = before.filter(({ id, replaced }) => replaced !== undefined || moved.every((piece) => piece.id !== id)).length;
      return withMeld(lifted, target.meld, (pieces) => [...pieces.slice(0, at), ...free, ...pieces.slice(at)]);
    }
    case "wild": {
      const wild = piecesOfMelds(lifted).find(({ id, origin }) => id === target.piece && origin === "table");
      if (wild === undefined || first === undefined || others.length > 0 || first.tile === wild.tile) return undefined;
      const slots = [...lifted.slots];
      const slot = slotOf(stand, first.id);
      slots[slot < 0 ? freeSlot(slots) : slot] = { ...wild, origin: "rack" };
      const meld = lifted.melds.find(({ pieces }) => pieces.includes(wild));
      const placed = { ...first, replaced: wild };
      return withMeld(standOf(lifted, slots), meld?.id, (pieces) => pieces.map((piece) => (piece === wild ? placed : piece)));
    }
    default:
      return undefined;
  }
}

/** Returns the stand without pieces. A wild tile whose place one of them took is there again. */
function lift(stand: Stand, moved: readonly Piece[]): Stand {
  const back = moved.flatMap(({ replaced }) => replaced ?? []);
  const isGone = ({ id }: Piece) => [...moved, ...back].some((piece) => piece.id === id);
  const melds = stand.melds
    .map((meld) => {
      const pieces = meld.pieces.flatMap((piece) => (isGone(piece) ? (piece.replaced ?? []) : piece));
      return sameIds(pieces, meld.pieces) ? meld : { ...meld, pieces };
    })
    .filter(({ pieces }) => pieces.length > 0);
  const slots = stand.slots.map((piece) => (piece === undefined || isGone(piece) ? undefined : piece));
  return standOf({ ...stand, melds }, slots);
}

function withMeld(stand: Stand, id: number | undefined, change: (pieces: readonly Piece[]) => readonly Piece[]): Stand {
  const melds = stand.melds.map((meld) => (meld.id === id ? { ...meld, pieces: change(meld.pieces) } : meld));
  return { ...stand, melds };
}

/** Returns the slots with pieces from a slot on. */
function withPieces(before: Slots, pieces: readonly Piece[], index: number): Slots {
  const slots = [...before];
  const first = Math.max(0, Math.min(index, slots.length - pieces.length));
  pieces.forEach((piece, i) => {
    makeWay(slots, first + i);
    slots[first + i] = piece;
  });
  return slots;
}

function isSame(a: Stand, b: Stand): boolean {
  return (
    a.slots.every((piece, i) => piece?.id === b.slots[i]?.id) &&
    a.melds.length === b.melds.length &&
    a.melds.every((meld, i) => sameIds(meld.pieces, b.melds[i]!.pieces))
  );
}

/** Returns the stand in an order, without gaps, half of it in each row. */
export function sortStand(stand: Stand, order: RackOrder): Stand {
  const compare = compareTiles(order);
  const sorted = [...stand.rack].sort((a, b) => compare(a.tile, b.tile));
  return standOf(stand, inTwoRows(sorted, stand.columns));
}

/** Returns the stand with its pieces in these slots. */
export function withSlots(stand: Stand, slots: Slots): Stand {
  return standOf(stand, slots);
}

/** Returns the slot of a piece; -1 if it is not on the stand. */
export function slotOf({ slots }: Stand, id: number | undefined): number {
  return slots.findIndex((piece) => piece !== undefined && piece.id === id);
}

function standOf({ columns, melds, nextId }: Pick<Stand, "columns" | "melds" | "nextId">, pieces: Slots): Stand {
  const slots = Array.from({ length: 2 * columns }, (_, i) => pieces[i]);
  return { melds, rack: slots.filter((piece) => piece !== undefined), slots, columns, nextId };
}

function inTwoRows(pieces: readonly Piece[], columns: number): Slots {
  const upper = Math.min(columns, Math.ceil(pieces.length / 2));
  const gap = Array.from({ length: columns - upper }, () => undefined);
  return [...pieces.slice(0, upper), ...gap, ...pieces.slice(upper)];
}

/** Returns the slot for a tile that is taken: after the last tile, or else the last gap. */
function freeSlot(slots: Slots): number {
  const last = slots.findLastIndex((piece) => piece !== undefined);
  return last + 1 < slots.length ? last + 1 : slots.lastIndexOf(undefined);
}

/** Empties a slot: moves the tiles between it and the nearest gap, of its row if that has one, toward the gap. */
function makeWay(slots: (Piece | undefined)[], at: number): void {
  const gap = gapNear(slots, at);
  if (gap === undefined) return;
  slots.splice(gap, 1);
  slots.splice(at, 0, undefined);
}

function gapNear(slots: Slots, at: number): number | undefined {
  const gaps = slots.flatMap((piece, i) => (piece === undefined ? [i] : []));
  const isInRow = (slot: number) => slot < slots.length / 2 === at < slots.length / 2;
  /** Orders gaps: of the row before others, then to the right before to the left, then near before far. */
  const cost = (slot: number) => (isInRow(slot) ? 0 : 1_000) + (slot < at ? 100 : 0) + Math.abs(slot - at);
  return gaps.sort((a, b) => cost(a) - cost(b))[0];
}
