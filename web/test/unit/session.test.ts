import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import {
  AnalysisService,
  ErrorReason,
  type Game,
  GameEventSchema,
  GameSchema,
  GameService,
  GameState,
  HintTier,
  type Meld,
  meldsText,
  NamedHandSchema,
  type PlayTiles,
  RackFinishedSchema,
  RefusalSchema,
  Rummikub,
  TableLayout,
  type Tile,
  tile,
  tileName,
  tiles,
  tilesText,
  TurnService,
  TurnStep,
  ValidationService,
  type WatchGameResponseSchema,
} from "rummikub-client";
import { eventText } from "../../src/control/events.js";
import { handConditions, handName, rackFinishText } from "../../src/control/finish-text.js";
import { GameSession } from "../../src/control/game-session.js";
import { violationSummary } from "../../src/control/arranging.js";
import { tableOf } from "../../src/model/arrangement.js";
import { isStand } from "../../src/model/stand.js";
import { tileOf } from "../../src/model/tiles.js";
import { until } from "./support.js";

type Update = NonNullable<MessageInitShape<typeof WatchGameResponseSchema>["update"]>;

/** Returns a game in which seat 1 has the turn and the rack R1 R2 R3 K9, and R5 R6 R7 lie on the table. */
function game(changes: Exclude<MessageInitShape<typeof GameSchema>, Game> = {}): Game {
  return create(GameSchema, {
    revision: 5,
    state: GameState.PLAYING,
    seat: 1,
    players: [
      { seat: 1, name: "Ann" },
      { seat: 2, name: "Ben" },
    ],
    table: { melds: [{ tiles: tiles("R5 R6 R7") }] },
    rack: tiles("R1 R2 R3 K9"),
    poolCount: 10,
    turn: { seat: 1, step: TurnStep.OPEN, revision: 5 },
    ...changes,
  });
}

/** A service whose watch sends what the test pushes. */
function world(
  turns: Partial<ServiceImpl<typeof TurnService>> = {},
  validation: Partial<ServiceImpl<typeof ValidationService>> = {},
  analysis: Partial<ServiceImpl<typeof AnalysisService>> = {},
  games: Partial<ServiceImpl<typeof GameService>> = {},
) {
  const updates: Update[] = [];
  let wake = () => {};
  const transport = createRouterTransport((router) => {
    router.service(GameService, {
      getGame: () => ({}),
      async *watchGame(_request, { signal }) {
        while (!signal.aborted) {
          for (const update of updates.splice(0)) yield { update };
          await new Promise<void>((resolve) => {
            wake = resolve;
            signal.addEventListener("abort", () => resolve());
          });
        }
      },
      ...games,
    });
    router.service(TurnService, { saveDraft: () => ({}), ...turns });
    router.service(ValidationService, { validateTurn: () => ({}), ...validation });
    router.service(AnalysisService, analysis);
  });
  const session = new GameSession(Rummikub.over(transport), "g");
  void session.follow();
  /** Sends an update, and waits until the session has it. */
  const push = async (update: Update) => {
    let hasChanged = false;
    const forget = session.state.subscribe(() => (hasChanged = true));
    updates.push(update);
    wake();
    await until(() => hasChanged);
    forget();
  };
  return { session, push };
}

const table = (session: GameSession) => meldsText(tableOf(session.arranging.arrangement));
const rackIds = (session: GameSession, count: number) => session.arranging.arrangement.rack.slice(0, count).map(({ id }) => id);

test("what the player lays is judged and saved as a draft; undo saves again", async () => {
  const drafts: string[] = [];
  const { session, push } = world(
    { saveDraft: ({ draft }) => (drafts.push(meldsText(draft?.table?.melds ?? [])), {}) },
    { validateTurn: () => ({ points: 6 }) },
  );
  await push({ case: "snapshot", value: game() });
  session.arranging.move(rackIds(session, 3), { to: "new" });
  assert.equal(table(session), "[R5 R6 R7] | [R1 R2 R3]");
  await until(() => session.state.value.judgment?.answer.points === 6);
  await until(() => drafts.length === 1);
  session.arranging.sort("value");
  assert.equal(session.state.value.judgment?.arrangement, session.arranging.arrangement);
  session.arranging.undo();
  await until(() => drafts.length === 2);
  assert.deepEqual(drafts, ["[R5 R6 R7] | [R1 R2 R3]", "[R5 R6 R7]"]);
  assert.equal(session.state.value.judgment, undefined);
  session.stop();
});

