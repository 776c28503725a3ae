import { create } from "@bufbuild/protobuf";
import type { DiscardBoard } from "./gen/rummikub/v1/discard_pb.js";
import { type Meld, MeldSchema, type Placement, type Table } from "./gen/rummikub/v1/meld_pb.js";
import { Tile } from "./gen/rummikub/v1/tile_pb.js";

const LETTERS: Readonly<Record<string, string>> = {
  RED: "R",
  BLUE: "B",
  BLACK: "K",
  ORANGE: "O",
  GREEN: "G",
  PURPLE: "P",
};

const JOKERS: Readonly<Record<string, string>> = {
  JOKER: "J",
  FALSE_JOKER: "F",
  DOUBLE_JOKER: "D",
  MIRROR: "M",
  COLOR_CHANGE: "C",
};

const NAMES = new Map<Tile, string>(
  Object.entries(Tile)
    .filter((entry): entry is [string, Tile] => typeof entry[1] === "number" && entry[1] !== Tile.UNSPECIFIED)
    .map(([name, tile]) => {
      const [color = "", value] = name.split("_");
      return [tile, JOKERS[name] ?? `${LETTERS[color]}${value}`];
    }),
);
const TILES = new Map([...NAMES].map(([tile, name]) => [name, tile]));

/**
 * Returns a tile by its name: `R7`, `B13`, `K1`, `O10`, `G5`, `P2`, `J` for the joker, or `F` for a false one. `D`, `M` and
 * `C` are the double joker, the mirror and the color change of Rummikub Twist.
 */
export function tile(name: string): Tile {
  const found = TILES.get(name.toUpperCase());
  if (found === undefined)
    throw new RangeError(`unknown tile "${name}"; tiles are R7, B13, K1, O10, G5, P2, J, F, D, M and C`);
  return found;
}

/** Returns the name of a tile; `?` and the number for a tile that this client does not know. */
export function tileName(tile: Tile): string {
  return NAMES.get(tile) ?? `?${tile}`;
}

/** Returns the tiles of a text such as `R7 R8 J`. */
export function tiles(text: string): Tile[] {
  return text.split(/\s+/).filter(Boolean).map(tile);
}

/** Returns the names of tiles, separated by spaces. */
export function tilesText(tiles: readonly Tile[]): string {
  return tiles.map(tileName).join(" ");
}

/** Returns the meld of a text such as `[R7 R8 R9]`. */
function meld(text: string): Meld {
  const inner = /^\s*\[(.*)\]\s*$/s.exec(text)?.[1];
  if (inner === undefined) throw new RangeError(`"${text}" is no meld; write it as [R7 R8 R9]`);
  return create(MeldSchema, { tiles: tiles(inner) });
}

/** Returns a meld as text: `[R7 R8 R9]`. */
function meldText(meld: Pick<Meld, "tiles">): string {
  return `[${tilesText(meld.tiles)}]`;
}

/** Returns the melds of a text such as `[R7 R8 R9] | [K1 B1 O1]`; none for `.` and for an empty text. */
export function melds(text: string): Meld[] {
  return ["", "."].includes(text.trim()) ? [] : text.split("|").map(meld);
}

/** Returns melds as text: `[R7 R8 R9] | [K1 B1 O1]`; `.` if there are none. */
export function meldsText(melds: readonly Pick<Meld, "tiles">[]): string {
  return melds.map(meldText).join(" | ") || ".";
}

/**
 * Returns a table as text: its melds, or in the cross layout the neighbors in a row, each time after the column and the
 * row of the first: `0,0[R3 R4 R5] | 1,1[B4]`.
 */
export function tableText(table: Pick<Table, "melds" | "placements"> | undefined): string {
  if (!table?.placements.length) return meldsText(table?.melds ?? []);
  let text = "";
  let last: Placement | undefined;
  for (const placement of [...table.placements].sort((a, b) => a.y - b.y || a.x - b.x)) {
    const { x, y } = placement;
    const follows = last?.y === y && last.x === x - 1;
    text += follows ? " " : `${last ? "] | " : ""}${x},${y}[`;
    text += tileName(placement.tile);
    last = placement;
  }
  return `${text}]`;
}

/**
 * Returns the board of a game of discards as text: the tiles that lie face up (the indicator and the okey, or the trump), and
 * the newest discard of each player after the seat, `O4 / O5 / 1{R7} 2{}`; then a table with melds, `O4 / O5 / 1{R7} 2{} / [R7 R8 R9]`. It is `.` if there is none.
 */
export function boardText(board: Pick<DiscardBoard, "indicator" | "okey" | "trump" | "piles" | "table"> | undefined): string {
  if (!board) return ".";
  const piles = board.piles.map(({ seat, newest }) => `${seat}{${newest ? tileName(newest) : ""}}`);
  const faceUp = [board.indicator, board.okey, board.trump].filter((tile) => tile).map(tileName);
  const table = board.table.length ? [meldsText(board.table)] : [];
  return [...faceUp, piles.join(" "), ...table].join(" / ");
}

/** Returns the melds to send for a table that the service sent, with the declared faces of jokers that have only one. */
export function meldsOf(table: readonly Meld[]): Meld[] {
  return table.map(({ tiles, kind, jokers }) => {
    const faces = jokers.map((joker) => joker.faces);
    const declaredFaces = faces.every((face) => face.length === 1) ? faces.flat() : [];
    return create(MeldSchema, { tiles, kind, declaredFaces });
  });
}
