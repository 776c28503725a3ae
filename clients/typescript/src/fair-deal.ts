import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { dealtBy, partsOf, type Shuffles, tileSet } from "./fair-deal-rules.js";
import { type GameRecord, MoveKind, type RecordedDeal, type RecordedMove } from "./gen/rummikub/v1/record_pb.js";
import { type Ruleset, TurnInvalidSubmission } from "./gen/rummikub/v1/ruleset_pb.js";
import { RoundEnd } from "./gen/rummikub/v1/score_pb.js";
import type { Tile } from "./gen/rummikub/v1/tile_pb.js";

/** Notes of a player from before the first deal, which the record is compared with. */
export interface Noted {
  /** `Game.deal_commitment`, read before the player's seed was sent. */
  commitment?: Uint8Array;
  /** The `deal_seed` that was sent for a seat, by the seat. */
  seeds?: ReadonlyMap<number, Uint8Array>;
}

/** The result of a check of one deal of a record, and of the tiles that were drawn after it. */
export interface DealCheck {
  /** The number of the deal, from 1; new deals on demand count. */
  deal: number;
  /** The revision of the game after it. */
  revision: number;
  /** What is wrong; empty if the deal follows from the seeds, and each tile from the pool is the next one. */
  problem: string;
}

/** What can be wrong with a record beside its deals; empty for nothing. */
export type RecordProblem =
  | ""
  | "the record has no commitment"
  | "the last seed does not lead to the commitment"
  | "no round was dealt"
  | "the game began with a position, which follows from no seeds";

/** The result of a check of all deals of a record. */
export interface DealsCheck {
  /** Whether nothing of the following is wrong. */
  isFair: boolean;
  /** What is wrong beside the deals; empty for nothing. */
  problem: RecordProblem;
  /** Whether the commitment is the one that was noted; undefined if none was. */
  isCommitmentNoted?: boolean;
  /** The seats whose seeds are others than those that were noted. */
  otherSeeds: number[];
  /** The deals, in order. */
  deals: DealCheck[];
}

/** How many deals of a game follow from a seed. */
const DEALS_MAX = 1000;
const TITLE = new TextEncoder().encode("rummikub deal 1");
const WORDS = 2 ** 32;
/** The moves whose tiles come from the pool. */
const DRAWS: readonly MoveKind[] = [MoveKind.DRAW, MoveKind.PENALTY, MoveKind.TIME_OUT, MoveKind.RETURN_DISCARD];

/**
 * Checks that the deals of a recorded game were fair, by the method of docs/fair-deal.md, with no code of the server: the
 * commitment, the seeds, each deal with who starts, and that each tile of the pool was drawn in order.
 *
 * Without `noted` it does not prove that your own seed is part of the deals, nor that the commitment is the one from before.
 * The rules of turns, how many tiles a move draws, and scores, with the starters that follow from them, are checked by
 * ImportRecord, and the program `rummikub-verify`.
 */
export function checkDeals(record: GameRecord, noted: Noted = {}): DealsCheck {
  const { commitment, seeds = new Map<number, Uint8Array>() } = noted;
  const ownSeed = (seat: number) => record.players.find((player) => player.seat === seat)?.dealSeed;
  const otherSeeds = [...seeds].flatMap(([seat, seed]) => (areSame(seed, ownSeed(seat)) ? [] : [seat]));
  const isCommitmentNoted = commitment && areSame(commitment, record.dealCommitment);
  const { problem, deals } = checkSeeds(record);
  const isFair = !problem && isCommitmentNoted !== false && !otherSeeds.length && deals.every((deal) => !deal.problem);
  return { isFair, problem, ...(isCommitmentNoted !== undefined && { isCommitmentNoted }), otherSeeds, deals };
}

function areSame(one: Uint8Array, other: Uint8Array | undefined): boolean {
  return one.length === other?.length && one.every((byte, place) => byte === other[place]);
}

function checkSeeds(record: GameRecord): { problem: RecordProblem; deals: DealCheck[] } {
  if (record.dealCommitment.length === 0) return { problem: "the record has no commitment", deals: [] };
  const dealt = record.moves.flatMap(({ deal }) => deal ?? []);
  const fromSeeds = dealt.filter(({ table }) => table === undefined);
  if (dealt.length === 0) return { problem: "no round was dealt", deals: [] };
  const seeds = seedsOf(record, Math.min(fromSeeds.length, DEALS_MAX));
  if (seeds === undefined) return { problem: "the last seed does not lead to the commitment", deals: [] };
  const hasPosition = fromSeeds.length < dealt.length;
  const problem = hasPosition ? "the game began with a position, which follows from no seeds" : "";
  return { problem, deals: new Course(record, seeds).check() };
}

/** Returns the server's seeds of some deals, in order; undefined if they do not lead to the commitment. */
function seedsOf(record: GameRecord, count: number): Uint8Array[] | undefined {
  if (count === 0) return [];
  const seeds = [record.dealSeed];
  while (seeds.length < count) seeds.unshift(sha256(seeds[0] as Uint8Array));
  return areSame(sha256(seeds[0] as Uint8Array), record.dealCommitment) ? seeds : undefined;
}

/** The course of a recorded game, as far as its deals and its pools depend on it. */
class Course {
  readonly #record: GameRecord;
  readonly #seeds: readonly Uint8Array[];
  readonly #deals: DealCheck[] = [];
  readonly #resigned = new Set<number>();
  /** The seats that a time-out may have made resign. */
  readonly #timedOut = new Set<number>();
  #rounds = 0;
  #last: RecordedDeal | undefined;
  #pool = new PoolCheck();

  constructor(record: GameRecord, seeds: readonly Uint8Array[]) {
    this.#record = record;
    this.#seeds = seeds;
  }

