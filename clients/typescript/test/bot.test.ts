import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import {
  AnalysisService,
  Bot,
  type BotOptions,
  ChallengeService,
  ChallengeState,
  DeclineReason,
  ErrorReason,
  type Game,
  GameSchema,
  GameService,
  GameState,
  type GameSummary,
  type Legal,
  type PlayTurnRequest,
  RefusalSchema,
  Rummikub,
  Tile,
  TurnSchema,
  TurnService,
  TurnStep,
  tiles,
  type WatchOwnGamesResponseSchema,
} from "rummikub-client";

type GameInit = Omit<MessageInitShape<typeof GameSchema>, "$typeName">;

const refused = (reason: ErrorReason) =>
  new ConnectError("refused", Code.FailedPrecondition, undefined, [{ desc: RefusalSchema, value: { reason } }]);

const MELDING: GameInit = { ruleset: { game: { case: "melding", value: {} } } };
const DISCARDS: GameInit = {
  ruleset: { game: { case: "discard", value: {} } },
  discardBoard: { okey: Tile.BLACK_13 },
  rack: tiles("R3 K13 B12 J"),
};

/** Returns the actions of a bot that connects in its turn, which `refusals` refuse at first; with the tile of a discard. */
async function actionsOf(
  game: GameInit,
  choose: (view: Game, legal: Legal) => PlayTurnRequest | Promise<PlayTurnRequest>,
  refusals: ErrorReason[] = [],
): Promise<string[]> {
  const actions: string[] = [];
  const turn = create(TurnSchema, { seat: 1, step: TurnStep.OPEN });
  const view = create(GameSchema, { ...game, gameId: "g", state: GameState.PLAYING, seat: 1, poolCount: 40, turn });
  const own = { state: GameState.PLAYING, turnSeat: 1 };
  const transport = createRouterTransport((router) => {
    router.service(GameService, {
      async *watchOwnGames(_, context) {
        yield { update: { case: "game", value: { gameId: "g", seat: 1, found: { case: "game", value: own } } } };
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      },
      getGame: () => ({ game: view }),
    });
    router.service(AnalysisService, {
      suggestTurn() {
        throw refused(ErrorReason.HINT_NOT_ALLOWED);
      },
    });
    router.service(TurnService, {
      returnToSeat() {
        actions.push("returnToSeat");
        throw refused(ErrorReason.PLAYER_NOT_ABSENT);
      },
      playTurn({ action }) {
        actions.push(action.case === "discard" ? `discard ${Tile[action.value.tile]}` : String(action.case));
        const reason = refusals.shift();
        if (reason !== undefined) throw refused(reason);
        if (action.case === "takeFromPool") turn.step = TurnStep.DISCARDING;
        else {
          turn.seat = 2;
          bot.stop();
        }
        return {};
      },
    });
  });
  class Chosen extends Bot {
    choose(view: Game, legal: Legal) {
      return choose(view, legal);
    }
  }
  const bot = new Chosen(Rummikub.over(transport), { ticket: () => "ticket", tokens: { g: "token" } });
  const late = setTimeout(() => bot.stop(), 20_000);
  await bot.run();
  clearTimeout(late);
  return actions;
}

test("a bot whose choice fails takes its turn", async () => {
  const failing = () => {
    throw new Error("a mistake");
  };
  assert.deepEqual(await actionsOf(MELDING, failing), ["returnToSeat", "draw"]);
  assert.deepEqual(await actionsOf(MELDING, failing, [ErrorReason.DRAW_NOT_ALLOWED_PLAY_EXISTS]), ["returnToSeat", "draw", "passTurn"]);
  assert.deepEqual(await actionsOf(DISCARDS, failing), ["returnToSeat", "takeFromPool", "discard BLUE_12"]);
});

test("a bot that connects returns to its seat, and plays where hints are not allowed", async () => {
  const suggested = (_: Game, legal: Legal) => legal.suggest();
  assert.deepEqual(await actionsOf(DISCARDS, suggested), ["returnToSeat", "takeFromPool", "discard BLUE_12"]);
});