test("tiles in an order that is not a run's are sorted as the service suggests", async () => {
  const { session, push } = world(
    {},
    {
      validateTurn: ({ tableAfter }) => {
        const isSorted = tableAfter?.melds[1]?.tiles.join() === tiles("R1 R2 R3").join();
        const violation = {
          reason: ErrorReason.RUN_NOT_ASCENDING,
          subject: "table_after[1]",
          suggestedOrder: tiles("R1 R2 R3"),
        };
        return { violations: isSorted ? [] : [violation] };
      },
    },
  );
  await push({ case: "snapshot", value: game() });
  const [first, second, third] = rackIds(session, 3);
  session.arranging.move([third!, first!, second!], { to: "new" });
  await until(() => session.state.value.judgment?.marks.isLegal === true);
  assert.equal(table(session), "[R5 R6 R7] | [R1 R2 R3]");
  session.stop();
});

test("a hint is laid as the turn of the service, with the faces that it declares", async () => {
  const laid = [
    { tiles: tiles("R5 R6 R7"), declaredFaces: [] },
    { tiles: tiles("R1 R2 J"), declaredFaces: tiles("R3") },
  ];
  const played: Meld[] = [];
  const { session, push } = world(
    { playTurn: ({ action }) => (action.case === "play" && played.push(...(action.value.table?.melds ?? [])), {}) },
    {},
    {
      suggestTurn: () => ({
        suggestion: { tilesPlayed: tiles("R1 R2 J"), table: { melds: laid.map((meld) => ({ tiles: meld.tiles })) } },
        turn: { action: { case: "play", value: { table: { melds: laid } } } },
      }),
    },
  );
  await push({ case: "snapshot", value: game({ rack: tiles("R1 R2 J K9") }) });
  await session.hints.hint(HintTier.TURN);
  session.arranging.layHint();
  await session.acting.play();
  assert.deepEqual(played.map(({ tiles, declaredFaces }) => ({ tiles, declaredFaces })), laid);
  session.stop();
});

test("on a grid, ValidatePlacement judges, and drafts, plays and hints have placements", async () => {
  const text = ({ placements }: { placements?: readonly { tile: Tile; x: number; y: number }[] }) =>
    placements!.map(({ tile, x, y }) => `${tilesText([tile])}@${x},${y}`).join(" ");
  const table = { placements: [3, 4, 5].map((value, x) => ({ tile: tileOf(1, value), x, y: 0 })) };
  const ruleset = { game: { case: "melding", value: { melds: { tableLayout: TableLayout.GRID } } } } as const;
  const sent: string[] = [];
  const { session, push } = world(
    {
      saveDraft: ({ draft }) => (sent.push(`draft ${text(draft!.table!)}`), {}),
      playTurn: ({ action }) => (sent.push(`play ${text((action.value as PlayTiles).table!)}`), {}),
    },
    {
      validatePlacement: ({ tableBefore, tableAfter }) => {
        const after = text(tableAfter!);
        sent.push(`judge ${text(tableBefore!)} to ${after}`);
        const violation = { reason: ErrorReason.LINE_INVALID, metadata: { x: 0, y: 0, last_x: 0, last_y: 1 } };
        return after.includes("B3@0,1") ? { violations: [violation] } : { points: 2 };
      },
    },
    {
      suggestTurn: () => {
        const best = { placements: [...table.placements, { tile: tileOf(1, 2), x: -1, y: 0 }] };
        return {
          suggestion: { tilesPlayed: tiles("R2"), table: best },
          turn: { action: { case: "play", value: { table: best } } },
        };
      },
    },
  );
  await push({ case: "snapshot", value: game({ ruleset, table, rack: tiles("B3 R2") }) });
  session.arranging.move(rackIds(session, 1), { to: "cell", x: 0, y: 1 });
  await until(() => session.state.value.judgment !== undefined);
  assert.equal(
    violationSummary(session.state.value.judgment!.marks),
    "Tiles side by side must be a run, and tiles below one another a group, of at least three.",
  );
  session.arranging.move(rackIds(session, 1), { to: "cell", x: 0, y: 0 });
  assert.equal(session.state.value.notice, "Another tile already lies in that cell.");
  await session.hints.hint(HintTier.TURN);
  assert.equal(session.state.value.shown?.steps.length, 1);
  session.arranging.layHint();
  await until(() => session.state.value.judgment?.marks.isLegal === true);
  await until(() => sent.filter((one) => one.startsWith("draft")).length === 2);
  await session.acting.play();
  const before = "R3@0,0 R4@1,0 R5@2,0";
  assert.deepEqual(new Set(sent), new Set([
    `judge ${before} to ${before} B3@0,1`,
    `draft ${before} B3@0,1`,
    `judge ${before} to R2@-1,0 ${before}`,
    `draft R2@-1,0 ${before}`,
    `play R2@-1,0 ${before}`,
  ]));
  session.stop();
});

