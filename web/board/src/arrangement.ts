/**
 * The table and the rack as a player arranges them. Pure: every function returns a new arrangement.
 *
 * A position knows faces only. A view needs to tell two red 7s apart while they move, so here each tile is a piece with an
 * id. The functions keep what a caller's pieces, melds and arrangements have besides; `make` returns a meld that is new or
 * was changed.
 */

export interface Piece<T = unknown> {
  readonly id: number;
  readonly tile: T;
  /** Where the piece was when the turn began. A piece of the table cannot go to the rack. */
  readonly origin: string;
}

export interface Meld<P extends Piece = Piece> {
  readonly id: number;
  readonly pieces: readonly P[];
}

export interface Arrangement<M extends Meld = Meld, P extends Piece = M["pieces"][number]> {
  readonly melds: readonly M[];
  readonly rack: readonly P[];
  readonly nextId: number;
}

/** Where pieces go: before the piece at `index` of a meld or of the rack, or into a new meld. */
export type Place =
  | { readonly to: "meld"; readonly meld: number; readonly index: number }
  | { readonly to: "new" }
  | { readonly to: "rack"; readonly index: number };

type MeldOf<A extends Arrangement> = A["melds"][number];
type PieceOf<A extends Arrangement> = A["rack"][number];
/** Makes a meld of what is sure about it: its id and its pieces, and of a changed one what else it had. */
export type MakeMeld<M extends Meld> = (meld: Meld<M["pieces"][number]> & Partial<M>) => M;

/** Tiles that lie together, as a position has them. */
export interface Laid<T> {
  readonly tiles: readonly T[];
}

/**
 * Returns the melds and the rack of a position at the start of a turn. Tiles that were there before keep their ids, those of
 * the rack their order, so that a view can follow a tile from place to place. The rack of `before` may have pieces that its
 * melds have too: their places on the rack if they come back.
 */
export function arranged<T, L extends Laid<T>, M extends Meld<Piece<T>>>(
  table: readonly L[],
  rack: readonly T[],
  before: Arrangement<Meld<Piece<T>>>,
  make: (id: number, pieces: readonly { id: number; tile: T; origin: "table" }[], laid: L) => M,
): { melds: M[]; rack: { id: number; tile: T; origin: "rack" }[]; nextId: number } {
  let { nextId } = before;
  const oldMelds = [...before.melds];
  const found = table.map((laid) => {
    const same = oldMelds.findIndex(({ pieces }) => pieces.map(({ tile }) => tile).join() === laid.tiles.join());
    return { laid, old: same < 0 ? undefined : oldMelds.splice(same, 1)[0] };
  });
  const lying = new Set(found.flatMap(({ old }) => old?.pieces.map(({ id }) => id) ?? []));
  const own = uniquePieces([...before.rack, ...oldMelds.flatMap(({ pieces }) => pieces)]).filter(({ id }) => !lying.has(id));
  const left = [...rack];
  const kept = own.flatMap(({ id, tile, origin }) => {
    const index = origin === "table" ? -1 : left.indexOf(tile);
    if (index < 0) return [];
    left.splice(index, 1);
    return [{ id, tile, origin: "rack" as const }];
  });
  const loose = own.filter(({ id }) => kept.every((piece) => piece.id !== id));
  const melds = found.map(({ laid, old }) => {
    const near = old ?? oldMelds.splice(mostShared(oldMelds, laid.tiles), 1)[0];
    const idOf = (tile: T, i: number) => old?.pieces[i]?.id ?? takeId(loose, tile, near) ?? nextId++;
    const pieces = laid.tiles.map((tile, i) => ({ id: idOf(tile, i), tile, origin: "table" as const }));
    return make(near?.id ?? nextId++, pieces, laid);
  });
  const drawn = left.map((tile) => ({ id: nextId++, tile, origin: "rack" as const }));
  return { melds, rack: [...kept, ...drawn], nextId };
}

export function uniquePieces<P extends Piece>(pieces: readonly P[]): P[] {
  return [...new Map(pieces.map((piece) => [piece.id, piece])).values()];
}

/** Returns the index of the meld with most of some tiles; beyond the last if no meld has one of them. */
function mostShared<T>(melds: readonly Meld<Piece<T>>[], tiles: readonly T[]): number {
  const shared = melds.map(({ pieces }) => pieces.filter(({ tile }) => tiles.includes(tile)).length);
  const most = Math.max(0, ...shared);
  return most === 0 ? melds.length : shared.indexOf(most);
}

/** Takes a piece with a face, of the meld if that has one. Returns its id; undefined if there is none. */
function takeId<T>(loose: Piece<T>[], tile: T, meld: Meld | undefined): number | undefined {
  const isIn = ({ id }: Piece) => meld?.pieces.some((piece) => piece.id === id) ?? false;
  const near = loose.findIndex((piece) => piece.tile === tile && isIn(piece));
  return (near < 0 ? takePiece(loose, tile) : loose.splice(near, 1)[0])?.id;
}

/** Takes a piece with a face out of a list. Returns undefined if there is none. */
export function takePiece<P extends Piece>(loose: P[], tile: P["tile"]): P | undefined {
  const index = loose.findIndex((piece) => piece.tile === tile);
  return index < 0 ? undefined : loose.splice(index, 1)[0];
}

/** Takes the pieces with some faces. A face of which there is none is left out. */
function takePieces<P extends Piece>(loose: P[], tiles: readonly P["tile"][]): P[] {
  return tiles.flatMap((tile) => takePiece(loose, tile) ?? []);
}

