/** The parts that need no DOM. */
export * from "./arrangement.js";
export type * from "./controller.js";
export { type Face, type FaceOf, fittingPlaces, inMelds, splittingPiece } from "./fitting.js";
export * from "./history.js";
export { Judge } from "./judge.js";
export * from "./judgment.js";
export * from "./local-table.js";
export * from "./places.js";
export { compareTexts, parseTile, tableTexts, tileText, tileTexts } from "./tiles.js";
export type { JokerKind, RackOrder, TableLike, Tile, TileColor, TileLike } from "./tiles.js";
