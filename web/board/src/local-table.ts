/** A table that needs no server: a position in, the table that the player intends out. */
import { arranged, inOrder, laidAs, moved, type Place, piecesOfMelds, splitBefore } from "./arrangement.js";
import type { BoardArrangement, BoardMeld, TableController, TableState } from "./controller.js";
import { inMelds } from "./fitting.js";
import { amend, begin, type History, redo, step, undo } from "./history.js";
import { Judge } from "./judge.js";
import type { Judgment } from "./judgment.js";
import { compareTexts, faceOf, type RackOrder, type TableLike, tableTexts, type TileLike, tileTexts } from "./tiles.js";

/** The tiles at the start of a turn. */
export interface Position {
  readonly table?: TableLike;
  readonly rack?: string | readonly TileLike[];
  /** Whether the player may move tiles to and on the table; default true. */
  readonly mayArrange?: boolean;
}

/** How the player wants the tiles to lie, as texts such as "R7". */
export interface Intended {
  readonly table: readonly (readonly string[])[];
  /** The tiles that stay on the rack, in its order. */
  readonly rack: readonly string[];
  /** The tiles that leave the rack. */
  readonly played: readonly string[];
}

/**
 * Judges an intended table. It is called a moment after the last change, also while tiles are carried over a place. A late
 * answer is dropped, and `signal` is aborted. Without an answer nothing is marked.
 */
export type OnJudge = (intended: Intended, signal: AbortSignal) => Judgment | undefined | Promise<Judgment | undefined>;

export interface LocalTableOptions extends Position {
  readonly onJudge?: OnJudge | undefined;
  /** Called after each change of the intended table or of the rack's order, but not for a new position. */
  readonly onChange?: ((intended: Intended) => void) | undefined;
  /** How long the table waits for another change before it is judged; default 80 ms. */
  readonly judgeDelayMs?: number;
}

const EMPTY: BoardArrangement = { melds: [], rack: [], nextId: 1 };
const asMeld = ({ id, pieces }: BoardMeld): BoardMeld => ({ id, pieces });

export class LocalTable implements TableController {
  onJudge: OnJudge | undefined;
  onChange: ((intended: Intended) => void) | undefined;
  #history: History<BoardArrangement> = begin(EMPTY);
  #position = "";
  #state: TableState;
  readonly #listeners = new Set<() => void>();
  readonly #judge: Judge<BoardArrangement, Judgment | undefined>;

