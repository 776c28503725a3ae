/** What a seat may do now, by the state of the game and its options. The service decides; this only picks buttons. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  BotLevel,
  DealThreePairsReshuffle,
  type DiscardRuleset,
  type Game,
  GameState,
  Hints,
  HintTier,
  type MeldingRuleset,
  meldsOf,
  type Player,
  type Ruleset,
  type Table,
  type TableSchema,
  Tile,
  TurnDraw,
  TurnPlayAfterDraw,
  TurnStep,
  WinCall,
} from "rummikub-client";
import { pairs } from "./tiles.js";

export interface Choices {
  /** Whether the caller's seat has the turn and may arrange tiles. */
  readonly mayPlay: boolean;
  readonly mayDraw: boolean;
  readonly mayPass: boolean;
  /** Whether the player may knock with the tiles left after a play; the service checks the points. */
  readonly mayKnockWithPlay: boolean;
  /** Whether the player may also knock without a play. */
  readonly mayKnock: boolean;
  /** The drawn tiles of which one has to be laid on the River. */
  readonly toLay: readonly Tile[];
  readonly mayPull: boolean;
  /** Whether the caller may vote on a shown illegal play. */
  readonly mayClaim: boolean;
  readonly mayRedeal: boolean;
  readonly mayReturn: boolean;
  readonly mustCall: boolean;
}

/** A message that has rules. */
type Ruled = { readonly ruleset?: Ruleset | undefined } | undefined;

/** Returns the rules of a game of melding; undefined in other games, and where they are not known. */
export function meldingOf(what: Ruled): MeldingRuleset | undefined {
  const game = what?.ruleset?.game;
  return game?.case === "melding" ? game.value : undefined;
}

/** Returns the rules of a game of discards; undefined in other games, and where they are not known. */
export function discardOf(what: Ruled): DiscardRuleset | undefined {
  const game = what?.ruleset?.game;
  return game?.case === "discard" ? game.value : undefined;
}

/** Returns the rules of a game of any kind. */
export function rulesetOf(what: Ruled): MeldingRuleset | DiscardRuleset | undefined {
  return what?.ruleset?.game.value;
}

/** Returns the player of a seat; undefined for a spectator. */
export function playerOf(game: Game, seat: number | undefined): Player | undefined {
  return game.players.find((player) => player.seat === seat);
}

export function choices(game: Game): Choices {
  const { turn, seat, river, rack, state } = game;
  const ruleset = meldingOf(game);
  const me = playerOf(game, seat);
  const isPlaying = state === GameState.PLAYING && me !== undefined && !me.resigned;
  const isMine = isPlaying && turn?.seat === seat;
  // In a game of discards the steps have other actions: discardChoices.
  const step = isMine && game.discardBoard === undefined ? turn?.step : undefined;
  const goesOn = step === TurnStep.OPEN || step === TurnStep.DRAWING;
  const shown = turn?.shownPlay;
  const mayPlay = step === TurnStep.DRAWN || step === TurnStep.DRAWING || (step === TurnStep.OPEN && !beginsWithDraw(game));
  const mayKnockWithPlay = mayPlay && (ruleset?.turn?.knockLimit ?? 0) > 0;
  return {
    mayPlay,
    mayDraw: goesOn && game.poolCount > 0,
    mayPass: step === TurnStep.DRAWN || (goesOn && game.poolCount === 0),
    mayKnockWithPlay,
    mayKnock: mayKnockWithPlay && (step !== TurnStep.OPEN || game.poolCount === 0),
    toLay: step === TurnStep.CHOOSING ? (turn?.tilesDrawn ?? []) : [],
    mayPull: step === TurnStep.OPEN && river.length > 0,
    mayClaim:
      isPlaying && !isMine && shown !== undefined && shown.againstSeat === undefined && !shown.claimSeats.includes(me.seat),
    mayRedeal:
      isPlaying &&
      ruleset?.deal?.threePairsReshuffle === DealThreePairsReshuffle.ON_REQUEST &&
      isEmpty(game.table) &&
      pairs(rack) >= 3,
    mayReturn: isPlaying && me.isAbsent,
    mustCall: ruleset?.turn?.winCall === WinCall.REQUIRED,
  };
}

/** Whether a turn of a game begins with a draw, so that nothing may be played before it. */
function beginsWithDraw(game: Game): boolean {
  const draw = meldingOf(game)?.turn?.draw;
  return game.poolCount > 0 && (draw === TurnDraw.ONE_OR_TWO || draw === TurnDraw.ONE_TO_THREE);
}

const HIGHEST_HINTS: Readonly<Record<number, HintTier>> = {
  [Hints.PLAY_EXISTS]: HintTier.PLAY_EXISTS,
  [Hints.TILES]: HintTier.TILES,
  [Hints.TURN]: HintTier.TURN,
};

/** Returns the highest tier of hints that the game allows the caller's seat; unspecified if it allows none. */
export function highestHint({ settings, players, seat }: Game): HintTier {
  const others = players.filter((player) => player.seat !== seat);
  const areBots = others.every(({ botLevel, isAbsent }) => botLevel !== BotLevel.UNSPECIFIED && !isAbsent);
  const hints = settings?.hints === Hints.AGAINST_BOTS && areBots ? Hints.TURN : (settings?.hints ?? Hints.OFF);
  return HIGHEST_HINTS[hints] ?? HintTier.UNSPECIFIED;
}

/** Whether nothing lies on a table. */
export function isEmpty(table: Table | undefined): boolean {
  return (table?.melds.length ?? 0) + (table?.placements.length ?? 0) === 0;
}

/** Returns the request of ValidateTurn or ValidatePlacement for a table after the caller's turn. */
export function turnToJudge(game: Game, tableAfter: MessageInitShape<typeof TableSchema>) {
  const drawn = game.turn?.step === TurnStep.DRAWN ? game.turn.tilesDrawn.at(-1) : undefined;
  const ruleset = meldingOf(game);
  const otherTilesOnly = ruleset?.turn?.playAfterDraw === TurnPlayAfterDraw.OTHER_TILES;
  return {
    ...(ruleset && { ruleset }),
    tableBefore: tableBefore(game.table),
    tableAfter,
    rack: game.rack,
    hasMelded: playerOf(game, game.seat)?.hasMelded ?? false,
    ...(drawn !== undefined && otherTilesOnly && { tileDrawn: drawn }),
    // Calling the win is a button: an arrangement is legal if it is with the call.
    callsRummikub: true,
  };
}

/** Returns a table of a game as the table before a turn: its jokers keep their faces. */
export function tableBefore(table: Table | undefined): MessageInitShape<typeof TableSchema> {
  return { melds: meldsOf(table?.melds ?? []), placements: table?.placements ?? [] };
}
