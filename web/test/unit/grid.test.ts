import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  ErrorReason,
  GameSchema,
  Manipulation,
  type Placement,
  PlacementSchema,
  TableLayout,
  tile,
  tileName,
  tiles,
  tilesText,
  ViolationSchema,
} from "rummikub-client";
import { type Arrangement, move } from "../../src/model/arrangement.js";
import {
  arrangeGrid,
  arrangeGridAs,
  boxesOf,
  boxOf,
  freeCell,
  freshCells,
  type Grid,
  isGrid,
  isMovable,
  moveOnGrid,
  neighborOf,
} from "../../src/model/grid.js";
import { isSameTable, layoutOf, layoutOfGame, placed, pieceOf, tableOf } from "../../src/model/layout.js";

/** Returns placements such as "R3@0,0 J@1,0". */
function cells(text: string): Placement[] {
  return text
    .split(" ")
    .filter((part) => part !== "")
    .map((part) => {
      const [, name = "", x, y] = /^(\w+)@(-?\d+),(-?\d+)$/.exec(part)!;
      return create(PlacementSchema, { tile: tile(name), x: Number(x), y: Number(y) });
    });
}

function at(table: string, rack: string, isFree = false): Grid {
  return arrangeGrid(cells(table), tiles(rack), isFree);
}

function table(grid: Arrangement): string {
  return tableOf(grid).placements!.map(({ tile, x, y }) => `${tileName(tile)}@${x},${y}`).join(" ");
}

function rack({ rack }: Arrangement): string {
  return tilesText(rack.map(({ tile }) => tile));
}

/** Returns the grid with tiles of the rack, named in the order of laying, moved to a cell. */
function lay(grid: Grid, names: string, x: number, y: number): Grid {
  const left = [...grid.rack];
  const ids = tiles(names).map((wanted) => left.splice(left.findIndex((piece) => piece.tile === wanted), 1)[0]!.id);
  return moveOnGrid(grid, ids, { to: "cell", x, y });
}

const idAt = (grid: Grid, x: number, y: number) => grid.cells.find((piece) => piece.x === x && piece.y === y)!.id;

test("tiles of one color go side by side, past tiles of the table; tiles of one value go below one another", () => {
  const start = at("R3@0,0 R4@1,0 R5@2,0", "R2 R6 B4 K4");
  assert.equal(table(lay(start, "R2 R6", -1, 0)), "R2@-1,0 R3@0,0 R4@1,0 R5@2,0 R6@3,0");
  const column = lay(start, "B4 K4", 1, 1);
  assert.equal(table(column), "R3@0,0 R4@1,0 R5@2,0 B4@1,1 K4@1,2");
  assert.equal(rack(column), "R2 R6");
  assert.deepEqual(placed(column).map((piece) => piece.tile), tiles("B4 K4"));
});

test("a tile of the table stays in its cell, and no tile is laid on it", () => {
  const start = at("R3@0,0 R4@1,0 R5@2,0", "R2 B3");
  assert.equal(isMovable(start, idAt(start, 0, 0)), false);
  assert.equal(moveOnGrid(start, [idAt(start, 0, 0)], { to: "cell", x: 5, y: 5 }), start);
  assert.equal(moveOnGrid(start, [idAt(start, 0, 0)], { to: "rack", index: 0 }), start);
  assert.equal(lay(start, "B3", 0, 0), start);
  assert.equal(lay(start, "B3", 128, 0), start);
  assert.equal(lay(start, "B3 R2", 127, 0), start);
  assert.equal(move(start, [start.rack[0]!.id], { to: "cell", x: 9, y: 9 }), start);
});

test("what the player has laid moves on, goes back, and makes room for another tile", () => {
  const laid = lay(at("", "R1 R2 R3"), "R1", 0, 0);
  const moved = moveOnGrid(laid, [idAt(laid, 0, 0)], { to: "cell", x: 4, y: 1 });
  assert.equal(table(moved), "R1@4,1");
  assert.equal(moveOnGrid(moved, [idAt(moved, 4, 1)], { to: "cell", x: 4, y: 1 }), moved);
  const other = lay(moved, "R2", 4, 1);
  assert.deepEqual([table(other), rack(other)], ["R2@4,1", "R3 R1"]);
  const back = moveOnGrid(other, [idAt(other, 4, 1)], { to: "rack", index: 0 });
  assert.deepEqual([table(back), rack(back)], ["", "R2 R3 R1"]);
});

test("a joker that a tile replaces goes to the hand, is laid again, and goes home when its cell is free", () => {
  const start = at("R3@0,0 J@1,0 R5@2,0", "R4 J");
  assert.equal(lay(start, "J", 1, 0), start);
  const replaced = lay(start, "R4", 1, 0);
  assert.deepEqual([table(replaced), rack(replaced)], ["R3@0,0 R4@1,0 R5@2,0", "J J"]);
  const hand = replaced.rack.find(({ origin }) => origin === "table")!.id;
  assert.equal(isMovable(replaced, hand), true);
  const again = moveOnGrid(replaced, [hand], { to: "cell", x: 3, y: 0 });
  assert.deepEqual([table(again), rack(again)], ["R3@0,0 R4@1,0 R5@2,0 J@3,0", "J"]);
  assert.deepEqual(placed(again).map(({ tile }) => tile), tiles("R4"));
  const inHand = moveOnGrid(again, [hand], { to: "rack", index: 0 });
  assert.equal(rack(inHand), "J J");
  for (const grid of [replaced, again]) {
    const back = moveOnGrid(grid, [idAt(grid, 1, 0)], { to: "rack", index: 9 });
    assert.deepEqual([table(back), rack(back)], ["R3@0,0 J@1,0 R5@2,0", "J R4"]);
    assert.ok(isSameTable(back, start));
  }
});

