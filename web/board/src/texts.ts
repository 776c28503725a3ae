/** All that a board says. Pass others for another language. */
import { englishTile, type Tile } from "./tiles.js";

export interface BoardTexts {
  readonly tile: (tile: Tile) => string;
  readonly table: string;
  readonly rack: string;
  readonly emptyTable: string;
  /** The label of a meld: its number from 1, and its tiles in words. */
  readonly meld: (number: number, tiles: string) => string;
  readonly legal: string;
  readonly illegal: string;
  readonly newMeld: string;
  readonly actions: string;
  readonly undo: string;
  readonly redo: string;
  readonly reset: string;
  readonly sortByColor: string;
  readonly sortByValue: string;
  readonly showMelds: string;
  /** The button that shows how the last position came about. */
  readonly showAgain: string;
  readonly zoomIn: string;
  readonly zoomOut: string;
  readonly placeStart: (number: number) => string;
  readonly placeAfter: (number: number, tile: string) => string;
  readonly placeRack: string;
  readonly carrying: (tiles: string) => string;
  readonly dropped: string;
  readonly putBack: string;
  /** Said when tiles of the table are dropped on the rack. */
  readonly staysOnTable: string;
  /** Shown when a tile that was tapped twice fits at no place, or at several. */
  readonly fitsAt: (tile: string, count: number) => string;
  /** How the board is used with keys, for screen readers. */
  readonly keys: string;
}

export const ENGLISH: BoardTexts = {
  tile: englishTile,
  table: "Table",
  rack: "Rack",
  emptyTable: "No melds yet",
  meld: (number, tiles) => `Meld ${number}: ${tiles}`,
  legal: "legal",
  illegal: "not legal",
  newMeld: "New meld",
  actions: "Actions",
  undo: "Undo",
  redo: "Redo",
  reset: "Start over",
  sortByColor: "Sort by color",
  sortByValue: "Sort by number",
  showMelds: "Show melds",
  showAgain: "Show again",
  zoomIn: "Enlarge",
  zoomOut: "Reduce",
  placeStart: (number) => `At the start of meld ${number}`,
  placeAfter: (number, tile) => `In meld ${number}, after ${tile}`,
  placeRack: "On the rack",
  carrying: (tiles) => `Carrying ${tiles}.`,
  dropped: "Laid.",
  putBack: "Put back.",
  staysOnTable: "Tiles of the table stay on the table.",
  fitsAt: (tile, count) => `${tile} fits at ${count} places.`,
  keys: "Arrows move the focus. Space chooses a tile, Enter picks it up, Shift and Enter its meld. Then arrows choose the place, Enter lays the tiles, Escape puts them back.",
};