/** Returns a game of Okey in which seat 1 has the turn and has taken B8. */
function okeyGame(changes: Exclude<MessageInitShape<typeof GameSchema>, Game> = {}): Game {
  return game({
    ruleset: { game: { case: "discard", value: {} } },
    rack: tiles("R1 R2 R3 B8"),
    turn: { seat: 1, step: TurnStep.DISCARDING, revision: 5, tilesDrawn: tiles("B8") },
    turnOrder: [2, 1],
    discardBoard: { indicator: tile("O4"), okey: tile("O5"), discardedSeats: [1, 2] },
    ...changes,
  });
}

test("in Okey, tiles are taken and the indicator is shown; a tile is put on the discards, or on the indicator to finish", async () => {
  const sent: unknown[] = [];
  const { session, push } = world({
    playTurn: ({ action }) => {
      const { tile } = action.value as { tile?: Tile };
      sent.push([action.case, ...(tile === undefined ? [] : [tileName(tile)])]);
      return {};
    },
  });
  await push({ case: "snapshot", value: okeyGame() });
  await session.acting.showIndicator();
  await session.acting.takeFromPool();
  await session.acting.takeDiscard();
  assert.deepEqual(sent.splice(0), [["showIndicator"], ["takeFromPool"], ["takeDiscard"]]);
  const [first, second] = rackIds(session, 2);
  session.arranging.move([first!, second!], { to: "discard" });
  assert.equal(session.state.value.notice, "Select one tile only.");
  session.arranging.move([first!], { to: "discard" });
  await until(() => !session.state.value.isBusy);
  session.arranging.carry([second!], { to: "finish" });
  session.arranging.drop();
  await until(() => sent.length === 2);
  assert.deepEqual(sent, [["discard", "R1"], ["finish", "R2"]]);
  assert.equal(session.arranging.arrangement.rack.length, 4, "tiles leave the rack with the watch");
  session.stop();
});

test("in Okey, a refused finish names the tiles that are left over", async () => {
  const violation = { reason: ErrorReason.FINISH_INVALID, tiles: tiles("B8 R1") };
  const { session, push } = world({
    playTurn: () => {
      const detail = { reason: ErrorReason.FINISH_INVALID, violations: [violation] };
      throw new ConnectError("no", Code.FailedPrecondition, undefined, [{ desc: RefusalSchema, value: detail }]);
    },
  });
  await push({ case: "snapshot", value: okeyGame() });
  await session.acting.finish(tile("R2"));
  assert.match(session.state.value.problem!.text, /^The hand is not finished: .* Left over: blue 8, red 1\.$/);
  session.stop();
});

