/** Tiles: colors, values and the order in which a rack is sorted. */
import { Tile, TileColor } from "rummikub-client";

export interface Face {
  readonly color: TileColor;
  readonly value: number;
}

/** Returns the color and the value of a tile; undefined for the joker, the false joker and the special jokers. */
export function faceOf(tile: Tile): Face | undefined {
  if (tile === Tile.JOKER || tile >= Tile.FALSE_JOKER) return undefined;
  const number = tile > Tile.JOKER ? tile - 2 : tile - 1;
  return { color: Math.floor(number / 13) + 1, value: (number % 13) + 1 };
}

/** Returns the tile with a color and a value. */
export function tileOf(color: TileColor, value: number): Tile {
  const number = (color - 1) * 13 + value;
  return number >= Tile.JOKER ? number + 1 : number;
}

/** Returns the okey of an indicator: the next tile of its color, 1 after 13. */
export function okeyOf(indicator: Tile): Tile {
  const face = faceOf(indicator);
  return face === undefined ? indicator : tileOf(face.color, (face.value % 13) + 1);
}

/** The two orders of a rack: by color shows runs, by value shows groups. */
export type RackOrder = "color" | "value";

/** Whether a tile is a double joker, a mirror or a color change, of Rummikub Twist. */
export function isSpecialJoker(tile: Tile): boolean {
  return tile >= Tile.DOUBLE_JOKER;
}

/**
 * Whether the kind of a meld may have to be stated: jokers and one numbered tile may fit both kinds. The same tile is
 * twice in a meld with a mirror.
 */
export function mayFitBothKinds(tiles: readonly Tile[]): boolean {
  const numbered = tiles.filter((tile) => faceOf(tile) !== undefined || tile === Tile.FALSE_JOKER);
  return numbered.length < tiles.length && new Set(numbered).size === 1;
}

/** Compares two tiles in an order of the rack. Jokers come last, each kind beside its like. */
export function compareTiles(order: RackOrder): (a: Tile, b: Tile) => number {
  const key = (tile: Tile) => {
    const face = faceOf(tile);
    if (face === undefined) return 10_000 + tile;
    return order === "color" ? face.color * 100 + face.value : face.value * 100 + face.color;
  };
  return (a, b) => key(a) - key(b);
}

/** Removes tiles from others, one copy for each. Returns what is left, and the tiles that were not there. */
export function without(tiles: readonly Tile[], removed: readonly Tile[]): { left: Tile[]; missing: Tile[] } {
  const left = [...tiles];
  const missing: Tile[] = [];
  for (const tile of removed) {
    const index = left.indexOf(tile);
    if (index < 0) missing.push(tile);
    else left.splice(index, 1);
  }
  return { left, missing };
}

/** Returns the number of pairs of identical tiles. */
export function pairs(tiles: readonly Tile[]): number {
  const counts = new Map<Tile, number>();
  for (const tile of tiles) counts.set(tile, (counts.get(tile) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum + Math.floor(count / 2), 0);
}
