/** How the rules deal a round from its two shuffles (R5 to R9): the part of fair-deal.ts that depends on the ruleset. */
import type { RecordedDeal } from "./gen/rummikub/v1/record_pb.js";
import {
  DealOrder,
  type DealOptions,
  type DiscardRuleset,
  JokerKinds,
  type MeldingRuleset,
  type Ruleset,
  StartDrawDetermines,
  StartDrawJoker,
  StartDrawTie,
  StartDrawTile,
  StartPlayer,
  StartPlayerNextRounds,
  TurnDirection,
  WildTiles,
} from "./gen/rummikub/v1/ruleset_pb.js";
import { Tile } from "./gen/rummikub/v1/tile_pb.js";

/** The two shuffles of a deal. */
export interface Shuffles {
  startDraw: Tile[];
  deal: Tile[];
}

/** What a deal depends on beside its shuffles. */
export interface Situation {
  /** The seats that are dealt in, ascending. */
  seats: readonly number[];
  /** The turn order of the round before, or in progress for a new deal on demand; empty before the first. */
  lastOrder: readonly number[];
  /** Whether the deal is a new one on demand. */
  isRedeal: boolean;
  /** Whether it is one of the first round. */
  isFirst: boolean;
  /** Whether the round before was void, so that the same seat starts. */
  wasVoid: boolean;
}

/** The parts of a deal, each as far as it can differ: draws as seat and tile, racks by seat. */
export interface Parts {
  "turn order": readonly number[];
  "start draw": readonly (readonly [number, Tile])[];
  racks: readonly (readonly [number, readonly Tile[]])[];
  pool: readonly Tile[];
  "tile face up": readonly Tile[];
}

const FACES = [...Array(80).keys()].filter((number) => number > 0 && number !== Tile.JOKER) as Tile[];
const TWIST = [Tile.JOKER, Tile.DOUBLE_JOKER, Tile.MIRROR, Tile.COLOR_CHANGE];
const MAX_VALUE = 13;

/** Returns the tile set of a round for a number of players, ascending; undefined if the ruleset lacks the options. */
export function tileSet({ game }: Ruleset, players: number): Tile[] | undefined {
  if (game.case === "discard") {
    if (game.value.deal === undefined) return undefined;
    const joker = hasIndicator(game.value) ? Tile.FALSE_JOKER : Tile.JOKER;
    return setOf(4, 2, [joker, joker]);
  }
  const options = game.value?.tiles;
  if (options === undefined || game.value?.deal === undefined) return undefined;
  const { colors = 0, copies = 0, jokers = 0, jokersPerPlayer = 0, reducedPlayers = 0, jokerKinds } = options;
  const isReduced = players <= reducedPlayers;
  const all = jokers + jokersPerPlayer * players;
  const ofKind = isReduced ? all - Math.floor(all / 2) : all;
  const kinds = jokerKinds === JokerKinds.TWIST ? TWIST : [Tile.JOKER];
  return setOf(colors, isReduced ? copies - 1 : copies, kinds.flatMap((kind) => Array<Tile>(ofKind).fill(kind)));
}

function setOf(colors: number, copies: number, jokers: readonly Tile[]): Tile[] {
  const faces = FACES.slice(0, colors * MAX_VALUE).flatMap((face) => Array<Tile>(copies).fill(face));
  return [...faces, ...jokers].sort((one, other) => one - other);
}

/**
 * Returns the deal that the rules make of two shuffles. A starter that follows from scores is taken from the recorded
 * deal: scores need the rules of a whole round.
 */
export function dealtBy({ game }: Ruleset, shuffles: Shuffles, situation: Situation, recorded: RecordedDeal): Parts {
  return game.case === "discard"
    ? ofDiscards(game.value, shuffles, situation)
    : ofMelds(game.value as MeldingRuleset, shuffles, situation, recorded);
}

/** Returns a recorded deal as parts. */
export function partsOf({ turnOrder, draws, racks, pool, indicator, trump }: RecordedDeal): Parts {
  return {
    "turn order": turnOrder,
    "start draw": draws.map(({ seat, tile }) => [seat, tile]),
    racks: racks.map(({ seat, tiles }) => [seat, tiles]),
    pool,
    "tile face up": [indicator, trump],
  };
}

/** Returns seats in random order: each has a face, red 1 and so on, and they come as their faces do. */
function byChance(seats: readonly number[], shuffle: readonly Tile[]): number[] {
  return [...new Set(shuffle)].flatMap((tile) => seats[tile - 1] ?? []);
}

