/**
 * The table of the cross layout as a player arranges it: tiles in the cells of a grid. Pure, as arrangement.ts is.
 *
 * Tiles of the table stay in their cells unless the rules let them move. A joker of the table that a tile of the rack
 * replaces goes to the hand, beside the rack, and has to be laid again. It goes home as soon as its cell is free.
 */
import { type Placement, Tile, type Violation } from "rummikub-client";
import { EMPTY, type Arrangement, type Piece, takePiece, type Target, uniquePieces } from "./arrangement.js";
import { faceOf } from "./tiles.js";

export interface Cell {
  readonly x: number;
  readonly y: number;
}

/** A tile in a cell, such as a placement of the contract. */
export type Placed = Cell & Pick<Placement, "tile">;

export interface GridPiece extends Piece, Cell {
  /** The tiles that a joker of the table may stand for. */
  readonly faces: readonly Tile[];
}

/** An arrangement whose table is a grid: it has no melds. A piece of the table in `rack` is in the player's hand. */
export interface Grid extends Arrangement {
  /** The pieces on the table, in the order of rows. */
  readonly cells: readonly GridPiece[];
  /** The pieces of the table where they lay when the turn began. */
  readonly home: readonly GridPiece[];
  /** Whether tiles of the table may move (manipulation). */
  readonly isFree: boolean;
}

/** The part of a grid that has cells from (left, top) to (right, bottom). */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The highest coordinate; the lowest is its negative. */
const MOST = 127;

export function isGrid(arrangement: Arrangement): arrangement is Grid {
  return "cells" in arrangement;
}

/** Returns the grid at the start of a turn. Tiles that were there before keep their ids and places. */
export function arrangeGrid(
  table: readonly Placement[],
  rack: readonly Tile[],
  isFree: boolean,
  before: Arrangement = EMPTY,
): Grid {
  let { nextId } = before;
  const old = isGrid(before) ? before : undefined;
  const home = table
    .map(({ tile, x, y, faces }): GridPiece => {
      const lying = [...(old?.home ?? []), ...(old?.cells.filter(({ origin }) => origin !== "table") ?? [])];
      const id = lying.find((piece) => isIn(piece, { x, y }) && piece.tile === tile)?.id ?? nextId++;
      return { id, tile, origin: "table", x, y, faces };
    })
    .sort(byRow);
  const loose = uniquePieces<Piece>([...before.rack, ...(old?.cells ?? [])]).filter(
    ({ id, origin }) => origin !== "table" && home.every((piece) => piece.id !== id),
  );
  const left = [...rack];
  const kept = loose.flatMap(({ id, tile }): Piece[] => {
    const index = left.indexOf(tile);
    if (index < 0) return [];
    left.splice(index, 1);
    return [{ id, tile, origin: "rack" }];
  });
  const drawn = left.map((tile): Piece => ({ id: nextId++, tile, origin: "rack" }));
  return { melds: [], cells: home, home, isFree, rack: [...kept, ...drawn], nextId };
}

/** Returns the grid that lies as `table`, such as a draft or a suggestion, with the pieces of `start`. */
export function arrangeGridAs(start: Grid, table: readonly Placed[]): Grid {
  const wanted = [...table];
  const loose: Piece[] = [];
  const cells = start.home.filter((piece) => {
    const index = wanted.findIndex((placed) => isIn(placed, piece) && placed.tile === piece.tile);
    if (index >= 0) wanted.splice(index, 1);
    else loose.push(piece);
    return index >= 0;
  });
  // The tiles that left their cells come first: they have to lie on the table.
  loose.push(...start.rack.filter(({ origin }) => origin !== "table"), ...start.cells.filter(isOfRack));
  for (const { tile, x, y } of wanted) {
    const piece = takePiece(loose, tile);
    if (piece !== undefined) cells.push({ ...piece, x, y, faces: [] });
  }
  const rack = start.rack.filter((piece) => loose.includes(piece));
  return settled({ ...start, cells, rack: [...rack, ...loose.filter((piece) => !rack.includes(piece))] });
}

