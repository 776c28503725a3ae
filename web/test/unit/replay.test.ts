import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  GameRecordSchema,
  melds,
  meldsText,
  MoveKind,
  type RecordedMoveSchema,
  tiles,
  tilesText,
  TurnDraw,
} from "rummikub-client";
import { type Frame, framesOf } from "../../src/model/replay.js";

type Move = MessageInitShape<typeof RecordedMoveSchema>;

const DEAL: Move = {
  kind: MoveKind.DEAL,
  deal: {
    racks: [
      { seat: 1, tiles: tiles("R1 R2 R3 K9") },
      { seat: 2, tiles: tiles("B1 B2") },
    ],
    pool: tiles("O1 O2 O3 O4 O5 O6"),
  },
};

/** Returns each frame as text: table, racks, number of tiles in the pool, River. */
function replay(turnDraw: TurnDraw, ...moves: Move[]): string[] {
  const ruleset = { game: { case: "melding" as const, value: { turn: { draw: turnDraw } } } };
  const record = create(GameRecordSchema, { ruleset, moves: [DEAL, ...moves] });
  const text = ({ table, racks, poolCount, river }: Frame) =>
    [meldsText(table?.melds ?? []), ...[...racks.values()].map(tilesText), poolCount, tilesText(river)].join(" / ");
  return framesOf(record).slice(1).map(text);
}

test("plays, draws, penalties and time-outs move tiles", () => {
  assert.deepEqual(
    replay(
      TurnDraw.ONE,
      { kind: MoveKind.PLAY, seat: 1, table: { melds: melds("[R1 R2 R3]") } },
      { kind: MoveKind.DRAW, seat: 2, tiles: tiles("O1") },
      { kind: MoveKind.PENALTY, seat: 1, tiles: tiles("O2 O3") },
      { kind: MoveKind.TIME_OUT, seat: 2, tiles: tiles("O4") },
      { kind: MoveKind.PASS_TURN, seat: 1 },
    ),
    [
      "[R1 R2 R3] / K9 / B1 B2 / 6 / ",
      "[R1 R2 R3] / K9 / B1 B2 O1 / 5 / ",
      "[R1 R2 R3] / K9 O2 O3 / B1 B2 O1 / 3 / ",
      "[R1 R2 R3] / K9 O2 O3 / B1 B2 O1 O4 / 2 / ",
      "[R1 R2 R3] / K9 O2 O3 / B1 B2 O1 O4 / 2 / ",
    ],
  );
});

test("a time-out commits a draft", () => {
  const [frame] = replay(TurnDraw.ONE, { kind: MoveKind.TIME_OUT, seat: 1, table: { melds: melds("[R1 R2 R3]") } });
  assert.equal(frame, "[R1 R2 R3] / K9 / B1 B2 / 6 / ");
});

test("tiles are laid on the River and pulled from it; a pending choice ends with the turn", () => {
  assert.deepEqual(
    replay(
      TurnDraw.TWO_RIVER,
      { kind: MoveKind.DRAW, seat: 1, tiles: tiles("O1 O2") },
      { kind: MoveKind.LAY_ON_RIVER, seat: 1, tiles: tiles("O1") },
      { kind: MoveKind.DRAW, seat: 2, tiles: tiles("B3 O4") },
      { kind: MoveKind.TIME_OUT, seat: 2 },
      { kind: MoveKind.PLAY, seat: 2, table: { melds: melds("[O1 B1 R1]") }, riverIndex: 0 },
    ),
    [
      ". / R1 R2 R3 K9 O1 O2 / B1 B2 / 4 / ",
      ". / R1 R2 R3 K9 O2 / B1 B2 / 4 / O1",
      ". / R1 R2 R3 K9 O2 / B1 B2 B3 O4 / 2 / O1",
      ". / R1 R2 R3 K9 O2 / B1 B2 B3 / 2 / O1 O4",
      "[O1 B1 R1] / R1 R2 R3 K9 O2 / B2 B3 O4 / 2 / ",
    ],
  );
});

test("a round is numbered and scored at its last move", () => {
  const record = create(GameRecordSchema, {
    moves: [DEAL, { kind: MoveKind.PASS_TURN, seat: 1 }, DEAL, { kind: MoveKind.REDEAL, deal: DEAL.deal }],
    rounds: [{ points: [{ seat: 1, points: 5 }] }, { points: [{ seat: 2, points: 7 }] }],
  });
  const frames = framesOf(record).map(({ round, score }) => [round, score?.points[0]?.points]);
  assert.deepEqual(frames, [
    [1, undefined],
    [1, 5],
    [2, undefined],
    [2, 7],
  ]);
});

test("the score stands at the move that ended the round, not at an abort after it", () => {
  const record = create(GameRecordSchema, {
    moves: [DEAL, { kind: MoveKind.PASS_TURN, seat: 1 }, { kind: MoveKind.ABORT }],
    rounds: [{ points: [{ seat: 1, points: 5 }] }],
  });
  assert.deepEqual(
    framesOf(record).map(({ score }) => score !== undefined),
    [false, true, false],
  );
});
