/**
 * One game at one seat, or as a spectator: follows the watch, keeps the arrangement, and sends what the player does.
 * Views read `state` and call methods; nothing here knows the DOM.
 */
import {
  type BotLevel,
  ErrorReason,
  Existence,
  type Game,
  type GameChange,
  GameState,
  HintTier,
  type JoinGameResponse,
  type Meld,
  type PlayTiles,
  RecordForm,
  refusal,
  type Rummikub,
  type SavedDraft,
  type SuggestedStep,
  type Suggestion,
  type Tile,
  toMelds,
  type Update,
  type Violation,
  type Watch,
  WatchContent,
} from "rummikub-client";
import { errorText, reasonText, t, tilesList, violationText } from "../i18n/index.js";
import {
  arrange,
  arrangeAs,
  type Arrangement,
  declare,
  isSameTable,
  type LaidMeld,
  move,
  placed,
  pull,
  reorder,
  sortRack,
  split,
  tableOf,
  type Target,
} from "../model/arrangement.js";
import { ServerClock, timestampMs } from "../model/clock.js";
import { amend, begin, type History, redo, step, undo } from "../model/history.js";
import { type Judgment, marksOf } from "../model/marks.js";
import type { RackOrder } from "../model/tiles.js";
import { choices, playerOf, turnToJudge } from "../model/turn.js";
import { DraftSaver } from "./draft-saver.js";
import { eventText } from "./events.js";
import { Judge } from "./judge.js";
import { Store } from "./store.js";

export interface Problem {
  readonly text: string;
  readonly violations: readonly Violation[];
}

/** A play of another seat, to be shown step by step. */
export interface ShownTurn {
  readonly title: string;
  readonly before: readonly Meld[];
  readonly steps: readonly SuggestedStep[];
  /** The play to lay, for a hint in the own turn. */
  readonly play?: PlayTiles;
}

export interface Carried {
  readonly ids: readonly number[];
  readonly target?: Target | undefined;
  /** How the tiles would lie. It is judged, but not laid yet. */
  readonly preview?: Arrangement | undefined;
}

export interface LastPlay {
  readonly seat: number;
  readonly tiles: readonly Tile[];
  readonly before: readonly Meld[];
  readonly after: readonly Meld[];
  readonly pulled: readonly Tile[];
}

export interface SessionState {
  readonly game?: Game | undefined;
  readonly history: History<Arrangement>;
  /** The tiles that are being moved, by hand or by keys, and the place where they would be laid. */
  readonly carried?: Carried | undefined;
  readonly judgment?: Judgment | undefined;
  readonly selection: readonly number[];
  /** The tiles of the rack that a hint names. */
  readonly hinted: readonly Tile[];
  readonly shown?: ShownTurn | undefined;
  readonly othersDraft?: SavedDraft | undefined;
  readonly lastPlay?: LastPlay | undefined;
  readonly connection: "connecting" | "open" | "lost" | "over";
  readonly isBusy: boolean;
  readonly problem?: Problem | undefined;
  /** Why the game cannot be shown at all. */
  readonly failure?: string | undefined;
  readonly notice?: string | undefined;
  /** Whether the player has given up the seat in the rematch. */
  readonly hasDeclined: boolean;
  /** The last sentences for a screen reader. */
  readonly spoken: string;
}

const START: SessionState = {
  history: begin(arrange({ table: [], rack: [] })),
  selection: [],
  hinted: [],
  connection: "connecting",
  isBusy: false,
  hasDeclined: false,
  spoken: "",
};

export class GameSession {
  readonly state = new Store<SessionState>(START);
  readonly clock = new ServerClock();
  readonly gameId: string;
  /** Called with the player's seat in the rematch, and the player's name. */
  onRematch: (joined: JoinGameResponse, name: string) => void = () => {};
  readonly #service: Rummikub;
  readonly #judge: Judge<Arrangement, Judgment>;
  readonly #drafts: DraftSaver<{ game: Game; table: LaidMeld[] }>;
  #watch: Watch | undefined;
  /** The revision that the player's last action led to; until the watch has it, the player waits. */
  #awaited = 0;
  /** Whether the host has removed the player from the lobby. The watch ends then, because the token is void. */
  #isKicked = false;

