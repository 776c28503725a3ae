/** What a board shows, and what a player does to it. */
import type { Arrangement, Meld, Piece, Place } from "./arrangement.js";
import type { Judgment } from "./judgment.js";
import type { RackOrder } from "./tiles.js";

/** A tile that can be moved; its tile is a text such as "R7". */
export type BoardPiece = Piece<string>;
export type BoardMeld = Meld<BoardPiece>;
export type BoardArrangement = Arrangement<BoardMeld>;

/** Tiles that are carried over a place, by a pointer or by keys. */
export interface Carried {
  readonly ids: readonly number[];
  /** The place under the tiles; undefined if there is none. */
  readonly place: Place | undefined;
  /** How the table would lie; undefined if it stays as it is. */
  readonly preview: BoardArrangement | undefined;
}

export interface TableState {
  readonly arrangement: BoardArrangement;
  /** The arrangement when the turn began. A meld that has not changed since has the same pieces there. */
  readonly start: BoardArrangement;
  /** Whether the player may move tiles to and on the table now. */
  readonly mayArrange: boolean;
  /** The ids of the pieces that are chosen, in the order in which they were. */
  readonly selection: readonly number[];
  readonly carried: Carried | undefined;
  /** The judgment of the arrangement, or of the preview of what is carried; undefined while there is none. */
  readonly judgment: Judgment | undefined;
  /** The pieces that came with the last position; they are marked. */
  readonly fresh: ReadonlySet<number>;
  readonly mayUndo: boolean;
  readonly mayRedo: boolean;
}

/**
 * A table that a board shows. `LocalTable` is one that needs no server. Each method that changes the state replaces it
 * and calls the listeners.
 */
export interface TableController {
  readonly state: TableState;
  /** Calls a function after each change. Returns a function that ends it. */
  subscribe(listener: () => void): () => void;
  /** Whether the player may move a piece now. On their own rack they always may. */
  mayMove(id: number): boolean;
  /** Chooses a piece, or no longer. */
  select(id: number): void;
  clearSelection(): void;
  /** Moves pieces, and chooses none. Returns whether anything changed. */
  move(ids: readonly number[], place: Place): boolean;
  /** Carries pieces over a place, without laying them. */
  carry(ids: readonly number[], place?: Place): void;
  /** Lays the carried pieces where they are. Returns whether anything changed. */
  drop(): boolean;
  /** Puts the carried pieces back. */
  putBack(): void;
  sort(order: RackOrder): void;
  /** Brings the runs and groups that the rack has side by side. */
  showMelds(): void;
  undo(): void;
  redo(): void;
  /** Puts everything back as it was when the turn began. */
  reset(): void;
}
