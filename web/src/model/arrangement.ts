/**
 * The table as a player arranges it, before it is played. Pure: every function returns a new arrangement.
 *
 * The service knows faces only. A view needs to tell two red 7s apart while they move, so here each tile is a piece
 * with an id. Only `tableOf` and the number of the River's tile go back to the service.
 */
import { type Meld, MeldKind, meldsOf, Tile } from "rummikub-client";
import { compareTiles, type RackOrder } from "./tiles.js";

/** Where a piece was when the turn began. A piece of the table cannot go to the rack. */
export type Origin = "table" | "rack" | "river";

export interface Piece {
  readonly id: number;
  readonly tile: Tile;
  readonly origin: Origin;
  /** The wild tile of the table whose place the piece takes (101 Okey). */
  readonly replaced?: Piece;
}

export interface ArrangedMeld {
  readonly id: number;
  readonly pieces: readonly Piece[];
  /** The kind that is sent; unspecified for a meld that was changed, until the player states one. */
  readonly kind: MeldKind;
  /** A face for each joker, or none. */
  readonly declaredFaces: readonly Tile[];
}

export interface Arrangement {
  readonly melds: readonly ArrangedMeld[];
  readonly rack: readonly Piece[];
  /** The oldest tile that is pulled from the River. */
  readonly riverIndex?: number;
  readonly nextId: number;
}

/** A meld as it is sent. */
export type LaidMeld = Pick<Meld, "tiles" | "kind" | "declaredFaces">;

/**
 * Where pieces go: between the tiles of a meld, into a new meld, into a cell of a grid, or among those of the rack. In a
 * game of discards a rack's index is a slot, and a tile goes in the place of a wild one of the table, on the player's
 * discards, or on the indicator to finish.
 */
export type Target =
  | { readonly to: "cell"; readonly x: number; readonly y: number }
  | { readonly to: "meld"; readonly meld: number; readonly index: number }
  | { readonly to: "new" }
  | { readonly to: "wild"; readonly piece: number }
  | { readonly to: "rack"; readonly index: number }
  | { readonly to: "discard" }
  | { readonly to: "finish" };

/** The tiles of a view of a game from which a turn begins. */
export interface Tiles {
  readonly table: readonly Meld[];
  readonly rack: readonly Tile[];
}

export const EMPTY: Arrangement = { melds: [], rack: [], nextId: 1 };

/**
 * Returns the arrangement at the start of a turn. Tiles that were there before keep their ids, those of the rack their
 * order, so that a view can follow a tile from place to place. The rack of `before` may have tiles that its melds have
 * too: their places on the rack if they come back.
 */
export function arrange({ table, rack }: Tiles, before: Arrangement = EMPTY): Arrangement {
  let { nextId } = before;
  const oldMelds = [...before.melds];
  const found = meldsOf(table).map((meld) => {
    const same = oldMelds.findIndex(({ pieces }) => pieces.map(({ tile }) => tile).join() === meld.tiles.join());
    return { meld, old: same < 0 ? undefined : oldMelds.splice(same, 1)[0] };
  });
  const lying = new Set(found.flatMap(({ old }) => old?.pieces.map(({ id }) => id) ?? []));
  const own = uniquePieces([...before.rack, ...oldMelds.flatMap(({ pieces }) => pieces)]).filter(({ id }) => !lying.has(id));
  const left = [...rack];
  const kept = own.flatMap((piece): Piece[] => {
    const index = piece.origin === "table" ? -1 : left.indexOf(piece.tile);
    if (index < 0) return [];
    left.splice(index, 1);
    return [{ id: piece.id, tile: piece.tile, origin: "rack" }];
  });
  const loose = own.filter(({ id }) => kept.every((piece) => piece.id !== id));
  const melds = found.map(({ meld: { tiles, kind, declaredFaces }, old }): ArrangedMeld => {
    const near = old ?? oldMelds.splice(mostShared(oldMelds, tiles), 1)[0];
    const pieces = tiles.map((tile, i): Piece => ({ id: old?.pieces[i]?.id ?? takeId(loose, tile, near) ?? nextId++, tile, origin: "table" }));
    return { id: near?.id ?? nextId++, pieces, kind, declaredFaces };
  });
  const drawn = left.map((tile): Piece => ({ id: nextId++, tile, origin: "rack" }));
  return { melds, rack: [...kept, ...drawn], nextId };
}

export function uniquePieces<P extends Piece>(pieces: readonly P[]): P[] {
  return [...new Map(pieces.map((piece) => [piece.id, piece])).values()];
}

