import assert from "node:assert/strict";
import { test } from "node:test";
import { tileName, tiles } from "rummikub-client";
import { placeBeside } from "../../src/input/stand-keys.js";
import { arrangeStand, COLUMNS, moveOnStand, slotOf, sortStand, type Stand } from "../../src/model/stand.js";

/** Returns the rows of a stand, with a dot for each gap before the last tile. */
function rows({ slots }: Stand): string[] {
  const row = (from: number) =>
    slots
      .slice(from, from + COLUMNS)
      .map((piece) => (piece === undefined ? "." : tileName(piece.tile)))
      .join(" ")
      .replace(/[ .]*$/, "");
  return [row(0), row(COLUMNS)];
}

/** Returns the stand with the first tiles of these names moved to a slot. */
function put(stand: Stand, names: string, index: number): Stand {
  const ids = tiles(names).map((tile) => stand.rack.find((piece) => piece.tile === tile)!.id);
  return moveOnStand(stand, ids, { to: "rack", index });
}

test("a hand is dealt to both rows", () => {
  assert.deepEqual(rows(arrangeStand(tiles("R1 R2 R3 B4 F"))), ["R1 R2 R3", "B4 F"]);
});

test("tiles go to the slots where they are put, with gaps between them", () => {
  const stand = put(arrangeStand(tiles("R1 R2 R3 B4")), "R2", 5);
  assert.deepEqual(rows(stand), ["R1 . . . . R2", "R3 B4"]);
  assert.deepEqual(rows(put(stand, "R3 R1", COLUMNS + 3)), [". . . . . R2", ". B4 . R3 R1"]);
});

test("the tiles of a row make way toward its nearest gap, to the right if it has one there", () => {
  const stand = arrangeStand(tiles("R1 R2 R3 B4 B5 B6"));
  assert.deepEqual(rows(put(stand, "B6", 1)), ["R1 B6 R2 R3", "B4 B5"]);
  assert.deepEqual(rows(put(stand, "R3", 0)), ["R3 R1 R2", "B4 B5 B6"]);
  const atEnd = put(stand, "R3", COLUMNS - 1);
  assert.deepEqual(rows(put(atEnd, "B4", COLUMNS - 1))[0]!.split(" ").slice(-2), ["R3", "B4"]);
});

test("a full row pushes a tile into the other one", () => {
  const names = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12";
  const stand = put(arrangeStand(tiles(`${names} K1 K2`)), "R8 R9 R10 R11 R12", 7);
  assert.deepEqual(rows(stand), [names, ". . . . . K1 K2"]);
  assert.deepEqual(rows(put(stand, "K2", 11)), [names.replace("R12", "K2"), "R12 . . . . K1"]);
});

test("tiles that do not fit behind the slot stand at the end", () => {
  const stand = put(arrangeStand(tiles("R1 R2")), "R1 R2", 2 * COLUMNS - 1);
  assert.deepEqual([slotOf(stand, stand.rack[0]!.id), slotOf(stand, stand.rack[1]!.id)], [22, 23]);
});

test("a move that changes nothing, or leads elsewhere, returns the same stand", () => {
  const stand = arrangeStand(tiles("R1 R2"));
  assert.equal(put(stand, "R1", 0), stand);
  assert.equal(moveOnStand(stand, [stand.rack[0]!.id], { to: "new" }), stand);
  assert.equal(moveOnStand(stand, [99], { to: "rack", index: 3 }), stand);
});

test("tiles keep their slots from turn to turn; a tile that is taken stands behind the last one", () => {
  const before = put(arrangeStand(tiles("R1 R1 B4 B5")), "R1", 6);
  const taken = arrangeStand(tiles("R1 R1 B4 B5 K9"), before);
  assert.deepEqual(rows(taken), [". R1 . . . . R1", "B4 B5 K9"]);
  assert.deepEqual(rows(arrangeStand(tiles("R1 B4 B5 K9"), taken))[1], "B4 B5 K9");
  const atEnd = put(arrangeStand(tiles("R1 R2")), "R2", 2 * COLUMNS - 1);
  assert.equal(rows(arrangeStand(tiles("R1 R2 K9"), atEnd))[1], ". . . . . . . . . . K9 R2");
});

test("a new deal stands in order", () => {
  const before = put(arrangeStand(tiles("R1 R2 R3 R4")), "R1", 6);
  assert.deepEqual(rows(arrangeStand(tiles("B1 R1 K2 K3"), before)), ["B1 R1", "K2 K3"]);
});

test("sorting closes the gaps; the false joker comes last", () => {
  const stand = put(arrangeStand(tiles("F K1 R2 B1")), "R2", 9);
  assert.deepEqual(rows(sortStand(stand, "color")), ["R2 B1", "K1 F"]);
  assert.deepEqual(rows(sortStand(stand, "value")), ["B1 K1", "R2 F"]);
});

test("arrows lead from slot to slot, and in the own turn up to the discard and the indicator", () => {
  const slot = (index: number) => ({ to: "rack", index }) as const;
  assert.deepEqual(placeBeside(slot(0), "right", false), slot(1));
  assert.deepEqual(placeBeside(slot(0), "left", false), slot(0));
  assert.deepEqual(placeBeside(slot(2), "down", true), slot(COLUMNS + 2));
  assert.deepEqual(placeBeside(slot(COLUMNS + 2), "up", true), slot(2));
  assert.deepEqual(placeBeside(slot(2), "up", false), slot(2));
  assert.deepEqual(placeBeside(slot(2), "up", true), { to: "discard" });
  assert.deepEqual(placeBeside({ to: "discard" }, "up", true), { to: "finish" });
  assert.deepEqual(placeBeside({ to: "finish" }, "down", true), { to: "discard" });
  assert.deepEqual(placeBeside({ to: "discard" }, "down", true), slot(COLUMNS - 1));
});