test("in Okey, a hint says what the hand lacks; its action is taken until the rack changes", async () => {
  const sent: string[] = [];
  const { session, push } = world(
    { playTurn: ({ gameId, etag, action }) => (sent.push(`${gameId} ${etag} ${action.case}`), {}) },
    {},
    {
      suggestTurn: () => ({
        hand: { missing: 2, spare: tiles("B8") },
        turn: { etag: "e5", action: { case: "discard", value: { tile: tile("B8") } } },
      }),
    },
  );
  await push({ case: "snapshot", value: okeyGame() });
  await session.hints.hint(HintTier.TURN);
  assert.equal(session.state.value.notice, "Missing tiles: 2. Suggestion: Discard blue 8.");
  assert.deepEqual(session.state.value.hinted, tiles("B8"));
  await session.acting.takeAdvice();
  assert.deepEqual(sent, ["g e5 discard"]);
  await session.hints.hint(HintTier.TURN);
  await push({ case: "game", value: okeyGame({ revision: 6, rack: tiles("R1 R2 R3 B9") }) });
  assert.deepEqual([session.state.value.hinted, session.state.value.advice], [[], undefined]);
  session.stop();
});

test("in Okey, what the others do is told, and a hidden tile is not", () => {
  const told = (event: MessageInitShape<typeof GameEventSchema>["event"]) =>
    eventText(create(GameEventSchema, { event: event! }), okeyGame());
  assert.equal(told({ case: "poolTileTaken", value: { seat: 2 } }), "Ben draws.");
  assert.equal(told({ case: "poolTileTaken", value: { seat: 1, tile: tile("F") } }), "You draw false joker.");
  assert.equal(told({ case: "discardTaken", value: { seat: 2, tile: tile("R1"), fromSeat: 1 } }), "Ben takes red 1.");
  assert.equal(told({ case: "tileDiscarded", value: { seat: 2, tile: tile("K9") } }), "Ben discards black 9.");
  assert.equal(told({ case: "indicatorShown", value: { seat: 2 } }), "Ben shows the indicator.");
  assert.equal(told({ case: "handFinished", value: { seat: 2, isPairs: true } }), "Ben finishes with pairs.");
});

test("a saved draft is restored with the first snapshot, and what lies is kept at a reconnect", async () => {
  const { session, push } = world();
  const draft = { seat: 1, table: { melds: [{ tiles: tiles("R5 R6 R7") }, { tiles: tiles("K9") }] } };
  await push({ case: "snapshot", value: game({ turn: { seat: 1, step: TurnStep.OPEN, revision: 5, draft } }) });
  assert.equal(table(session), "[R5 R6 R7] | [K9]");
  session.arranging.undo();
  assert.equal(table(session), "[R5 R6 R7]");
  session.arranging.move(rackIds(session, 2), { to: "new" });
  await push({ case: "snapshot", value: game({ turn: { seat: 1, step: TurnStep.OPEN, revision: 5, draft } }) });
  assert.equal(table(session), "[R5 R6 R7] | [R1 R2]");
  session.stop();
});

test("the next turn starts from its table; only the own turn lays tiles", async () => {
  const { session, push } = world();
  await push({ case: "snapshot", value: game() });
  session.arranging.move(rackIds(session, 2), { to: "new" });
  await push({ case: "game", value: game({ revision: 6, turn: { seat: 2, step: TurnStep.OPEN, revision: 6 } }) });
  assert.equal(table(session), "[R5 R6 R7]");
  assert.equal(session.arranging.arrangement.rack.length, 4);
  session.arranging.move(rackIds(session, 1), { to: "new" });
  assert.equal(table(session), "[R5 R6 R7]");
  await push({ case: "draft", value: { seat: 2, number: 1, table: { melds: [{ tiles: tiles("K1") }] } } });
  assert.equal(session.state.value.othersDraft?.number, 1);
  await push({ case: "game", value: game({ revision: 7, turn: { seat: 1, step: TurnStep.OPEN, revision: 7 } }) });
  assert.equal(session.state.value.othersDraft, undefined);
  session.stop();
});

test("a refused play keeps the tiles and says why, in the words of the catalog", async () => {
  const violation = {
    reason: ErrorReason.INITIAL_MELD_BELOW_THRESHOLD,
    subject: "play.table",
    metadata: { total: 6, threshold: 30 },
  };
  const { session, push } = world({
    playTurn: () => {
      const detail = { reason: ErrorReason.INITIAL_MELD_BELOW_THRESHOLD, violations: [violation] };
      throw new ConnectError("no", Code.FailedPrecondition, undefined, [{ desc: RefusalSchema, value: detail }]);
    },
  });
  await push({ case: "snapshot", value: game() });
  session.arranging.move(rackIds(session, 3), { to: "new" });
  await session.acting.play();
  assert.equal(session.state.value.problem?.text, "Your initial meld has 6 points. It needs 30.");
  assert.equal(session.state.value.isBusy, false);
  assert.equal(table(session), "[R5 R6 R7] | [R1 R2 R3]");
  session.stop();
});