/** Returns pieces in another order: those of `order` as there, each other one behind the piece that it was behind. */
export function inOrder<P extends Piece>(pieces: readonly P[], order: readonly Piece[]): P[] {
  const placeOf = ({ id }: Piece) => order.findIndex((piece) => piece.id === id);
  const sorted = pieces.filter((piece) => placeOf(piece) >= 0).sort((a, b) => placeOf(a) - placeOf(b));
  pieces.forEach((piece, i) => {
    if (placeOf(piece) < 0) sorted.splice(sorted.indexOf(pieces[i - 1]!) + 1, 0, piece);
  });
  return sorted;
}

/**
 * Returns the arrangement that lies as `table`, such as a draft or a suggestion, with the pieces of `start`. `make` gets the
 * meld of the same pieces too, if there was one.
 */
export function laidAs<A extends Arrangement, L extends Laid<PieceOf<A>["tile"]>>(
  start: A,
  table: readonly L[],
  make: (id: number, pieces: readonly PieceOf<A>[], laid: L | undefined, old?: MeldOf<A>) => MeldOf<A>,
): A {
  const loose: PieceOf<A>[] = [...piecesOfMelds(start), ...start.rack];
  let { nextId } = start;
  const unchanged: MeldOf<A>[] = [...start.melds];
  const melds = table.map((laid) => {
    const pieces = takePieces(loose, laid.tiles);
    const same = unchanged.findIndex((meld) => sameIds(meld.pieces, pieces));
    const [old] = same < 0 ? [] : unchanged.splice(same, 1);
    return make(old?.id ?? nextId++, pieces, laid, old);
  });
  // A draft may lack tiles of the table, which its player had in hand: they lie as a meld of their own.
  const inHand = loose.filter(({ origin }) => origin === "table");
  if (inHand.length > 0) melds.push(make(nextId++, inHand, undefined));
  return { ...start, melds, rack: start.rack.filter((piece) => loose.includes(piece)), nextId };
}

/** Returns the arrangement with pieces moved to a place; the same one if a piece of the table would go to the rack. */
export function moved<A extends Arrangement>(arrangement: A, ids: readonly number[], place: Place, make: MakeMeld<MeldOf<A>>): A {
  const all = [...arrangement.rack, ...piecesOfMelds(arrangement)];
  const carried = ids.flatMap((id) => all.find((piece) => piece.id === id) ?? []);
  if (carried.length === 0) return arrangement;
  if (place.to === "rack" && carried.some(({ origin }) => origin === "table")) return arrangement;
  const isStaying = ({ id }: Piece) => carried.every((piece) => piece.id !== id);
  /** Returns the list without the moved pieces, or with them before the piece that is now at `index`. */
  const relaid = (pieces: readonly PieceOf<A>[], index?: number) =>
    index === undefined
      ? pieces.filter(isStaying)
      : [...pieces.slice(0, index).filter(isStaying), ...carried, ...pieces.slice(index).filter(isStaying)];
  const melds = arrangement.melds.map((meld) =>
    changed(meld, relaid(meld.pieces, place.to === "meld" && place.meld === meld.id ? place.index : undefined), make),
  );
  let { nextId } = arrangement;
  if (place.to === "new") melds.push(make({ id: nextId++, pieces: carried } as Parameters<typeof make>[0]));
  const rack = relaid(arrangement.rack, place.to === "rack" ? place.index : undefined);
  const next = { ...arrangement, melds: melds.filter(({ pieces }) => pieces.length > 0), rack, nextId };
  return isSame(arrangement, next) ? arrangement : next;
}

/** Returns the meld with other pieces: made anew if they differ. */
export function changed<M extends Meld>(meld: M, pieces: readonly M["pieces"][number][], make: MakeMeld<M>): M {
  return sameIds(meld.pieces, pieces) ? meld : make({ ...meld, pieces });
}

/** Splits a meld before a piece: the piece and those after it become a new meld. */
export function splitBefore<A extends Arrangement>(arrangement: A, id: number, make: MakeMeld<MeldOf<A>>): A {
  const { pieces = [] } = meldWith(arrangement, id) ?? {};
  const index = pieces.findIndex((piece) => piece.id === id);
  if (index <= 0) return arrangement;
  return moved(arrangement, pieces.slice(index).map((piece) => piece.id), { to: "new" }, make);
}

/** Returns pieces with the tiles of an order in that order, and the others behind them. */
export function reordered<P extends Piece>(pieces: readonly P[], order: readonly P["tile"][]): P[] {
  const loose = [...pieces];
  return [...takePieces(loose, order), ...loose];
}

/** Returns the pieces on the table. */
export function piecesOfMelds<A extends Arrangement>({ melds }: A): MeldOf<A>["pieces"][number][] {
  return melds.flatMap(({ pieces }) => pieces);
}

export function meldWith<A extends Arrangement>({ melds }: A, pieceId: number): MeldOf<A> | undefined {
  return melds.find(({ pieces }) => pieces.some(({ id }) => id === pieceId));
}

export function sameIds(a: readonly Piece[], b: readonly Piece[]): boolean {
  return a.length === b.length && a.every((piece, i) => piece.id === b[i]!.id);
}

function isSame(a: Arrangement, b: Arrangement): boolean {
  return (
    sameIds(a.rack, b.rack) &&
    a.melds.length === b.melds.length &&
    a.melds.every((meld, i) => meld.id === b.melds[i]!.id && sameIds(meld.pieces, b.melds[i]!.pieces))
  );
}