/** Returns the index of the meld with most of some tiles; beyond the last if no meld has one of them. */
function mostShared(melds: readonly ArrangedMeld[], tiles: readonly Tile[]): number {
  const shared = melds.map(({ pieces }) => pieces.filter(({ tile }) => tiles.includes(tile)).length);
  const most = Math.max(0, ...shared);
  return most === 0 ? melds.length : shared.indexOf(most);
}

/** Takes a piece with a face, of the meld if that has one. Returns its id; undefined if there is none. */
function takeId(loose: Piece[], tile: Tile, meld: ArrangedMeld | undefined): number | undefined {
  const isIn = ({ id }: Piece) => meld?.pieces.some((piece) => piece.id === id) ?? false;
  const near = loose.findIndex((piece) => piece.tile === tile && isIn(piece));
  const index = near < 0 ? loose.findIndex((piece) => piece.tile === tile) : near;
  return index < 0 ? undefined : loose.splice(index, 1)[0]!.id;
}

/** Returns pieces in another order: those of `order` as there, each other one behind the piece that it was behind. */
export function inOrder(pieces: readonly Piece[], order: readonly Piece[]): Piece[] {
  const placeOf = ({ id }: Piece) => order.findIndex((piece) => piece.id === id);
  const sorted = pieces.filter((piece) => placeOf(piece) >= 0).sort((a, b) => placeOf(a) - placeOf(b));
  pieces.forEach((piece, i) => {
    if (placeOf(piece) < 0) sorted.splice(sorted.indexOf(pieces[i - 1]!) + 1, 0, piece);
  });
  return sorted;
}

/** Returns the arrangement that lies as `table`, such as a draft or a suggestion, with the pieces of `start`. */
export function arrangeAs(start: Arrangement, table: readonly LaidMeld[]): Arrangement {
  const loose = [...start.melds.flatMap((meld) => meld.pieces), ...start.rack];
  let { nextId } = start;
  const unchanged = [...start.melds];
  const melds = table.map(({ tiles, kind, declaredFaces }): ArrangedMeld => {
    const pieces = tiles.flatMap((tile) => {
      const index = loose.findIndex((piece) => piece.tile === tile);
      return index < 0 ? [] : loose.splice(index, 1);
    });
    const same = unchanged.findIndex((meld) => sameIds(meld.pieces, pieces));
    const [old] = same < 0 ? [] : unchanged.splice(same, 1);
    if (old !== undefined && isDeclaredAs(old, kind, declaredFaces)) return old;
    return { id: old?.id ?? nextId++, pieces, kind, declaredFaces };
  });
  // A draft may lack tiles of the table, which its player had in hand: they lie as a meld of their own.
  const inHand = loose.filter((piece) => piece.origin === "table");
  if (inHand.length > 0) melds.push({ id: nextId++, pieces: inHand, kind: MeldKind.UNSPECIFIED, declaredFaces: [] });
  return { ...start, melds, rack: start.rack.filter((piece) => loose.includes(piece)), nextId };
}

/** Returns the arrangement with pieces moved to a target; the same one if a piece of the table would go to the rack. */
export function move(arrangement: Arrangement, ids: readonly number[], target: Target): Arrangement {
  const pieces = [...arrangement.rack, ...piecesOfMelds(arrangement)];
  const moved = ids.flatMap((id) => pieces.find((piece) => piece.id === id) ?? []);
  if (moved.length === 0 || !["meld", "new", "rack"].includes(target.to)) return arrangement;
  if (target.to === "rack" && moved.some((piece) => piece.origin === "table")) return arrangement;
  const isMoved = (piece: Piece) => moved.some(({ id }) => id === piece.id);
  /** Returns the list without the moved pieces, or with them before the piece that is now at `index`. */
  const relaid = (pieces: readonly Piece[], index?: number) => {
    const rest = (part: readonly Piece[]) => part.filter((piece) => !isMoved(piece));
    if (index === undefined) return rest(pieces);
    return [...rest(pieces.slice(0, index)), ...moved, ...rest(pieces.slice(index))];
  };
  const melds = arrangement.melds.map((meld) =>
    changed(meld, relaid(meld.pieces, target.to === "meld" && target.meld === meld.id ? target.index : undefined)),
  );
  let { nextId } = arrangement;
  if (target.to === "new") melds.push({ id: nextId++, pieces: moved, kind: MeldKind.UNSPECIFIED, declaredFaces: [] });
  const rack = relaid(arrangement.rack, target.to === "rack" ? target.index : undefined);
  const next = { ...arrangement, melds: melds.filter((meld) => meld.pieces.length > 0), rack, nextId };
  return isSame(arrangement, next) ? arrangement : next;
}

