import { clone, create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Rummikub } from "./client.js";
import { newRequestId } from "./connection.js";
import { type Challenge, ChallengeState, DeclineReason } from "./gen/rummikub/v1/challenge_service_pb.js";
import { ErrorReason } from "./gen/rummikub/v1/error_reason_pb.js";
import { type Game, GameState, type GameSummary, TurnStep } from "./gen/rummikub/v1/game_pb.js";
import type { OwnGame } from "./gen/rummikub/v1/game_service_pb.js";
import { Tile } from "./gen/rummikub/v1/tile_pb.js";
import { type PlayTurnRequest, PlayTurnRequestSchema } from "./gen/rummikub/v1/turn_service_pb.js";
import { isLost, refusal } from "./refusal.js";
import { meldsOf } from "./tiles.js";
import { backoffMs, sleep } from "./timing.js";
import { discard, draw, pass, passEmptyPool, place, play, returnDiscard, takeFromPool } from "./turns.js";

/** How many tickets a bot tries to join with: those that it has used are refused. */
const TICKETS_TRIED = 10;
const GAMES_MAX = 10;
const OPEN_STATES: ReadonlySet<GameState> = new Set([GameState.LOBBY, GameState.PLAYING, GameState.ROUND_OVER]);
/** The refusals of a seat that will not be back. */
const GONE: ReadonlySet<ErrorReason> = new Set([ErrorReason.GAME_NOT_FOUND, ErrorReason.TOKEN_VOID]);
const SILENCE_MS = 40_000;
const FIRST_MS = 200;
const LONGEST_MS = 5_000;

/** What a bot may do in its turn, as requests for `playTurn`. */
export class Legal {
  readonly #seat: Rummikub;
  readonly #view: Game;

  constructor(seat: Rummikub, view: Game) {
    this.#seat = seat;
    this.#view = view;
  }

  /** Returns the turn that draws, or passes if the pool is empty. */
  draw(): PlayTurnRequest {
    return this.#view.poolCount > 0 ? draw(this.#view) : this.pass();
  }

  /** Returns the turn that passes. */
  pass(): PlayTurnRequest {
    return pass(this.#view);
  }

  /**
   * Returns the next action of a turn that plays no tile, in any game: draws or passes. In a game of discards it takes a
   * tile of the pool, then discards the highest one.
   */
  fallback(): PlayTurnRequest {
    const view = this.#view;
    const { gameId, etag, discardBoard, rack, turn } = view;
    if (discardBoard !== undefined) {
      if (turn?.step !== TurnStep.DISCARDING) return view.poolCount > 0 ? takeFromPool(view) : passEmptyPool(view);
      const isOwing = discardBoard.owedTile !== Tile.UNSPECIFIED;
      return isOwing ? returnDiscard(view) : discard(view, highest(rack, discardBoard.okey));
    }
    switch (turn?.step) {
      case TurnStep.CHOOSING: {
        const action = { case: "layOnRiver", value: { tile: highest(turn.tilesDrawn) } } as const;
        return create(PlayTurnRequestSchema, { gameId, etag, action });
      }
      case TurnStep.DRAWN:
        return this.pass();
      default:
        return this.draw();
    }
  }

  /**
   * Returns the best turn that the service finds, and `fallback` if none plays a tile. Where the game gives no hints, the
   * service gets the position, which has only what the seat sees. A key may forbid that. It takes no positions of games
   * of discards: there it is `fallback`.
   */
  async suggest(): Promise<PlayTurnRequest> {
    const view = this.#view;
    try {
      const { turn } = await this.#seat.analysis.suggestTurn({ subject: { case: "gameId", value: view.gameId } });
      return turn ?? this.fallback();
    } catch (error) {
      if (refusal(error)?.reason !== ErrorReason.HINT_NOT_ALLOWED) throw error;
    }
    if (view.ruleset?.game.case !== "melding") return this.fallback();
    const hasMelded = view.players.find(({ seat }) => seat === view.seat)?.hasMelded ?? false;
    const { table, rack, river } = view;
    const value = { ruleset: view.ruleset.game.value, table, rack, river, hasMelded };
    const { suggestion } = await this.#seat.analysis.suggestTurn({ subject: { case: "position", value } });
    if (suggestion?.table === undefined || suggestion.tilesPlayed.length === 0) return this.fallback();
    if (suggestion.table.placements.length > 0) return place(view, suggestion.table.placements);
    const turn = play(view, meldsOf(suggestion.table.melds));
    if (turn.action.case === "play") turn.action.value.riverIndex = suggestion.riverIndex;
    return turn;
  }
}

/** Options of a bot. */
export interface BotOptions {
  /**
   * Returns a join ticket that is not used yet, whenever one is needed. Without it, the bot has the games of `tokens`, and
   * `run` returns after them.
   */
  ticket?: () => string | Promise<string>;
  /** The player's name, if the tickets have none. */
  name?: string;
  /** The most games at once, those in the lobby included; 10 by default. With so many, the bot declines challenges. */
  gamesMax?: number;
  /** The tokens of seats by game, which an earlier run of the program has kept. */
  tokens?: Readonly<Record<string, string>>;
  /** Gets all tokens after each change, to keep them. */
  onTokens?: (tokens: Readonly<Record<string, string>>) => void;
  /** Gets what the bot survives. */
  onError?: (error: unknown) => void;
}

/**
 * A program that plays all its games on one stream. After a lost connection it connects again, and continues with what
 * the server has. It joins the games in which a seat is reserved for it.
 */
export abstract class Bot {
  readonly client: Rummikub;
  readonly #options: BotOptions;
  readonly #tokens: Record<string, string>;
  readonly #latest = new Map<string, OwnGame>();
  readonly #busy = new Set<string>();
  /** The games that are not over. */
  readonly #open = new Set<string>();
  /** The challenges that are being accepted. */
  readonly #accepting = new Set<string>();
  /** The games in which no other program stands in for the bot, since it connected. */
  readonly #present = new Set<string>();
  readonly #stopped = new AbortController();