test("after a play the player waits until the watch has its result", async () => {
  const sent: object[] = [];
  const { session, push } = world({
    playTurn: ({ etag, action }) => {
      sent.push([etag, action.case]);
      return { game: { revision: 6 } };
    },
  });
  await push({ case: "snapshot", value: game({ etag: "e5" }) });
  await session.acting.draw();
  assert.equal(session.state.value.isBusy, true);
  await session.acting.draw();
  await push({ case: "game", value: game({ revision: 6, turn: { seat: 2, step: TurnStep.OPEN, revision: 6 } }) });
  assert.equal(session.state.value.isBusy, false);
  assert.deepEqual(sent, [["e5", "draw"]]);
  session.stop();
});

test("a knock plays what the player has laid; with nothing laid it is a knock alone", async () => {
  const sent: object[] = [];
  const { session, push } = world({
    playTurn: ({ action }) => {
      const { table, knocks } = action.value as PlayTiles;
      sent.push([action.case, knocks, meldsText(table?.melds ?? [])]);
      return { game: { revision: 5 } };
    },
  });
  await push({ case: "snapshot", value: game() });
  await session.acting.knock();
  session.arranging.move(rackIds(session, 3), { to: "new" });
  await session.acting.knock();
  await session.acting.play();
  assert.deepEqual(sent, [
    ["knock", undefined, "."],
    ["play", true, "[R5 R6 R7] | [R1 R2 R3]"],
    ["play", false, "[R5 R6 R7] | [R1 R2 R3]"],
  ]);
  session.stop();
});

/** Returns a game of 101 Okey in which seat 1 has taken R3 of the pool, B5 O5 B7 lie on the table, and O5 is the okey. */
function gameWithTable(changes: Exclude<MessageInitShape<typeof GameSchema>, Game> = {}): Game {
  return game({
    ruleset: { game: { case: "discard", value: { melds: { meldsOnTable: true } } } },
    rack: tiles("R1 R2 R3 B6 K9"),
    turn: { seat: 1, step: TurnStep.DISCARDING, revision: 5, tilesDrawn: tiles("R3") },
    discardBoard: { indicator: tile("O4"), okey: tile("O5"), table: [{ tiles: tiles("B5 O5 B7") }] },
    ...changes,
  });
}

test("in 101 Okey, tiles on the table are judged, laid with the whole table, and stay until then", async () => {
  const sent: string[] = [];
  const { session, push } = world(
    {
      playTurn: ({ action }) => {
        sent.push(action.case === "lay" ? action.value.table.map((part) => tilesText(part.tiles)).join(" + ") : String(action.case));
        return { game: { revision: 6 } };
      },
      saveDraft: () => assert.fail("a draft of 101 Okey is not saved"),
    },
    { validateDiscardTurn: ({ tableAfter }) => ({ opening: { seat: 1, amount: tableAfter.length } }) },
  );
  await push({ case: "snapshot", value: gameWithTable() });
  session.arranging.move(rackIds(session, 3), { to: "new" });
  await until(() => session.state.value.judgment?.answer.opening?.amount === 2);
  session.arranging.move([session.arranging.arrangement.rack.at(-1)!.id], { to: "discard" });
  assert.match(session.state.value.notice ?? "", /^Lay your tiles first/);
  await push({ case: "game", value: gameWithTable({ revision: 6, etag: "e6" }) });
  await session.acting.layTiles();
  assert.deepEqual(sent, ["B5 O5 B7 + R1 R2 R3"]);
  const board = gameWithTable().discardBoard!;
  const laid = { indicator: board.indicator, okey: board.okey, table: [...board.table, { tiles: tiles("R1 R2 R3") }] };
  await push({ case: "game", value: gameWithTable({ revision: 7, rack: tiles("B6 K9"), discardBoard: laid }) });
  assert.equal(session.state.value.history.past.length, 0);
  assert.deepEqual(session.arranging.arrangement.melds.map(({ pieces }) => pieces.map(({ origin }) => origin).join()), [
    "table,table,table",
    "table,table,table",
  ]);
  session.stop();
});

