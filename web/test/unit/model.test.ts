import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ErrorReason,
  GameSchema,
  GameState,
  type SuggestedStep,
  SuggestedStepSchema,
  Tile,
  MeldSchema,
  tile,
  tiles,
  tilesText,
  TurnDraw,
  TurnStep,
  ViolationSchema,
} from "rummikub-client";
import { arrange, move } from "../../src/model/arrangement.js";
import { clockText, ServerClock } from "../../src/model/clock.js";
import { amend, begin, redo, step, undo } from "../../src/model/history.js";
import { tableOf } from "../../src/model/layout.js";
import { marksOf } from "../../src/model/marks.js";
import { tablesOf } from "../../src/model/steps.js";
import { faceOf, mayFitBothKinds, pairs, tileOf, without } from "../../src/model/tiles.js";
import { choices, turnToJudge } from "../../src/model/turn.js";

test("every tile has the color and the value of its name", () => {
  for (const [name, color, value] of [
    ["R1", 1, 1],
    ["B13", 2, 13],
    ["O13", 4, 13],
    ["G1", 5, 1],
    ["P13", 6, 13],
  ] as const) {
    assert.deepEqual(faceOf(tile(name)), { color, value });
    assert.equal(tileOf(color, value), tile(name));
  }
  for (const joker of tiles("J F D M C")) assert.equal(faceOf(joker), undefined);
});

test("the kind of a meld may be a choice where one numbered tile and jokers fit both kinds", () => {
  for (const meld of ["K7 J J", "K7 D M D K7", "K7 J D"]) assert.ok(mayFitBothKinds(tiles(meld)), meld);
  for (const meld of ["R2 D R5", "R6 R7 C B9 B10", "R7 R8 R9"]) assert.ok(!mayFitBothKinds(tiles(meld)), meld);
});

test("tiles are removed one copy for each; pairs are counted", () => {
  assert.deepEqual(without(tiles("R1 R1 K2"), tiles("R1 K3")), { left: tiles("R1 K2"), missing: tiles("K3") });
  assert.equal(pairs(tiles("R1 R1 J J K2 K2 K2 K2 B5")), 4);
});

test("undo and redo walk through the steps; a new step forgets what was undone", () => {
  const steps = step(step(begin("a"), "b"), "c");
  assert.equal(undo(undo(undo(steps))).present, "a");
  assert.equal(redo(undo(steps)).present, "c");
  assert.equal(redo(step(undo(steps), "d")).present, "d");
  assert.equal(step(steps, "c"), steps);
  assert.equal(undo(amend(steps, "C")).present, "b");
});

test("a violation marks its meld and the tiles at fault", () => {
  const start = arrange({ table: [create(MeldSchema, { tiles: tiles("R1 R2 R3") })], rack: tiles("K9 R4") });
  const laid = move(start, [start.rack[0]!.id], { to: "meld", meld: start.melds[0]!.id, index: 3 });
  const [meld] = laid.melds;
  const violation = create(ViolationSchema, {
    reason: ErrorReason.RUN_COLOR_MIX,
    subject: "table_after[0]",
    tiles: tiles("R1 R2 R3 K9"),
  });
  const other = create(ViolationSchema, { reason: ErrorReason.INITIAL_MELD_BELOW_THRESHOLD, subject: "table_after" });
  const marks = marksOf(laid, [violation, other]);
  assert.equal(marks.isLegal, false);
  assert.deepEqual(marks.melds.get(meld!.id), {
    isLegal: false,
    violations: [violation],
    pieces: new Set([start.rack[0]!.id]),
  });
  assert.deepEqual(marks.table, [other]);
  assert.equal(marksOf(laid, [{ ...violation, subject: "play.table[0]" }]).melds.get(meld!.id)?.isLegal, false);
  assert.equal(marksOf(laid, []).melds.get(meld!.id)?.isLegal, true);
});

