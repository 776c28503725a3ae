/** The rules of a first turn, for the page that teaches them: they need no service. Jokers are not part of it. */
import type { Tile } from "rummikub-client";
import { faceOf } from "./tiles.js";

/** The points that a first play needs in the standard game. */
export const FIRST_POINTS = 30;

/** Returns the points of tiles that are a run or a group; undefined of other tiles. */
export function meldPoints(tiles: readonly Tile[]): number | undefined {
  const faces = tiles.map(faceOf).filter((face) => face !== undefined);
  if (faces.length < 3 || faces.length !== tiles.length) return undefined;
  const values = faces.map(({ value }) => value).sort((a, b) => a - b);
  const colors = new Set(faces.map(({ color }) => color));
  const isGroup = new Set(values).size === 1 && colors.size === faces.length;
  const isRun = colors.size === 1 && values.every((value, i) => value === values[0]! + i);
  return isGroup || isRun ? values.reduce((sum, value) => sum + value, 0) : undefined;
}