test("in 101 Okey, what others lay comes to the table while the player arranges the rack", async () => {
  const { session, push } = world();
  const waiting = { turn: { seat: 2, step: TurnStep.DISCARDING, revision: 5 } };
  await push({ case: "snapshot", value: gameWithTable(waiting) });
  session.arranging.move(rackIds(session, 1), { to: "rack", index: 14 });
  const laid = { okey: tile("O5"), table: [{ tiles: tiles("B5 O5 B7 B8") }] };
  const event = { case: "tilesLaid", value: { seat: 2, tiles: tiles("B8"), table: laid.table } } as const;
  await push({ case: "change", value: { revision: 6, events: [{ event }] } });
  assert.deepEqual(session.state.value.lastPlay?.tiles, tiles("B8"));
  await push({ case: "game", value: gameWithTable({ ...waiting, revision: 6, discardBoard: laid }) });
  assert.equal(table(session), "[B5 O5 B7 B8]");
  assert.equal(isStand(session.arranging.arrangement) && session.arranging.arrangement.slots[14]?.tile, tile("R1"));
  session.stop();
});

test("in 101 Okey, a refused step is explained at its meld, and what the opening lacks beside the rack", async () => {
  const violations = [
    { reason: ErrorReason.MELD_NOT_GROUP_NOR_RUN, subject: "table[1]", tiles: tiles("R1 B6"), metadata: {} },
    { reason: ErrorReason.OPENING_BELOW_THRESHOLD, subject: "table", tiles: [], metadata: { total: 0, threshold: 101 } },
  ];
  const { session, push } = world({}, { validateDiscardTurn: () => ({ violations }) });
  await push({ case: "snapshot", value: gameWithTable() });
  const [first] = rackIds(session, 1);
  session.arranging.move([first!, session.arranging.arrangement.rack[3]!.id], { to: "new" });
  await until(() => session.state.value.judgment !== undefined);
  const { marks } = session.state.value.judgment!;
  assert.equal(marks.melds.get(session.arranging.arrangement.melds[1]!.id)?.isLegal, false);
  assert.equal(violationSummary(marks, true), "The melds of your opening have 0 points. You need 101.");
  session.stop();
});

test("in 101 Okey, a hint says what an opening lacks, and which tiles to lay", async () => {
  let answer: object = { opening: { pointsMissing: 12, pairsMissing: 2 } };
  const { session, push } = world({}, {}, { suggestTurn: () => answer });
  await push({ case: "snapshot", value: gameWithTable() });
  const hint = async (tier: HintTier) => {
    await session.hints.hint(tier);
    return session.state.value.notice;
  };
  assert.equal(await hint(HintTier.PLAY_EXISTS), "To open you lack 12 points, or 2 pairs.");
  const lay = [{ tiles: tiles("B5 B6 B7") }, { tiles: tiles("R1 R2 O5") }];
  answer = { opening: { pointsMissing: 0 }, turn: { action: { case: "lay", value: { table: lay } } } };
  assert.equal(await hint(HintTier.TURN), "You can open with melds. Suggestion: Lay blue 6, red 1, red 2.");
  session.stop();
});

/** Returns a game of International Rummikub in which seat 1 has not opened, and B4 B5 B6 lie on the table. */
function concealedGame(changes: Parameters<typeof game>[0] = {}): Game {
  return game({
    ruleset: { game: { case: "discard", value: { melds: { meldsOnTable: true }, turn: { concealedWins: true } } } },
    rack: tiles("R1 R2 R3 B7 K9"),
    discardBoard: { table: [{ tiles: tiles("B4 B5 B6") }], openings: [{ seat: 2, amount: 55 }] },
    turn: { seat: 1, step: TurnStep.DISCARDING, revision: 5, tilesDrawn: tiles("K9") },
    ...changes,
  });
}

