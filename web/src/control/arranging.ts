/** The table as the player arranges it: moves tiles, asks for marks, and saves drafts. */
import { ErrorReason, type Game, GameState, type Rummikub, type Tile, type Violation } from "rummikub-client";
import { fittingPlaces, inMelds } from "rummikub-board/model";
import { reasonText, t, tilesList, tileText, violationText } from "../i18n/index.js";
import { type Arrangement, declare, inOrder, pull, reorder, split, type Target } from "../model/arrangement.js";
import { discardChoices, layingToJudge } from "../model/discards.js";
import { isGrid } from "../model/grid.js";
import { amend, begin, type History, redo, step, undo } from "../model/history.js";
import { idsOf, isSameTable, layoutOf, layoutOfGame, pieceOf, placed, rackTiles, tableOf, withRack } from "../model/layout.js";
import type { Judgment } from "../model/marks.js";
import { isStand, type Stand } from "../model/stand.js";
import { compareTiles, faceOf, type RackOrder } from "../model/tiles.js";
import { choices, turnToJudge } from "../model/turn.js";
import { DraftSaver } from "./draft-saver.js";
import { Judge } from "./judge.js";
import type { Moved, OtherWindows } from "./other-windows.js";
import type { RackMemory } from "./rack-memory.js";
import type { SessionState, SessionStore } from "./session-state.js";

export class Arranging {
  /** Called with a tile that the player puts on the own discards, or on the place of the last one to finish. */
  onDiscard: (tile: Tile, isFinish: boolean) => void = () => {};
  readonly state: SessionStore;
  readonly #judge: Judge<Arrangement, Judgment>;
  readonly #drafts: DraftSaver<{ game: Game; table: ReturnType<typeof tableOf> }>;

  readonly #memory: RackMemory | undefined;
  readonly #windows: OtherWindows | undefined;