  check(): DealCheck[] {
    for (const move of this.#record.moves) {
      if (move.deal === undefined) this.#noteMove(move);
      else this.#noteDeal(move, move.deal);
    }
    return this.#deals;
  }

  #noteDeal(move: RecordedMove, dealt: RecordedDeal): void {
    const isRedeal = move.kind === MoveKind.REDEAL;
    if (!isRedeal) this.#rounds++;
    if (dealt.table === undefined) {
      const deal = this.#deals.length + 1;
      this.#deals.push({ deal, revision: move.revision, problem: this.#problemOf(dealt, isRedeal) });
    }
    this.#last = dealt;
    this.#pool = new PoolCheck(dealt.pool, this.#record.ruleset);
  }

  #noteMove(move: RecordedMove): void {
    const seat = move.seat ?? 0;
    if (move.kind === MoveKind.RESIGN) this.#resigned.add(seat);
    if (move.kind === MoveKind.TIME_OUT) this.#timedOut.add(seat);
    if (move.kind === MoveKind.TAKE_OVER) for (const seats of [this.#resigned, this.#timedOut]) seats.delete(seat);
    const problem = this.#pool.problemOf(move);
    const deal = this.#deals.at(-1);
    if (problem && deal && !deal.problem) deal.problem = `revision ${move.revision}: ${problem}`;
  }

  /** Returns how a deal differs from what the seeds give; empty if it does not. */
  #problemOf(dealt: RecordedDeal, isRedeal: boolean): string {
    const seed = this.#seeds[this.#deals.length];
    if (seed === undefined) return `dealt without a seed: only ${DEALS_MAX} deals of a game are committed`;
    const { ruleset, rounds } = this.#record;
    const seats = this.#seats(dealt);
    if (seats === undefined) return "other seats than those of the players";
    const tiles = ruleset && tileSet(ruleset, seats.length);
    if (ruleset === undefined || tiles === undefined) return "the ruleset of the record is incomplete";
    const isFirst = this.#rounds <= 1;
    const wasVoid = rounds[this.#rounds - 2]?.roundEnd === RoundEnd.VOID;
    const situation = { seats, lastOrder: this.#last?.turnOrder ?? [], isRedeal, isFirst, wasVoid };
    const made = dealtBy(ruleset, this.#shuffles(tiles, seed), situation, dealt);
    const stated = partsOf(dealt);
    const differing = (Object.keys(made) as (keyof typeof made)[]).filter(
      (part) => JSON.stringify(made[part]) !== JSON.stringify(stated[part]),
    );
    return differing.length ? `other seeds, or another ${differing.join(", ")}` : "";
  }

  /** Returns the seats of a deal; undefined if they are not those of the players who have not resigned. */
  #seats({ racks }: RecordedDeal): number[] | undefined {
    const dealtIn = racks.map(({ seat }) => seat);
    const seats = this.#record.players.map(({ seat }) => seat).filter((seat) => !this.#resigned.has(seat));
    const isRight = seats.every((seat) => dealtIn.includes(seat) || this.#timedOut.has(seat));
    const expected = seats.filter((seat) => dealtIn.includes(seat));
    return isRight && String(expected) === String(dealtIn) ? dealtIn : undefined;
  }

  /** Returns the shuffles of some tiles that follow from the seeds. */
  #shuffles(tiles: readonly Tile[], seed: Uint8Array): Shuffles {
    const parts = this.#record.players
      .filter(({ dealSeed }) => dealSeed.length > 0)
      .flatMap(({ seat, dealSeed }) => [seat, dealSeed.length, ...dealSeed]);
    const words = wordsOf(hmac(sha256, seed, Uint8Array.from([...TITLE, ...parts])));
    return { startDraw: shuffled(tiles, words), deal: shuffled(tiles, words) };
  }
}

/**
 * Checks that tiles are drawn in the order of a pool.
 *
 * A record does not say which vote on an illegal play led to its penalty, whose tiles it does not have. So after a vote or a
 * resignation there may be two places in the pool.
 */
class PoolCheck {
  readonly #pool: readonly Tile[];
  /** How many tiles a penalty after a vote takes; 0 without votes. */
  readonly #penalty: number;
  #places = [0];
  /** The places when an illegal play was shown. */
  #shownAt: number[] = [];
  #offered: readonly Tile[] = [];

  constructor(pool: readonly Tile[] = [], ruleset?: Ruleset) {
    const turn = ruleset?.game.case === "melding" ? ruleset.game.value.turn : undefined;
    const hasVotes = turn?.invalidSubmission === TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM;
    this.#penalty = hasVotes ? (turn.penaltyTiles ?? 0) : 0;
    this.#pool = pool;
  }

  /** Returns what is wrong with the tiles of a move; empty for nothing. */
  problemOf({ kind, tiles }: RecordedMove): string {
    if (kind === MoveKind.LAY_ON_RIVER)
      return tiles.every((tile) => this.#offered.includes(tile)) ? "" : "another tile on the River than those drawn";
    if (kind === MoveKind.SHOW) this.#shownAt = this.#places;
    if (kind === MoveKind.CLAIM || kind === MoveKind.RESIGN) {
      const after = this.#shownAt.map((place) => Math.min(place + this.#penalty, this.#pool.length));
      this.#places = [...new Set([...this.#places, ...after])];
    }
    if (!DRAWS.includes(kind) || tiles.length === 0) return "";
    this.#offered = tiles;
    this.#shownAt = [];
    const isHere = (place: number) => tiles.every((tile, further) => this.#pool[place + further] === tile);
    this.#places = this.#places.filter(isHere).map((place) => place + tiles.length);
    return this.#places.length ? "" : "another tile than the next of the pool";
  }
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
