import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { JoinGameResponseSchema } from "rummikub-client";
import { maskedJson } from "../../src/api/inspector.js";
import { Seats } from "../../src/api/seats.js";
import { DraftSaver } from "../../src/control/draft-saver.js";
import { Judge } from "../../src/control/judge.js";
import { routeOf } from "../../src/control/router.js";
import { nextPlace, places } from "../../src/input/places.js";
import { arrange } from "../../src/model/arrangement.js";
import { until } from "./support.js";

test("only the newest question is asked, and a late answer is dropped", async () => {
  const asked: number[] = [];
  const answers: ((answer: string) => void)[] = [];
  const answered: string[] = [];
  const judge = new Judge<number, string>(
    (question) => {
      asked.push(question);
      return new Promise((resolve) => answers.push(resolve));
    },
    (question, answer) => answered.push(`${question}${answer}`),
    1,
  );
  judge.consider(1);
  judge.consider(2);
  await until(() => asked.length > 0);
  judge.consider(3);
  answers[0]!("late");
  await until(() => asked.length > 1);
  answers[1]!("good");
  await until(() => answered.length > 0);
  assert.deepEqual([asked, answered], [[2, 3], ["3good"]]);
});

test("drafts are saved one at a time, the newest one last; a failure does not stop the next", async () => {
  const saved: number[] = [];
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const saver = new DraftSaver<number>((draft) => {
    saved.push(draft);
    return new Promise<void>((resolve, reject) => ends.push({ resolve, reject }));
  }, 1);
  for (const draft of [1, 2, 3]) saver.offer(draft);
  assert.deepEqual(saved, [1]);
  ends[0]!.reject(new Error("refused"));
  await until(() => saved.length > 1);
  saver.offer(4);
  saver.drop();
  ends[1]!.resolve();
  await sleep(20);
  saver.offer(5);
  await until(() => saved.length > 2);
  assert.deepEqual(saved, [1, 3, 5]);
  ends[2]!.resolve();
});

test("a tab's own seat comes before the browser's", () => {
  const memory = () => {
    const values = new Map<string, string>();
    return {
      getItem: (key: string) => values.get(key) ?? null,
      setItem: (key: string, value: string) => void values.set(key, value),
    };
  };
  const browser = memory();
  const [one, two] = [new Seats(memory(), browser), new Seats(memory(), browser)];
  const seat = { gameId: "g", token: "a", seat: 1, name: "Ann", time: 1 };
  one.keep(seat);
  two.keep({ ...seat, token: "b", seat: 2, time: 2 });
  assert.equal(one.find("g")?.token, "a");
  assert.equal(two.find("g")?.token, "b");
  assert.equal(new Seats(memory(), browser).find("g")?.token, "b");
  assert.equal(two.all().length, 1);
  one.forget({ gameId: "g", token: "a" });
  assert.equal(new Seats(memory(), browser).find("g")?.token, "b", "the seat of the other tab stays");
  two.forget({ gameId: "g", token: "b" });
  assert.deepEqual([one.all(), two.all()], [[], []]);
});

test("addresses lead to pages", () => {
  const id = "0123456789abcdef0123456789abcdef";
  assert.deepEqual(routeOf(""), { page: "home" });
  assert.deepEqual(routeOf("#/"), { page: "home" });
  assert.deepEqual(routeOf(`#/game/${id}`), { page: "game", gameId: id });
  assert.deepEqual(routeOf(`#/game/${id}/K3VH7N`), { page: "game", gameId: id, joinCode: "K3VH7N" });
  assert.deepEqual(routeOf("#/replay"), { page: "replay" });
  assert.deepEqual(routeOf(`#/replay/${id}`), { page: "replay", gameId: id });
  assert.deepEqual(routeOf(`#/replay/${id}/37`), { page: "replay", gameId: id, move: 37 });
  assert.deepEqual(routeOf(`#/replay/${id}/review`), { page: "replay", gameId: id, isReview: true });
  assert.deepEqual(routeOf("#/how-to-play"), { page: "how-to-play" });
  assert.deepEqual(routeOf("#/game/x"), { page: "unknown" });
});

test("arrow keys reach every place", () => {
  const arrangement = arrange({ table: [], rack: [1, 2] });
  const all = places(arrangement);
  assert.deepEqual(all, [{ to: "new" }, { to: "rack", index: 2 }]);
  assert.deepEqual(nextPlace(all, { to: "new" }, 1, false), { to: "rack", index: 2 });
  assert.deepEqual(nextPlace(all, { to: "rack", index: 2 }, 1, false), { to: "new" });
  assert.deepEqual(nextPlace(all, { to: "new" }, -1, true), { to: "rack", index: 2 });
  const first = { to: "meld", meld: 1, index: 0 } as const;
  const withMeld = [first, { ...first, index: 1 }, ...all];
  assert.deepEqual(nextPlace(withMeld, { ...first, index: 1 }, 1, true), { to: "new" });
  assert.deepEqual(nextPlace(withMeld, { to: "new" }, -1, true), first);
});

test("arrow keys stay on the rack where it is the only place, in another player's turn", () => {
  const rack = { to: "rack", index: 2 } as const;
  assert.deepEqual(nextPlace([rack], rack, 1, true), rack);
});

test("tokens are masked", () => {
  const json = maskedJson(JoinGameResponseSchema, create(JoinGameResponseSchema, { seat: 2, seatToken: "secret" }));
  assert.deepEqual(JSON.parse(json), { seat: 2, seatToken: "(masked)" });
});
