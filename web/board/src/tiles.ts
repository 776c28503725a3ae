/** Tiles as texts: "R7" is red 7, "J" a joker. rummikub-tiles reads and draws them. */
import type { Face } from "./fitting.js";
import { englishName, parseMelds as meldsIn, parseTile as tileIn, tileSvg } from "../../tiles/index.js";

export type TileColor = "red" | "blue" | "black" | "orange" | "green" | "purple";
export type JokerKind = "joker" | "false joker" | "double joker" | "mirror" | "color change";
/** A numbered tile with a value from 1 to 13, or a joker. */
export type Tile = { readonly color: TileColor; readonly value: number } | { readonly joker: JokerKind };
/** A tile, or its text: "R7", "7R" and "TILE_RED_7" are red 7. */
export type TileLike = string | Tile;
/** Melds as a text such as "R7 R8 R9 | K3 B3 O3", or as lists. */
export type TableLike = string | readonly (readonly TileLike[])[];

const LETTERS: Readonly<Record<TileColor | JokerKind, string>> = {
  red: "R",
  blue: "B",
  black: "K",
  orange: "O",
  green: "G",
  purple: "P",
  joker: "J",
  "false joker": "F",
  "double joker": "D",
  mirror: "M",
  "color change": "C",
};
const COLORS = Object.keys(LETTERS);

/** Returns the tile of a text. Throws a SyntaxError for a text that is no tile. */
export function parseTile(text: string): Tile {
  return tileIn(text);
}

/** Returns the text of a tile, always in the same form: "R7", "J". Throws a SyntaxError for what is no tile. */
export function tileText(tile: TileLike): string {
  if (typeof tile === "string") return tileText(tileIn(tile));
  const text = "joker" in tile ? LETTERS[tile.joker] : LETTERS[tile.color] + tile.value;
  tileIn(text); // throws
  return text;
}

/** Returns the texts of tiles, such as "R7 R8 J". Throws a SyntaxError for what is no tile. */
export function tileTexts(tiles: string | readonly TileLike[]): string[] {
  return typeof tiles === "string" ? meldsIn(tiles).flat().map(tileText) : tiles.map(tileText);
}

/** Returns the texts of the tiles of each meld. Throws a SyntaxError for what is no tile. */
export function tableTexts(table: TableLike): string[][] {
  return typeof table === "string" ? meldsIn(table).map((meld) => meld.map(tileText)) : table.map(tileTexts);
}

/** Returns a tile in English words, such as "red 7". */
export function englishTile(tile: Tile): string {
  return englishName(tile);
}

/** Returns a drawing of a tile as SVG. */
export function drawing(text: string): string {
  return tileSvg(tileIn(text));
}

/** Returns the face of the text of a tile; undefined for jokers. */
export function faceOf(text: string): Face | undefined {
  const tile = tileIn(text);
  return "joker" in tile ? undefined : tile;
}

/** The two orders of a rack: by color shows runs, by value shows groups. */
export type RackOrder = "color" | "value";

/** Compares texts of tiles in an order of the rack. Jokers come last, each kind beside its like. */
export function compareTexts(order: RackOrder): (a: string, b: string) => number {
  const key = (text: string) => {
    const tile = tileIn(text);
    if ("joker" in tile) return 10_000 + COLORS.indexOf(tile.joker);
    const color = COLORS.indexOf(tile.color);
    return order === "color" ? color * 100 + tile.value : tile.value * 100 + color;
  };
  return (a, b) => key(a) - key(b);
}
