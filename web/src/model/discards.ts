/** What a viewer sees of a game of discards, and what the viewer's seat may do now. The service decides. */
import {
  type DiscardBoard,
  type DiscardPile,
  type Game,
  GameState,
  type HandPart,
  type NamedHand,
  PoolEmpty,
  Tile,
  TurnStep,
} from "rummikub-client";
import { discardOf } from "./turn.js";

export interface DiscardChoices {
  /** Whether the caller's seat must take a tile. */
  readonly mayTake: boolean;
  /** Whether the pool has a tile to take. */
  readonly mayTakePool: boolean;
  /** The discard that the caller's seat may take. */
  readonly takeable: Tile | undefined;
  /** The trump, if the caller's seat may take it. */
  readonly trump: Tile | undefined;
  /** Whether the caller's seat may take nothing, since the pool is empty. */
  readonly mayPass: boolean;
  /** Whether the caller's seat must discard a tile. */
  readonly mayDiscard: boolean;
  /** Whether a hand is shown to finish; where melds lie on a table, only by who may win concealed. */
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
  mayTakePool: false,
  takeable: undefined,
  trump: undefined,
  mayPass: false,
  mayDiscard: false,
  mayFinish: false,
  mayLay: false,
  owed: undefined,
  mayShow: false,
};

/** Whether melds lie on a table, where they only grow: not in Okey. */
export function isWithTable(game: Game): boolean {
  return discardOf(game)?.melds?.meldsOnTable === true;
}

/** Whether a rack needs longer rows than a hand of 14: in 101 Okey. */
export function isWideRack(game: Game): boolean {
  return (discardOf(game)?.deal?.handSize ?? 14) > 14;
}

/** Returns the tile that is wild: the okey, or in a game without one the joker. */
export function wildOf({ okey }: Pick<DiscardBoard, "okey">): Tile {
  return okey === Tile.UNSPECIFIED ? Tile.JOKER : okey;
}

/** Returns the named hands with which a player may win; none in a game without concealed wins. */
export function namedHandsOf(game: Game): readonly NamedHand[] {
  return isConcealable(game) ? (discardOf(game)?.hands ?? []) : [];
}

/** Whether a player who has not opened may win with concealed tiles: in International Rummikub. */
function isConcealable(game: Game): boolean {
  return discardOf(game)?.turn?.concealedWins === true;
}

/** Whether the rules oblige a player to say that three tiles are left. */
export function hasThreeLeft(game: Game, seat: number): boolean {
  const hasOpened = game.discardBoard?.openings.some((one) => one.seat === seat) === true;
  return isConcealable(game) && hasOpened && game.players.some((one) => one.seat === seat && one.tileCount === 3);
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
  const hasOpened = board.openings.some((one) => one.seat === seat);
  return {
    mayTake,
    mayTakePool: mayTake && game.poolCount > 0,
    trump: mayTake && hasOpened && board.trump !== Tile.UNSPECIFIED ? board.trump : undefined,
    mayPass: mayTake && game.poolCount === 0 && discardOf(game)?.turn?.poolEmpty === PoolEmpty.DISCARD_TAKEN_OR_ENDS,
    takeable: mayTake ? newestOf(board.piles.find((pile) => pile.seat === before)) : undefined,
    mayDiscard,
    mayFinish: mayDiscard && (!hasTable || (isConcealable(game) && !hasOpened)),
    // After a step the service names no tile taken any more, but then the player has opened.
    mayLay: mayDiscard && hasTable && (turn.tilesDrawn.length > 0 || hasOpened),
    owed: board.owedTile === Tile.UNSPECIFIED ? undefined : board.owedTile,
    mayShow:
      isFirstTurn &&
      board.shownBySeat === undefined &&
      board.indicator !== Tile.UNSPECIFIED &&
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