test("a Foot is all tiles on the table but the discard: it is judged as one, and sent with the whole table", async () => {
  const sent: unknown[] = [];
  const judged: boolean[] = [];
  const { session, push } = world(
    {
      playTurn: ({ action }) => {
        const { tile: last, table: laid = [] } = action.value as { tile: Tile; table?: { tiles: Tile[] }[] };
        sent.push([action.case, tileName(last), laid.map((part) => tilesText(part.tiles))]);
        return { game: { revision: 6 } };
      },
    },
    { validateDiscardTurn: ({ isFoot, discard }) => (judged.push(isFoot && discard === tile("K9")), {}) },
  );
  await push({ case: "snapshot", value: concealedGame() });
  const ids = rackIds(session, 5);
  session.arranging.move(ids.slice(0, 3), { to: "new" });
  await until(() => session.state.value.judgment !== undefined);
  session.arranging.move([ids[3]!], { to: "finish" });
  assert.equal(session.state.value.notice, "For a Foot, lay all your tiles but the one to discard.");
  session.arranging.move([ids[3]!], { to: "meld", meld: session.arranging.arrangement.melds[0]!.id, index: 3 });
  await until(() => session.state.value.judgment?.answer.isFoot === true);
  assert.deepEqual(judged, [false, true]);
  session.arranging.move([ids[4]!], { to: "finish" });
  await until(() => sent.length > 0);
  assert.deepEqual(sent, [["finish", "K9", ["B4 B5 B6 B7", "R1 R2 R3"]]]);
  session.stop();
});

test("tiles that are no Foot are judged as an opening", async () => {
  const violation = { reason: ErrorReason.FOOT_NEEDS_LAY_OFF, subject: "table" };
  const { session, push } = world(
    {},
    { validateDiscardTurn: ({ isFoot }) => (isFoot ? { violations: [violation] } : { opening: { seat: 1, amount: 50 } }) },
  );
  await push({ case: "snapshot", value: concealedGame() });
  session.arranging.move(rackIds(session, 4), { to: "new" });
  await until(() => session.state.value.judgment?.answer.opening?.amount === 50);
  assert.equal(session.state.value.judgment?.marks.isLegal, true);
  session.stop();
});

test("a refused hand is explained, and what is special in the new games is told", async () => {
  const reason = ErrorReason.HAND_NOT_MATCHED;
  const refused = { desc: RefusalSchema, value: { reason, violations: [{ reason, subject: "hand" }] } };
  const { session, push } = world({
    playTurn: () => {
      throw new ConnectError("no", Code.FailedPrecondition, undefined, [refused]);
    },
  });
  await push({ case: "snapshot", value: concealedGame() });
  session.arranging.move(rackIds(session, 1), { to: "finish" });
  await until(() => session.state.value.problem !== undefined);
  assert.equal(session.state.value.problem?.text, "These tiles are none of the hands that win.");
  const told = (event: NonNullable<MessageInitShape<typeof GameEventSchema>["event"]>) =>
    eventText(create(GameEventSchema, { event }), concealedGame());
  assert.equal(told({ case: "trumpTaken", value: { seat: 2, tile: tile("R8") } }), "Ben takes red 8, the trump.");
  assert.equal(told({ case: "threeTilesLeft", value: { seat: 2 } }), "Ben has three tiles left.");
  assert.equal(told({ case: "emptyPoolPassed", value: { seat: 2 } }), "Ben passes.");
  const hand = { seat: 2, tile: tile("R8"), name: "HIGH_RUNS" };
  assert.equal(told({ case: "handFinished", value: hand }), "Ben finishes with a hand: High runs.");
  const foot = { seat: 2, tile: tile("R8"), isFoot: true };
  assert.equal(told({ case: "rackFinished", value: foot }), "Ben finishes with a Foot and discards red 8.");
  session.stop();
});

