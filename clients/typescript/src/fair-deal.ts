import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { GameRecord, RecordedDeal, RecordedPlayer } from "./gen/rummikub/v1/record_pb.js";
import { type DealOptions, DealOrder, StartDrawTile } from "./gen/rummikub/v1/ruleset_pb.js";
import { Tile } from "./gen/rummikub/v1/tile_pb.js";

/** The result of a check of one deal of a record. */
export interface DealCheck {
  /** The number of the deal, from 1; new deals on demand count. */
  deal: number;
  /** The revision of the game after it. */
  revision: number;
  /** What is wrong; empty if the deal follows from the seeds. */
  problem: string;
}

/** The result of a check of all deals of a record. */
export interface DealsCheck {
  /** Whether the record has a commitment, its seeds lead to it, and every deal follows from them. */
  isFair: boolean;
  /** What is wrong with commitment and seeds; empty for nothing. */
  problem: string;
  /** The deals, in order; a position that a game began with is none. */
  deals: DealCheck[];
}

/** How many deals of a game follow from a seed. */
const DEALS_MAX = 1000;
const TITLE = new TextEncoder().encode("rummikub deal 1");
const WORDS = 2 ** 32;

/**
 * Checks that the deals of a recorded game were fair, by the method of docs/fair-deal.md, with no code of the server.
 *
 * Compare `record.dealCommitment` with the `dealCommitment` that the game showed before its first deal. Who starts, and the
 * moves, are checked by the rules: by ImportRecord, or the program `rummikub-verify`.
 */
export function checkDeals(record: GameRecord): DealsCheck {
  const moves = record.moves.filter(({ deal }) => deal !== undefined && deal.table === undefined);
  if (record.dealCommitment.length === 0) return { isFair: false, problem: "the record has no commitment", deals: [] };
  const seeds = seedsOf(record, Math.min(moves.length, DEALS_MAX));
  if (seeds === undefined)
    return { isFair: false, problem: "the last seed does not lead to the commitment", deals: [] };
  const deals = moves.map((move, place): DealCheck => {
    const seed = seeds[place];
    const problem =
      seed === undefined
        ? `only ${DEALS_MAX} deals of a game are committed`
        : problemOf(record, move.deal as RecordedDeal, shuffles(move.deal as RecordedDeal, seed, record.players));
    return { deal: place + 1, revision: move.revision, problem };
  });
  return { isFair: deals.every(({ problem }) => !problem), problem: "", deals };
}

/** Returns the server's seeds of some deals, in order; undefined if they do not lead to the commitment. */
function seedsOf(record: GameRecord, count: number): Uint8Array[] | undefined {
  if (count === 0) return [];
  const seeds = [record.dealSeed];
  while (seeds.length < count) seeds.unshift(sha256(seeds[0] as Uint8Array));
  const commitment = sha256(seeds[0] as Uint8Array);
  return commitment.every((byte, place) => byte === record.dealCommitment[place]) ? seeds : undefined;
}

/** The two shuffles of a deal. */
interface Shuffles {
  startDraw: Tile[];
  deal: Tile[];
}

/** Returns the shuffles that follow from the seeds, of the tiles that a deal has. */
function shuffles(deal: RecordedDeal, seed: Uint8Array, players: readonly RecordedPlayer[]): Shuffles {
  const parts = players
    .filter(({ dealSeed }) => dealSeed.length > 0)
    .flatMap(({ seat, dealSeed }) => [seat, dealSeed.length, ...dealSeed]);
  const words = wordsOf(hmac(sha256, seed, Uint8Array.from([...TITLE, ...parts])));
  const tiles = [...deal.racks.flatMap((rack) => rack.tiles), ...deal.pool, deal.indicator, deal.trump]
    .filter((tile) => tile !== Tile.UNSPECIFIED)
    .sort((one, other) => one - other);
  return { startDraw: shuffled(tiles, words), deal: shuffled(tiles, words) };
}

function* wordsOf(key: Uint8Array): Generator<number, never> {
  for (let count = 0; ; count++) {
    const number = new Uint8Array(4);
    new DataView(number.buffer).setUint32(0, count);
    const block = new DataView(hmac(sha256, key, number).slice().buffer);
    for (let place = 0; place < block.byteLength; place += 4) yield block.getUint32(place);
  }
}

function shuffled(tiles: readonly Tile[], words: Generator<number, never>): Tile[] {
  const order = [...tiles];
  for (let last = order.length - 1; last > 0; last--) {
    const place = below(last + 1, words);
    [order[last], order[place]] = [order[place] as Tile, order[last] as Tile];
  }
  return order;
}

