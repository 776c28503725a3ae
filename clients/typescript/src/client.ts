import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { authorized, type CallOptions, dependable, newRequestId, withHeader } from "./connection.js";
import { AnalysisService } from "./gen/rummikub/v1/analysis_service_pb.js";
import { ChallengeService } from "./gen/rummikub/v1/challenge_service_pb.js";
import type { Game } from "./gen/rummikub/v1/game_pb.js";
import { GameService, WatchContent } from "./gen/rummikub/v1/game_service_pb.js";
import { PuzzleService } from "./gen/rummikub/v1/puzzle_service_pb.js";
import { RecordService } from "./gen/rummikub/v1/record_service_pb.js";
import { TurnService } from "./gen/rummikub/v1/turn_service_pb.js";
import { ValidationService } from "./gen/rummikub/v1/validation_service_pb.js";
import { gamesOf, Watch, type WatchOptions } from "./watch.js";

/** Options of a connection over any transport. */
export interface RummikubOptions extends Partial<CallOptions> {
  /** The front end's key, for a server that requires one. */
  apiKey?: string;
}

/** A connection to the service, as a spectator or, with a token, as a seat of a game or its host. */
export class Rummikub {
  /** The lobby, and views of games. */
  readonly games: Client<typeof GameService>;
  /** Turns and rounds. */
  readonly turns: Client<typeof TurnService>;
  /** Rules without a game. */
  readonly validation: Client<typeof ValidationService>;
  /** Suggestions and explanations. */
  readonly analysis: Client<typeof AnalysisService>;
  /** Records, and texts of positions. */
  readonly records: Client<typeof RecordService>;
  /** Challenges between players with join tickets. */
  readonly challenges: Client<typeof ChallengeService>;
  /** Puzzles. */
  readonly puzzles: Client<typeof PuzzleService>;
  readonly #transport: Transport;
  readonly #close: () => void;

  private constructor(transport: Transport, close: () => void) {
    this.#transport = transport;
    this.#close = close;
    this.games = createClient(GameService, transport);
    this.turns = createClient(TurnService, transport);
    this.validation = createClient(ValidationService, transport);
    this.analysis = createClient(AnalysisService, transport);
    this.records = createClient(RecordService, transport);
    this.challenges = createClient(ChallengeService, transport);
    this.puzzles = createClient(PuzzleService, transport);
  }

  /** Returns a connection over a Connect transport, with request ids, deadlines and retries. */
  static over(transport: Transport, options: RummikubOptions = {}, close: () => void = () => {}): Rummikub {
    const calls = { target: "the server", retries: true, startMs: 5_000, requestId: newRequestId, ...options };
    const dependably = dependable(transport, calls);
    return new Rummikub(options.apiKey ? withHeader(dependably, "x-api-key", options.apiKey) : dependably, close);
  }

  /** Returns the same connection with a seat's token, or the host token, on every call. */
  seated(token: string): Rummikub {
    return new Rummikub(authorized(this.#transport, token), this.#close);
  }

  /** Returns an async iterable of a game's updates, which reconnects and resumes by itself. */
  watch(gameId: string, options: WatchOptions = {}): Watch {
    return new Watch(this.games, gameId, options);
  }

  /** Returns an async iterable of a game as it is now and after every change, which reconnects and resumes by itself. */
  watchGames(gameId: string, options: Omit<WatchOptions, "content"> = {}): AsyncIterable<Game> {
    return gamesOf(this.watch(gameId, { ...options, content: WatchContent.GAMES }));
  }

  /** Closes the connection, also that of clients made by `seated`. */
  close(): void {
    this.#close();
  }
}

/** Returns the URL of a target: `host:port`, with TLS or without, or a URL. */
export function targetUrl(target: string, tls: boolean): string {
  return /^https?:\/\//.test(target) ? target.replace(/\/+$/, "") : `${tls ? "https" : "http"}://${target}`;
}
