/** The positions of a recorded game, one after each move, with all racks open. */
import {
  type GameRecord,
  type HandPart,
  MoveKind,
  type RecordedMove,
  type RecordedScore,
  type Table,
  type Tile,
  TurnDraw,
} from "rummikub-client";
import { dealtBoard, discardedOn, forcedDiscard, laidOn, type OpenBoard, returnedBy, takenFrom, trumpTaken } from "./board.js";
import { without } from "./tiles.js";
import { discardOf, meldingOf } from "./turn.js";

export interface Frame {
  /** The move's index in the record. */
  readonly index: number;
  readonly move: RecordedMove;
  readonly round: number;
  readonly tableBefore: Table | undefined;
  readonly table: Table | undefined;
  readonly racks: ReadonlyMap<number, readonly Tile[]>;
  readonly poolCount: number;
  readonly river: readonly Tile[];
  /** What a game of discards has in place of a table. */
  readonly board: OpenBoard | undefined;
  /** The tiles that the move laid on the table. */
  readonly played: readonly Tile[];
  /** The tiles pulled from the River, oldest first. */
  readonly pulled: readonly Tile[];
  /** The score of the round that the move ended. */
  readonly score?: RecordedScore;
}

type Position = Pick<Frame, "round" | "table" | "racks" | "poolCount" | "river" | "board" | "played" | "pulled"> & {
  /** The two drawn tiles of which one goes to the River. */
  readonly choice: readonly Tile[];
};

const START: Position = {
  round: 0,
  table: undefined,
  racks: new Map(),
  poolCount: 0,
  river: [],
  board: undefined,
  played: [],
  pulled: [],
  choice: [],
};

/** Returns a frame for each move of a record that was checked by ImportRecord or exported by the service. */
export function framesOf(record: GameRecord): Frame[] {
  const rules = {
    hasRiver: meldingOf(record)?.turn?.draw === TurnDraw.TWO_RIVER,
    hasBoard: discardOf(record) !== undefined,
  };
  let position = START;
  return record.moves.map((move, index) => {
    const before = position;
    position = after(position, move, rules);
    const next = record.moves[index + 1];
    const isPlayed = move.kind !== MoveKind.ABORT;
    const isLast = next === undefined || next.kind === MoveKind.DEAL || next.kind === MoveKind.ABORT;
    const score = isPlayed && isLast ? record.rounds[position.round - 1] : undefined;
    const { choice: _, ...shown } = position;
    return { index, move, tableBefore: before.table, ...shown, ...(score !== undefined && { score }) };
  });
}

/** A position that a game may begin with, the seats in their order. */
export interface Start {
  table?: Table;
  seats: { seat: number; rack: Tile[]; hasMelded: boolean }[];
  turnSeat: number;
}

const OF_TURNS: ReadonlySet<MoveKind> = new Set([
  MoveKind.PLAY,
  MoveKind.DRAW,
  MoveKind.LAY_ON_RIVER,
  MoveKind.PASS_TURN,
  MoveKind.PENALTY,
  MoveKind.TIME_OUT,
  MoveKind.KNOCK,
]);

/**
 * Returns the position after a move as a game may begin with it, with the rest of the tiles shuffled; undefined in the
 * middle of a turn, after the end of a round, in a game of discards, and with a River, which no game begins with.
 */
export function startOf(frames: readonly Frame[], at: number): Start | undefined {
  const frame = frames[at];
  const next = frames.slice(at + 1).find(({ move }) => OF_TURNS.has(move.kind));
  if (frame === undefined || next?.move.seat === undefined || next.round !== frame.round) return undefined;
  const last = frames.slice(0, at + 1).findLast(({ move, round }) => round === frame.round && OF_TURNS.has(move.kind));
  if (last?.move.seat === next.move.seat || frame.board !== undefined || frame.river.length > 0) return undefined;
  const melded = new Set<number>();
  for (const { index, move, played, round } of frames) {
    if (round !== frame.round || index > at) continue;
    for (const { seat, hasMelded } of move.deal?.racks ?? []) if (hasMelded) melded.add(seat);
    if (played.length > 0 && move.seat !== undefined) melded.add(move.seat);
  }
  const seats = [...frame.racks].map(([seat, tiles]) => ({ seat, rack: [...tiles], hasMelded: melded.has(seat) }));
  return {
    ...(frame.table && { table: frame.table }),
    seats: seats.sort((one, other) => one.seat - other.seat),
    turnSeat: next.move.seat,
  };
}