function below(limit: number, words: Generator<number, never>): number {
  const fair = WORDS - (WORDS % limit);
  let word = words.next().value;
  while (word >= fair) word = words.next().value;
  return word % limit;
}

/** Returns how a deal differs from what the shuffles give; empty if it does not. */
function problemOf({ ruleset }: GameRecord, dealt: RecordedDeal, shuffles: Shuffles): string {
  const game = ruleset?.game;
  const made = game?.case === "discard" ? ofDiscards(dealt, shuffles) : ofMelds(dealt, shuffles, game?.value?.deal);
  const differing = (Object.keys(made) as (keyof typeof made)[]).filter(
    (part) => String(made[part]) !== String(stated(dealt)[part]),
  );
  return differing.length ? `other seeds, or another ${differing.join(", ")}` : "";
}

/** The tiles of a deal: those of the start draw, the racks by seat in ascending order of tiles, the pool, and face up. */
interface Tiles {
  "start draw": Tile[];
  racks: Tile[][];
  pool: Tile[];
  "tile face up": Tile[];
}

function stated(deal: RecordedDeal): Tiles {
  return {
    "start draw": deal.draws.map(({ tile }) => tile),
    racks: deal.racks.map(({ tiles }) => tiles),
    pool: deal.pool,
    "tile face up": [deal.indicator, deal.trump],
  };
}

/** Deals a round of melds. The rules decide how many tiles the start draw takes, so their number is as stated. */
function ofMelds(dealt: RecordedDeal, { startDraw, deal }: Shuffles, options?: DealOptions): Tiles {
  const lots = startDraw.toReversed().values();
  const face = { "tile face up": [Tile.UNSPECIFIED, Tile.UNSPECIFIED] };
  const drawn = (tiles: Iterable<Tile>): Tile[] => [...tiles].slice(0, dealt.draws.length);
  if (options?.order === DealOrder.DEAL_FIRST) {
    const { racks, pool } = ofRacks(dealt, deal, [], lots, options);
    return { racks, pool, "start draw": drawn(restricted(startDraw, pool, lots)), ...face };
  }
  const draws = drawn(startDraw).map((tile, place) => ({ seat: dealt.draws[place]?.seat ?? 0, tile }));
  return { ...ofRacks(dealt, deal, draws, lots, options), "start draw": drawn(startDraw), ...face };
}

function ofRacks(
  dealt: RecordedDeal,
  deal: readonly Tile[],
  draws: readonly { seat: number; tile: Tile }[],
  lots: Iterator<Tile>,
  options?: DealOptions,
): { racks: Tile[][]; pool: Tile[] } {
  const held = new Map(dealt.racks.map(({ seat }) => [seat, Array(options?.fixedJokers ?? 0).fill(Tile.JOKER)]));
  if (options?.startDrawTile === StartDrawTile.KEEP) for (const { seat, tile } of draws) held.set(seat, [tile]);
  const rest = restricted(deal, without(deal, [...held.values()].flat()), lots);
  const racks = dealt.racks.map(({ seat, tiles }) => {
    const own: Tile[] = [...(held.get(seat) ?? [])];
    while (own.length < tiles.length) own.push(rest.next().value as Tile);
    return own.sort((one, other) => one - other);
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

/** Deals a round of discards, in turn order. */
function ofDiscards(dealt: RecordedDeal, { startDraw, deal }: Shuffles): Tiles {
  const rest = [...deal];
  const face: Tile[] = [Tile.UNSPECIFIED, Tile.UNSPECIFIED];
  if (dealt.indicator !== Tile.UNSPECIFIED) {
    const others = startDraw.toReversed().filter((tile) => tile !== Tile.FALSE_JOKER);
    const [indicator, one, other] = [...new Set(others)] as [Tile, Tile, Tile];
    const copy = one < other ? rest.lastIndexOf(indicator) : rest.indexOf(indicator);
    rest.splice(copy, 1);
    face[0] = indicator;
  }
  if (dealt.trump !== Tile.UNSPECIFIED) face[1] = rest.shift() as Tile;
  const sizes = new Map(dealt.racks.map(({ seat, tiles }) => [seat, tiles.length]));
  const racks = new Map(dealt.turnOrder.map((seat) => [seat, rest.splice(0, sizes.get(seat) ?? 0)]));
  return {
    racks: dealt.racks.map(({ seat }) => (racks.get(seat) ?? []).sort((one, other) => one - other)),
    pool: rest,
    "start draw": [],
    "tile face up": face,
  };
}
