/**
 * The table as a player arranges it, before it is played. Pure: every function returns a new arrangement.
 *
 * The service knows faces only. A view needs to tell two red 7s apart while they move, so here each tile is a piece
 * with an id. Only `tableOf` and the number of the River's tile go back to the service. What is not of this service is in
 * rummikub-board: here melds have a kind and declared faces besides.
 */
import * as board from "rummikub-board/arrangement";
import { type Meld, MeldKind, meldsOf, Tile } from "rummikub-client";
import { compareTiles, type RackOrder } from "./tiles.js";

export { inOrder, meldWith, piecesOfMelds, sameIds, takePiece, uniquePieces } from "rummikub-board/arrangement";

/** Where a piece was when the turn began. A piece of the table cannot go to the rack. */
export type Origin = "table" | "rack" | "river";

export interface Piece extends board.Piece<Tile> {
  readonly origin: Origin;
  /** The wild tile of the table whose place the piece takes (101 Okey). */
  readonly replaced?: Piece;
}

export interface ArrangedMeld extends board.Meld<Piece> {
  /** The kind that is sent; unspecified for a meld that was changed, until the player states one. */
  readonly kind: MeldKind;
  /** A face for each joker, or none. */
  readonly declaredFaces: readonly Tile[];
}

export interface Arrangement extends board.Arrangement<ArrangedMeld> {
  /** The oldest tile that is pulled from the River. */
  readonly riverIndex?: number;
}

/** A meld as it is sent. */
export type LaidMeld = Pick<Meld, "tiles" | "kind" | "declaredFaces">;

/**
 * Where pieces go: between the tiles of a meld, into a new meld, into a cell of a grid, or among those of the rack. In a
 * game of discards a rack's index is a slot, and a tile goes in the place of a wild one of the table, on the player's
 * discards, or on the indicator to finish.
 */
export type Target =
  | board.Place
  | { readonly to: "cell"; readonly x: number; readonly y: number }
  | { readonly to: "wild"; readonly piece: number }
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
  return board.arranged(meldsOf(table), rack, before, (id, pieces, { kind, declaredFaces }): ArrangedMeld => ({ id, pieces, kind, declaredFaces }));
}

/** Returns the arrangement that lies as `table`, such as a draft or a suggestion, with the pieces of `start`. */
export function arrangeAs(start: Arrangement, table: readonly LaidMeld[]): Arrangement {
  return board.laidAs(start, table, (id, pieces, laid, old) => {
    const { kind, declaredFaces } = laid ?? unstated({ id, pieces });
    return old !== undefined && isDeclaredAs(old, kind, declaredFaces) ? old : { id, pieces, kind, declaredFaces };
  });
}

/** Returns the arrangement with pieces moved to a target; the same one if a piece of the table would go to the rack. */
export function move(arrangement: Arrangement, ids: readonly number[], target: Target): Arrangement {
  const { to } = target;
  return to === "meld" || to === "new" || to === "rack" ? board.moved(arrangement, ids, target, unstated) : arrangement;
}

/** Splits a meld before a piece: the piece and those after it become a new meld. */
export function split(arrangement: Arrangement, id: number): Arrangement {
  return board.splitBefore(arrangement, id, unstated);
}

/** Puts the tiles of a meld in an order, such as the one that a violation suggests. */
export function reorder(arrangement: Arrangement, meldId: number, order: readonly Tile[]): Arrangement {
  return replaceMeld(arrangement, meldId, (meld) => board.changed(meld, board.reordered(meld.pieces, order), unstated));
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
  const melds = arrangement.melds.map((meld) => board.changed(meld, meld.pieces.filter(isKept), unstated));
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

/** Returns a meld that is new or was changed: its kind is not stated any more. */
function unstated(meld: board.Meld<Piece>): ArrangedMeld {
  return { ...meld, kind: MeldKind.UNSPECIFIED, declaredFaces: [] };
}

function isDeclaredAs(meld: ArrangedMeld, kind: MeldKind, faces: readonly Tile[]): boolean {
  return meld.kind === kind && meld.declaredFaces.join() === faces.join();
}

function replaceMeld(
  arrangement: Arrangement,
  meldId: number,
  replace: (meld: ArrangedMeld) => ArrangedMeld,
): Arrangement {
  const melds = arrangement.melds.map((meld) => (meld.id === meldId ? replace(meld) : meld));
  return { ...arrangement, melds };
}