/** What the replay must know of the rules: whether there is a River, and whether it is a game of discards. */
interface Rules {
  readonly hasRiver: boolean;
  readonly hasBoard: boolean;
}

function after(before: Position, move: RecordedMove, { hasRiver, hasBoard }: Rules): Position {
  const still: Position = { ...before, played: [], pulled: [] };
  switch (move.kind) {
    case MoveKind.DEAL:
    case MoveKind.REDEAL:
      return {
        ...START,
        round: before.round + (move.kind === MoveKind.DEAL ? 1 : 0),
        racks: new Map(move.deal?.racks.map(({ seat, tiles }) => [seat, tiles])),
        poolCount: move.deal?.pool.length ?? 0,
        table: move.deal?.table,
        board: hasBoard && move.deal ? dealtBoard(move.deal) : undefined,
      };
    case MoveKind.PLAY:
      return play(still, move);
    case MoveKind.KNOCK:
      return move.table !== undefined ? play(still, move) : still;
    case MoveKind.DRAW:
      return { ...draw(still, move), choice: hasRiver && move.tiles.length === 2 ? move.tiles : [] };
    case MoveKind.LAY_ON_RIVER:
      return { ...lay(still, move.seat, move.tiles), choice: [] };
    case MoveKind.TAKE_DISCARD:
    case MoveKind.TAKE_TRUMP:
    case MoveKind.FOOT:
    case MoveKind.DISCARD:
    case MoveKind.FINISH:
    case MoveKind.LAY_TILES:
    case MoveKind.RETURN_DISCARD:
      return discardMove(still, move);
    case MoveKind.PENALTY:
    case MoveKind.TIME_OUT: {
      if (still.board !== undefined) return timedOut(still, still.board, move);
      // A turn that ends while the choice is pending lays the tile that was drawn second.
      const chosen = { ...lay(still, move.seat, before.choice.slice(1)), choice: [] };
      return move.table !== undefined ? play(chosen, move) : draw(chosen, move);
    }
    case MoveKind.RESIGN:
      return { ...still, choice: [], board: resigned(still.board, move.seat) };
    case MoveKind.TAKE_OVER:
      return { ...still, board: takenOver(still.board, move.seat) };
    default:
      return still;
  }
}

function play(before: Position, move: RecordedMove): Position {
  const { table } = move;
  const played = without(tilesOn(table), tilesOn(before.table)).left;
  const pulled = move.riverIndex === undefined ? [] : before.river.slice(move.riverIndex);
  const river = before.river.slice(0, before.river.length - pulled.length);
  const rack = without([...rackOf(before, move.seat), ...pulled], played).left;
  return { ...withRack(before, move.seat, rack), table, river, played, pulled };
}

function tilesOn(table: Table | undefined): Tile[] {
  return [...(table?.melds.flatMap(({ tiles }) => tiles) ?? []), ...(table?.placements.map(({ tile }) => tile) ?? [])];
}

function draw(before: Position, move: RecordedMove): Position {
  const rack = [...rackOf(before, move.seat), ...move.tiles];
  const poolCount = before.poolCount - move.tiles.length;
  const [taken] = move.tiles;
  const board = before.board && { ...before.board, ...(taken !== undefined && { taken, hasTaken: true }) };
  return { ...withRack(before, move.seat, rack), poolCount, board };
}

/** Returns the position after a seat has put what it took back, and taken a tile of the pool if it has one. */
function putBack(before: Position, board: OpenBoard, move: RecordedMove): Position {
  const { seat = 0 } = move;
  const rack = without(rackOf(before, seat), board.taken === undefined ? [] : [board.taken]).left;
  return draw({ ...withRack(before, seat, rack), board: returnedBy(board, seat) }, move);
}

