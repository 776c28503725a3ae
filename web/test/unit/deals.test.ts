import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clone, create, fromBinary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  FairDeal,
  type GameRecord,
  GameRecordSchema,
  GameState,
  JoinGameResponseSchema,
} from "rummikub-client";
import { type Seat, Seats } from "../../src/api/seats.js";
import { sitDown } from "../../src/control/sitting.js";
import { t } from "../../src/i18n/index.js";
import { dealsTexts } from "../../src/model/deals.js";
import { hexOf } from "../../src/model/hex.js";

const file = JSON.parse(readFileSync("../tests/conformance/deals.json", "utf8"));
const record = fromBinary(GameRecordSchema, Buffer.from(file.games[0].message, "base64"));
const own: Seat = {
  gameId: "g",
  token: "a",
  seat: 1,
  name: "Ada",
  time: 1,
  commitment: hexOf(record.dealCommitment),
  seed: hexOf(record.players[0]!.dealSeed),
};

/** Returns the texts of a check of the record after a change. */
function textsAfter(change: (record: GameRecord) => void, seat: Seat | undefined = own): string[] {
  const changed = clone(GameRecordSchema, record);
  change(changed);
  return dealsTexts(changed, seat);
}

const same = () => {};

test("a fair game is found fair, and what was not checked is named", () => {
  const fair = [t("dealsFair", { count: 2 }), t("commitmentNoted"), t("seedNoted"), t("dealsNotChecked")];
  assert.deepEqual(textsAfter(same), fair);
  assert.deepEqual(dealsTexts(record, undefined), [t("dealsFair", { count: 2 }), t("dealsNotChecked")]);
});

test("a seed of this player that is not in the record is shown", () => {
  assert.equal(textsAfter(same, { ...own, seed: "0102" })[2], t("seedOther"));
  const { seed: _, ...without } = own;
  assert.equal(textsAfter(same, without)[2], t("seedNone"));
});

test("another commitment, seeds that do not lead to it, and unfair deals are shown", () => {
  assert.equal(textsAfter(same, { ...own, commitment: "00".repeat(32) })[1], t("commitmentOther"));
  const seed = (changed: GameRecord) => Object.assign(changed, { dealSeed: new Uint8Array(32) });
  assert.equal(textsAfter(seed)[0], t("seedsBroken"));
  const pool = (changed: GameRecord) => changed.moves.filter(({ deal }) => deal)[1]!.deal!.pool.reverse();
  assert.equal(textsAfter(pool)[0], t("dealUnfair", { deal: 2 }));
  const none = (changed: GameRecord) => Object.assign(changed, { moves: [] });
  assert.equal(textsAfter(none)[0], t("nothingDealt"));
});

/** Returns new seats, and the answer to a request that took one. */
function taken(state: GameState, fairDeal = FairDeal.COMMITTED) {
  const memory = () => {
    const values = new Map<string, string>();
    return {
      getItem: (key: string) => values.get(key) ?? null,
      setItem: (key: string, value: string) => void values.set(key, value),
    };
  };
  const game = { gameId: "g", dealCommitment: record.dealCommitment, settings: { fairDeal }, state };
  const joined = create(JoinGameResponseSchema, { game, seat: 1, seatToken: "a" });
  return { seats: new Seats(memory(), memory()), joined };
}

test("the commitment and the seed are noted before the seed is sent", async () => {
  const { seats, joined } = taken(GameState.LOBBY);
  const sent: [string, Seat | undefined][] = [];
  await sitDown(seats, joined, "Ada", async (seed) => void sent.push([hexOf(seed), seats.find("g")]));
  const [[seed, noted] = []] = sent;
  assert.equal(sent.length, 1);
  assert.equal(seed?.length, 32);
  assert.deepEqual([noted?.commitment, noted?.seed], [hexOf(record.dealCommitment), seed]);
  assert.deepEqual(seats.find("g"), noted);
});

test("a seed that the game refuses is not noted", async () => {
  const { seats, joined } = taken(GameState.LOBBY);
  await sitDown(seats, joined, "Ada", () => Promise.reject(new ConnectError("started", Code.FailedPrecondition)));
  assert.deepEqual([seats.find("g")?.token, seats.find("g")?.seed], ["a", undefined]);
});

test("a game that has started, or whose deals are not fair, gets no seed", async () => {
  for (const { seats, joined } of [taken(GameState.PLAYING), taken(GameState.LOBBY, FairDeal.OFF)]) {
    await sitDown(seats, joined, "Ada", () => assert.fail("sent a seed"));
    assert.equal(seats.find("g")?.seed, undefined);
  }
});