test("the result says why points are doubled, and a named hand what it needs", () => {
  const finish = create(RackFinishedSchema, { seat: 1, tile: tile("J"), isAtOnce: true });
  assert.equal(
    rackFinishText("Ann", finish, tile("J")),
    "Ann finishes and discards joker. The discard is a joker: the points are doubled.",
  );
  assert.match(rackFinishText("Ann", { ...finish, tile: tile("R1") }, tile("O5")), /opened and finished in one turn/);
  const hand = { runsMin: 3, runsMax: 3, groupsMax: 0, lowest: 10, oneHigh: true, runColorsDiffer: true, scores: [300, 250, 200] };
  assert.deepEqual(handConditions(create(NamedHandSchema, hand)), [
    "runs: 3",
    "groups: 0",
    "each run of another color",
    "no tile below 10",
    "1 counts high",
    "points: 300, with a joker 250, with two 200",
  ]);
  const low = { runsMin: 2, colorsMin: 2, colorsMax: 2, highest: 9, allEven: true };
  assert.deepEqual(handConditions(create(NamedHandSchema, low)).slice(0, 4), [
    "runs: 2 to 4",
    "colors: 2",
    "no tile above 9",
    "even numbers only",
  ]);
  assert.equal(handName("SEVEN_GROUPS"), "seven groups");
});

test("the player takes the reserved seat of the rematch, which the first one creates", async () => {
  const sent: object[] = [];
  const { session, push } = world({}, {}, {}, {
    createRematch: ({ gameId }) => (sent.push(["create", gameId]), { game: { rematchGameId: "r" } }),
    joinGame: ({ game, name }) => (sent.push(["join", game.value, name]), { seat: 1, seatToken: "fresh" }),
  });
  const taken: object[] = [];
  session.acting.onRematch = ({ seat, seatToken }, name) => taken.push({ seat, seatToken, name });
  await push({ case: "snapshot", value: game({ state: GameState.FINISHED }) });
  await session.acting.rematch();
  await push({ case: "game", value: game({ state: GameState.FINISHED, rematchGameId: "r" }) });
  await session.acting.rematch();
  assert.deepEqual(sent, [["create", "g"], ["join", "r", "Ann"], ["join", "r", "Ann"]]);
  assert.deepEqual(taken[0], { seat: 1, seatToken: "fresh", name: "Ann" });
  session.stop();
});

test("a player who declines the rematch gives up the seat there", async () => {
  const left: string[] = [];
  const { session, push } = world({}, {}, {}, { leaveGame: ({ gameId }) => (left.push(gameId), {}) });
  await push({ case: "snapshot", value: game({ state: GameState.FINISHED, rematchGameId: "r" }) });
  await session.acting.declineRematch();
  assert.deepEqual([left, session.state.value.hasDeclined], [["r"], true]);
  session.stop();
});

test("a player whom the host removes is told so, and not that the seat is elsewhere", async () => {
  const reason = ErrorReason.TOKEN_VOID;
  const kicked = { event: { case: "playerKicked", value: { seat: 1 } } } as const;
  const { session } = world({}, {}, {}, {
    async *watchGame() {
      yield { update: { case: "snapshot", value: game({ state: GameState.LOBBY }) } };
      yield { update: { case: "change", value: { revision: 6, events: [kicked] } } };
      throw new ConnectError("no", Code.Unauthenticated, undefined, [{ desc: RefusalSchema, value: { reason } }]);
    },
  });
  await until(() => session.state.value.connection === "over");
  assert.equal(session.state.value.failure, "The host has removed you from this game.");
});

test("the events of a lobby are told: a reserved seat is given up, and the game is about to start", () => {
  const lobby = game({ state: GameState.LOBBY, reservedSeats: [{ seat: 3, name: "Cem" }] });
  const told = (event: NonNullable<MessageInitShape<typeof GameEventSchema>["event"]>) =>
    eventText(create(GameEventSchema, { event }), lobby);
  assert.equal(told({ case: "playerLeft", value: { seat: 3 } }), "Cem leaves.");
  assert.equal(told({ case: "playerJoined", value: { seat: 4, name: "Dan" } }), "Dan takes a seat.");
  assert.equal(
    told({ case: "playerJoined", value: { seat: 4, name: "Dan", startTime: { seconds: 5n } } }),
    "Dan takes a seat. The game starts in a few seconds.",
  );
  assert.equal(told({ case: "abortRequested", value: { seat: 2 } }), "Ben wants to abort the game.");
});