/**
 * Returns the grid with pieces moved to a target; the same one if they cannot be moved there. Several pieces go side by
 * side from the target on, or below one another if they have one value, past cells that have tiles. What the player has
 * laid there before goes back to the rack.
 */
export function moveOnGrid(grid: Grid, ids: readonly number[], target: Target): Grid {
  const moved = ids.filter((id) => isMovable(grid, id)).flatMap((id) => pieceIn(grid, id) ?? []);
  const rest = { ...grid, cells: grid.cells.filter((piece) => !moved.some(({ id }) => id === piece.id)) };
  if (moved.length === 0) return grid;
  if (target.to === "rack") return toRack(grid, rest, moved, target.index);
  if (target.to !== "cell") return grid;
  const laid = laidFrom(rest.cells, moved, target);
  const pushed = pieceAt(rest, target);
  if (laid === undefined || (pushed !== undefined && !mayPushOut(rest, pushed, laid[0]!))) return grid;
  const isGone = (piece: Piece) => laid.some(({ id }) => id === piece.id) || piece.id === pushed?.id;
  const next = settled({
    ...rest,
    cells: [...rest.cells.filter((piece) => !isGone(piece)), ...laid],
    rack: [...grid.rack.filter((piece) => !isGone(piece)), ...(pushed === undefined ? [] : [pushed])],
  });
  return isSame(grid, next) ? grid : next;
}

/** Whether the player may move a piece: a tile of the rack or the hand, and by the rules others. */
export function isMovable(grid: Grid, id: number): boolean {
  const piece = grid.cells.find((one) => one.id === id);
  return piece === undefined || grid.isFree || piece.origin !== "table" || !isHome(grid, piece);
}

/** Returns the placements to send to the service. */
export function placementsOf({ cells }: Grid): Placed[] {
  return cells.map(({ tile, x, y }) => ({ tile, x, y }));
}

export function pieceAt({ cells }: { readonly cells: readonly GridPiece[] }, cell: Cell): GridPiece | undefined {
  return cells.find((piece) => isIn(piece, cell));
}

/** Returns a free cell: this one, or the next to its right. */
export function freeCell(grid: Grid, { x, y }: Cell): Cell {
  return pieceAt(grid, { x, y }) === undefined ? { x, y } : freeCell(grid, { x: x + 1, y });
}

/** Returns the cell beside another one, but no cell beyond the end of the grid. */
export function neighborOf({ x, y }: Cell, [dx, dy]: readonly [number, number]): Cell {
  const within = (value: number) => Math.max(-MOST, Math.min(MOST, value));
  return { x: within(x + dx), y: within(y + dy) };
}

/** Returns the smallest box that has all cells, widened on all sides, and inside the grid. */
export function boxOf(cells: readonly Cell[], margin = 0): Box {
  const [xs, ys] = [cells.map(({ x }) => x), cells.map(({ y }) => y)];
  const from = (values: number[]) => Math.max(-MOST, Math.min(...(values.length > 0 ? values : [0])) - margin);
  const to = (values: number[]) => Math.min(MOST, Math.max(...(values.length > 0 ? values : [0])) + margin);
  return { left: from(xs), top: from(ys), right: to(xs), bottom: to(ys) };
}

/** Returns the placements that another table does not have in the same cells. */
export function freshCells<P extends Placed>(before: readonly Placed[], after: readonly P[]): P[] {
  return after.filter((placed) => !before.some((old) => isIn(old, placed) && old.tile === placed.tile));
}

/** Returns the boxes of the grid that violations name: a line, or a single cell. */
export function boxesOf(violations: readonly Violation[]): Box[] {
  return violations.flatMap(({ metadata: { x, y, last_x: lastX = x, last_y: lastY = y } }) =>
    x === undefined || y === undefined ? [] : [{ left: x, top: y, right: lastX!, bottom: lastY! }],
  );
}