  /** Throws a SyntaxError for a text that is no tile. */
  constructor({ onJudge, onChange, judgeDelayMs = 80, ...position }: LocalTableOptions = {}) {
    this.onJudge = onJudge;
    this.onChange = onChange;
    this.#judge = new Judge(
      (arrangement, signal) => this.#judgmentOf(arrangement, signal),
      (_, judgment) => this.#set({ judgment }),
      judgeDelayMs,
    );
    this.#state = {
      arrangement: EMPTY,
      start: EMPTY,
      mayArrange: true,
      selection: [],
      carried: undefined,
      judgment: undefined,
      fresh: new Set(),
      mayUndo: false,
      mayRedo: false,
    };
    this.show(position);
  }

  get state(): TableState {
    return this.#state;
  }

  /** How the player wants the tiles to lie now. */
  get intended(): Intended {
    return intendedBy(this.#state.arrangement);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Shows another position, in which a turn begins. Tiles that were there before keep their ids, so that a board moves them,
   * and the rack keeps its order. What is new is marked. The same position again keeps what the player has laid. Throws a
   * SyntaxError for a text that is no tile.
   */
  show({ table = [], rack = [], mayArrange = true }: Position): void {
    const melds = tableTexts(table).map((tiles) => ({ tiles }));
    const texts = tileTexts(rack);
    const position = JSON.stringify([melds, [...texts].sort()]);
    if (position === this.#position) {
      if (mayArrange !== this.#state.mayArrange) this.#set({ mayArrange, selection: [], carried: undefined });
      return;
    }
    this.#position = position;
    const before = this.#history.present;
    const { rack: places } = this.#state.start;
    const start = arranged(melds, texts, { ...before, rack: places }, (id, pieces): BoardMeld => ({ id, pieces }));
    const known = new Set([...before.rack, ...piecesOfMelds(before)].map(({ id }) => id));
    const come = [...start.rack, ...piecesOfMelds(start)].map(({ id }) => id).filter((id) => !known.has(id));
    this.#judge.cancel();
    this.#go(begin<BoardArrangement>(start), {
      mayArrange,
      selection: [],
      carried: undefined,
      judgment: undefined,
      fresh: new Set(known.size > 0 ? come : []),
    });
  }

  /** Lays the table as another one, such as a draft or a hint, of the tiles that are there. */
  lay(table: TableLike): void {
    const melds = tableTexts(table).map((tiles) => ({ tiles }));
    this.#lay(laidAs(this.#state.start, melds, (id, pieces, _, old) => old ?? { id, pieces }));
  }

  mayMove(id: number): boolean {
    const { mayArrange, arrangement } = this.#state;
    return mayArrange || arrangement.rack.some((piece) => piece.id === id);
  }

  select(id: number): void {
    const { selection } = this.#state;
    if (!this.mayMove(id)) return;
    this.#set({ selection: selection.includes(id) ? selection.filter((other) => other !== id) : [...selection, id] });
  }

  clearSelection(): void {
    if (this.#state.selection.length > 0) this.#set({ selection: [] });
  }

  move(ids: readonly number[], place: Place): boolean {
    const isAllowed = place.to === "rack" ? ids.every((id) => this.mayMove(id)) : this.#state.mayArrange;
    const { arrangement } = this.#state;
    const next = isAllowed ? moved(arrangement, ids, place, asMeld) : arrangement;
    this.#set({ selection: [], carried: undefined });
    this.#lay(next);
    return next !== arrangement;
  }

  carry(ids: readonly number[], place?: Place): void {
    const { carried, arrangement, mayArrange } = this.#state;
    if (carried !== undefined && JSON.stringify(carried.place) === JSON.stringify(place)) return;
    const isOnTable = place !== undefined && place.to !== "rack" && mayArrange;
    const next = isOnTable ? moved(arrangement, ids, place, asMeld) : arrangement;
    const preview = next === arrangement ? undefined : next;
    this.#set({ carried: { ids, place, preview }, judgment: undefined });
    this.#consider();
  }

  drop(): boolean {
    const { carried } = this.#state;
    if (carried === undefined) return false;
    if (carried.place !== undefined && this.move(carried.ids, carried.place)) return true;
    this.putBack();
    return false;
  }

  putBack(): void {
    this.#set({ carried: undefined, selection: [], judgment: undefined });
    this.#consider();
  }

  /** Splits a meld before a piece. */
  split(id: number): void {
    if (this.#state.mayArrange) this.#lay(splitBefore(this.#state.arrangement, id, asMeld));
  }

  sort(order: RackOrder): void {
    const compare = compareTexts(order);
    const { arrangement } = this.#state;
    this.#layRack({ ...arrangement, rack: [...arrangement.rack].sort((a, b) => compare(a.tile, b.tile)) });
  }

  showMelds(): void {
    const { arrangement } = this.#state;
    this.#layRack({ ...arrangement, rack: inMelds(arrangement.rack, faceOf, compareTexts("color")) });
  }

  undo(): void {
    this.#step(undo(this.#history));
  }

  redo(): void {
    this.#step(redo(this.#history));
  }

  reset(): void {
    if (this.#state.mayUndo) this.#step(step(this.#history, this.#state.start));
  }

  #lay(next: BoardArrangement): void {
    const { arrangement } = this.#state;
    if (next === arrangement) return;
    if (textOf(next) === textOf(arrangement)) this.#layRack(next);
    else this.#step(step(this.#history, next));
  }

  /** Takes another order of the rack, which is no step of its own: undo keeps it. */
  #layRack(next: BoardArrangement): void {
    const { past, future } = this.#history;
    const ordered = (one: BoardArrangement) => ({ ...one, rack: inOrder(one.rack, next.rack) });
    this.#go(amend({ past: past.map(ordered), present: next, future: future.map(ordered) }, next), {});
    this.onChange?.(this.intended);
  }

  #step(history: History<BoardArrangement>): void {
    if (history === this.#history) return;
    this.#go(history, { carried: undefined, selection: [], judgment: undefined });
    this.onChange?.(this.intended);
    this.#consider();
  }

  #go(history: History<BoardArrangement>, patch: Partial<TableState>): void {
    this.#history = history;
    const { past, present, future } = history;
    this.#set({ ...patch, arrangement: present, start: past[0] ?? present, mayUndo: past.length > 0, mayRedo: future.length > 0 });
  }

  /** Asks for a judgment, if the table is not as it was when the turn began. */
  #consider(): void {
    const { carried, arrangement, start } = this.#state;
    const lying = carried?.preview ?? arrangement;
    if (this.onJudge === undefined || textOf(lying) === textOf(start)) this.#judge.cancel();
    else this.#judge.consider(lying);
  }

  /** A judge that throws marks nothing. Its error is reported, as it may be the caller's mistake. */
  async #judgmentOf(arrangement: BoardArrangement, signal: AbortSignal): Promise<Judgment | undefined> {
    try {
      return await this.onJudge?.(intendedBy(arrangement), signal);
    } catch (error) {
      if (!signal.aborted) console.error("rummikub-board: onJudge failed:", error);
      return undefined;
    }
  }

  #set(patch: Partial<TableState>): void {
    this.#state = { ...this.#state, ...patch };
    for (const listener of [...this.#listeners]) listener();
  }
}

function intendedBy({ melds, rack }: BoardArrangement): Intended {
  const played = melds.flatMap(({ pieces }) => pieces.filter(({ origin }) => origin !== "table"));
  return {
    table: melds.map(({ pieces }) => pieces.map(({ tile }) => tile)),
    rack: rack.map(({ tile }) => tile),
    played: played.map(({ tile }) => tile),
  };
}

/** Returns the table as a text, by which two are compared. */
function textOf({ melds }: BoardArrangement): string {
  return melds.map(({ pieces }) => pieces.map(({ id }) => id).join()).join("|");
}
