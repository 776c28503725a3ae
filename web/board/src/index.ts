/** A Rummikub table for any page: the element <rummikub-board>, and LocalTable. README.md explains both. */
export type { Arrangement, Meld, Piece, Place } from "./arrangement.js";
export type * from "./controller.js";
export { RummikubBoard } from "./element.js";
export { type Judgment, judgmentOf, type MeldJudgment, type ViolationLike } from "./judgment.js";
export { type Intended, LocalTable, type LocalTableOptions, type OnJudge, type Position } from "./local-table.js";
export { ENGLISH, type BoardTexts } from "./texts.js";
export { parseTile, tableTexts, tileText, tileTexts } from "./tiles.js";
export type { JokerKind, RackOrder, TableLike, Tile, TileColor, TileLike } from "./tiles.js";
