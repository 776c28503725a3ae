/** What fits together by the faces of tiles: aids for arranging. Jokers are left to the player; the service judges. */
import type { Tile } from "rummikub-client";
import type { ArrangedMeld, Arrangement, Piece, Target } from "./arrangement.js";
import { compareTiles, type Face, faceOf } from "./tiles.js";

const LEAST = 3;
const HIGHEST = 13;

/** Returns the places where a tile extends a run or a group of the table. */
export function fittingPlaces({ melds }: Arrangement, tile: Tile, colors: number): Target[] {
  const face = faceOf(tile);
  if (face === undefined) return [];
  return melds.flatMap(({ id: meld, pieces }): Target[] => {
    const faces = facesOf(pieces);
    const [first, last] = [faces[0], faces.at(-1)];
    if (faces.length < LEAST || first === undefined || last === undefined) return [];
    const atEnd: Target = { to: "meld", meld, index: faces.length };
    if (isRun(faces)) {
      if (first.color !== face.color) return [];
      if (face.value === last.value + 1 && face.value <= HIGHEST) return [atEnd];
      return face.value === first.value - 1 ? [{ to: "meld", meld, index: 0 }] : [];
    }
    const isGroup = faces.every(({ value }) => value === face.value) && faces.length < colors;
    return isGroup && faces.every(({ color }) => color !== face.color) ? [atEnd] : [];
  });
}

/** Returns the piece before which a meld of the table can be split into two runs: a run that has one of its tiles twice. */
export function splittingPiece({ melds }: Arrangement): number | undefined {
  const splits = melds.map(({ pieces }: ArrangedMeld) => {
    const faces = facesOf(pieces);
    const at = faces.findIndex((face, i) => i > 0 && face.value === faces[i - 1]!.value && face.color === faces[i - 1]!.color);
    const parts = [faces.slice(0, at), faces.slice(at)];
    return at > 0 && parts.every((part) => part.length >= LEAST && isRun(part)) ? pieces[at]!.id : undefined;
  });
  return splits.find((id) => id !== undefined);
}

/** Returns the pieces of a rack with its runs and groups first, the longest ones before others, and then the rest. */
export function inMelds(rack: readonly Piece[]): Piece[] {
  const compare = compareTiles("color");
  let left = [...rack].sort((a, b) => compare(a.tile, b.tile));
  const found: Piece[] = [];
  for (let meld = longestMeld(left); meld.length >= LEAST; meld = longestMeld(left)) {
    found.push(...meld);
    left = left.filter((piece) => !meld.includes(piece));
  }
  return [...found, ...left];
}

function longestMeld(pieces: readonly Piece[]): Piece[] {
  const melds = pieces.flatMap((first) => [grown(first, pieces, isNextOfRun), grown(first, pieces, isOfGroup)]);
  return melds.reduce((best, meld) => (meld.length > best.length ? meld : best), []);
}

/** Returns a piece and those that follow it in a meld, of which each next one fits to all before. */
function grown(first: Piece, pieces: readonly Piece[], fits: (next: Face, before: readonly Face[]) => boolean): Piece[] {
  const meld = [first];
  if (faceOf(first.tile) === undefined) return [];
  for (const piece of pieces) {
    const face = faceOf(piece.tile);
    if (face !== undefined && fits(face, facesOf(meld))) meld.push(piece);
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
function facesOf(pieces: readonly { readonly tile: Tile }[]): Face[] {
  const faces = pieces.flatMap(({ tile }) => faceOf(tile) ?? []);
  return faces.length === pieces.length ? faces : [];
}

function isRun(faces: readonly Face[]): boolean {
  return faces.every((face, i) => i === 0 || isNextOfRun(face, faces.slice(0, i)));
}
