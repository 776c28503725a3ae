/** How tiles lie: in melds, in the cells of a grid, or only on a rack of slots. Callers need not know which of them. */
import { type Game, Manipulation, TableLayout, Tile, type Violation } from "rummikub-client";
import {
  arrange,
  arrangeAs,
  type Arrangement,
  type LaidMeld,
  move,
  type Piece,
  piecesOfMelds,
  sortRack,
  tableOf as meldsOfTable,
  takePiece,
  type Target,
} from "./arrangement.js";
import { isWideRack } from "./discards.js";
import {
  arrangeGrid,
  arrangeGridAs,
  type Grid,
  isGrid,
  isMovable,
  moveOnGrid,
  type Placed,
  placementsOf,
} from "./grid.js";
import { type Marks, marksOf } from "./marks.js";
import { arrangeStand, COLUMNS, isOwn, isStand, moveOnStand, sortStand, type Stand, WIDE_COLUMNS, withSlots } from "./stand.js";
import type { RackOrder } from "./tiles.js";
import { meldingOf } from "./turn.js";

/** A table as it is sent: melds or placements. */
export interface LaidTable {
  readonly melds?: LaidMeld[];
  readonly placements?: Placed[];
}

export interface Layout<A extends Arrangement = Arrangement> {
  /** Returns the arrangement at the start of a turn. Tiles that were there before keep their ids and places. */
  start(game: Game, before: Arrangement): A;
  /** Returns the arrangement that lies as `table`, such as a draft or a suggestion, with the pieces of `start`. */
  as(start: A, table: LaidTable): A;
  /** Returns the arrangement with pieces moved to a target; the same one if they cannot go there. */
  move(arrangement: A, ids: readonly number[], target: Target): A;
  /** Returns the arrangement with the rack in an order. */
  sort(arrangement: A, order: RackOrder): A;
  /** Whether a player whose turn it is may move a piece. */
  isMovable(arrangement: A, id: number): boolean;
  /** Returns the pieces on the table. */
  pieces(arrangement: A): readonly Piece[];
  /** Returns the table to send to the service. */
  table(arrangement: A): LaidTable;
  marks(arrangement: A, violations: readonly Violation[]): Marks;
}

const MELDS: Layout = {
  start: ({ table, rack }, before) => arrange({ table: table?.melds ?? [], rack }, before),
  as: (start, { melds = [] }) => arrangeAs(start, melds),
  move,
  sort: sortRack,
  isMovable: () => true,
  pieces: piecesOfMelds,
  table: (arrangement) => ({ melds: meldsOfTable(arrangement) }),
  marks: marksOf,
};

const GRID: Layout<Grid> = {
  start: (game, before) => {
    const isFree = meldingOf(game)?.turn?.manipulation === Manipulation.FREE;
    return arrangeGrid(game.table?.placements ?? [], game.rack, isFree, before);
  },
  as: (start, { placements = [] }) => arrangeGridAs(start, placements),
  move: moveOnGrid,
  sort: (grid, order) => ({ ...grid, ...sortRack(grid, order) }),
  isMovable,
  pieces: ({ cells }) => cells,
  table: (grid) => ({ placements: placementsOf(grid) }),
  marks: (_, violations) => ({ melds: new Map(), table: violations, isLegal: violations.length === 0 }),
};

/** A game of discards may have a table of melds. Its drafts are not saved. */
const STAND: Layout<Stand> = {
  start: (game, before) => {
    const columns = isWideRack(game) ? WIDE_COLUMNS : COLUMNS;
    return arrangeStand(game.rack, before, game.discardBoard?.table, columns);
  },
  as: (start) => start,
  move: moveOnStand,
  sort: sortStand,
  isMovable: isOwn,
  pieces: piecesOfMelds,
  table: (stand) => ({ melds: meldsOfTable(stand) }),
  marks: marksOf,
};

/** Returns the layout of a game. */
export function layoutOfGame(game: Game): Layout {
  if (game.discardBoard !== undefined) return STAND as Layout;
  return (meldingOf(game)?.melds?.tableLayout === TableLayout.GRID ? GRID : MELDS) as Layout;
}

/** Returns the layout of an arrangement. */
export function layoutOf(arrangement: Arrangement): Layout {
  if (isStand(arrangement)) return STAND as Layout;
  return (isGrid(arrangement) ? GRID : MELDS) as Layout;
}

/** Returns the table to send to the service. */
export function tableOf(arrangement: Arrangement): LaidTable {
  return layoutOf(arrangement).table(arrangement);
}

/** Returns the pieces of the rack and the River that lie on the table now. */
export function placed(arrangement: Arrangement): Piece[] {
  return layoutOf(arrangement).pieces(arrangement).filter(({ origin }) => origin !== "table");
}

/** Returns the tiles of a rack in order, unspecified for an empty slot. */
export function rackTiles(arrangement: Arrangement): Tile[] {
  const places = isStand(arrangement) ? arrangement.slots : arrangement.rack;
  return places.map((piece) => piece?.tile ?? Tile.UNSPECIFIED);
}

/** Returns the arrangement with its rack in the order of `rackTiles`, as far as it has these tiles. */
export function withRack(arrangement: Arrangement, tiles: readonly Tile[]): Arrangement {
  const left = [...arrangement.rack];
  const places = tiles.map((tile) => takePiece(left, tile));
  if (isStand(arrangement)) return left.length > 0 ? arrangement : withSlots(arrangement, places);
  return { ...arrangement, rack: [...places.flatMap((piece) => piece ?? []), ...left] };
}

/** Returns the ids of all pieces. */
export function idsOf(arrangement: Arrangement): Set<number> {
  return new Set([...arrangement.rack, ...layoutOf(arrangement).pieces(arrangement)].map(({ id }) => id));
}

export function pieceOf(arrangement: Arrangement, id: number): Piece | undefined {
  return [...arrangement.rack, ...layoutOf(arrangement).pieces(arrangement)].find((piece) => piece.id === id);
}

/** Whether two arrangements have the same table; the order of melds has no meaning. */
export function isSameTable(a: Arrangement, b: Arrangement): boolean {
  const text = (arrangement: Arrangement) => {
    const { melds = [], placements = [] } = tableOf(arrangement);
    return [...melds, ...placements].map((one) => JSON.stringify(one)).sort().join();
  };
  return text(a) === text(b);
}
