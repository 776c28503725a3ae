import { Code, ConnectError, type Client } from "@connectrpc/connect";
import { ErrorReason } from "./gen/rummikub/v1/error_reason_pb.js";
import type { Game } from "./gen/rummikub/v1/game_pb.js";
import { type GameService, WatchContent, type WatchGameResponse } from "./gen/rummikub/v1/game_service_pb.js";
import { isLost, refusal } from "./refusal.js";
import { backoffMs, sleep } from "./timing.js";

/** An update of a game: all that WatchGame sends, except heartbeats and the notice that the server stops. */
export type Update = Exclude<WatchGameResponse["update"], { case: "heartbeat" | "closing" | undefined }>;

/** Options of a watch. */
export interface WatchOptions {
  /** What to send for each change. */
  content?: WatchContent;
  /** Whether the watch goes on after the end of the game until its rematch is announced. */
  untilRematch?: boolean;
  /** The etag of the last update that the caller has seen; unset: the watch starts with a snapshot. */
  etag?: string;
  /** Ends the watch, as `stop` does. */
  signal?: AbortSignal;
  /** How long to try to reconnect before the last error is thrown. In milliseconds. */
  patienceMs?: number;
  /** How long a stream may be silent before it counts as lost. The server sends a heartbeat every 15 s. */
  silenceMs?: number;
  /** The first and the longest delay before a new connection. In milliseconds. */
  backoffMs?: readonly [number, number];
  /** Whether the watch pauses while the page is hidden. A page that becomes visible reconnects at once in any case. */
  pauseWhenHidden?: boolean;
  /** Called when the stream is open, and when it is lost and the watch tries to reconnect. */
  onConnection?: (isOpen: boolean) => void;
}

/**
 * An async iterable of a game's updates, which reconnects and resumes by itself. It ends with the game, or when it is
 * stopped; it throws if the service refuses the call, or if no connection succeeds for `patienceMs`. Iterate it once.
 */
export class Watch implements AsyncIterable<Update> {
  readonly #games: Pick<Client<typeof GameService>, "watchGame">;
  readonly #gameId: string;
  readonly #options: WatchOptions;
  readonly #stopped = new AbortController();
  #etag: string;
  /** The revision of the last change that was yielded. */
  #seen = 0;
  /** What never changes, which only the first game of a stream has. */
  #lasting: Partial<Pick<Game, "ruleset" | "settings" | "visibility" | "labels">> = {};
  #isPaused = false;
  #isWaiting = false;
  /** Aborts when pause, resume or stop is called: ends the current stream or delay. */
  #wake = new AbortController();

  constructor(games: Pick<Client<typeof GameService>, "watchGame">, gameId: string, options: WatchOptions = {}) {
    this.#games = games;
    this.#gameId = gameId;
    this.#options = options;
    this.#etag = options.etag ?? "";
  }

  /** The etag from which a later watch resumes after the last update. */
  get etag(): string {
    return this.#etag;
  }

  /** Drops the stream until `resume`, for example while an app is in the background. */
  pause(): void {
    this.#isPaused = true;
    this.#interrupt();
  }