  constructor(service: Rummikub, gameId: string, state: SessionStore, memory?: RackMemory, windows?: OtherWindows) {
    this.state = state;
    this.#memory = memory;
    this.#windows = windows;
    if (windows !== undefined) windows.onMoved = (moved) => this.#follow(moved);
    this.#judge = new Judge<Arrangement, Judgment>(
      async (arrangement, signal) => {
        if (isStand(arrangement)) return judgeLaying(service, state.game, arrangement, signal);
        const turn = turnToJudge(state.game, tableOf(arrangement));
        const { riverIndex } = arrangement;
        const answer = await (isGrid(arrangement)
          ? service.validation.validatePlacement(turn, { signal })
          : service.validation.validateTurn(
              { ...turn, river: state.game.river, ...(riverIndex !== undefined && { riverIndex }) },
              { signal },
            ));
        return { arrangement, answer, marks: layoutOf(arrangement).marks(arrangement, answer.violations) };
      },
      (arrangement, judgment) => this.#judged(arrangement, judgment),
    );
    this.#drafts = new DraftSaver(({ game, table }) =>
      service.turns.saveDraft({ gameId, etag: game.etag, draft: { table } }),
    );
  }

  get arrangement(): Arrangement {
    return this.state.value.history.present;
  }

  /** Whether the player may move tiles to and on the table now. */
  get mayArrange(): boolean {
    const { game } = this.state.value;
    return game !== undefined && (choices(game).mayPlay || discardChoices(game).mayLay);
  }

  /** Whether the player may move a tile now. On their own rack they always may. */
  mayMove(id: number): boolean {
    const { arrangement } = this;
    const isOnRack = arrangement.rack.some((piece) => piece.id === id);
    return isOnRack || (this.mayArrange && layoutOf(arrangement).isMovable(arrangement, id));
  }

  select(id: number): void {
    const { selection } = this.state.value;
    this.state.set({
      selection: selection.includes(id) ? selection.filter((other) => other !== id) : [...selection, id],
    });
  }

  clearSelection(): void {
    if (this.state.value.selection.length > 0) this.state.set({ selection: [] });
  }

  move(ids: readonly number[], target: Target): void {
    if (target.to === "discard" || target.to === "finish") return this.#discard(ids, target.to === "finish");
    this.#lay(layoutOf(this.arrangement).move(this.arrangement, ids, target), target, ids);
    this.state.set({ selection: [] });
  }

  /** Carries tiles over a place: judges how they would lie there, without laying them. */
  carry(ids: readonly number[], target?: Target): void {
    const { carried } = this.state.value;
    if (carried !== undefined && JSON.stringify(carried.target) === JSON.stringify(target)) return;
    const isOnTable = target !== undefined && target.to !== "rack" && this.mayArrange;
    const { arrangement } = this;
    const moved = isOnTable ? layoutOf(arrangement).move(arrangement, ids, target) : arrangement;
    const preview = moved === arrangement ? undefined : moved;
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
    this.#lay(pull(this.arrangement, this.state.game.river, index));
  }

  /** Sorts the rack, and keeps it so where it has no slots. */
  sort(sorting: RackOrder): void {
    this.#layRack(layoutOf(this.arrangement).sort(this.arrangement, sorting), isStand(this.arrangement) ? undefined : sorting);
  }

  /** Brings the melds that the rack has side by side. */
  showMelds(): void {
    this.#layRack({ ...this.arrangement, rack: inMelds(this.arrangement.rack, faceOf, compareTiles("color")) });
  }

  /** Lays a tile where it fits, if there is one such place. */
  layWhereItFits(id: number): void {
    const piece = pieceOf(this.arrangement, id);
    if (piece === undefined || !this.mayArrange || isGrid(this.arrangement) || isStand(this.arrangement)) return;
    const places = fittingPlaces(this.arrangement, piece.tile, faceOf);
    const [place, ...others] = places;
    if (place !== undefined && others.length === 0) return this.move([id], place);
    this.state.set({ notice: t("fitsAt", { tile: tileText(piece.tile), count: places.length }), selection: [] });
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
    const base = riverIndex === undefined ? start : pull(start, this.state.game.river, riverIndex);
    if (table !== undefined) this.#lay(layoutOf(base).as(base, table));
    this.state.set({ shown: undefined, hinted: [], selection: [] });
  }

  /** Shows the violations of a play at its melds and tiles. */
  refuse(arrangement: Arrangement, violations: readonly Violation[]): void {
    const marks = layoutOf(arrangement).marks(arrangement, violations);
    const { judgment } = this.state.value;
    const texts = new Set(violations.map(violationText));
    const left = violations.filter(({ reason }) => reason === ErrorReason.FINISH_INVALID).flatMap(({ tiles }) => tiles);
    if (left.length > 0) texts.add(t("leftOver", { tiles: tilesList(left) }));
    const text = [...texts].join(" ");
    this.state.set({
      problem: { text, violations },
      ...(judgment?.arrangement === arrangement && { judgment: { ...judgment, marks } }),
    });
  }

  /**
   * Shows another state of the game. What the player has laid in the same turn stays, and a saved draft is laid again.
   * `rest` is set in the same step.
   */
  show(game: Game, isSnapshot: boolean, rest: Partial<SessionState>): void {
    const { game: before, history } = this.state.value;
    const isSameTurn = before !== undefined && before.turn?.revision === game.turn?.revision;
    const draft = game.turn?.draft;
    const isSameRack = before !== undefined && before.rack.join() === game.rack.join();
    const isMine = game.turn !== undefined && game.turn.seat === game.seat;
    const layout = layoutOfGame(game);
    const { rack } = isStand(history.present) ? history.present : (history.past[0] ?? history.present);
    const start = this.#inOwnOrder(layout.start(game, { ...history.present, rack }));
    let next = begin(start);
    let notice: string | undefined;
    if (isStand(history.present) && isSameRack && laidText(before) === laidText(game)) {
      next = isSameTurn ? history : begin(history.past[0] ?? history.present);
    } else if (isSameTurn && isMine && history.past.length > 0) {
      next = step(next, layout.as(start, tableOf(history.present)));
      if (before.revision === game.revision) next = history;
    } else if (isMine && draft !== undefined && isSnapshot) {
      const restored = layout.as(start, draft.table ?? {});
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
      fresh: this.#freshAfter(game, start),
      ...(!isSameTurn && { problem: undefined, notice: undefined }),
      ...(notice !== undefined && { notice }),
      ...(!isSameTurn && {
        carried: undefined,
        judgment: undefined,
        selection: [],
        othersDraft: undefined,
      }),
      ...(!(isSameTurn && isSameRack) && { hinted: [], advice: undefined }),
      ...(!isSameTurn && isMine && { shown: undefined }),
      ...(isSnapshot && { othersDraft: draft !== undefined && !isMine ? draft : undefined }),
      ...rest,
    });
    this.#remember();
    if (!isSameTurn) this.#drafts.drop();
    if (next !== history) this.#consider();
    if (game.state === GameState.FINISHED || game.state === GameState.ABORTED) this.#judge.cancel();
  }

  /** Asks for no more marks, and saves no more drafts. */
  stop(): void {
    this.#judge.cancel();
    this.#drafts.drop();
    this.#windows?.close();
  }

  /** Lays the tiles as the player has laid them in another window, which saves the draft. */
  #follow({ seat, turn, table, riverIndex }: Moved): void {
    const { game, history } = this.state.value;
    if (game === undefined || seat !== game.seat || turn !== game.turn?.revision || !this.mayArrange) return;
    const start = history.past[0] ?? history.present;
    const base = riverIndex === undefined ? start : pull(start, game.river, riverIndex);
    this.state.set({ history: step(history, layoutOf(base).as(base, table)), carried: undefined, problem: undefined, notice: t("movedElsewhere") });
    this.#consider();
  }

  /** Returns the arrangement with its rack as the player left it before a reload, and in the order that is kept. */
  #inOwnOrder(start: Arrangement): Arrangement {
    const { game, sorting } = this.state.value;
    const notes = game === undefined ? this.#memory?.read() : undefined;
    if (notes !== undefined) this.state.set({ sorting: notes.sorting });
    const order = notes?.sorting ?? sorting;
    const ordered = notes === undefined ? start : withRack(start, notes.tiles);
    return order === undefined ? ordered : layoutOf(ordered).sort(ordered, order);
  }

  #remember(): void {
    const { history, sorting } = this.state.value;
    // What is laid and not played yet has its place on the rack, too.
    this.#memory?.write({ tiles: rackTiles(history.past[0] ?? history.present), sorting });
  }

  /** Returns the pieces to mark: those that came since the player's last turn, or for a spectator since the last turn. */
  #freshAfter(game: Game, start: Arrangement): ReadonlySet<number> {
    const { game: before, history, fresh } = this.state.value;
    if (before === undefined || before.round !== game.round) return new Set();
    const known = idsOf(history.past[0] ?? history.present);
    const come = [...idsOf(start)].filter((id) => !known.has(id));
    const isTurnOver = before.turn?.revision !== game.turn?.revision && (game.seat === undefined || before.turn?.seat === game.seat);
    return isTurnOver ? new Set(come) : come.length > 0 ? new Set([...fresh, ...come]) : fresh;
  }

  #discard(ids: readonly number[], isFinish: boolean): void {
    const [piece, ...others] = ids.flatMap((id) => pieceOf(this.arrangement, id) ?? []);
    if (piece === undefined || others.length > 0) return this.state.set({ notice: t("oneTile") });
    if (placed(this.arrangement).length > 0) {
      if (!isFinish) return this.state.set({ notice: t("layFirst") });
      if (this.arrangement.rack.length > 1) return this.state.set({ notice: t("footNeedsAll") });
    }
    this.state.set({ selection: [] });
    this.onDiscard(piece.tile, isFinish);
  }

  #lay(next: Arrangement, target?: Target, moved: readonly number[] = []): void {
    if (!this.mayArrange && target?.to !== "rack") return;
    if (next === this.arrangement) {
      if (isStand(next) && target?.to === "rack") return;
      const isOfTable = moved.some((id) => pieceOf(next, id)?.origin === "table");
      if (target?.to === "rack" && isOfTable) this.state.set({ notice: t("keepOnTable") });
      if (target?.to === "cell") this.state.set({ notice: reasonText(ErrorReason.CELL_OCCUPIED) });
      return;
    }
    const isRackOnly = target?.to === "rack" && isSameTable(next, this.arrangement);
    if (isRackOnly) this.#layRack(next);
    else this.#go(step(this.state.value.history, next));
  }

  /** Takes another order of the rack, which is no step of its own and no other turn: undo keeps it. */
  #layRack(next: Arrangement, sorting?: RackOrder): void {
    const { history, judgment } = this.state.value;
    const isJudged = judgment?.arrangement === history.present;
    const ordered = (one: Arrangement) => (isStand(one) ? one : { ...one, rack: inOrder(one.rack, next.rack) });
    const { past, future } = history;
    this.state.set({
      history: { past: past.map(ordered), present: next, future: future.map(ordered) },
      sorting,
      carried: undefined,
      ...(isJudged && { judgment: { ...judgment, arrangement: next } }),
    });
    this.#remember();
    if (!isJudged) this.#consider();
  }

  #go(history: History<Arrangement>): void {
    this.state.set({ history, carried: undefined, problem: undefined, notice: undefined });
    this.#consider();
    if (!this.mayArrange || isStand(history.present)) return;
    const { game } = this.state;
    const table = tableOf(history.present);
    this.#drafts.offer({ game, table });
    this.#windows?.tell({ seat: game.seat ?? 0, turn: game.turn?.revision ?? 0, table, riverIndex: history.present.riverIndex });
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
}