/**
 * Returns the position after a turn whose time ran out. A discard or the trump that must be laid goes back, and a tile of
 * the pool in its place; where it has none, no tile is discarded.
 */
function timedOut(before: Position, board: OpenBoard, move: RecordedMove): Position {
  const isEmpty = before.poolCount === 0;
  const isReturned = board.source !== undefined && (move.tiles.length > 0 || isEmpty);
  const after = isReturned ? putBack(before, board, move) : draw(before, move);
  const isPassed = isEmpty && (isReturned || board.hasTaken !== true);
  return isPassed ? after : discardForced(after, move.seat);
}

/** Returns the position after tiles were laid on the table of discards, from which wild ones may come to the rack. */
function layOnTable(before: Position, board: OpenBoard, seat: number, table: readonly HandPart[]): Position {
  const [old, now] = [board.table, table].map((parts) => parts.flatMap(({ tiles }) => tiles)) as [Tile[], Tile[]];
  const { left: played, missing: okeys } = without(now, old);
  const rack = [...without(rackOf(before, seat), played).left, ...okeys];
  return { ...withRack(before, seat, rack), board: laidOn(board, table), played };
}

/** Returns the position after a move of a game of discards that all see. */
function discardMove(before: Position, move: RecordedMove): Position {
  const { kind, seat, tiles, hand } = move;
  const { board } = before;
  const [tile] = tiles;
  if (board === undefined || seat === undefined) return before;
  if (kind === MoveKind.LAY_TILES) return layOnTable(before, board, seat, hand);
  if (kind === MoveKind.RETURN_DISCARD) return putBack(before, board, move);
  if (tile === undefined) return before;
  if (kind === MoveKind.TAKE_TRUMP)
    return { ...withRack(before, seat, [...rackOf(before, seat), tile]), board: trumpTaken(board) };
  if (kind === MoveKind.TAKE_DISCARD)
    return { ...withRack(before, seat, [...rackOf(before, seat), tile]), board: takenFrom(board, seat, tile) };
  if (kind === MoveKind.FOOT) {
    const laid = layOnTable(before, board, seat, hand);
    return { ...laid, racks: new Map([...laid.racks, [seat, []]]), board: { ...laid.board!, lastTile: tile } };
  }
  const after = withRack(before, seat, without(rackOf(before, seat), [tile]).left);
  if (kind === MoveKind.DISCARD) return { ...after, board: discardedOn(board, seat, tile) };
  const isPairs = hand.every((part) => part.tiles.length === 2);
  return { ...after, board: { ...board, finish: { tile, hand, isPairs } } };
}

function discardForced(before: Position, seat: number | undefined): Position {
  const { board } = before;
  if (board === undefined || seat === undefined) return before;
  const rack = rackOf(before, seat);
  const tile = forcedDiscard(board, rack);
  return { ...withRack(before, seat, without(rack, [tile]).left), board: discardedOn(board, seat, tile) };
}

function resigned(board: OpenBoard | undefined, seat: number | undefined): OpenBoard | undefined {
  return board && { ...board, playing: board.playing.filter((one) => one !== seat) };
}

function takenOver(board: OpenBoard | undefined, seat: number | undefined): OpenBoard | undefined {
  return board && { ...board, playing: board.turnOrder.filter((one) => one === seat || board.playing.includes(one)) };
}

function lay(before: Position, seat: number | undefined, tiles: readonly Tile[]): Position {
  if (tiles.length === 0) return before;
  return { ...withRack(before, seat, without(rackOf(before, seat), tiles).left), river: [...before.river, ...tiles] };
}

function rackOf({ racks }: Position, seat: number | undefined): readonly Tile[] {
  return (seat !== undefined && racks.get(seat)) || [];
}

function withRack(position: Position, seat: number | undefined, rack: readonly Tile[]): Position {
  if (seat === undefined) return position;
  return { ...position, racks: new Map([...position.racks, [seat, rack]]) };
}
