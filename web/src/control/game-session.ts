/** One game at one seat, or as a spectator: follows the watch. Views read `state`; nothing here knows the DOM. */
import { create } from "@bufbuild/protobuf";
import {
  ErrorReason,
  type Game,
  type GameChange,
  type HandPart,
  type Rummikub,
  type Table,
  TableSchema,
  type Update,
  type Watch,
  WatchContent,
} from "rummikub-client";
import { errorText, reasonText, t } from "../i18n/index.js";
import { ServerClock, timestampMs } from "../model/clock.js";
import { Acting } from "./acting.js";
import { Arranging } from "./arranging.js";
import { eventText } from "./events.js";
import { Hints } from "./hints.js";
import type { OtherWindows } from "./other-windows.js";
import type { RackMemory } from "./rack-memory.js";
import { type LogEntry, SessionStore } from "./session-state.js";

/** The changes that the log begins with: one page of ListChanges. */
const MOST_CHANGES = 200;
/** More events than a change has. */
const MOST_EVENTS = 1_000;

/** Returns what lies on the table of a game of discards as a table, to be compared. */
function tableOfParts(parts: readonly HandPart[]): Table {
  return create(TableSchema, { melds: parts.map(({ tiles }) => ({ tiles })) });
}

export class GameSession {
  readonly state = new SessionStore();
  readonly clock = new ServerClock();
  readonly gameId: string;
  readonly arranging: Arranging;
  readonly acting: Acting;
  readonly hints: Hints;
  readonly #service: Rummikub;
  #watch: Watch | undefined;
  /** Whether the host has removed the player from the lobby. The watch ends then, because the token is void. */
  #isKicked = false;

  constructor(service: Rummikub, gameId: string, memory?: RackMemory, windows?: OtherWindows) {
    this.#service = service;
    this.gameId = gameId;
    this.arranging = new Arranging(service, gameId, this.state, memory, windows);
    this.acting = new Acting(service, gameId, this.arranging, this.clock);
    this.hints = new Hints(service, this.acting, this.state);
  }

  /** Follows the game until `stop`. */
  async follow(): Promise<void> {
    const watch = this.#service.watch(this.gameId, {
      content: WatchContent.BOTH,
      untilRematch: true,
      patienceMs: Infinity,
      onConnection: (isOpen) => this.#connection(isOpen),
    });
    this.#watch = watch;
    void this.#measureClock();
    try {
      for await (const update of watch) this.#receive(update);
      this.state.set({ connection: "over" });
    } catch (error) {
      const kicked = this.#isKicked ? reasonText(ErrorReason.PLAYER_KICKED) : undefined;
      this.state.set({ connection: "over", failure: kicked ?? errorText(error) });
    }
  }

  stop(): void {
    this.#watch?.stop();
    this.arranging.stop();
  }

  /** Reconnects at once, for example when the browser is online again. */
  reconnect(): void {
    this.#watch?.resume();
  }

  #connection(isOpen: boolean): void {
    const { connection } = this.state.value;
    if (isOpen && connection === "lost") this.state.set({ notice: t("reconnected"), spoken: t("reconnected") });
    if (!isOpen && connection !== "lost") this.state.say(t("lost"));
    this.state.set({ connection: isOpen ? "open" : "lost" });
  }

  #receive(update: Update): void {
    switch (update.case) {
      case "snapshot":
      case "game":
        return this.#showGame(update.value, update.case === "snapshot");
      case "change":
        return this.#change(update.value);
      case "draft":
        if (update.value.seat !== this.state.game.seat) this.state.set({ othersDraft: update.value });
        return;
      case "presence": {
        const { seat, isConnected, lastSeenTime } = update.value;
        const players = this.state.game.players.map((player) =>
          player.seat === seat ? { ...player, isConnected, ...(lastSeenTime && { lastSeenTime }) } : player,
        );
        return this.state.set({ game: { ...this.state.game, players } });
      }
    }
  }

  #showGame(game: Game, isSnapshot: boolean): void {
    if (game.serverTime) this.clock.observe(timestampMs(game.serverTime), performance.now());
    const isBusy = this.state.value.isBusy && game.revision < this.acting.awaited;
    if (this.state.value.game === undefined) void this.#readLog(game);
    this.arranging.show(game, isSnapshot, { isBusy });
  }

  #change(change: GameChange): void {
    const { game } = this.state.value;
    if (game === undefined) return;
    const told = change.events.map((event) => eventText(event, game)).filter((text) => text !== "");
    if (told.length > 0) this.state.say(told.join(" "));
    this.#log([change]);
    for (const { event } of change.events) {
      if (event.case === "tilesPlayed") {
        const { seat, tiles, table, pulled } = event.value;
        this.state.set({ lastPlay: { seat, tiles, before: game.table, after: table, pulled } });
      } else if (event.case === "tilesLaid") {
        const { seat, tiles, table } = event.value;
        const before = tableOfParts(game.discardBoard?.table ?? []);
        this.state.set({ lastPlay: { seat, tiles, before, after: tableOfParts(table), pulled: [] } });
      } else if (event.case === "roundStarted" || event.case === "handsDealt") {
        this.state.set({ lastPlay: undefined });
      } else if (event.case === "playerKicked") {
        this.#isKicked ||= event.value.seat === game.seat;
      }
    }
  }

  /** Adds changes to the log. One that is there already, or that a player needs no sentence for, adds nothing. */
  #log(changes: readonly GameChange[]): void {
    const { log, game } = this.state.value;
    const entries = changes.flatMap(({ revision, events }) =>
      events.map((event, i): LogEntry => ({ id: revision * MOST_EVENTS + i, event })),
    );
    const all = new Map([...log, ...entries].map((entry) => [entry.id, entry]));
    const isTold = ({ event }: LogEntry) => event.event.case !== "turnStarted" && eventText(event, game!) !== "";
    this.state.set({ log: [...all.values()].filter(isTold).sort((a, b) => a.id - b.id) });
  }

  /** Fills the log with what happened before the page was opened. */
  async #readLog({ gameId, revision }: Game): Promise<void> {
    const afterRevision = Math.max(0, revision - MOST_CHANGES);
    // Without an answer the log begins now.
    const { changes } = await this.#service.games
      .listChanges({ gameId, pageSize: MOST_CHANGES, afterRevision })
      .catch(() => ({ changes: [] }));
    this.#log(changes);
  }

  /** Measures the server's clock by a call, whose answer bounds it from both sides. */
  async #measureClock(): Promise<void> {
    const sent = performance.now();
    try {
      const { game } = await this.#service.games.getGame({ gameId: this.gameId });
      if (game?.serverTime) this.clock.observe(timestampMs(game.serverTime), performance.now(), sent);
    } catch {
      // The watch reports what is wrong.
    }
  }
}