/** Judges what lies on the table of a game of discards: as a Foot if it is one, else as a step. */
async function judgeLaying(service: Rummikub, game: Game, stand: Stand, signal: AbortSignal): Promise<Judgment> {
  const laying = layingToJudge(game, tableOf(stand).melds ?? []);
  const [last, ...others] = stand.rack;
  if (discardChoices(game).mayFinish && last !== undefined && others.length === 0) {
    const foot = { ...laying, discard: last.tile, isFoot: true };
    const { violations } = await service.validation.validateDiscardTurn(foot, { signal });
    if (violations.length === 0) return { arrangement: stand, answer: { isFoot: true }, marks: layoutOf(stand).marks(stand, []) };
  }
  const { violations, opening } = await service.validation.validateDiscardTurn(laying, { signal });
  return { arrangement: stand, answer: { opening }, marks: layoutOf(stand).marks(stand, violations) };
}

/** Returns the melds on the table of a game of discards, to be compared. */
function laidText({ discardBoard }: Game): string {
  return JSON.stringify(discardBoard?.table.map(({ tiles }) => tiles));
}

/**
 * Returns in one line why the tiles do not lie legally. What belongs to a meld is shown there, and nothing else until it
 * is mended, but for what an opening in 101 Okey lacks (`isOpening`).
 */
export function violationSummary({ table, melds }: Judgment["marks"], isOpening = false): string {
  const isMeldFaulty = !isOpening && [...melds.values()].some(({ isLegal }) => !isLegal);
  const texts = isMeldFaulty ? [] : [...new Set(table.map(violationText))];
  return texts.length > 0 ? texts.join(" ") : t("illegalTurn");
}
