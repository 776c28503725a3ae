import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  GameRecordSchema,
  melds,
  meldsText,
  MoveKind,
  type RecordedMoveSchema,
  Tile,
  tile,
  tiles,
  tilesText,
  TurnDraw,
} from "rummikub-client";
import { pileOf } from "../../src/model/board.js";
import { type Frame, framesOf, startOf } from "../../src/model/replay.js";

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

/** Returns the positions that a game may begin with, one after each move, as text: whose turn, table, racks, who melded. */
function starts(...moves: Move[]): (string | undefined)[] {
  const frames = framesOf(create(GameRecordSchema, { moves }));
  return frames.map((_, at) => {
    const start = startOf(frames, at);
    const racks = start?.seats.map(({ rack, hasMelded }) => tilesText(rack) + (hasMelded ? " melded" : ""));
    return start && [start.turnSeat, meldsText(start.table?.melds ?? []), ...racks!].join(" / ");
  });
}

test("a game may begin with what the replay shows between two turns of a round", () => {
  const table = { melds: melds("[R1 R2 R3]") };
  const draws: Move = { kind: MoveKind.DRAW, seat: 2, tiles: tiles("O1") };
  assert.deepEqual(
    starts(DEAL, { kind: MoveKind.PLAY, seat: 1, table }, draws, { kind: MoveKind.PASS_TURN, seat: 2 }, { ...draws, seat: 1 }, DEAL, draws),
    [
      "1 / . / R1 R2 R3 K9 / B1 B2",
      "2 / [R1 R2 R3] / K9 melded / B1 B2",
      undefined, // seat 2 may still play
      "1 / [R1 R2 R3] / K9 melded / B1 B2 O1",
      undefined, // the round is over
      "2 / . / R1 R2 R3 K9 / B1 B2",
      undefined,
    ],
  );
});

test("a game begins in no turn that goes on, and with the seat whose turn ends by a penalty", () => {
  const play: Move = { kind: MoveKind.PLAY, seat: 1, table: { melds: melds("[R1 R2 R3]") } };
  const draw: Move = { kind: MoveKind.DRAW, seat: 2, tiles: tiles("O1") };
  const turns = (...moves: Move[]) => starts(DEAL, ...moves).map((start) => start?.slice(0, 1));
  assert.deepEqual(turns(play, { kind: MoveKind.PASS_TURN, seat: 1 }, draw), ["1", undefined, "2", undefined]);
  assert.deepEqual(turns(play, { ...draw, kind: MoveKind.PENALTY }, { ...draw, seat: 1 }), ["1", "2", "1", undefined]);
  const resigns: Move = { kind: MoveKind.RESIGN, seat: 3 };
  assert.deepEqual(turns(play, draw, resigns, { kind: MoveKind.PASS_TURN, seat: 2 }), ["1", "2", undefined, undefined, undefined]);
});

test("a game that began with a position has its table, and who has melded", () => {
  const racks = [{ seat: 1, tiles: tiles("K9"), hasMelded: true }, { seat: 2, tiles: tiles("B1 B2") }];
  const table = { melds: melds("[R1 R2 R3]") };
  const begun: Move = { kind: MoveKind.DEAL, deal: { racks, pool: tiles("O1"), table } };
  assert.deepEqual(starts(begun, { kind: MoveKind.DRAW, seat: 2 }), ["2 / [R1 R2 R3] / K9 melded / B1 B2", undefined]);
});

test("a game with tiles on the River cannot be played on", () => {
  const lays: Move = { kind: MoveKind.LAY_ON_RIVER, seat: 1, tiles: tiles("K9") };
  assert.deepEqual(starts(DEAL, lays, { kind: MoveKind.DRAW, seat: 2 }).slice(1), [undefined, undefined]);
});

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

