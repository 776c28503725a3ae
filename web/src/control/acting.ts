/** What a seat does in its game: turns, the lobby, rounds. One call at a time; a refusal is shown. */
import {
  type BotLevel,
  type Game,
  type HandPart,
  type JoinGameResponse,
  type PlayTiles,
  RecordForm,
  refusal,
  type Rummikub,
  type Tile,
} from "rummikub-client";
import { errorText, t } from "../i18n/index.js";
import { placed, tableOf } from "../model/layout.js";
import { type ServerClock, timestampMs } from "../model/clock.js";
import { playerOf } from "../model/turn.js";
import type { Arranging } from "./arranging.js";
import type { SessionStore } from "./session-state.js";

export class Acting {
  /** Called with the player's seat in the rematch, and the player's name. */
  onRematch: (joined: JoinGameResponse, name: string) => unknown = () => {};
  /** The revision that the player's last action led to; until the watch has it, the player waits. */
  awaited = 0;
  readonly #service: Rummikub;
  readonly #gameId: string;
  readonly #arranging: Arranging;
  readonly #clock: ServerClock;
  readonly #state: SessionStore;

  constructor(service: Rummikub, gameId: string, arranging: Arranging, clock: ServerClock) {
    this.#service = service;
    this.#gameId = gameId;
    this.#arranging = arranging;
    this.#clock = clock;
    this.#state = arranging.state;
    arranging.onDiscard = (tile, isFinish) => void (isFinish ? this.finish(tile) : this.discard(tile));
  }

