/** The open board of a recorded game of discards: all piles, and the hand that ended the round. */
import { type HandPart, type RecordedDeal, Tile } from "rummikub-client";
import { okeyOf } from "./tiles.js";

export interface OpenBoard {
  /** The tile turned face up; unset in a game with jokers. */
  readonly indicator: Tile;
  /** The wild tile: the okey, or the joker. */
  readonly okey: Tile;
  /** The tile laid face up that a player may take; unset if there is none. */
  readonly trump: Tile;
  readonly turnOrder: readonly number[];
  /** The seats that have not resigned, in turn order. */
  readonly playing: readonly number[];
  /** The discards of each seat, the newest last. */
  readonly piles: ReadonlyMap<number, readonly Tile[]>;
  /** The seat that discarded last. */
  readonly lastSeat?: number | undefined;
  /** Whether a tile was taken in the turn. */
  readonly hasTaken?: boolean;
  /** The tile taken in the turn, until tiles are laid. */
  readonly taken?: Tile | undefined;
  /** Whether the tile taken is a discard, or the trump, which the player may have to lay. */
  readonly source?: "discard" | "trump" | undefined;
  /** The melds and pairs on the table. */
  readonly table: readonly HandPart[];
  /** The discard of a Foot. */
  readonly lastTile?: Tile;
  readonly finish?: { readonly tile: Tile; readonly hand: readonly HandPart[]; readonly isPairs: boolean };
}

/** Returns the board after a deal of a game of discards. */
export function dealtBoard({ indicator, trump, turnOrder }: RecordedDeal): OpenBoard {
  const okey = indicator === Tile.UNSPECIFIED ? Tile.JOKER : okeyOf(indicator);
  return { indicator, okey, trump, turnOrder, playing: turnOrder, piles: new Map(), table: [] };
}

/** Returns the board after a seat has taken the newest discard of the seat before. */
export function takenFrom(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const before = seatBefore(board, seat);
  const piles = new Map([...board.piles, [before, pileOf(board, before).slice(0, -1)]]);
  return { ...board, piles, taken: tile, source: "discard", hasTaken: true };
}

/** Returns the board after a seat has taken the trump. */
export function trumpTaken(board: OpenBoard): OpenBoard {
  return { ...board, trump: Tile.UNSPECIFIED, taken: board.trump, source: "trump", hasTaken: true };
}

/** Returns the board after a seat has put the discard or the trump that it took back. */
export function returnedBy(board: OpenBoard, seat: number): OpenBoard {
  const { taken, source } = board;
  const back = { ...board, taken: undefined, source: undefined };
  if (taken === undefined) return back;
  if (source === "trump") return { ...back, trump: taken };
  const before = seatBefore(board, seat);
  return { ...back, piles: new Map([...board.piles, [before, [...pileOf(board, before), taken]]]) };
}

/** Returns the board after tiles were laid on the table, on which `table` lies then. */
export function laidOn(board: OpenBoard, table: readonly HandPart[]): OpenBoard {
  return { ...board, table, taken: undefined, source: undefined };
}

function seatBefore({ playing }: OpenBoard, seat: number): number {
  return playing.at(playing.indexOf(seat) - 1) ?? seat;
}

/** Returns the board after a seat has discarded a tile. */
export function discardedOn(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const piles = new Map([...board.piles, [seat, [...pileOf(board, seat), tile]]]);
  return { ...board, piles, hasTaken: false, taken: undefined, source: undefined, lastSeat: seat };
}

/**
 * Returns the discard of a player whose time ran out: the tile taken, or if that is an okey or there is none, the highest
 * tile that is neither an okey nor a false joker. An okey only if nothing else is left.
 */
export function forcedDiscard({ okey, taken }: OpenBoard, rack: readonly Tile[]): Tile {
  if (taken !== undefined && taken !== okey) return taken;
  const numbered = rack.filter((tile) => tile !== okey && tile !== Tile.FALSE_JOKER);
  if (numbered.length === 0) return rack.includes(Tile.FALSE_JOKER) ? Tile.FALSE_JOKER : okey;
  return Math.max(...numbered);
}

export function pileOf({ piles }: OpenBoard, seat: number): readonly Tile[] {
  return piles.get(seat) ?? [];
}