type Update = MessageInitShape<typeof WatchOwnGamesResponseSchema>;

/**
 * Returns what a bot does with updates of its games and challenges, until it has answered so often or has no game. The
 * server still has the games `kept`, and those of accepted challenges.
 */
async function answersTo(
  updates: Update[],
  options: BotOptions,
  answers: number,
  kept: string[] = [],
): Promise<string[]> {
  const done: string[] = [];
  const games = [...kept];
  const answered = (answer: string) => {
    done.push(answer);
    if (done.length === answers) bot.stop();
  };
  const transport = createRouterTransport((router) => {
    router.service(GameService, {
      async *watchOwnGames({ joinTicket, seats }, context) {
        done.push(`watches ${joinTicket || seats.map(({ seatToken }) => seatToken).join(" ")}`);
        yield* updates;
        while (!context.signal.aborted) {
          await sleep(10);
          yield { update: { case: "heartbeat", value: {} } };
        }
      },
      listOwnGames: () => ({
        games: games.map((gameId) => ({ gameId, found: { case: "game", value: { state: GameState.LOBBY } } })),
      }),
    });
    router.service(ChallengeService, {
      acceptChallenge({ challengeId }) {
        games.push(`game of ${challengeId}`);
        answered(`accepts ${challengeId}`);
        return { challenge: { challengeId, gameId: `game of ${challengeId}` } };
      },
      declineChallenge({ challengeId, reason }) {
        answered(`declines ${challengeId}: ${DeclineReason[reason]}`);
        return {};
      },
    });
  });
  class Idle extends Bot {
    choose(_: Game, legal: Legal) {
      return legal.pass();
    }
    override over(gameId: string, _: GameSummary, won: boolean) {
      done.push(`${gameId} is ${won ? "won" : "lost"}`);
    }
  }
  const bot = new Idle(Rummikub.over(transport), options);
  const late = setTimeout(() => bot.stop(), 20_000);
  await bot.run();
  clearTimeout(late);
  return done;
}

/** Returns an update of a game in which the bot has the seat 1, and the other one the turn or the victory. */
const ofGame = (gameId: string, state: GameState): Update => {
  const found = { case: "game", value: { state, turnSeat: 2 } } as const;
  return { update: { case: "game", value: { gameId, seat: 1, found, winnerSeats: [2] } } };
};
const ofChallenge = (challengeId: string): Update => ({
  update: { case: "challenge", value: { challengeId, isIncoming: true, state: ChallengeState.OPEN } },
});

test("a bot has no more games than its most", async () => {
  const games = [ofGame("a", GameState.PLAYING), ofGame("b", GameState.FINISHED)];
  const updates = [...games, ofChallenge("c"), ofChallenge("d"), ofChallenge("e")];
  assert.deepEqual((await answersTo(updates, { ticket: () => "ticket", gamesMax: 2 }, 4, ["a"])).sort(), [
    "accepts c",
    "declines d: LATER",
    "declines e: LATER",
    "watches ticket",
  ]);
});

test("a bot counts no game that is gone", async () => {
  const updates = [ofGame("a", GameState.PLAYING), ofChallenge("c"), ofChallenge("d")];
  assert.deepEqual((await answersTo(updates, { ticket: () => "ticket", gamesMax: 1 }, 3)).sort(), [
    "accepts c",
    "declines d: LATER",
    "watches ticket",
  ]);
});

test("a bot without tickets plays its seats to their end", async () => {
  const found = { case: "refusal", value: ErrorReason.TOKEN_VOID } as const;
  const refused: Update = { update: { case: "game", value: { gameId: "b", found } } };
  const updates = [ofGame("a", GameState.FINISHED), refused];
  const tokens = { a: "token-of-a", b: "token-of-b" };
  assert.deepEqual(await answersTo(updates, { tokens }, 9), ["watches token-of-a token-of-b", "a is lost"]);
});
