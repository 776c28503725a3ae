/** What views read of a game that is followed. */
import type { Game, GameEvent, PlayTiles, PlayTurnRequest, SavedDraft, SuggestedStep, Table, Tile, Violation } from "rummikub-client";
import { arrange, type Arrangement, type Target } from "../model/arrangement.js";
import type { Cell } from "../model/grid.js";
import { begin, type History } from "../model/history.js";
import type { Judgment } from "../model/marks.js";
import type { RackOrder } from "../model/tiles.js";
import { Store } from "./store.js";

export interface Problem {
  readonly text: string;
  readonly violations: readonly Violation[];
}

/** A play of another seat, to be shown step by step. */
export interface ShownTurn {
  readonly title: string;
  readonly before: Table | undefined;
  readonly after?: Table;
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

/** An event of the game, for the log. */
export interface LogEntry {
  /** The order of entries; the same for the same event. */
  readonly id: number;
  readonly event: GameEvent;
}

export interface LastPlay {
  readonly seat: number;
  readonly tiles: readonly Tile[];
  readonly before: Table | undefined;
  readonly after: Table | undefined;
  readonly pulled: readonly Tile[];
}

export interface SessionState {
  readonly game?: Game | undefined;
  readonly history: History<Arrangement>;
  /** The tiles that are being moved, by hand or by keys, and the place where they would be laid. */
  readonly carried?: Carried | undefined;
  readonly judgment?: Judgment | undefined;
  readonly selection: readonly number[];
  /** The cell of a grid where keys lay tiles. */
  readonly cursor: Cell;
  /** The pieces that came to the rack or the table since the player's last turn. */
  readonly fresh: ReadonlySet<number>;
  /** The order in which the rack is kept, until the player moves a tile on it. */
  readonly sorting?: RackOrder | undefined;
  /** What happened in the game, oldest first. */
  readonly log: readonly LogEntry[];
  /** The tiles of the rack that a hint names. */
  readonly hinted: readonly Tile[];
  /** The action that a hint suggests in a game of discards. */
  readonly advice?: PlayTurnRequest | undefined;
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
  cursor: { x: 0, y: 0 },
  fresh: new Set(),
  log: [],
  hinted: [],
  connection: "connecting",
  isBusy: false,
  hasDeclined: false,
  spoken: "",
};

/** The state of one session. */
export class SessionStore extends Store<SessionState> {
  constructor() {
    super(START);
  }

  /** The game. Throws an error before its first snapshot. */
  get game(): Game {
    const { game } = this.value;
    if (game === undefined) throw new Error("the game is not loaded yet");
    return game;
  }

  /** Says a sentence to a screen reader. */
  say(text: string): void {
    this.set({ spoken: text });
  }
}
