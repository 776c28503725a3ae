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
  /** The tile taken in the turn. */
  readonly taken?: Tile | undefined;
  readonly finish?: { readonly tile: Tile; readonly hand: readonly HandPart[]; readonly isPairs: boolean };
}

/** Returns the board after a deal; undefined in a game of melding, whose deals have no indicator. */
export function dealtBoard(deal: RecordedDeal | undefined): OpenBoard | undefined {
  if (deal === undefined || deal.indicator === Tile.UNSPECIFIED) return undefined;
  const { indicator, turnOrder } = deal;
  return { indicator, okey: okeyOf(indicator), turnOrder, playing: turnOrder, piles: new Map() };
}

/** Returns the board after a seat has taken the newest discard of the seat before. */
export function takenFrom(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const before = board.playing.at(board.playing.indexOf(seat) - 1) ?? seat;
  return { ...board, piles: new Map([...board.piles, [before, pileOf(board, before).slice(0, -1)]]), taken: tile };
}

/** Returns the board after a seat has discarded a tile. */
export function discardedOn(board: OpenBoard, seat: number, tile: Tile): OpenBoard {
  const piles = new Map([...board.piles, [seat, [...pileOf(board, seat), tile]]]);
  return { ...board, piles, taken: undefined, lastSeat: seat };
}

/**
 * Returns the discard of a player whose time ran out: the tile taken, or if that is an okey or there is none, the highest
 * tile that is neither an okey nor a false joker.
 */
export function forcedDiscard({ okey, taken }: OpenBoard, rack: readonly Tile[]): Tile {
  if (taken !== undefined && taken !== okey) return taken;
  return Math.max(...rack.filter((tile) => tile !== okey && tile !== Tile.FALSE_JOKER));
}

export function pileOf({ piles }: OpenBoard, seat: number): readonly Tile[] {
  return piles.get(seat) ?? [];
}