// Games of melds

function ofMelds(
  { deal, turn }: MeldingRuleset,
  { startDraw, deal: shuffle }: Shuffles,
  situation: Situation,
  recorded: RecordedDeal,
): Parts {
  const options = deal as DealOptions;
  const { seats } = situation;
  const lots = startDraw.toReversed().values();
  const byLot = byChance(seats, startDraw);
  const starter = starterOf(options, situation, byLot, recorded);
  const start = (tiles: Iterator<Tile>) => {
    const draws: [number, Tile][] = [];
    const drawn = starter === undefined ? ranked(seats, { tiles, draws, byLot, options }) : [];
    const isComplete = starter === undefined && options.startDrawDetermines === StartDrawDetermines.FULL_ORDER;
    const first = starter ?? (drawn[0] as number);
    return { draws, order: isComplete ? drawn : inTurn(seats, first, turn?.direction) };
  };
  const face = { "tile face up": [Tile.UNSPECIFIED, Tile.UNSPECIFIED] };
  if (options.order === DealOrder.DEAL_FIRST) {
    const { racks, pool } = racksOf(seats, shuffle, [], lots, options);
    const { draws, order } = start(restricted(startDraw, pool, lots));
    return { "turn order": order, "start draw": draws, racks, pool, ...face };
  }
  const { draws, order } = start(startDraw.values());
  return { "turn order": order, "start draw": draws, ...racksOf(seats, shuffle, draws, lots, options), ...face };
}

/** Returns who starts a round, before one who is no longer dealt in is skipped; undefined for a start draw. */
function starterOf(
  { startPlayer, startPlayerNextRounds }: DealOptions,
  { seats, lastOrder, isRedeal, isFirst }: Situation,
  byLot: readonly number[],
  recorded: RecordedDeal,
): number | undefined {
  if (!isFirst && startPlayerNextRounds !== StartPlayerNextRounds.HIGHEST_DRAW) {
    if (isRedeal) return lastOrder[0];
    return startPlayerNextRounds === StartPlayerNextRounds.ROTATE ? lastOrder[1] : recorded.turnOrder[0];
  }
  if (startPlayer === StartPlayer.HIGHEST_DRAW) return undefined;
  return startPlayer === StartPlayer.RANDOM ? byLot[0] : seats[0];
}

/** Returns seats in turn order from the first, or from the next one after it that is dealt in. */
function inTurn(seats: readonly number[], first: number, direction?: TurnDirection): number[] {
  const isClockwise = direction !== TurnDirection.COUNTERCLOCKWISE;
  const order = isClockwise ? [...seats] : seats.toReversed();
  const isBefore = (seat: number) => (isClockwise ? seat < first : seat > first);
  return [...order.filter((seat) => !isBefore(seat)), ...order.filter(isBefore)];
}

/** A start draw in progress. */
interface Draw {
  tiles: Iterator<Tile>;
  draws: [number, Tile][];
  byLot: readonly number[];
  options: DealOptions;
}

/** Returns seats by their draws, the highest first; if only the starter matters, at least the first one. */
function ranked(seats: readonly number[], draw: Draw): number[] {
  if (seats.length === 1) return [...seats];
  const values = seats.map((seat) => drawnBy(seat, draw));
  if (values.includes(undefined)) return draw.byLot.filter((seat) => seats.includes(seat));
  const highest = [...new Set(values as number[])].sort((one, other) => other - one);
  const all = highest.map((value) => seats.filter((_, place) => values[place] === value));
  const groups = draw.options.startDrawDetermines === StartDrawDetermines.STARTER_ONLY ? all.slice(0, 1) : all;
  const tie = draw.options.startDrawTie;
  if (tie === StartDrawTie.REDRAW_TIED) return groups.flatMap((group) => ranked(group, draw));
  if (tie === StartDrawTie.REDRAW_ALL && groups.some(({ length }) => length > 1)) return ranked(seats, draw);
  return groups.flat();
}

/** Returns the value of the first tile that counts for a seat; undefined if the tiles run out. */
function drawnBy(seat: number, { tiles, draws, options }: Draw): number | undefined {
  for (let next = tiles.next(); !next.done; next = tiles.next()) {
    draws.push([seat, next.value]);
    if (!TWIST.includes(next.value)) return (FACES.indexOf(next.value) % MAX_VALUE) + 1;
    if (options.startDrawJoker !== StartDrawJoker.REDRAW)
      return options.startDrawJoker === StartDrawJoker.LOWEST ? 0 : MAX_VALUE + 1;
  }
  return undefined;
}