export function isInBox({ x, y }: Cell, { left, top, right, bottom }: Box): boolean {
  return left <= x && x <= right && top <= y && y <= bottom;
}

function toRack(grid: Grid, rest: Grid, moved: readonly Piece[], index: number): Grid {
  const staysOut = (piece: Piece) => piece.origin !== "table" || pieceAt(rest, homeOf(grid, piece)!) !== undefined;
  if (!moved.every(staysOut)) return grid;
  const kept = (pieces: readonly Piece[]) => pieces.filter((piece) => !moved.some(({ id }) => id === piece.id));
  const rack = [...kept(grid.rack.slice(0, index)), ...moved, ...kept(grid.rack.slice(index))];
  const next = settled({ ...rest, rack });
  return isSame(grid, next) ? grid : next;
}

/** Returns pieces in cells from a target on; undefined if the grid ends before. */
function laidFrom(
  cells: readonly GridPiece[],
  moved: readonly Piece[],
  { x, y }: Cell,
): GridPiece[] | undefined {
  const values = new Set(moved.map(({ tile }) => faceOf(tile)?.value).filter((value) => value !== undefined));
  const [dx, dy] = moved.length > 1 && values.size === 1 ? [0, 1] : [1, 0];
  let next: Cell = { x, y };
  const laid: GridPiece[] = [];
  for (const piece of moved) {
    while (laid.length > 0 && pieceAt({ cells }, next) !== undefined) next = { x: next.x + dx, y: next.y + dy };
    laid.push({ ...piece, ...next, faces: [] });
    next = { x: next.x + dx, y: next.y + dy };
  }
  return laid.every((piece) => Math.abs(piece.x) <= MOST && Math.abs(piece.y) <= MOST) ? laid : undefined;
}

/** Whether a tile that is laid on another one sends it to the rack or the hand. */
function mayPushOut(grid: Grid, lying: GridPiece, laid: Piece): boolean {
  const isReplaced = lying.tile === Tile.JOKER && laid.tile !== Tile.JOKER;
  return lying.origin !== "table" || grid.isFree || !isHome(grid, lying) || isReplaced;
}

/** Returns the grid in the order of rows, after pieces of the table whose cells are free have gone home. */
function settled(grid: Grid): Grid {
  const isOut = (piece: GridPiece) => pieceAt(grid, piece) === undefined && mayGoHome(grid, piece);
  const back = grid.home.filter(isOut);
  const isBack = (piece: Piece) => back.some(({ id }) => id === piece.id);
  const cells = [...grid.cells.filter((piece) => !isBack(piece)), ...back].sort(byRow);
  const rack = grid.rack.filter((piece) => !isBack(piece)).map(({ id, tile, origin }) => ({ id, tile, origin }));
  return { ...grid, cells, rack };
}

/** Whether a piece of the table that left its cell has to go back: a free one may lie anywhere on the table. */
function mayGoHome(grid: Grid, { id }: Piece): boolean {
  return !grid.isFree || !grid.cells.some((piece) => piece.id === id);
}

function isHome(grid: Grid, piece: GridPiece): boolean {
  const home = homeOf(grid, piece);
  return home !== undefined && isIn(home, piece);
}

function homeOf({ home }: Grid, { id }: Piece): GridPiece | undefined {
  return home.find((piece) => piece.id === id);
}

function pieceIn(grid: Grid, id: number): Piece | undefined {
  return [...grid.rack, ...grid.cells].find((piece) => piece.id === id);
}

function isOfRack({ origin }: Piece): boolean {
  return origin !== "table";
}

function isIn(a: Cell, b: Cell): boolean {
  return a.x === b.x && a.y === b.y;
}

function byRow(a: Cell, b: Cell): number {
  return a.y - b.y || a.x - b.x;
}

function isSame(a: Grid, b: Grid): boolean {
  const text = ({ cells, rack }: Grid) =>
    JSON.stringify([cells.map(({ id, x, y }) => [id, x, y]), rack.map(({ id }) => id)]);
  return text(a) === text(b);
}