test("the choices follow the step of the turn, the pool and the River", () => {
  const game = (turn: { step: TurnStep; seat?: number; tilesDrawn?: Tile[] }, poolCount: number, draw = TurnDraw.ONE, knockLimit = 0) =>
    create(GameSchema, {
      state: GameState.PLAYING,
      ruleset: { game: { case: "melding", value: { turn: { draw, knockLimit } } } },
      seat: 1,
      poolCount,
      players: [{ seat: 1 }, { seat: 2 }],
      river: tiles("R1"),
      turn: { seat: 1, ...turn },
    });
  const open = choices(game({ step: TurnStep.OPEN }, 10));
  assert.deepEqual([open.mayPlay, open.mayDraw, open.mayPass, open.mayPull], [true, true, false, true]);
  const empty = choices(game({ step: TurnStep.OPEN }, 0));
  assert.deepEqual([empty.mayDraw, empty.mayPass], [false, true]);
  const drawn = choices(game({ step: TurnStep.DRAWN }, 10));
  assert.deepEqual([drawn.mayPlay, drawn.mayDraw, drawn.mayPass, drawn.mayPull], [true, false, true, false]);
  const choosing = choices(game({ step: TurnStep.CHOOSING, tilesDrawn: tiles("R1 R2") }, 10));
  assert.deepEqual([choosing.mayPlay, tilesText(choosing.toLay)], [false, "R1 R2"]);
  const first = choices(game({ step: TurnStep.OPEN }, 10, TurnDraw.ONE_OR_TWO));
  assert.deepEqual([first.mayPlay, first.mayDraw, first.mayPass], [false, true, false]);
  const again = choices(game({ step: TurnStep.DRAWING }, 10, TurnDraw.ONE_OR_TWO));
  assert.deepEqual([again.mayPlay, again.mayDraw, again.mayPass], [true, true, false]);
  const last = choices(game({ step: TurnStep.DRAWING }, 0, TurnDraw.ONE_OR_TWO));
  assert.deepEqual([last.mayPlay, last.mayDraw, last.mayPass], [true, false, true]);
  const knocks = (draw: TurnDraw, poolCount: number, limit: number) =>
    [TurnStep.OPEN, TurnStep.DRAWING, TurnStep.DRAWN, TurnStep.CHOOSING].map((step) => {
      const { mayKnock, mayKnockWithPlay } = choices(game({ step }, poolCount, draw, limit));
      return mayKnock ? "knock" : mayKnockWithPlay ? "only with a play" : "no";
    });
  assert.deepEqual(knocks(TurnDraw.ONE_TO_THREE, 10, 0), ["no", "no", "no", "no"]);
  assert.deepEqual(knocks(TurnDraw.ONE_TO_THREE, 10, 5), ["no", "knock", "knock", "no"]);
  assert.deepEqual(knocks(TurnDraw.ONE_TO_THREE, 0, 5), ["knock", "knock", "knock", "no"]);
  assert.deepEqual(knocks(TurnDraw.ONE, 10, 5), ["only with a play", "knock", "knock", "no"]);
  const others = choices(game({ step: TurnStep.OPEN, seat: 2 }, 10));
  assert.deepEqual([others.mayPlay, others.mayDraw, others.mayPass], [false, false, false]);
});

test("a turn to judge has the table before and after, the rack and whether the seat has melded", () => {
  const game = create(GameSchema, {
    seat: 1,
    players: [{ seat: 1, hasMelded: true }],
    table: { melds: [{ tiles: tiles("R1 R2 R3") }] },
    rack: tiles("R4"),
  });
  const start = arrange({ table: game.table?.melds ?? [], rack: game.rack });
  const laid = move(start, [start.rack[0]!.id], { to: "meld", meld: start.melds[0]!.id, index: 3 });
  const turn = turnToJudge(game, tableOf(laid));
  assert.deepEqual([turn.tableBefore.melds![0]!.tiles, turn.tableAfter.melds![0]!.tiles], [tiles("R1 R2 R3"), tiles("R1 R2 R3 R4")]);
  assert.deepEqual([turn.rack, turn.hasMelded], [tiles("R4"), true]);
});

test("the server's clock is bounded by each answer, and starts over when a clock jumps", () => {
  const clock = new ServerClock();
  clock.observe(10_000, 1_100); // offset at least 8900
  assert.equal(clock.at(2_000), 10_900);
  clock.observe(10_000, 1_060, 1_000); // between 8940 and 9000
  assert.equal(clock.at(2_000), 10_970);
  assert.equal(clock.secondsUntil(timestampFromMs(15_971), 2_000), 6);
  assert.equal(clock.secondsUntil(timestampFromMs(1_000), 2_000), 0);
  clock.observe(50_000, 1_100, 1_000);
  assert.equal(clock.at(1_050), 50_000);
  assert.equal(clockText(65), "1:05");
});

test("steps change the table one after the other", () => {
  const steps: SuggestedStep[] = [
    create(SuggestedStepSchema, {
      parts: [
        { meld: { place: { case: "tableBefore", value: 0 } }, laid: { tiles: tiles("R1 R2 R3") } },
        { meld: { place: { case: "tableAfter", value: 1 } }, laid: { tiles: tiles("R4 R5") } },
      ],
      meld: { place: { case: "tableBefore", value: 0 } },
      laid: { tiles: tiles("R1 R2 R3") },
    }),
    create(SuggestedStepSchema, {
      meld: { place: { case: "tableAfter", value: 1 } },
      laid: { tiles: tiles("R4 R5 R6") },
      source: { place: { case: "tableBefore", value: 1 } },
    }),
  ];
  const tables = tablesOf([{ tiles: tiles("R1 R2 R3 R4 R5") }, { tiles: tiles("R6") }], steps);
  const text = tables.map((melds) => melds.map((meld) => tilesText(meld.tiles)).join(" | "));
  assert.deepEqual(text, ["R1 R2 R3 R4 R5 | R6", "R1 R2 R3 | R6 | R4 R5", "R1 R2 R3 | R4 R5 R6"]);
});
