/** What fits together by the faces of tiles: aids for arranging. Jokers are left to the player; a judge decides. */
import type { Arrangement, Meld, Piece, Place } from "./arrangement.js";

export interface Face {
  readonly color: string | number;
  readonly value: number;
}

/** Returns the face of a tile; undefined for jokers. */
export type FaceOf<T> = (tile: T) => Face | undefined;

const LEAST = 3;
const HIGHEST = 13;

/** Returns the places where a tile extends a run or a group of the table. */
export function fittingPlaces<T>({ melds }: Arrangement<Meld<Piece<T>>>, tile: T, faceOf: FaceOf<T>): Place[] {
  const face = faceOf(tile);
  if (face === undefined) return [];
  return melds.flatMap(({ id: meld, pieces }): Place[] => {
    const faces = facesOf(pieces, faceOf);
    const [first, last] = [faces[0], faces.at(-1)];
    if (faces.length < LEAST || first === undefined || last === undefined) return [];
    const atEnd: Place = { to: "meld", meld, index: faces.length };
    if (isRun(faces)) {
      if (first.color !== face.color) return [];
      if (face.value === last.value + 1 && face.value <= HIGHEST) return [atEnd];
      return face.value === first.value - 1 ? [{ to: "meld", meld, index: 0 }] : [];
    }
    return isOfGroup(face, faces) ? [atEnd] : [];
  });
}

/** Returns the piece before which a meld of the table can be split into two runs: a run that has one of its tiles twice. */
export function splittingPiece<T>({ melds }: Arrangement<Meld<Piece<T>>>, faceOf: FaceOf<T>): number | undefined {
  const splits = melds.map(({ pieces }) => {
    const faces = facesOf(pieces, faceOf);
    const at = faces.findIndex((face, i) => i > 0 && face.value === faces[i - 1]!.value && face.color === faces[i - 1]!.color);
    const parts = [faces.slice(0, at), faces.slice(at)];
    return at > 0 && parts.every((part) => part.length >= LEAST && isRun(part)) ? pieces[at]!.id : undefined;
  });
  return splits.find((id) => id !== undefined);
}

/** Returns the pieces of a rack with its runs and groups first, the longest ones before others, and then the rest by color. */
export function inMelds<P extends Piece>(
  rack: readonly P[],
  faceOf: FaceOf<P["tile"]>,
  byColor: (a: P["tile"], b: P["tile"]) => number,
): P[] {
  let left = [...rack].sort((a, b) => byColor(a.tile, b.tile));
  const longest = () => {
    const melds = left.flatMap((first) => [grown(first, left, faceOf, isNextOfRun), grown(first, left, faceOf, isOfGroup)]);
    return melds.reduce<P[]>((best, meld) => (meld.length > best.length ? meld : best), []);
  };
  const found: P[] = [];
  for (let meld = longest(); meld.length >= LEAST; meld = longest()) {
    found.push(...meld);
    left = left.filter((piece) => !meld.includes(piece));
  }
  return [...found, ...left];
}

/** Returns a piece and those that follow it in a meld, of which each next one fits to all before. */
function grown<P extends Piece>(
  first: P,
  pieces: readonly P[],
  faceOf: FaceOf<P["tile"]>,
  fits: (next: Face, before: readonly Face[]) => boolean,
): P[] {
  const meld = [first];
  const faces = facesOf(meld, faceOf);
  if (faces.length === 0) return [];
  for (const piece of pieces) {
    const face = faceOf(piece.tile);
    if (face === undefined || !fits(face, faces)) continue;
    meld.push(piece);
    faces.push(face);
  }
  return meld;
}

function isNextOfRun({ color, value }: Face, before: readonly Face[]): boolean {
  const last = before.at(-1)!;
  return color === last.color && value === last.value + 1;
}

function isOfGroup({ color, value }: Face, before: readonly Face[]): boolean {
  return before.every((face) => face.value === value && face.color !== color);
}

/** Returns the faces of pieces; none if one of them is a joker. */
function facesOf<T>(pieces: readonly Piece<T>[], faceOf: FaceOf<T>): Face[] {
  const faces = pieces.flatMap(({ tile }) => faceOf(tile) ?? []);
  return faces.length === pieces.length ? faces : [];
}

function isRun(faces: readonly Face[]): boolean {
  return faces.every((face, i) => i === 0 || isNextOfRun(face, faces.slice(0, i)));
}