  /** Reconnects at once after `pause`, and when the network or the page is back. Keeps a stream that is open. */
  resume(): void {
    const wasPaused = this.#isPaused;
    this.#isPaused = false;
    if (wasPaused || this.#isWaiting) this.#interrupt();
  }

  /** Ends the watch: the iteration ends without an error. */
  stop(): void {
    this.#stopped.abort();
    this.#interrupt();
  }

  #interrupt(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Update, void, void> {
    const { signal, patienceMs = 60_000, backoffMs: [firstMs, longestMs] = [200, 5_000] } = this.#options;
    const stop = () => this.stop();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
    const unfollow = this.#followVisibility();
    let failures = 0;
    let downSince: number | undefined;
    let isOpen: boolean | undefined;
    const report = (nowOpen: boolean) => {
      if (nowOpen === isOpen) return;
      isOpen = nowOpen;
      this.#options.onConnection?.(nowOpen);
    };
    try {
      while (!this.#stopped.signal.aborted) {
        if (this.#isPaused) {
          await this.#delay(2 ** 31 - 1);
          downSince = undefined;
          continue;
        }
        const wake = this.#wake.signal;
        let delayMs: number;
        try {
          const closingMs = yield* this.#attempt(wake, () => {
            failures = 0;
            downSince = undefined;
            report(true);
          });
          if (closingMs === undefined) return;
          report(false);
          delayMs = closingMs;
        } catch (reason) {
          if (this.#stopped.signal.aborted) return;
          if (wake.aborted) continue;
          const error = ConnectError.from(reason);
          if (isHistoryLost(error) && this.#etag !== "") {
            this.#etag = "";
            continue;
          }
          downSince ??= Date.now();
          if (!isTransient(error) || Date.now() - downSince >= patienceMs) throw error;
          report(false);
          failures += 1;
          delayMs = backoffMs(failures, firstMs, longestMs);
        }
        await this.#delay(delayMs);
      }
    } finally {
      unfollow();
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Yields the updates of one stream. Returns the delay that the server asks for when it stops; else undefined. */
  async *#attempt(wake: AbortSignal, onMessage: () => void): AsyncGenerator<Update, number | undefined, void> {
    const call = new AbortController();
    const abort = () => call.abort();
    wake.addEventListener("abort", abort);
    const silenceMs = this.#options.silenceMs ?? 40_000;
    let isSilent = false;
    const silence = () => {
      isSilent = true;
      call.abort();
    };
    let timer = setTimeout(silence, silenceMs);
    try {
      const request = {
        gameId: this.#gameId,
        etag: this.#etag,
        content: this.#options.content ?? WatchContent.UNSPECIFIED,
        untilRematch: this.#options.untilRematch ?? false,
      };
      for await (const { update } of this.#games.watchGame(request, { signal: call.signal })) {
        clearTimeout(timer); // the time that the caller takes for an update is no silence
        onMessage();
        if (update.case === "closing") {
          const delay = update.value.retryDelay;
          return delay === undefined ? 0 : Number(delay.seconds) * 1000 + delay.nanos / 1e6;
        }
        if (update.case !== undefined && update.case !== "heartbeat" && this.#isNew(update)) yield update;
        if (call.signal.aborted) break;
        timer = setTimeout(silence, silenceMs);
      }
      call.signal.throwIfAborted();
      return undefined;
    } catch (error) {
      if (!isSilent) throw error;
      throw new ConnectError(`the stream was silent for ${silenceMs / 1000} s`, Code.Unavailable);
    } finally {
      clearTimeout(timer);
      wake.removeEventListener("abort", abort);
      call.abort();
    }
  }

  /** Moves the position to that of the update, and completes its game. Returns false for a change that was seen before. */
  #isNew(update: Update): boolean {
    if (update.case === "snapshot" || update.case === "game") {
      this.#complete(update.value);
      this.#etag = update.value.etag;
      this.#seen = update.value.revision;
    } else if (update.case === "change") {
      if (update.value.revision <= this.#seen) return false;
      // With BOTH, the game after the change follows: a watch that is cut between them resumes before the change.
      if (this.#options.content !== WatchContent.BOTH) this.#etag = update.value.etag;
      this.#seen = update.value.revision;
    }
    return true;
  }

  #complete(game: Game): void {
    const { ruleset, settings, visibility, labels } = game;
    if (ruleset === undefined) Object.assign(game, this.#lasting);
    else this.#lasting = { ruleset, settings, visibility, labels };
  }

  async #delay(ms: number): Promise<void> {
    this.#isWaiting = true;
    await sleep(ms, this.#wake.signal, this.#stopped.signal);
    this.#isWaiting = false;
  }

  /** Follows the visibility of the page, in browsers. Returns a function that stops it. */
  #followVisibility(): () => void {
    const page = globalThis.document;
    if (page === undefined) return () => {};
    const follow = () => {
      if (page.visibilityState !== "hidden") this.resume();
      else if (this.#options.pauseWhenHidden) this.pause();
    };
    page.addEventListener("visibilitychange", follow);
    return () => page.removeEventListener("visibilitychange", follow);
  }
}

/** Yields the whole games of a watch: as the game is now, and after every change. */
export async function* gamesOf(watch: Watch): AsyncGenerator<Game, void, void> {
  for await (const update of watch) if (update.case === "snapshot" || update.case === "game") yield update.value;
}

function isHistoryLost(error: ConnectError): boolean {
  return refusal(error)?.reason === ErrorReason.HISTORY_UNAVAILABLE;
}

/** Whether a new connection may succeed. A call that this client cancels never gets here. */
function isTransient(error: ConnectError): boolean {
  if (error.code === Code.Unavailable || isLost(error)) return true;
  if (error.code !== Code.ResourceExhausted) return false;
  const refused = refusal(error); // without a reason, the server has closed the connection
  return refused === undefined || refused.reason === ErrorReason.OVERLOADED;
}
