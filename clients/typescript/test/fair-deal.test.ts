import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clone, fromBinary } from "@bufbuild/protobuf";
import { type GameRecord, GameRecordSchema } from "rummikub-client";
import { checkDeals } from "rummikub-client/fair-deal";

const path = process.env["RUMMIKUB_DEALS"] ?? new URL("../../../../tests/conformance/deals.json", import.meta.url);
const deals: { message: string }[] = JSON.parse(readFileSync(path, "utf8")).deals;
const records = deals.map(({ message }) => fromBinary(GameRecordSchema, Buffer.from(message, "base64")));

/** Returns what is wrong with a record after a change. */
function problemAfter(change: (record: GameRecord) => void): string {
  const record = clone(GameRecordSchema, records[0] as GameRecord);
  change(record);
  const { isFair, problem, deals } = checkDeals(record);
  assert.equal(isFair, false);
  return problem || (deals[0]?.problem ?? "");
}

test("every deal of the engine is found fair", () => {
  const found = records.map(checkDeals);
  const unfair = found.flatMap(({ isFair }, place) => (isFair ? [] : [place]));
  assert.deepEqual(unfair, []);
  assert.deepEqual(found[0], { isFair: true, problem: "", deals: [{ deal: 1, revision: found[0]?.deals[0]?.revision, problem: "" }] });
});

test("a forged deal is found", () => {
  const swap = (record: GameRecord) => record.moves[0]?.deal?.pool.reverse();
  assert.equal(problemAfter(swap), "other seeds, or another pool");
});

test("another seed of a player is found", () => {
  const change = (record: GameRecord) => Object.assign(record.players[0] ?? {}, { dealSeed: Uint8Array.of(1, 2, 3) });
  assert.match(problemAfter(change), /^other seeds, or another /);
});

test("another seed or commitment of the server is found", () => {
  const seed = (record: GameRecord) => Object.assign(record, { dealSeed: new Uint8Array(32) });
  assert.equal(problemAfter(seed), "the last seed does not lead to the commitment");
  const none = (record: GameRecord) => Object.assign(record, { dealCommitment: new Uint8Array() });
  assert.equal(problemAfter(none), "the record has no commitment");
});
