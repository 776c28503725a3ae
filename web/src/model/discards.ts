/** What a viewer sees of a game of discards, and what the viewer's seat may do now. The service decides. */
import { type DiscardPile, type Game, GameState, Tile, TurnStep } from "rummikub-client";
import { discardOf } from "./turn.js";

export interface DiscardChoices {
  /** Whether the caller's seat must take a tile. */
  readonly mayTake: boolean;
  /** The discard that the caller's seat may take. */
  readonly takeable: Tile | undefined;
  /** Whether the caller's seat must discard a tile, or may finish. */
  readonly mayDiscard: boolean;
  /** Whether the caller's seat may show the indicator's twin. */
  readonly mayShow: boolean;
}

export function discardChoices(game: Game): DiscardChoices {
  const { turn, seat, state, discardBoard: board } = game;
  const isMine = state === GameState.PLAYING && seat !== undefined && turn?.seat === seat;
  if (!isMine || board === undefined) return { mayTake: false, takeable: undefined, mayDiscard: false, mayShow: false };
  const mayTake = turn?.step === TurnStep.OPEN;
  const before = seatBefore(game, seat);
  const isFirstTurn = !board.discardedSeats.includes(seat);
  return {
    mayTake,
    takeable: mayTake ? newestOf(board.piles.find((pile) => pile.seat === before)) : undefined,
    mayDiscard: turn?.step === TurnStep.DISCARDING,
    mayShow:
      isFirstTurn &&
      board.shownBySeat === undefined &&
      discardOf(game)?.turn?.showIndicator !== false &&
      game.rack.includes(board.indicator),
  };
}

/** Returns the seat whose turn comes before that of another one, of the players who have not resigned. */
export function seatBefore({ turnOrder, players }: Game, seat: number): number | undefined {
  const hasResigned = new Set(players.filter(({ resigned }) => resigned).map((player) => player.seat));
  const from = turnOrder.indexOf(seat);
  const others = [...turnOrder.slice(from), ...turnOrder.slice(0, Math.max(0, from))].filter((one) => one !== seat);
  return others.findLast((one) => !hasResigned.has(one));
}

/** Returns the newest tile of a pile; undefined if the pile is empty. */
export function newestOf(pile: DiscardPile | undefined): Tile | undefined {
  return pile === undefined || pile.newest === Tile.UNSPECIFIED ? undefined : pile.newest;
}

/** A corner of the table. */
export type Corner = "near-right" | "far-right" | "far-left" | "near-left";

/**
 * Each player discards to the right. The turn goes counterclockwise: the next player sits at the right, and the one
 * before at the left, whose discards are at the viewer's left hand.
 */
const CORNERS: Readonly<Record<number, readonly Corner[]>> = {
  2: ["near-right", "far-left"],
  3: ["near-right", "far-right", "near-left"],
  4: ["near-right", "far-right", "far-left", "near-left"],
};

/** Returns the seats with their corners of the table, in turn order, as a viewer sees them. */
export function cornersOf(
  turnOrder: readonly number[],
  viewer: number | undefined,
): { readonly seat: number; readonly corner: Corner }[] {
  const from = Math.max(0, viewer === undefined ? 0 : turnOrder.indexOf(viewer));
  const corners = CORNERS[turnOrder.length] ?? CORNERS[4]!;
  return [...turnOrder.slice(from), ...turnOrder.slice(0, from)].map((seat, i) => ({ seat, corner: corners[i]! }));
}
