/** The open board of a recorded game of discards: all piles, and the hand that ended the round. */
import { type HandPart, type RecordedDeal, Tile } from "rummikub-client";
import { okeyOf } from "./tiles.js";

export interface OpenBoard {
  readonly indicator: Tile;
  readonly okey: Tile;
  readonly turnOrder: readonly number[];
  /** The seats that have not resigned, in turn order. */
  readonly playing: readonly number[];
  /** The discards of each seat, the newest last. */
  readonly piles: ReadonlyMap<number, readonly Tile[]>;
  /** The seat that discarded last. */
  readonly lastSeat?: number | undefined;
  /** The tile taken in the turn, until tiles are laid. */
  readonly taken?: Tile | undefined;
  /** Whether the tile taken is a discard. */
  readonly isDiscardTaken?: boolean;
  /** The melds and pairs on the table of 101 Okey. */
  readonly table: readonly HandPart[];
  readonly finish?: { readonly tile: Tile; readonly hand: readonly HandPart[]; readonly isPairs: boolean };
}

/** Returns the board after a deal; undefined in a game of melding, whose deals have no indicator. */
export function dealtBoard(deal: RecordedDeal | undefined): OpenBoard | undefined {
  if (deal === undefined || deal.indicator === Tile.UNSPECIFIED) return undefined;
  const { indicator, turnOrder } = deal;
  return { indicator, okey: okeyOf(indicator), turnOrder, playing: turnOrder, piles: new Map(), table: [] };
}

/** Returns the board after a seat has taken the newest discard of the seat before. */
export function takenFrom(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const before = seatBefore(board, seat);
  const piles = new Map([...board.piles, [before, pileOf(board, before).slice(0, -1)]]);
  return { ...board, piles, taken: tile, isDiscardTaken: true };
}

/** Returns the board after a seat has put the discard that it took back. */
export function returnedBy(board: OpenBoard, seat: number): OpenBoard {
  const { taken } = board;
  const before = seatBefore(board, seat);
  const pile = taken === undefined ? pileOf(board, before) : [...pileOf(board, before), taken];
  return { ...board, piles: new Map([...board.piles, [before, pile]]), taken: undefined, isDiscardTaken: false };
}

/** Returns the board after tiles were laid on the table, on which `table` lies then. */
export function laidOn(board: OpenBoard, table: readonly HandPart[]): OpenBoard {
  return { ...board, table, taken: undefined, isDiscardTaken: false };
}

function seatBefore({ playing }: OpenBoard, seat: number): number {
  return playing.at(playing.indexOf(seat) - 1) ?? seat;
}

/** Returns the board after a seat has discarded a tile. */
export function discardedOn(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const piles = new Map([...board.piles, [seat, [...pileOf(board, seat), tile]]]);
  return { ...board, piles, taken: undefined, isDiscardTaken: false, lastSeat: seat };
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