  constructor(service: Rummikub, gameId: string) {
    this.#service = service;
    this.gameId = gameId;
    this.#judge = new Judge(
      async (arrangement, signal) => {
        const answer = await service.validation.validateTurn(turnToJudge(this.#game, arrangement), { signal });
        return { arrangement, answer, marks: marksOf(arrangement, answer.violations) };
      },
      (arrangement, judgment) => this.#judged(arrangement, judgment),
    );
    this.#drafts = new DraftSaver(({ game, table }) =>
      service.turns.saveDraft({ gameId, etag: game.etag, draft: { table: { melds: table } } }),
    );
  }

  get arrangement(): Arrangement {
    return this.state.value.history.present;
  }

  get #game(): Game {
    const { game } = this.state.value;
    if (game === undefined) throw new Error("the game is not loaded yet");
    return game;
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
    this.#judge.cancel();
    this.#drafts.drop();
  }

  /** Reconnects at once, for example when the browser is online again. */
  reconnect(): void {
    this.#watch?.resume();
  }

  // ---- arranging

  select(id: number): void {
    const { selection } = this.state.value;
    this.state.set({
      selection: selection.includes(id) ? selection.filter((other) => other !== id) : [...selection, id],
    });
  }

  clearSelection(): void {
    if (this.state.value.selection.length > 0) this.state.set({ selection: [] });
  }

  /** Whether the player may move tiles to and on the table now. */
  get mayArrange(): boolean {
    const { game } = this.state.value;
    return game !== undefined && choices(game).mayPlay;
  }

  move(ids: readonly number[], target: Target): void {
    this.#lay(move(this.arrangement, ids, target), target);
    this.state.set({ selection: [] });
  }

  /** Carries tiles over a place: judges how they would lie there, without laying them. */
  carry(ids: readonly number[], target?: Target): void {
    const { carried } = this.state.value;
    if (carried !== undefined && JSON.stringify(carried.target) === JSON.stringify(target)) return;
    const isOnTable = target !== undefined && target.to !== "rack" && this.mayArrange;
    const moved = isOnTable ? move(this.arrangement, ids, target) : this.arrangement;
    const preview = moved === this.arrangement ? undefined : moved;
    this.state.set({ carried: { ids, target, preview } });
    if (preview !== undefined) this.#judge.consider(preview);
  }

  /** Lays the carried tiles where they are. */
  drop(): void {
    const { carried } = this.state.value;
    this.state.set({ carried: undefined });
    if (carried?.target !== undefined) this.move(carried.ids, carried.target);
    this.#consider();
  }

  /** Puts the carried tiles back. */
  putBack(): void {
    if (this.state.value.carried === undefined) return;
    this.state.set({ carried: undefined, selection: [] });
    this.#consider();
  }

  split(id: number): void {
    this.#lay(split(this.arrangement, id));
    this.state.set({ selection: [] });
  }

  declare(meld: number, kind: Parameters<typeof declare>[2], faces: readonly Tile[]): void {
    this.#lay(declare(this.arrangement, meld, kind, faces));
  }

  pull(index?: number): void {
    this.#lay(pull(this.arrangement, this.#game.river, index));
  }

  sort(order: RackOrder): void {
    this.#layRack(sortRack(this.arrangement, order));
  }

  undo(): void {
    this.#go(undo(this.state.value.history));
  }

  redo(): void {
    this.#go(redo(this.state.value.history));
  }

  /** Puts everything back as it was when the turn began. */
  reset(): void {
    const { history } = this.state.value;
    const [first] = history.past;
    if (first !== undefined) this.#go(step(history, { ...first, rack: first.rack }));
  }

  layHint(): void {
    const { shown, history } = this.state.value;
    if (shown?.play === undefined) return;
    const start = history.past[0] ?? history.present;
    const { riverIndex, table } = shown.play;
    const base = riverIndex === undefined ? start : pull(start, this.#game.river, riverIndex);
    this.#lay(arrangeAs(base, table?.melds ?? []));
    this.state.set({ shown: undefined, hinted: [], selection: [] });
  }

  // ---- turns

  play(callsRummikub = false): Promise<void> {
    const { arrangement } = this;
    const { riverIndex } = arrangement;
    return this.#turn({
      case: "play",
      value: {
        table: { melds: tableOf(arrangement) },
        callsRummikub,
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

  lay(tile: Tile): Promise<void> {
    return this.#turn({ case: "layOnRiver", value: { tile } });
  }

  claim(agrees: boolean): Promise<void> {
    const playRevision = this.#game.turn?.shownPlay?.revision ?? 0;
    return this.#act((gameId) => this.#service.turns.claimError({ gameId, playRevision, agrees }));
  }

  async #turn(action: { case: string; value: object }): Promise<void> {
    const { arrangement } = this;
    const { etag } = this.#game;
    await this.#act(async (gameId) => {
      const request = { gameId, etag, action } as Parameters<Rummikub["turns"]["playTurn"]>[0];
      const response = await this.#service.turns.playTurn(request);
      if (response.violations.length > 0) this.#refuse(arrangement, response.violations);
      return response;
    });
  }

  // ---- lobby and rounds

  addBot(level: BotLevel, seat = 0): Promise<void> {
    return this.#act((gameId) => this.#service.games.addBot({ gameId, level, seat }));
  }

  kick(seat: number): Promise<void> {
    return this.#act((gameId) => this.#service.games.kickPlayer({ gameId, seat }));
  }

  setReady(isReady: boolean): Promise<void> {
    return this.#act((gameId) => this.#service.games.setReady({ gameId, isReady }));
  }

  start(): Promise<void> {
    return this.#act((gameId) => this.#service.games.startGame({ gameId }));
  }

  leave(): Promise<void> {
    return this.#act((gameId) => this.#service.games.leaveGame({ gameId }));
  }

  nextRound(): Promise<void> {
    return this.#act((gameId) => this.#service.turns.startNextRound({ gameId }));
  }

  /** Takes the player's seat in the rematch, which is created if no player has created it. */
  rematch(): Promise<void> {
    return this.#act(async (gameId) => {
      const { rematchGameId, seat } = this.#game;
      const created = rematchGameId === "" ? (await this.#service.games.createRematch({ gameId })).game : undefined;
      const name = playerOf(this.#game, seat)?.name ?? "";
      const rematch = { case: "gameId", value: created?.rematchGameId ?? rematchGameId } as const;
      this.onRematch(await this.#service.games.joinGame({ game: rematch, name }), name);
    });
  }

  /** Gives up the player's seat in the rematch. */
  declineRematch(): Promise<void> {
    return this.#act(async () => {
      await this.#service.games.leaveGame({ gameId: this.#game.rematchGameId });
      this.state.set({ hasDeclined: true, spoken: t("declined") });
    });
  }

  redeal(): Promise<void> {
    return this.#act((gameId) => this.#service.turns.requestRedeal({ gameId }));
  }

  returnToSeat(): Promise<void> {
    return this.#act((gameId) => this.#service.turns.returnToSeat({ gameId }));
  }

  resign(): Promise<void> {
    return this.#act((gameId) => this.#service.turns.resignGame({ gameId }));
  }

  abort(): Promise<void> {
    return this.#act((gameId) => this.#service.games.abortGame({ gameId }));
  }

  // ---- analysis

  /** Asks for a hint of a tier, and shows it. */
  async hint(tier: HintTier): Promise<void> {
    await this.#act(async (gameId) => {
      const { suggestion, turn } = await this.#service.analysis.suggestTurn({
        subject: { case: "gameId", value: gameId },
        tier,
      });
      if (suggestion === undefined) return;
      this.state.set({ hinted: suggestion.tilesPlayed, notice: hintText(suggestion, tier) });
      if (tier === HintTier.TURN && suggestion.table !== undefined) {
        const play = turn?.action.case === "play" ? turn.action.value : undefined;
        this.#show({ title: t("bestTurn"), before: this.#game.table?.melds ?? [], steps: suggestion.steps, ...(play && { play }) });
      }
    });
  }

  /** Explains the last play of the table step by step. */
  async explainLastPlay(name: string): Promise<void> {
    const { lastPlay } = this.state.value;
    const { ruleset } = this.#game;
    if (lastPlay === undefined) return;
    const { before, after, pulled } = lastPlay;
    await this.#act(async () => {
      const { steps } = await this.#service.analysis.explainTurn({
        ...(ruleset && { ruleset }),
        tableBefore: { melds: toMelds(before) },
        tableAfter: { melds: toMelds(after) },
        pulled: [...pulled],
      });
      this.#show({ title: t("explained", { name }), before, steps });
    });
  }

  #show(shown: ShownTurn): void {
    this.state.set({ shown });
  }

  closeShown(): void {
    this.state.set({ shown: undefined });
  }

  dismiss(): void {
    this.state.set({ problem: undefined, notice: undefined });
  }

  /** Returns in one line why the tiles do not lie legally. What belongs to a meld is shown there. */
  violationSummary({ table, melds }: Judgment["marks"]): string {
    const isMeldFaulty = [...melds.values()].some(({ isLegal }) => !isLegal);
    const texts = isMeldFaulty ? [] : [...new Set(table.map(violationText))];
    return texts.length > 0 ? texts.join(" ") : t("illegalTurn");
  }

  say(text: string): void {
    this.state.set({ spoken: text });
  }

  async export(): Promise<string | undefined> {
    let text: string | undefined;
    await this.#act(async (gameId) => {
      const { exported } = await this.#service.records.exportGame({ gameId, form: RecordForm.TEXT });
      if (exported.case === "text") text = exported.value;
    });
    return text;
  }

  // ---- the rest is private

  /** Sends what the player does; shows a refusal. */
  async #act(call: (gameId: string) => Promise<{ game?: Game | undefined } | void>): Promise<void> {
    if (this.state.value.isBusy) return;
    this.state.set({ isBusy: true, problem: undefined, notice: undefined });
    const sent = performance.now();
    try {
      const response = await call(this.gameId);
      const game = response === undefined ? undefined : response.game;
      if (game?.serverTime) this.clock.observe(timestampMs(game.serverTime), performance.now(), sent);
      if (game !== undefined) this.#awaited = game.revision;
    } catch (error) {
      const violations = refusal(error)?.violations ?? [];
      if (violations.length > 0) this.#refuse(this.arrangement, violations);
      else this.state.set({ problem: { text: errorText(error), violations } });
      this.say(this.state.value.problem?.text ?? "");
    }
    if ((this.state.value.game?.revision ?? 0) >= this.#awaited || this.state.value.connection !== "open") {
      this.state.set({ isBusy: false });
    }
  }

  /** Shows the violations of a play at its melds and tiles. */
  #refuse(arrangement: Arrangement, violations: readonly Violation[]): void {
    const marks = marksOf(arrangement, violations);
    const { judgment } = this.state.value;
    const text = [...new Set(violations.map(violationText))].join(" ");
    this.state.set({
      problem: { text, violations },
      ...(judgment?.arrangement === arrangement && { judgment: { ...judgment, marks } }),
    });
  }

  #lay(next: Arrangement, target?: Target): void {
    if (!this.mayArrange && target?.to !== "rack") return;
    if (next === this.arrangement) {
      if (target?.to === "rack") this.state.set({ notice: t("keepOnTable") });
      return;
    }
    const isRackOnly = target?.to === "rack" && isSameTable(next, this.arrangement);
    if (isRackOnly) this.#layRack(next);
    else this.#go(step(this.state.value.history, next));
  }

  /** Takes another order of the rack, which is no step of its own and no other turn. */
  #layRack(next: Arrangement): void {
    const { history, judgment } = this.state.value;
    const isJudged = judgment?.arrangement === history.present;
    this.state.set({
      history: amend(history, next),
      carried: undefined,
      ...(isJudged && { judgment: { ...judgment, arrangement: next } }),
    });
    if (!isJudged) this.#consider();
  }

  #go(history: History<Arrangement>): void {
    this.state.set({ history, carried: undefined, problem: undefined, notice: undefined });
    this.#consider();
    if (this.mayArrange) this.#drafts.offer({ game: this.#game, table: tableOf(history.present) });
  }

  /** Asks for marks of the arrangement as it lies, if the player has changed it. */
  #consider(): void {
    this.#judge.cancel();
    const { history } = this.state.value;
    const start = history.past[0] ?? history.present;
    if (!this.mayArrange || (isSameTable(start, history.present) && placed(history.present).length === 0)) {
      this.state.set({ judgment: undefined });
    } else {
      this.#judge.consider(history.present);
    }
  }

  #judged(arrangement: Arrangement, judgment: Judgment): void {
    const { history } = this.state.value;
    this.state.set({ judgment });
    if (arrangement !== history.present) return;
    // The service knows the order in which the tiles are a run: nobody needs to sort by hand.
    let sorted = arrangement;
    for (const [meld, { violations }] of judgment.marks.melds) {
      const order = violations.find(({ suggestedOrder }) => suggestedOrder.length > 0)?.suggestedOrder;
      if (order !== undefined) sorted = reorder(sorted, meld, order);
    }
    if (sorted !== arrangement) this.#go(amend(history, sorted));
  }

  #connection(isOpen: boolean): void {
    const { connection } = this.state.value;
    if (isOpen && connection === "lost") this.state.set({ notice: t("reconnected"), spoken: t("reconnected") });
    if (!isOpen && connection !== "lost") this.say(t("lost"));
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
        if (update.value.seat !== this.#game.seat) this.state.set({ othersDraft: update.value });
        return;
      case "presence": {
        const { seat, isConnected, lastSeenTime } = update.value;
        const players = this.#game.players.map((player) =>
          player.seat === seat ? { ...player, isConnected, ...(lastSeenTime && { lastSeenTime }) } : player,
        );
        return this.state.set({ game: { ...this.#game, players } });
      }
    }
  }

  #showGame(game: Game, isSnapshot: boolean): void {
    const { game: before, history, isBusy } = this.state.value;
    if (game.serverTime) this.clock.observe(timestampMs(game.serverTime), performance.now());
    const isSameTurn = before !== undefined && before.turn?.revision === game.turn?.revision;
    const draft = game.turn?.draft;
    const isMine = game.turn !== undefined && game.turn.seat === game.seat;
    const start = arrange({ table: game.table?.melds ?? [], rack: game.rack }, history.past[0] ?? history.present);
    let next = begin(start);
    let notice: string | undefined;
    if (isSameTurn && isMine && history.past.length > 0) {
      next = step(next, arrangeAs(start, tableOf(history.present)));
      if (before.revision === game.revision) next = history;
    } else if (isMine && draft !== undefined && isSnapshot) {
      const restored = arrangeAs(start, draft.table?.melds ?? []);
      if (!isSameTable(restored, start)) {
        next = step(next, restored);
        notice = t("draftRestored");
      }
    } else if (before?.revision === game.revision) {
      next = history;
    }
    this.state.set({
      game,
      history: next,
      ...(notice !== undefined && { notice }),
      ...(!isSameTurn && {
        carried: undefined,
        judgment: undefined,
        hinted: [],
        selection: [],
        othersDraft: undefined,
      }),
      ...(!isSameTurn && isMine && { shown: undefined }),
      ...(isSnapshot && { othersDraft: draft !== undefined && !isMine ? draft : undefined }),
      isBusy: isBusy && game.revision < this.#awaited,
    });
    if (!isSameTurn) this.#drafts.drop();
    if (next !== history) this.#consider();
    if (game.state === GameState.FINISHED || game.state === GameState.ABORTED) this.#judge.cancel();
  }

  #change(change: GameChange): void {
    const { game } = this.state.value;
    if (game === undefined) return;
    const told = change.events.map((event) => eventText(event, game)).filter((text) => text !== "");
    if (told.length > 0) this.say(told.join(" "));
    for (const { event } of change.events) {
      if (event.case === "tilesPlayed") {
        const { seat, tiles, table, pulled } = event.value;
        this.state.set({ lastPlay: { seat, tiles, before: game.table?.melds ?? [], after: table?.melds ?? [], pulled } });
      } else if (event.case === "roundStarted") {
        this.state.set({ lastPlay: undefined });
      } else if (event.case === "playerKicked") {
        this.#isKicked ||= event.value.seat === game.seat;
      }
    }
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

function hintText({ playExists, tilesPlayed }: Suggestion, tier: HintTier): string {
  if (playExists === Existence.NO) return t("cannotPlay");
  if (playExists === Existence.UNKNOWN) return t("playUnknown");
  return tier === HintTier.PLAY_EXISTS ? t("canPlay") : t("bestTiles", { tiles: tilesList(tilesPlayed) });
}