  play(options: { callsRummikub?: boolean; knocks?: boolean } = {}): Promise<void> {
    const { arrangement } = this.#arranging;
    const { riverIndex } = arrangement;
    return this.#turn({
      case: "play",
      value: {
        table: tableOf(arrangement),
        ...options,
        ...(riverIndex !== undefined && { riverIndex }),
      } as PlayTiles,
    });
  }

  draw(): Promise<void> {
    return this.#turn({ case: "draw", value: {} });
  }

  pass(): Promise<void> {
    return this.#turn({ case: "passTurn", value: {} });
  }

  /** Knocks, with a play of the tiles that are laid on the table, if any. */
  knock(): Promise<void> {
    const isPlay = placed(this.#arranging.arrangement).length > 0;
    return isPlay ? this.play({ knocks: true }) : this.#turn({ case: "knock", value: {} });
  }

  lay(tile: Tile): Promise<void> {
    return this.#turn({ case: "layOnRiver", value: { tile } });
  }

  takeFromPool(): Promise<void> {
    return this.#turn({ case: "takeFromPool", value: {} });
  }

  takeDiscard(): Promise<void> {
    return this.#turn({ case: "takeDiscard", value: {} });
  }

  takeTrump(): Promise<void> {
    return this.#turn({ case: "takeTrump", value: {} });
  }

  /** Takes no tile of an empty pool, which ends the round. */
  passEmptyPool(): Promise<void> {
    return this.#turn({ case: "passEmptyPool", value: {} });
  }

  discard(tile: Tile): Promise<void> {
    return this.#turn({ case: "discard", value: { tile } });
  }

  /**
   * Discards a tile and ends the round with the others: by a Foot if they lie on the table, else with a hand, which the
   * service finds.
   */
  finish(tile: Tile): Promise<void> {
    const isFoot = placed(this.#arranging.arrangement).length > 0;
    return this.#turn({ case: "finish", value: { tile, ...(isFoot && { table: this.#laidTable() }) } });
  }

  /** Lays the tiles that the player has arranged on the table of a game of discards. */
  layTiles(): Promise<void> {
    return this.#turn({ case: "lay", value: { table: this.#laidTable() } });
  }

  #laidTable(): Pick<HandPart, "tiles">[] {
    return (tableOf(this.#arranging.arrangement).melds ?? []).map(({ tiles }) => ({ tiles: [...tiles] }));
  }

  /** Puts the tile that was taken in the turn and must be laid back. */
  returnDiscard(): Promise<void> {
    return this.#turn({ case: "returnDiscard", value: {} });
  }

  showIndicator(): Promise<void> {
    return this.#turn({ case: "showIndicator", value: {} });
  }

  /** Does what the last hint suggests. */
  async takeAdvice(): Promise<void> {
    const { advice } = this.#state.value;
    if (advice !== undefined) await this.act((gameId) => this.#service.turns.playTurn({ ...advice, gameId }));
  }

  claim(agrees: boolean): Promise<void> {
    const playRevision = this.#state.game.turn?.shownPlay?.revision ?? 0;
    return this.act((gameId) => this.#service.turns.claimError({ gameId, playRevision, agrees }));
  }

  async #turn(action: { case: string; value: object }): Promise<void> {
    const { arrangement } = this.#arranging;
    const { etag } = this.#state.game;
    await this.act(async (gameId) => {
      const request = { gameId, etag, action } as Parameters<Rummikub["turns"]["playTurn"]>[0];
      const response = await this.#service.turns.playTurn(request);
      if (response.violations.length > 0) this.#arranging.refuse(arrangement, response.violations);
      return response;
    });
  }

  addBot(level: BotLevel, seat: number): Promise<void> {
    return this.act((gameId) => this.#service.games.addBot({ gameId, level, seat }));
  }

  kick(seat: number): Promise<void> {
    return this.act((gameId) => this.#service.games.kickPlayer({ gameId, seat }));
  }

  setReady(isReady: boolean): Promise<void> {
    return this.act((gameId) => this.#service.games.setReady({ gameId, isReady }));
  }

  start(): Promise<void> {
    return this.act((gameId) => this.#service.games.startGame({ gameId }));
  }

  leave(): Promise<void> {
    return this.act((gameId) => this.#service.games.leaveGame({ gameId }));
  }

  nextRound(): Promise<void> {
    return this.act((gameId) => this.#service.turns.startNextRound({ gameId }));
  }

  /** Takes the player's seat in the rematch, which is created if no player has created it. */
  rematch(): Promise<void> {
    return this.act(async (gameId) => {
      const { rematchGameId, seat } = this.#state.game;
      const created = rematchGameId === "" ? (await this.#service.games.createRematch({ gameId })).game : undefined;
      const name = playerOf(this.#state.game, seat)?.name ?? "";
      const rematch = { case: "gameId", value: created?.rematchGameId ?? rematchGameId } as const;
      await this.onRematch(await this.#service.games.joinGame({ game: rematch, name }), name);
    });
  }

  /** Gives up the player's seat in the rematch. */
  declineRematch(): Promise<void> {
    return this.act(async () => {
      await this.#service.games.leaveGame({ gameId: this.#state.game.rematchGameId });
      this.#state.set({ hasDeclined: true, spoken: t("declined") });
    });
  }

  redeal(): Promise<void> {
    return this.act((gameId) => this.#service.turns.requestRedeal({ gameId }));
  }

  returnToSeat(): Promise<void> {
    return this.act((gameId) => this.#service.turns.returnToSeat({ gameId }));
  }

  resign(): Promise<void> {
    return this.act((gameId) => this.#service.turns.resignGame({ gameId }));
  }

  abort(): Promise<void> {
    return this.act((gameId) => this.#service.games.abortGame({ gameId }));
  }

  async export(): Promise<string | undefined> {
    let text: string | undefined;
    await this.act(async (gameId) => {
      const { exported } = await this.#service.records.exportGame({ gameId, form: RecordForm.TEXT });
      if (exported.case === "text") text = exported.value;
    });
    return text;
  }

  /** Sends what the player does; shows a refusal. That of a question is a notice: it must not hide how the tiles lie. */
  async act(
    call: (gameId: string) => Promise<{ game?: Game | undefined } | void>,
    shownAs: "problem" | "notice" = "problem",
  ): Promise<void> {
    if (this.#state.value.isBusy) return;
    this.#state.set({ isBusy: true, problem: undefined, notice: undefined, advice: undefined });
    const sent = performance.now();
    try {
      const response = await call(this.#gameId);
      const game = response === undefined ? undefined : response.game;
      if (game?.serverTime) this.#clock.observe(timestampMs(game.serverTime), performance.now(), sent);
      if (game !== undefined) this.awaited = game.revision;
    } catch (error) {
      const violations = refusal(error)?.violations ?? [];
      if (violations.length > 0) this.#arranging.refuse(this.#arranging.arrangement, violations);
      else if (shownAs === "notice") this.#state.set({ notice: errorText(error) });
      else this.#state.set({ problem: { text: errorText(error), violations } });
      this.#state.say(this.#state.value.problem?.text ?? this.#state.value.notice ?? "");
    }
    if ((this.#state.value.game?.revision ?? 0) >= this.awaited || this.#state.value.connection !== "open") {
      this.#state.set({ isBusy: false });
    }
  }
}
