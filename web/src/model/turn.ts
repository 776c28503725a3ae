/** What a seat may do now, by the state of the game and its options. The service decides; this only picks buttons. */
import {
  DealThreePairsReshuffle,
  type Game,
  GameState,
  type MeldingRuleset,
  meldsOf,
  type Player,
  type Ruleset,
  Tile,
  TurnPlayAfterDraw,
  TurnStep,
  WinCall,
} from "rummikub-client";
import { type Arrangement, tableOf } from "./arrangement.js";
import { pairs } from "./tiles.js";

export interface Choices {
  /** Whether the caller's seat has the turn and may arrange tiles. */
  readonly mayPlay: boolean;
  readonly mayDraw: boolean;
  readonly mayPass: boolean;
  /** The drawn tiles of which one has to be laid on the River. */
  readonly toLay: readonly Tile[];
  readonly mayPull: boolean;
  /** Whether the caller may vote on a shown illegal play. */
  readonly mayClaim: boolean;
  readonly mayRedeal: boolean;
  readonly mayReturn: boolean;
  readonly mustCall: boolean;
}

/** Returns the rules of a game, or of what else has them; undefined where they are not known. */
export function meldingOf(what: { readonly ruleset?: Ruleset | undefined } | undefined): MeldingRuleset | undefined {
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
  const step = isMine ? turn?.step : undefined;
  const shown = turn?.shownPlay;
  return {
    mayPlay: step === TurnStep.OPEN || step === TurnStep.DRAWN,
    mayDraw: step === TurnStep.OPEN && game.poolCount > 0,
    mayPass: step === TurnStep.DRAWN || (step === TurnStep.OPEN && game.poolCount === 0),
    toLay: step === TurnStep.CHOOSING ? (turn?.tilesDrawn ?? []) : [],
    mayPull: step === TurnStep.OPEN && river.length > 0,
    mayClaim:
      isPlaying && !isMine && shown !== undefined && shown.againstSeat === undefined && !shown.claimSeats.includes(me.seat),
    mayRedeal:
      isPlaying &&
      ruleset?.deal?.threePairsReshuffle === DealThreePairsReshuffle.ON_REQUEST &&
      (game.table?.melds.length ?? 0) === 0 &&
      pairs(rack) >= 3,
    mayReturn: isPlaying && me.isAbsent,
    mustCall: ruleset?.turn?.winCall === WinCall.REQUIRED,
  };
}

/** Returns the request of ValidateTurn for an arrangement of the caller's turn. */
export function turnToJudge(game: Game, arrangement: Arrangement) {
  const drawn = game.turn?.step === TurnStep.DRAWN ? game.turn.tilesDrawn.at(-1) : undefined;
  const ruleset = meldingOf(game);
  const otherTilesOnly = ruleset?.turn?.playAfterDraw === TurnPlayAfterDraw.OTHER_TILES;
  return {
    ...(ruleset && { ruleset }),
    tableBefore: { melds: meldsOf(game.table?.melds ?? []) },
    tableAfter: { melds: tableOf(arrangement) },
    rack: game.rack,
    hasMelded: playerOf(game, game.seat)?.hasMelded ?? false,
    river: game.river,
    ...(arrangement.riverIndex !== undefined && { riverIndex: arrangement.riverIndex }),
    ...(drawn !== undefined && otherTilesOnly && { tileDrawn: drawn }),
    // Calling the win is a button: an arrangement is legal if it is with the call.
    callsRummikub: true,
  };
}