/** Splits a meld before a piece: the piece and those after it become a new meld. */
export function split(arrangement: Arrangement, id: number): Arrangement {
  const meld = meldWith(arrangement, id);
  const index = meld?.pieces.findIndex((piece) => piece.id === id) ?? -1;
  if (meld === undefined || index <= 0) return arrangement;
  return move(
    arrangement,
    meld.pieces.slice(index).map((piece) => piece.id),
    { to: "new" },
  );
}

/** Puts the tiles of a meld in an order, such as the one that a violation suggests. */
export function reorder(arrangement: Arrangement, meldId: number, order: readonly Tile[]): Arrangement {
  return replaceMeld(arrangement, meldId, (meld) => {
    const loose = [...meld.pieces];
    const pieces = order.flatMap((tile) => {
      const index = loose.findIndex((piece) => piece.tile === tile);
      return index < 0 ? [] : loose.splice(index, 1);
    });
    return changed(meld, [...pieces, ...loose]);
  });
}

/** States the kind of a meld, and the faces of its jokers. */
export function declare(
  arrangement: Arrangement,
  meldId: number,
  kind: MeldKind,
  declaredFaces: readonly Tile[],
): Arrangement {
  return replaceMeld(arrangement, meldId, (meld) => ({ ...meld, kind, declaredFaces }));
}

/** Sorts the rack. */
export function sortRack(arrangement: Arrangement, order: RackOrder): Arrangement {
  const compare = compareTiles(order);
  return { ...arrangement, rack: [...arrangement.rack].sort((a, b) => compare(a.tile, b.tile)) };
}

/** Pulls a tile of the River: it lies beside the rack until it is placed. Without an index, puts it back. */
export function pull(arrangement: Arrangement, river: readonly Tile[], index?: number): Arrangement {
  const isKept = (piece: Piece) => piece.origin !== "river";
  const melds = arrangement.melds.map((meld) => changed(meld, meld.pieces.filter(isKept)));
  const rack = arrangement.rack.filter(isKept);
  const { riverIndex: _, nextId, ...rest } = arrangement;
  const back = { ...rest, melds: melds.filter((meld) => meld.pieces.length > 0), rack, nextId };
  const tile = index === undefined ? undefined : river[index];
  if (tile === undefined) return back;
  return { ...back, rack: [...rack, { id: nextId, tile, origin: "river" }], riverIndex: index!, nextId: nextId + 1 };
}

/** Returns the melds to send to the service. */
export function tableOf(arrangement: Arrangement): LaidMeld[] {
  return arrangement.melds.map(({ pieces, kind, declaredFaces }) => ({
    tiles: pieces.map((piece) => piece.tile),
    kind,
    declaredFaces: [...declaredFaces],
  }));
}

/** Returns the pieces on the table. */
export function piecesOfMelds(arrangement: Arrangement): Piece[] {
  return arrangement.melds.flatMap((meld) => meld.pieces);
}

export function meldWith(arrangement: Arrangement, pieceId: number): ArrangedMeld | undefined {
  return arrangement.melds.find((meld) => meld.pieces.some((piece) => piece.id === pieceId));
}

function isSame(a: Arrangement, b: Arrangement): boolean {
  return (
    sameIds(a.rack, b.rack) &&
    a.melds.length === b.melds.length &&
    a.melds.every((meld, i) => meld.id === b.melds[i]!.id && sameIds(meld.pieces, b.melds[i]!.pieces))
  );
}

/** Returns the meld with other pieces. A meld that is changed is a new one: its kind is not stated any more. */
function changed(meld: ArrangedMeld, pieces: readonly Piece[]): ArrangedMeld {
  if (sameIds(meld.pieces, pieces)) return meld;
  return { ...meld, pieces, kind: MeldKind.UNSPECIFIED, declaredFaces: [] };
}

function isDeclaredAs(meld: ArrangedMeld, kind: MeldKind, faces: readonly Tile[]): boolean {
  return meld.kind === kind && meld.declaredFaces.join() === faces.join();
}

export function sameIds(a: readonly Piece[], b: readonly Piece[]): boolean {
  return a.length === b.length && a.every((piece, i) => piece.id === b[i]!.id);
}

function replaceMeld(
  arrangement: Arrangement,
  meldId: number,
  replace: (meld: ArrangedMeld) => ArrangedMeld,
): Arrangement {
  const melds = arrangement.melds.map((meld) => (meld.id === meldId ? replace(meld) : meld));
  return { ...arrangement, melds };
}