function racksOf(
  seats: readonly number[],
  shuffle: readonly Tile[],
  draws: readonly (readonly [number, Tile])[],
  lots: Iterator<Tile>,
  { handSize = 0, fixedJokers = 0, startDrawTile }: DealOptions,
): { racks: [number, Tile[]][]; pool: Tile[] } {
  const held = new Map(seats.map((seat) => [seat, Array<Tile>(fixedJokers).fill(Tile.JOKER)]));
  if (startDrawTile === StartDrawTile.KEEP) for (const [seat, tile] of draws) held.set(seat, [tile]);
  const rest = restricted(shuffle, without(shuffle, [...held.values()].flat()), lots);
  const racks = seats.map((seat): [number, Tile[]] => {
    const own = [...(held.get(seat) ?? [])];
    for (let next; own.length < handSize && !(next = rest.next()).done; ) own.push(next.value);
    return [seat, own.sort((one, other) => one - other)];
  });
  return { racks, pool: [...rest] };
}

/** Yields some tiles of a shuffle in its order. Which copies of a face they are is drawn by lot. */
function* restricted(shuffle: readonly Tile[], tiles: readonly Tile[], lots: Iterator<Tile>): Generator<Tile, void> {
  const wanted = counted(tiles);
  const left = counted(shuffle);
  for (const tile of shuffle) {
    const copies = wanted.get(tile) ?? 0;
    const among = left.get(tile) ?? 0;
    if (copies > 0 && (copies === among || lot(among, lots) < copies)) {
      wanted.set(tile, copies - 1);
      yield tile;
    }
    left.set(tile, among - 1);
  }
}

/** Returns a random number below a count: the place of the highest of so many lots, drawn again on a tie. */
function lot(count: number, lots: Iterator<Tile>): number {
  for (;;) {
    const drawn: Tile[] = [];
    while (drawn.length < count) {
      const next = lots.next();
      if (next.done) return 0;
      drawn.push(next.value);
    }
    const highest = Math.max(...drawn);
    if (drawn.filter((tile) => tile === highest).length === 1) return drawn.indexOf(highest);
  }
}

function counted(tiles: readonly Tile[]): Map<Tile, number> {
  const counts = new Map<Tile, number>();
  for (const tile of tiles) counts.set(tile, (counts.get(tile) ?? 0) + 1);
  return counts;
}

function without(tiles: readonly Tile[], others: readonly Tile[]): Tile[] {
  const counts = counted(others);
  return tiles.filter((tile) => {
    const count = counts.get(tile) ?? 0;
    if (count > 0) counts.set(tile, count - 1);
    return count === 0;
  });
}

// Games of discards

function hasIndicator({ deal }: DiscardRuleset): boolean {
  return deal?.wildTiles === WildTiles.OKEY;
}

/** Deals a round of discards, in turn order. */
function ofDiscards(rules: DiscardRuleset, { startDraw, deal }: Shuffles, situation: Situation): Parts {
  const { seats, lastOrder, wasVoid, isFirst } = situation;
  const rest = [...deal];
  const face: Tile[] = [Tile.UNSPECIFIED, Tile.UNSPECIFIED];
  if (hasIndicator(rules)) {
    const others = startDraw.toReversed().filter((tile) => tile !== Tile.FALSE_JOKER);
    const [indicator, one, other] = [...new Set(others)] as [Tile, Tile, Tile];
    const copy = one < other ? rest.lastIndexOf(indicator) : rest.indexOf(indicator);
    rest.splice(copy, 1);
    face[0] = indicator;
  }
  if (rules.deal?.trump) face[1] = rest.shift() as Tile;
  const after = wasVoid ? lastOrder : [...lastOrder.slice(1), ...lastOrder.slice(0, 1)];
  const starter = isFirst ? byChance(seats, startDraw)[0] : after.find((seat) => seats.includes(seat));
  const order = inTurn(seats, starter ?? 0, TurnDirection.COUNTERCLOCKWISE);
  const size = (seat: number) => (rules.deal?.handSize ?? 0) + Number(hasIndicator(rules) && seat === starter);
  const racks = new Map(order.map((seat) => [seat, rest.splice(0, size(seat)).sort((one, other) => one - other)]));
  return {
    "turn order": order,
    "start draw": [],
    racks: seats.map((seat) => [seat, racks.get(seat) ?? []]),
    pool: rest,
    "tile face up": face,
  };
}
