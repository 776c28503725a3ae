import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clone, fromBinary } from "@bufbuild/protobuf";
import { type GameRecord, GameRecordSchema, MoveKind } from "rummikub-client";
import { checkDeals } from "rummikub-client/fair-deal";

interface Entry {
  what: string;
  message: string;
}

const path = process.env["RUMMIKUB_DEALS"] ?? new URL("../../../../tests/conformance/deals.json", import.meta.url);
const file: Record<"deals" | "games" | "forgeries", Entry[]> = JSON.parse(readFileSync(path, "utf8"));
const recordOf = ({ message }: Entry) => fromBinary(GameRecordSchema, Buffer.from(message, "base64"));
const [twoRounds, redealt] = file.games.map(recordOf) as [GameRecord, GameRecord];

/** Returns what is wrong with a record after a change. */
function problemAfter(change: (record: GameRecord) => void, original = twoRounds): string {
  const record = clone(GameRecordSchema, original);
  change(record);
  const { isFair, problem, deals } = checkDeals(record);
  assert.equal(isFair, false);
  return problem || (deals.find((deal) => deal.problem)?.problem ?? "");
}

test("every deal of the engine is found fair", () => {
  const found = file.deals.map((entry) => checkDeals(recordOf(entry)));
  const unfair = found.flatMap(({ isFair }, place) => (isFair ? [] : [place]));
  assert.deepEqual(unfair, []);
});

test("games of two rounds and with a new deal are found fair", () => {
  for (const record of [twoRounds, redealt]) {
    const { isFair, problem, otherSeeds, deals } = checkDeals(record);
    assert.deepEqual([isFair, problem, otherSeeds], [true, "", []]);
    assert.deepEqual(
      deals.map(({ deal, problem }) => [deal, problem]),
      [
        [1, ""],
        [2, ""],
      ],
    );
  }
});

for (const entry of file.forgeries) {
  test(`not fair: ${entry.what}`, () => {
    const { isFair, problem, deals } = checkDeals(recordOf(entry));
    assert.equal(isFair, false);
    assert.ok(problem || deals.some((deal) => deal.problem));
  });
}

test("what is wrong is named", () => {
  assert.equal(
    problemAfter((record) => record.moves[0]?.deal?.pool.reverse()),
    "other seeds, or another pool",
  );
  assert.equal(
    problemAfter((record) => record.moves[0]?.deal?.turnOrder.reverse()),
    "other seeds, or another turn order",
  );
  assert.equal(
    problemAfter((record) => Object.assign(record, { dealSeed: new Uint8Array(32) })),
    "the last seed does not lead to the commitment",
  );
  assert.equal(
    problemAfter((record) => Object.assign(record, { dealCommitment: new Uint8Array() })),
    "the record has no commitment",
  );
  assert.equal(
    problemAfter((record) => Object.assign(record, { moves: [] })),
    "no round was dealt",
  );
});

for (const kind of [MoveKind.DRAW, MoveKind.PENALTY, MoveKind.TIME_OUT, MoveKind.RETURN_DISCARD]) {
  test(`tiles of ${MoveKind[kind]} are the next of the pool`, () => {
    const skip = (record: GameRecord) => {
      const move = record.moves[1]!;
      Object.assign(move, { kind, tiles: [record.moves[0]!.deal!.pool[1]] });
    };
    assert.match(problemAfter(skip), /^revision \d+: another tile than the next of the pool$/);
  });
}

test("a tile on the River is one of those drawn", () => {
  const lay = (record: GameRecord) => {
    const [offered, laid] = record.moves.slice(1, 3);
    const pool = record.moves[0]!.deal!.pool;
    Object.assign(offered!, { tiles: pool.slice(0, 2) });
    const other = pool.find((tile) => !pool.slice(0, 2).includes(tile));
    Object.assign(laid!, { kind: MoveKind.LAY_ON_RIVER, tiles: [other] });
  };
  assert.match(problemAfter(lay), /^revision \d+: another tile on the River than those drawn$/);
});

test("a seat that has not resigned is dealt in", () => {
  const without = (record: GameRecord) => {
    const second = record.moves.filter(({ deal }) => deal)[1]!.deal!;
    second.racks.pop();
  };
  assert.equal(problemAfter(without), "other seats than those of the players");
});

test("a deal after the thousandth has no seed", () => {
  const secret = new Uint8Array(32);
  let commitment: Uint8Array = secret;
  for (let time = 0; time < 1000; time++) commitment = createHash("sha256").update(commitment).digest();
  const record = clone(GameRecordSchema, twoRounds);
  const [move] = record.moves;
  Object.assign(record, { dealCommitment: commitment, dealSeed: secret, moves: Array(1001).fill(move) });
  const { isFair, deals } = checkDeals(record);
  assert.equal(isFair, false);
  assert.equal(deals[1000]?.problem, "dealt without a seed: only 1000 deals of a game are committed");
});

test("a commitment and seeds that were noted are compared", () => {
  const commitment = twoRounds.dealCommitment;
  const seeds = new Map(twoRounds.players.map(({ seat, dealSeed }) => [seat, dealSeed]));
  const found = checkDeals(twoRounds, { commitment, seeds });
  assert.deepEqual([found.isFair, found.isCommitmentNoted, found.otherSeeds], [true, true, []]);
  const other = checkDeals(twoRounds, { commitment: new Uint8Array(32) });
  assert.deepEqual([other.isFair, other.isCommitmentNoted, other.problem], [false, false, ""]);
  for (const seat of [2, 4]) {
    const dropped = checkDeals(twoRounds, { seeds: new Map([[seat, Uint8Array.of(1, 2, 3)]]) });
    assert.deepEqual([dropped.isFair, dropped.otherSeeds, dropped.problem], [false, [seat], ""]);
  }
});