test("where the rules let tiles of the table move, they move, but not to the rack", () => {
  const start = at("R3@0,0 R4@1,0 R5@2,0", "B3", true);
  const moved = moveOnGrid(start, [idAt(start, 0, 0)], { to: "cell", x: 3, y: 3 });
  assert.equal(table(moved), "R4@1,0 R5@2,0 R3@3,3");
  assert.equal(moveOnGrid(moved, [idAt(moved, 3, 3)], { to: "rack", index: 0 }), moved);
  const pushed = lay(start, "B3", 1, 0);
  assert.deepEqual([table(pushed), rack(pushed)], ["R3@0,0 B3@1,0 R5@2,0", "R4"]);
});

test("a draft or a suggestion is laid from the rack, with a joker that was replaced", () => {
  const start = at("R3@0,0 J@1,0 R5@2,0", "K1 R4 J");
  const next = arrangeGridAs(start, cells("R3@0,0 R4@1,0 R5@2,0 J@3,0"));
  assert.deepEqual([table(next), rack(next)], ["R3@0,0 R4@1,0 R5@2,0 J@3,0", "K1 J"]);
  assert.equal(next.cells.find(({ x }) => x === 3)!.id, idAt(start, 1, 0));
  const draft = arrangeGridAs(start, cells("R3@0,0 R4@1,0 R5@2,0"));
  assert.equal(rack(draft), "K1 J J");
  assert.equal(table(arrangeGridAs(start, cells("R4@5,5"))), "R3@0,0 J@1,0 R5@2,0 R4@5,5");
});

test("a new view of the game keeps the ids of tiles and the order of the rack", () => {
  const start = at("R3@0,0 R4@1,0 R5@2,0", "K1 B2 R6");
  const next = arrangeGrid(cells("R3@0,0 R4@1,0 R5@2,0 R6@3,0"), tiles("B2 K1 O9"), false, lay(start, "R6", 3, 0));
  assert.equal(rack(next), "K1 B2 O9");
  assert.deepEqual(next.cells.slice(0, 3).map(({ id }) => id), start.cells.map(({ id }) => id));
  assert.equal(new Set([...next.cells, ...next.rack].map(({ id }) => id)).size, 7);
});

test("the layout of a game decides how its tiles are arranged", () => {
  const game = (manipulation: Manipulation) =>
    create(GameSchema, {
      ruleset: {
        game: { case: "melding", value: { melds: { tableLayout: TableLayout.GRID }, turn: { manipulation } } },
      },
      table: { placements: cells("R3@0,0") },
      rack: tiles("R4"),
    });
  const grid = layoutOfGame(game(Manipulation.OFF)).start(game(Manipulation.OFF), at("", ""));
  assert.ok(isGrid(grid) && !grid.isFree && layoutOf(grid) === layoutOfGame(game(Manipulation.OFF)));
  assert.equal(pieceOf(grid, idAt(grid, 0, 0))?.tile, tile("R3"));
  assert.equal(layoutOfGame(game(Manipulation.FREE)).isMovable(at("R3@0,0", "", true), 1), true);
  assert.equal(isGrid(layoutOfGame(create(GameSchema)).start(create(GameSchema), at("", ""))), false);
  const violation = create(ViolationSchema, { reason: ErrorReason.CELL_ISOLATED });
  assert.deepEqual(layoutOf(grid).marks(grid, [violation]), { melds: new Map(), table: [violation], isLegal: false });
});

test("violations name cells and lines; what a play laid is found by its cells", () => {
  const line = create(ViolationSchema, { metadata: { x: -1, y: 0, last_x: 1, last_y: 0 } });
  const cell = create(ViolationSchema, { metadata: { x: 5, y: 2 } });
  assert.deepEqual(boxesOf([line, cell, create(ViolationSchema)]), [
    { left: -1, top: 0, right: 1, bottom: 0 },
    { left: 5, top: 2, right: 5, bottom: 2 },
  ]);
  const fresh = freshCells(cells("R3@0,0 J@1,0"), cells("R3@0,0 R4@1,0 J@2,0"));
  assert.deepEqual(fresh.map(({ x }) => x), [1, 2]);
});

test("the box of a table is widened inside the grid; the cursor stays in it and finds a free cell", () => {
  assert.deepEqual(boxOf([], 2), { left: -2, top: -2, right: 2, bottom: 2 });
  assert.deepEqual(boxOf(cells("R3@-126,0 R4@3,5"), 2), { left: -127, top: -2, right: 5, bottom: 7 });
  assert.deepEqual(neighborOf({ x: 127, y: 0 }, [1, 0]), { x: 127, y: 0 });
  assert.deepEqual(freeCell(at("R3@0,0 R4@1,0", ""), { x: 0, y: 0 }), { x: 2, y: 0 });
});
