import assert from "node:assert/strict";
import { test } from "node:test";
import { tile, tileName, tiles } from "rummikub-client";
import type { Direction } from "../../src/input/keyboard.js";
import { placeBeside } from "../../src/input/stand-keys.js";
import { piecesOfMelds, type Target } from "../../src/model/arrangement.js";
import { arrangeStand, COLUMNS, moveOnStand, slotOf, sortStand, type Stand, WIDE_COLUMNS } from "../../src/model/stand.js";

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
  assert.equal(moveOnStand(stand, [stand.rack[0]!.id], { to: "discard" }), stand);
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
  const stand = arrangeStand(tiles("R1 R2"));
  const beside = (from: Target, direction: Direction, isMine = true) =>
    placeBeside(stand, from, direction, { mayDiscard: isMine, mayFinish: isMine, mayLay: false });
  assert.deepEqual(beside(slot(0), "right", false), slot(1));
  assert.deepEqual(beside(slot(0), "left", false), slot(0));
  assert.deepEqual(beside(slot(2), "down"), slot(COLUMNS + 2));
  assert.deepEqual(beside(slot(COLUMNS + 2), "up"), slot(2));
  assert.deepEqual(beside(slot(2), "up", false), slot(2));
  assert.deepEqual(beside(slot(2), "up"), { to: "discard" });
  assert.deepEqual(beside({ to: "discard" }, "up"), { to: "finish" });
  assert.deepEqual(beside({ to: "finish" }, "down"), { to: "discard" });
  assert.deepEqual(beside({ to: "discard" }, "down"), slot(COLUMNS - 1));
});

/** Returns the stand of a rack with the melds of a table, whose okey is O5. */
const atTable = (rack: string, ...melds: string[]) =>
  arrangeStand(tiles(rack), undefined, melds.map((meld) => ({ tiles: tiles(meld) })), WIDE_COLUMNS);
const table = (stand: Stand) => stand.melds.map(({ pieces }) => pieces.map(({ tile }) => tileName(tile)).join(" "));
const rack = (stand: Stand) => stand.rack.map(({ tile }) => tileName(tile)).join(" ");
/** Returns the ids of the first tiles of these names, of the rack before those of the table. */
const idsOf = (stand: Stand, names: string) =>
  tiles(names).map((tile) => [...stand.rack, ...piecesOfMelds(stand)].find((piece) => piece.tile === tile)!.id);
const meldTarget = (stand: Stand, meld: number, index: number): Target => ({ to: "meld", meld: stand.melds[meld]!.id, index });

test("tiles are laid as a new meld, beside those of a meld, and taken back into a slot", () => {
  const stand = atTable("R1 R2 R3 B8 K9", "B5 B6 B7");
  const opened = moveOnStand(stand, idsOf(stand, "R1 R2 R3"), { to: "new" });
  assert.deepEqual([table(opened), rack(opened)], [["B5 B6 B7", "R1 R2 R3"], "B8 K9"]);
  const grown = moveOnStand(opened, idsOf(opened, "B8"), meldTarget(opened, 0, 3));
  assert.deepEqual([table(grown), rack(grown)], [["B5 B6 B7 B8", "R1 R2 R3"], "K9"]);
  const sorted = moveOnStand(grown, idsOf(grown, "R1"), meldTarget(grown, 1, 3));
  assert.deepEqual(table(sorted), ["B5 B6 B7 B8", "R2 R3 R1"]);
  const back = moveOnStand(grown, idsOf(grown, "R1 R2 R3"), { to: "rack", index: 20 });
  assert.deepEqual([table(back), back.slots[20]?.tile], [["B5 B6 B7 B8"], tile("R1")]);
});

test("tiles of the table stay there, and the first meld of the table is sent first", () => {
  const stand = atTable("R1", "B5 B6 B7", "K1 K2 K3");
  assert.equal(moveOnStand(stand, idsOf(stand, "B5"), { to: "rack", index: 3 }), stand);
  assert.equal(moveOnStand(stand, idsOf(stand, "R1 B5"), { to: "new" }), stand);
});

test("a tile takes the place of a wild one, which goes to its slot, and may be laid elsewhere", () => {
  const stand = atTable("R1 R2 B6 K9", "B5 O5 B7");
  const onWild = (from: Stand, name: string) =>
    moveOnStand(from, idsOf(from, name), { to: "wild", piece: from.melds[0]!.pieces[1]!.id });
  const taken = onWild(stand, "B6");
  assert.deepEqual([table(taken), rack(taken)], [["B5 B6 B7"], "R1 R2 O5 K9"]);
  assert.equal(slotOf(taken, idsOf(taken, "O5")[0]), slotOf(stand, idsOf(stand, "B6")[0]));
  const laid = moveOnStand(taken, idsOf(taken, "R1 R2 O5"), { to: "new" });
  assert.deepEqual([table(laid), rack(laid)], [["B5 B6 B7", "R1 R2 O5"], "K9"]);
  const undone = moveOnStand(laid, idsOf(laid, "B6"), { to: "rack", index: 9 });
  assert.deepEqual([table(undone), rack(undone)], [["B5 O5 B7", "R1 R2"], "B6 K9"]);
  assert.equal(moveOnStand(stand, idsOf(stand, "R1 R2"), { to: "wild", piece: stand.melds[0]!.pieces[1]!.id }), stand);
});

test("what was laid keeps its ids on the table, and the rest of the rack its slots", () => {
  const stand = atTable("R1 R2 R3 K9");
  const laid = moveOnStand(stand, idsOf(stand, "R1 R2 R3"), { to: "new" });
  const after = arrangeStand(tiles("K9"), laid, [{ tiles: tiles("R1 R2 R3") }], WIDE_COLUMNS);
  assert.deepEqual(
    after.melds[0]!.pieces.map(({ id, origin }) => [id, origin]),
    laid.melds[0]!.pieces.map(({ id }) => [id, "table"]),
  );
  assert.equal(slotOf(after, after.rack[0]!.id), slotOf(stand, after.rack[0]!.id));
});

test("above the discards, arrows lead to the places of the table, and onto an okey there", () => {
  const stand = atTable("R1", "B5 O5 B7");
  const may = { mayDiscard: true, mayFinish: false, mayLay: true, okey: tile("O5") };
  const [meld] = stand.melds;
  assert.deepEqual(placeBeside(stand, { to: "discard" }, "up", may), { to: "new" });
  assert.deepEqual(placeBeside(stand, { to: "new" }, "down", may), { to: "discard" });
  assert.deepEqual(placeBeside(stand, { to: "new" }, "left", may), { to: "meld", meld: meld!.id, index: 3 });
  const onWild = placeBeside(stand, { to: "meld", meld: meld!.id, index: 1 }, "right", may);
  assert.deepEqual(onWild, { to: "wild", piece: meld!.pieces[1]!.id });
});

test("where a player may win concealed, the place to finish lies between the discards and the table", () => {
  const stand = atTable("R1", "B5 J B7");
  const may = { mayDiscard: true, mayFinish: true, mayLay: true, okey: tile("J") };
  assert.deepEqual(placeBeside(stand, { to: "discard" }, "up", may), { to: "finish" });
  assert.deepEqual(placeBeside(stand, { to: "finish" }, "up", may), { to: "new" });
  assert.deepEqual(placeBeside(stand, { to: "new" }, "down", may), { to: "finish" });
  const [meld] = stand.melds;
  const onJoker = placeBeside(stand, { to: "meld", meld: meld!.id, index: 1 }, "right", may);
  assert.deepEqual(onJoker, { to: "wild", piece: meld!.pieces[1]!.id });
});