  /** `client` is a connection without a token. */
  constructor(client: Rummikub, options: BotOptions) {
    this.client = client;
    this.#options = options;
    this.#tokens = { ...options.tokens };
  }

  /**
   * Returns the next turn, or the next step of one, in a game in which the bot has the turn. If it throws, or its turn is
   * refused, the bot takes `Legal.fallback`.
   */
  abstract choose(view: Game, legal: Legal): PlayTurnRequest | Promise<PlayTurnRequest>;

  /** Returns why the bot declines a challenge; undefined to accept it, which it does by default up to `gamesMax`. */
  async answer(challenge: Challenge): Promise<DeclineReason | undefined> {
    if (this.#isFull()) await this.#recount();
    if (this.#isFull()) return DeclineReason.LATER;
    this.#accepting.add(challenge.challengeId); // at once: the answer to another challenge may come before the caller has this one
    return undefined;
  }

  /** Is called once after each game. */
  over(_gameId: string, _game: GameSummary, _won: boolean): void {}

  /** Ends `run`, also in the middle of games. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Plays until `stop`; without tickets, until all games are over. Throws what no new attempt can mend. */
  async run(): Promise<void> {
    for (let failures = 1; !this.#stopped.signal.aborted && this.#isNeeded(); failures += 1) {
      let pauseMs = 0;
      try {
        pauseMs = await this.#follow(() => (failures = 0));
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (!isPassing(error) && !isOfTicket(error)) throw error;
        this.#options.onError?.(error);
      }
      await sleep(Math.max(pauseMs, backoffMs(Math.max(failures, 1), FIRST_MS, LONGEST_MS)), this.#stopped.signal);
    }
  }

  /** Returns whether the bot has a game, or may get one. */
  #isNeeded(): boolean {
    return this.#options.ticket !== undefined || Object.keys(this.#tokens).length > 0;
  }

  /** Follows one stream to its end; returns the pause before the next one. */
  async #follow(heard: () => void): Promise<number> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const signal = AbortSignal.any([this.#stopped.signal, silence.signal]);
    let pauseMs = 0;
    try {
      const joinTicket = (await this.#options.ticket?.()) ?? "";
      const seats = joinTicket ? [] : Object.entries(this.#tokens).map(([gameId, seatToken]) => ({ gameId, seatToken }));
      this.#present.clear();
      this.#open.clear();
      for await (const { update } of this.client.games.watchOwnGames({ joinTicket, seats }, { signal })) {
        heard();
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        if (update.case === "game") this.#wake(update.value);
        if (update.case === "challenge") this.#receive(update.value);
        if (!this.#isNeeded()) break;
        if (update.case === "closing") pauseMs = Number(update.value.retryDelay?.seconds ?? 0) * 1000;
      }
    } catch (error) {
      if (!silence.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
    return pauseMs;
  }

  /** Handles the latest state of a game, after what is under way in it. */
  #wake(game: OwnGame): void {
    this.#latest.set(game.gameId, game);
    this.#open[isOpen(game) ? "add" : "delete"](game.gameId);
    if (!this.#busy.has(game.gameId)) {
      this.#busy.add(game.gameId);
      void this.#handle(game.gameId);
    }
  }

  async #handle(gameId: string): Promise<void> {
    for (let entry = this.#latest.get(gameId); entry !== undefined; entry = this.#latest.get(gameId)) {
      this.#latest.delete(gameId);
      try {
        await this.#act(entry);
      } catch (error) {
        this.#options.onError?.(error);
        if (!isPassing(error) || this.#stopped.signal.aborted) continue;
        if (!this.#latest.has(gameId)) this.#latest.set(gameId, entry);
        await sleep(1_000, this.#stopped.signal);
      }
    }
    this.#busy.delete(gameId); // at once: an update between the end of this and a callback would wake nothing
  }

  async #act({ gameId, found, seat, winnerSeats }: OwnGame): Promise<void> {
    const token = this.#tokens[gameId];
    if (found.case === "refusal" && GONE.has(found.value)) this.#keep(gameId, undefined);
    if (found.case !== "game") return;
    const game = found.value;
    if (token === undefined) {
      const { ticket } = this.#options;
      if (game.state === GameState.LOBBY && seat === undefined && ticket !== undefined) await this.#join(gameId, ticket);
    } else if (game.state === GameState.PLAYING) {
      await this.#return(gameId, token);
      if (game.turnSeat !== seat) return;
      if (!(await this.#takeTurn(gameId, this.client.seated(token)))) this.#present.delete(gameId);
    } else if (game.state === GameState.ROUND_OVER) {
      await this.#return(gameId, token);
      await this.client.seated(token).turns.startNextRound({ gameId });
    } else if (game.state !== GameState.LOBBY) {
      this.#keep(gameId, undefined);
      this.over(gameId, game, seat !== undefined && winnerSeats.includes(seat));
    }
  }

  /** Takes the seat that is reserved for the bot, with a ticket that is not used. */
  async #join(gameId: string, ticket: () => string | Promise<string>): Promise<void> {
    for (let tried = 1; ; tried += 1) {
      const joinTicket = await ticket();
      const game = { case: "gameId", value: gameId } as const;
      const request = { game, joinTicket, name: this.#options.name ?? "", isProgram: true, requestId: newRequestId() };
      try {
        const { seatToken } = await this.#dependably(() => this.client.games.joinGame(request));
        return this.#keep(gameId, seatToken);
      } catch (error) {
        if (!isOfTicket(error) || tried === TICKETS_TRIED) throw error;
      }
    }
  }

  /** Ends the absence of the seat once after connecting, and after each turn that ended without the bot. */
  async #return(gameId: string, token: string): Promise<void> {
    if (this.#present.has(gameId)) return;
    this.#present.add(gameId);
    const request = { gameId, requestId: newRequestId() };
    try {
      await this.#dependably(() => this.client.seated(token).turns.returnToSeat(request));
    } catch (error) {
      if (refusal(error)?.reason !== ErrorReason.PLAYER_NOT_ABSENT) this.#options.onError?.(error);
    }
  }

  /**
   * Plays until the turn has ended; returns whether the bot has ended it. After an error of `choose` or a refused turn it
   * falls back, then passes.
   */
  async #takeTurn(gameId: string, seat: Rummikub): Promise<boolean> {
    let hasPlayed = false;
    for (let refused = 0; refused < 3; ) {
      const { game } = await this.#dependably(() => seat.games.getGame({ gameId }));
      if (game?.state !== GameState.PLAYING || game.turn?.seat !== game.seat) return hasPlayed;
      hasPlayed = false;
      const legal = new Legal(seat, game);
      try {
        const chosen = refused === 0 ? await this.choose(game, legal) : refused === 1 ? legal.fallback() : legal.pass();
        const turn = clone(PlayTurnRequestSchema, chosen);
        turn.requestId = newRequestId();
        await this.#dependably(() => seat.turns.playTurn(turn));
        refused = 0;
        hasPlayed = true;
      } catch (error) {
        if (refusal(error)?.reason === ErrorReason.STALE_STATE) continue;
        this.#options.onError?.(error);
        refused += 1;
      }
    }
    return false;
  }

  #receive(challenge: Challenge): void {
    if (challenge.isIncoming && challenge.state === ChallengeState.OPEN) {
      void this.#reply(challenge).catch((error: unknown) => this.#options.onError?.(error));
    }
  }

  async #reply(challenge: Challenge): Promise<void> {
    const { challenges } = this.client;
    const { challengeId } = challenge;
    try {
      const reason = await this.answer(challenge);
      if (reason === undefined) this.#accepting.add(challengeId);
      const joinTicket = (await this.#options.ticket?.()) ?? "";
      if (reason === undefined) {
        const request = { challengeId, joinTicket, name: this.#options.name ?? "" };
        const accepted = await this.#dependably(() => challenges.acceptChallenge(request));
        if (accepted.challenge !== undefined) this.#open.add(accepted.challenge.gameId);
      } else await this.#dependably(() => challenges.declineChallenge({ challengeId, joinTicket, reason }));
    } finally {
      this.#accepting.delete(challengeId);
    }
  }

  #isFull(): boolean {
    return this.#open.size + this.#accepting.size >= (this.#options.gamesMax ?? GAMES_MAX);
  }

  /** Drops games that are no longer open: the stream has no update of a game that is gone, or has lost the seat. */
  async #recount(): Promise<void> {
    const ended = new Set(this.#open);
    const joinTicket = (await this.#options.ticket?.()) ?? "";
    const { games } = await this.#dependably(() => this.client.games.listOwnGames({ joinTicket }));
    for (const game of games.filter(isOpen)) ended.delete(game.gameId);
    for (const gameId of ended) this.#open.delete(gameId);
  }

  #keep(gameId: string, token: string | undefined): void {
    if (token === undefined) delete this.#tokens[gameId];
    else this.#tokens[gameId] = token;
    this.#options.onTokens?.({ ...this.#tokens });
  }

  /** Repeats a request with an id until the server answers. */
  async #dependably<T>(call: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (error) {
        if (!isPassing(error) || this.#stopped.signal.aborted) throw error;
      }
      await sleep(backoffMs(failures, FIRST_MS, LONGEST_MS), this.#stopped.signal);
    }
  }
}

function isOpen({ found }: OwnGame): boolean {
  return found.case === "game" && OPEN_STATES.has(found.value.state);
}

/** Returns whether the same request may succeed later. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  const isLater = [Code.Unavailable, Code.DeadlineExceeded, Code.ResourceExhausted].includes(error.code);
  return isLater || isLost(error);
}

function isOfTicket(error: unknown): boolean {
  const reason = refusal(error)?.reason;
  return reason === ErrorReason.TICKET_USED || reason === ErrorReason.TICKET_EXPIRED;
}

/** Returns the tile with the highest number; wild and other special tiles are worth keeping. */
function highest(tiles: readonly Tile[], wild?: Tile): Tile {
  const value = (tile: Tile) => (tile === wild || tile > Tile.ORANGE_13 ? 0 : ((tile - 1) % 13) + 1);
  return tiles.reduce((best, tile) => (value(tile) > value(best) ? tile : best), tiles[0] ?? Tile.UNSPECIFIED);
}
