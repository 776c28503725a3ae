/** What a viewer sees of a game of discards, and what the viewer's seat may do now. The service decides. */
import { type DiscardPile, type Game, GameState, type HandPart, Tile, TurnStep } from "rummikub-client";
import { discardOf } from "./turn.js";

export interface DiscardChoices {
  /** Whether the caller's seat must take a tile. */
  readonly mayTake: boolean;
  /** The discard that the caller's seat may take. */
  readonly takeable: Tile | undefined;
  /** Whether the caller's seat must discard a tile. */
  readonly mayDiscard: boolean;
  /** Whether a hand is shown to finish, which is not so where melds lie on a table. */
  readonly mayFinish: boolean;
  /** Whether the caller's seat may lay tiles on the table: not in the starter's first turn, in which none is taken. */
  readonly mayLay: boolean;
  /** The discard that the caller's seat has taken, and must lay or put back. */
  readonly owed: Tile | undefined;
  /** Whether the caller's seat may show the indicator's twin. */
  readonly mayShow: boolean;
}

const NONE: DiscardChoices = {
  mayTake: false,
  takeable: undefined,
  mayDiscard: false,
  mayFinish: false,
  mayLay: false,
  owed: undefined,
  mayShow: false,
};

/** Whether melds lie on a table: in 101 Okey. */
export function isWithTable(game: Game): boolean {
  return discardOf(game)?.melds?.meldsOnTable === true;
}

/** What a player who has not opened needs: points of melds, or a number of pairs; no pairs if they are never laid. */
export interface Opening {
  readonly points: number;
  readonly pairs: number | undefined;
}

/** Returns what the caller's seat needs to open; undefined for one that has opened, and where there is no table. */
export function openingOf(game: Game): Opening | undefined {
  const { opening } = discardOf(game) ?? {};
  const openings = game.discardBoard?.openings ?? [];
  if (!isWithTable(game) || opening === undefined || openings.some(({ seat }) => seat === game.seat)) return undefined;
  /** Returns the least of a way to open, or more than the last player had where the opening rises. */
  const needed = (least: number, isPairs: boolean) => {
    const last = openings.findLast((one) => one.isPairs === isPairs);
    return opening.rises === true && last !== undefined ? Math.max(least, last.amount + 1) : least;
  };
  const { points = 0, pairs = 0 } = opening;
  return { points: needed(points, false), pairs: pairs > 0 ? needed(pairs, true) : undefined };
}

/** Returns the request of ValidateDiscardTurn for the caller's step that leads to a table. */
export function layingToJudge(game: Game, tableAfter: readonly Pick<HandPart, "tiles">[]) {
  const ruleset = discardOf(game);
  const { indicator, openings, owedTile, tilesLaid, table } = game.discardBoard!;
  return {
    ...(ruleset && { ruleset }),
    indicator,
    rack: game.rack,
    tableBefore: table,
    openings,
    seat: game.seat ?? 0,
    owedTile,
    tilesLaid,
    tableAfter: tableAfter.map(({ tiles }) => ({ tiles })),
  };
}

export function discardChoices(game: Game): DiscardChoices {
  const { turn, seat, state, discardBoard: board } = game;
  const isMine = state === GameState.PLAYING && seat !== undefined && turn?.seat === seat;
  if (!isMine || board === undefined) return NONE;
  const mayTake = turn?.step === TurnStep.OPEN;
  const before = seatBefore(game, seat);
  const mayDiscard = turn?.step === TurnStep.DISCARDING;
  const hasTable = isWithTable(game);
  const isFirstTurn = !board.discardedSeats.includes(seat);
  return {
    mayTake,
    takeable: mayTake ? newestOf(board.piles.find((pile) => pile.seat === before)) : undefined,
    mayDiscard,
    mayFinish: mayDiscard && !hasTable,
    // After a step the service names no tile taken any more, but then the player has opened.
    mayLay: mayDiscard && hasTable && (turn.tilesDrawn.length > 0 || board.openings.some((one) => one.seat === seat)),
    owed: board.owedTile === Tile.UNSPECIFIED ? undefined : board.owedTile,
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
