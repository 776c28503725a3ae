/** The package rummikub-board without a browser: LocalTable, texts of tiles, and the judgment of an answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Intended, judgmentOf, LocalTable, RummikubBoard, tableTexts, tileText, tileTexts } from "../../board/src/index.js";
import { until } from "./support.js";

/** Returns the table of a controller as a text such as "R7 R8 R9 | K3 B3 O3". */
const lying = ({ intended }: LocalTable) => intended.table.map((meld) => meld.join(" ")).join(" | ");
const rack = ({ intended }: LocalTable) => intended.rack.join(" ");

/** Returns the ids of tiles of the rack, and then of the table. */
function ids({ state: { arrangement } }: LocalTable, ...tiles: string[]): number[] {
  const left = [...arrangement.rack, ...arrangement.melds.flatMap(({ pieces }) => pieces)];
  return tiles.map((tile) => left.splice(left.findIndex((piece) => piece.tile === tile), 1)[0]!.id);
}

test("the package can be imported where there is no DOM", () => {
  assert.equal(typeof RummikubBoard, "function");
  assert.equal(globalThis.HTMLElement, undefined);
});

test("tiles are texts or objects, and always come back in one form", () => {
  assert.deepEqual(tileTexts(["7R", { color: "orange", value: 12 }, { joker: "joker" }, "TILE_RED_7", "Y3"]), ["R7", "O12", "J", "R7", "O3"]);
  assert.deepEqual(tableTexts("R7 R8 | J"), [["R7", "R8"], ["J"]]);
  for (const tile of ["R14", "", { color: "red", value: 14 } as const]) assert.throws(() => tileText(tile), SyntaxError);
  assert.throws(() => new LocalTable({ rack: "R7 X1" }), SyntaxError);
});

test("a position goes in, and the intended table comes out", () => {
  const changes: Intended[] = [];
  const table = new LocalTable({ table: "R7 R8 R9 | K3 B3 O3", rack: "R10 J K5", onChange: (intended) => changes.push(intended) });
  const [run, group] = table.state.arrangement.melds.map(({ id }) => id);
  assert.equal(table.move(ids(table, "R10"), { to: "meld", meld: run!, index: 3 }), true);
  assert.equal(table.move(ids(table, "J"), { to: "meld", meld: group!, index: 0 }), true);
  assert.equal(lying(table), "R7 R8 R9 R10 | J K3 B3 O3");
  assert.deepEqual(changes.at(-1), { table: [["R7", "R8", "R9", "R10"], ["J", "K3", "B3", "O3"]], rack: ["K5"], played: ["R10", "J"] });
  assert.equal(table.move(ids(table, "K3"), { to: "rack", index: 0 }), false);
  table.split(ids(table, "R9")[0]!);
  assert.equal(lying(table), "R7 R8 | J K3 B3 O3 | R9 R10");
});

test("steps are undone and done again, and the order of the rack is none", () => {
  const table = new LocalTable({ table: "R7 R8 R9", rack: "K5 J R10" });
  table.move(ids(table, "R10"), { to: "new" });
  table.sort("color");
  assert.equal(rack(table), "K5 J");
  table.move(ids(table, "J"), { to: "rack", index: 0 });
  table.undo();
  assert.equal(lying(table), "R7 R8 R9");
  assert.equal(table.intended.rack[0], "J");
  assert.deepEqual([table.state.mayUndo, table.state.mayRedo], [false, true]);
  table.redo();
  assert.equal(lying(table), "R7 R8 R9 | R10");
  table.reset();
  assert.equal(lying(table), "R7 R8 R9");
  table.undo();
  assert.equal(lying(table), "R7 R8 R9 | R10");
});

test("another position moves the tiles that it shares with the one before, and marks the others", () => {
  const table = new LocalTable({ table: "R7 R8 R9", rack: "R10 K5 B1" });
  table.move(ids(table, "B1"), { to: "rack", index: 0 });
  table.move(ids(table, "R10"), { to: "meld", meld: table.state.arrangement.melds[0]!.id, index: 3 });
  const before = new Map(["R7", "R10", "B1"].map((tile) => [tile, ids(table, tile)[0]]));
  table.show({ table: "R7 R8 R9 R10 | O1 O2 O3", rack: "K5 B1 G4" });
  for (const [tile, id] of before) assert.equal(ids(table, tile)[0], id, tile);
  assert.equal(rack(table), "B1 K5 G4");
  assert.deepEqual(table.state.fresh, new Set(ids(table, "O1", "O2", "O3", "G4")));
  assert.equal(table.state.mayUndo, false);
});

test("the same position again keeps what the player has laid", () => {
  const table = new LocalTable({ table: "R7 R8 R9", rack: "R10 K5" });
  table.move(ids(table, "R10"), { to: "new" });
  table.show({ table: [["R7", "R8", "R9"]], rack: "K5 R10" });
  assert.equal(lying(table), "R7 R8 R9 | R10");
});

test("a draft is laid as one step", () => {
  const table = new LocalTable({ table: "R7 R8 R9", rack: "R6 K5" });
  table.lay("R6 R7 R8 R9");
  assert.deepEqual(table.intended.played, ["R6"]);
  table.undo();
  assert.equal(lying(table), "R7 R8 R9");
});

test("where nothing may be arranged, only the rack is", () => {
  const table = new LocalTable({ table: "R7 R8 R9", rack: "R10 K5", mayArrange: false });
  assert.equal(table.move(ids(table, "R10"), { to: "new" }), false);
  assert.equal(table.move(ids(table, "R7"), { to: "new" }), false);
  assert.equal(table.mayMove(ids(table, "R7")[0]!), false);
  assert.equal(table.move(ids(table, "R10"), { to: "rack", index: 2 }), true);
  assert.equal(rack(table), "K5 R10");
});

test("what is carried or laid is judged, and the newest judgment is shown", async () => {
  const asked: string[] = [];
  const onJudge = async ({ table }: Intended) => {
    asked.push(table.map((meld) => meld.join(" ")).join(" | "));
    return { isLegal: table.length === 1 };
  };
  const table = new LocalTable({ table: "R7 R8 R9", rack: "R10 K5", onJudge, judgeDelayMs: 0 });
  assert.equal(table.state.judgment, undefined);
  table.carry(ids(table, "R10"), { to: "new" });
  await until(() => table.state.judgment?.isLegal === false);
  table.carry(ids(table, "R10"), { to: "meld", meld: table.state.arrangement.melds[0]!.id, index: 3 });
  assert.equal(table.drop(), true);
  await until(() => table.state.judgment?.isLegal === true);
  assert.deepEqual(asked, ["R7 R8 R9 | R10", "R7 R8 R9 R10"]);
  table.undo();
  assert.equal(table.state.judgment, undefined);
});

test("violations of ValidateTurn mark their meld and the tiles that they name", () => {
  const table = [["R7", "R8", "R9"], ["K3", "B4"], ["R1", "R2", "B3"]];
  const violations = [
    { subject: "table_after[1]", text: "too short", tiles: ["TILE_BLACK_3", "TILE_BLUE_4"] },
    { subject: "table_after[2]", text: "colors", tiles: ["TILE_BLUE_3"] },
    { subject: "rack", text: "12 of 30 points" },
  ];
  assert.deepEqual(judgmentOf(table, violations), {
    isLegal: false,
    melds: [{ isLegal: true, faulty: [] }, { isLegal: false, text: "too short" }, { isLegal: false, text: "colors", faulty: [2] }],
    text: "12 of 30 points",
  });
  assert.equal(judgmentOf(table, []).isLegal, true);
});