test("a knock may have a play; without one the table stays", () => {
  assert.deepEqual(
    replay(
      TurnDraw.ONE_TO_THREE,
      { kind: MoveKind.PLAY, seat: 1, table: { melds: melds("[R1 R2 R3]") } },
      { kind: MoveKind.KNOCK, seat: 2 },
      { kind: MoveKind.KNOCK, seat: 1, table: { melds: melds("[R1 R2 R3 K9]") } },
    ),
    ["[R1 R2 R3] / K9 / B1 B2 / 6 / ", "[R1 R2 R3] / K9 / B1 B2 / 6 / ", "[R1 R2 R3 K9] /  / B1 B2 / 6 / "],
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

const DISCARDS = { game: { case: "discard" as const, value: {} } };

/** Returns each frame of a round of Okey as text: racks, number of tiles in the pool, piles by seat in turn order. */
function replayOkey(...moves: Move[]): string[] {
  const deal: Move = {
    kind: MoveKind.DEAL,
    deal: {
      turnOrder: [3, 2, 1],
      indicator: tile("O4"),
      racks: [
        { seat: 1, tiles: tiles("R1 R2") },
        { seat: 2, tiles: tiles("B1 F") },
        { seat: 3, tiles: tiles("K1 K2 O5") },
      ],
      pool: tiles("R9 B9 O5"),
    },
  };
  const record = create(GameRecordSchema, { ruleset: DISCARDS, moves: [deal, ...moves] });
  const piles = ({ board }: Frame) => board!.turnOrder.map((seat) => `${seat}{${tilesText(pileOf(board!, seat))}}`);
  const text = (frame: Frame) =>
    [...[...frame.racks.values()].map(tilesText), frame.poolCount, piles(frame).join(" ")].join(" / ");
  return framesOf(record).slice(1).map(text);
}

test("in Okey, tiles go to the discards, and are taken from those of the player before", () => {
  assert.deepEqual(
    replayOkey(
      { kind: MoveKind.DISCARD, seat: 3, tiles: tiles("K1") },
      { kind: MoveKind.TAKE_DISCARD, seat: 2, tiles: tiles("K1") },
      { kind: MoveKind.DISCARD, seat: 2, tiles: tiles("F") },
      { kind: MoveKind.RESIGN, seat: 2 },
      { kind: MoveKind.DRAW, seat: 1, tiles: tiles("R9") },
      { kind: MoveKind.DISCARD, seat: 1, tiles: tiles("R1") },
      { kind: MoveKind.TAKE_DISCARD, seat: 3, tiles: tiles("R1") },
    ),
    [
      "R1 R2 / B1 F / K2 O5 / 3 / 3{K1} 2{} 1{}",
      "R1 R2 / B1 F K1 / K2 O5 / 3 / 3{} 2{} 1{}",
      "R1 R2 / B1 K1 / K2 O5 / 3 / 3{} 2{F} 1{}",
      "R1 R2 / B1 K1 / K2 O5 / 3 / 3{} 2{F} 1{}",
      "R1 R2 R9 / B1 K1 / K2 O5 / 2 / 3{} 2{F} 1{}",
      "R2 R9 / B1 K1 / K2 O5 / 2 / 3{} 2{F} 1{R1}",
      "R2 R9 / B1 K1 / K2 O5 R1 / 2 / 3{} 2{F} 1{}",
    ],
  );
});

test("in Okey, a seat that is taken over is the one before again", () => {
  assert.deepEqual(
    replayOkey(
      { kind: MoveKind.DISCARD, seat: 3, tiles: tiles("K1") },
      { kind: MoveKind.RESIGN, seat: 2 },
      { kind: MoveKind.TAKE_OVER, seat: 2 },
      { kind: MoveKind.DRAW, seat: 2, tiles: tiles("R9") },
      { kind: MoveKind.DISCARD, seat: 2, tiles: tiles("F") },
      { kind: MoveKind.TAKE_DISCARD, seat: 1, tiles: tiles("F") },
    ).at(-1),
    "R1 R2 F / B1 R9 / K2 O5 / 2 / 3{K1} 2{} 1{}",
  );
});

test("in Okey, a time-out discards the tile taken, but no okey", () => {
  assert.deepEqual(
    replayOkey(
      { kind: MoveKind.TIME_OUT, seat: 3 },
      { kind: MoveKind.TIME_OUT, seat: 2, tiles: tiles("R9") },
      { kind: MoveKind.DRAW, seat: 1, tiles: tiles("O5") },
      { kind: MoveKind.TIME_OUT, seat: 1 },
    ),
    [
      "R1 R2 / B1 F / K1 O5 / 3 / 3{K2} 2{} 1{}",
      "R1 R2 / B1 F / K1 O5 / 2 / 3{K2} 2{R9} 1{}",
      "R1 R2 O5 / B1 F / K1 O5 / 1 / 3{K2} 2{R9} 1{}",
      "R1 O5 / B1 F / K1 O5 / 1 / 3{K2} 2{R9} 1{R2}",
    ],
  );
});

test("in Okey, the hand that ended the round is shown, and its discard lies on the indicator", () => {
  const hand = [{ tiles: tiles("K1 O5") }];
  const record = create(GameRecordSchema, {
    ruleset: DISCARDS,
    moves: [
      { kind: MoveKind.DEAL, deal: { turnOrder: [1], indicator: tile("O4"), racks: [{ seat: 1, tiles: tiles("K1 K2 O5") }] } },
      { kind: MoveKind.FINISH, seat: 1, tiles: tiles("K2"), hand },
    ],
  });
  const { board, racks } = framesOf(record)[1]!;
  assert.equal(tilesText(racks.get(1)!), "K1 O5");
  assert.deepEqual([tilesText([board!.finish!.tile]), board!.finish!.isPairs], ["K2", true]);
});

/** Returns a frame of a game with a table as text: racks, piles of the seats 2 and 1, melds, pool, tiles laid. */
const tableText = ({ racks, board, poolCount, played }: Frame) =>
  [
    [...racks.values()].map(tilesText).join(" | "),
    `{${[2, 1].map((seat) => tilesText(pileOf(board!, seat))).join(" | ")}}`,
    board!.table.map((meld) => tilesText(meld.tiles)).join(" + "),
    poolCount,
    tilesText(played),
  ].join("; ");

test("in 101 Okey, tiles are laid on the table, from which an okey comes to the rack; a discard is put back", () => {
  const table = (...melds: string[]) => melds.map((meld) => ({ tiles: tiles(meld) }));
  const racks = [
    { seat: 1, tiles: tiles("K7 K8 B3") },
    { seat: 2, tiles: tiles("R1 R2 O5 R9") },
  ];
  const record = create(GameRecordSchema, {
    ruleset: DISCARDS,
    moves: [
      { kind: MoveKind.DEAL, deal: { turnOrder: [2, 1], indicator: tile("O4"), racks, pool: tiles("R3 B9 B8") } },
      { kind: MoveKind.DISCARD, seat: 2, tiles: tiles("R9") },
      { kind: MoveKind.TAKE_DISCARD, seat: 1, tiles: tiles("R9") },
      { kind: MoveKind.RETURN_DISCARD, seat: 1, tiles: tiles("B9") },
      { kind: MoveKind.DISCARD, seat: 1, tiles: tiles("B9") },
      { kind: MoveKind.DRAW, seat: 2, tiles: tiles("R3") },
      { kind: MoveKind.LAY_TILES, seat: 2, hand: table("R1 R2 O5") },
      { kind: MoveKind.LAY_TILES, seat: 2, hand: table("R1 R2 R3") },
      { kind: MoveKind.DISCARD, seat: 2, tiles: tiles("O5") },
      { kind: MoveKind.TAKE_DISCARD, seat: 1, tiles: tiles("O5") },
      { kind: MoveKind.TIME_OUT, seat: 1, tiles: tiles("B8") },
    ],
  });
  assert.deepEqual(framesOf(record).slice(2).map(tableText), [
    "K7 K8 B3 R9 | R1 R2 O5; { | }; ; 3; ",
    "K7 K8 B3 B9 | R1 R2 O5; {R9 | }; ; 2; ",
    "K7 K8 B3 | R1 R2 O5; {R9 | B9}; ; 2; ",
    "K7 K8 B3 | R1 R2 O5 R3; {R9 | B9}; ; 1; ",
    "K7 K8 B3 | R3; {R9 | B9}; R1 R2 O5; 1; R1 R2 O5",
    "K7 K8 B3 | O5; {R9 | B9}; R1 R2 R3; 1; R3",
    "K7 K8 B3 | ; {R9 O5 | B9}; R1 R2 R3; 1; ",
    "K7 K8 B3 O5 | ; {R9 | B9}; R1 R2 R3; 1; ",
    "K7 K8 B3 | ; {R9 O5 | B9 B8}; R1 R2 R3; 0; ",
  ]);
});

/** Returns the frames after the deal of a round with jokers, in which B8 is the trump. */
function replayWithJokers(pool: string, ...moves: Move[]): Frame[] {
  const racks = [
    { seat: 1, tiles: tiles("K7 K8") },
    { seat: 2, tiles: tiles("R1 R2 J R9") },
  ];
  const deal = { turnOrder: [2, 1], racks, trump: tile("B8"), pool: tiles(pool) };
  return framesOf(create(GameRecordSchema, { ruleset: DISCARDS, moves: [{ kind: MoveKind.DEAL, deal }, ...moves] })).slice(1);
}

const parts = (...melds: string[]) => melds.map((meld) => ({ tiles: tiles(meld) }));

test("with jokers there is no indicator; the trump is taken, put back, and taken by another player", () => {
  const frames = replayWithJokers(
    "R3 B9",
    { kind: MoveKind.TAKE_TRUMP, seat: 2, tiles: tiles("B8") },
    { kind: MoveKind.RETURN_DISCARD, seat: 2, tiles: tiles("R3") },
    { kind: MoveKind.LAY_TILES, seat: 2, hand: parts("R1 R2 J") },
    { kind: MoveKind.TIME_OUT, seat: 2 },
    { kind: MoveKind.TAKE_TRUMP, seat: 1, tiles: tiles("B8") },
    { kind: MoveKind.TIME_OUT, seat: 1, tiles: tiles("B9") },
  );
  assert.equal(frames[0]!.board!.indicator, Tile.UNSPECIFIED);
  assert.equal(frames[0]!.board!.okey, Tile.JOKER);
  const trumps = frames.map(({ board }) => board!.trump);
  assert.deepEqual(trumps.map((trump) => trump === tile("B8")), [false, true, true, true, false, true]);
  assert.deepEqual(frames.map(tableText), [
    "K7 K8 | R1 R2 J R9 B8; { | }; ; 2; ",
    "K7 K8 | R1 R2 J R9 R3; { | }; ; 1; ",
    "K7 K8 | R9 R3; { | }; R1 R2 J; 1; R1 R2 J",
    "K7 K8 | R3; {R9 | }; R1 R2 J; 1; ",
    "K7 K8 B8 | R3; {R9 | }; R1 R2 J; 1; ",
    "K7 K8 | R3; {R9 | B9}; R1 R2 J; 0; ",
  ]);
});

test("when the pool is empty, a pass and a time-out discard nothing, and a taken discard goes back", () => {
  const passed = replayWithJokers("", { kind: MoveKind.PASS_TURN, seat: 2 });
  assert.deepEqual(passed.map(tableText), ["K7 K8 | R1 R2 J R9; { | }; ; 0; "]);
  const late = replayWithJokers("", { kind: MoveKind.TIME_OUT, seat: 2 });
  assert.deepEqual(late.map(tableText), ["K7 K8 | R1 R2 J R9; { | }; ; 0; "]);
  const back = replayWithJokers(
    "R3",
    { kind: MoveKind.DRAW, seat: 2, tiles: tiles("R3") },
    { kind: MoveKind.DISCARD, seat: 2, tiles: tiles("R9") },
    { kind: MoveKind.TAKE_DISCARD, seat: 1, tiles: tiles("R9") },
    { kind: MoveKind.TIME_OUT, seat: 1 },
  );
  assert.equal(tableText(back.at(-1)!), "K7 K8 | R1 R2 J R3; {R9 | }; ; 0; ");
});

test("a Foot leaves the rack empty, with its discard and the table in sight", () => {
  const [foot] = replayWithJokers("R3", { kind: MoveKind.FOOT, seat: 2, tiles: tiles("R9"), hand: parts("R1 R2 J") });
  assert.equal(tableText(foot!), "K7 K8 | ; { | }; R1 R2 J; 1; R1 R2 J");
  assert.equal(foot!.board!.lastTile, tile("R9"));
});
