import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { MeldKind, MeldSchema, meldsText, tiles, tilesText } from "rummikub-client";
import {
  arrange,
  arrangeAs,
  type Arrangement,
  declare,
  inOrder,
  move,
  pull,
  reorder,
  sortRack,
  split,
  tableOf,
} from "../../src/model/arrangement.js";
import { isSameTable, placed } from "../../src/model/layout.js";

/** Returns an arrangement of melds such as "R1 R2 R3 | K4 B4 O4" and a rack. */
function at(table: string, rack: string): Arrangement {
  const melds = table.split("|").filter((text) => text.trim() !== "");
  return arrange({
    table: melds.map((text) => create(MeldSchema, { tiles: tiles(text), kind: MeldKind.RUN })),
    rack: tiles(rack),
  });
}

const meldOf = ({ pieces }: Arrangement["melds"][number]) =>
  create(MeldSchema, { tiles: pieces.map(({ tile }) => tile), kind: MeldKind.RUN });

const table = (arrangement: Arrangement) => meldsText(tableOf(arrangement));
const rack = (arrangement: Arrangement) => tilesText(arrangement.rack.map(({ tile }) => tile));
const rackIds = (arrangement: Arrangement, ...indexes: number[]) => indexes.map((i) => arrangement.rack[i]!.id);
const meldIds = (arrangement: Arrangement, meld: number, ...indexes: number[]) =>
  indexes.map((i) => arrangement.melds[meld]!.pieces[i]!.id);

test("tiles of the rack make a new meld, in the order in which they were chosen", () => {
  const start = at("", "R7 R5 R6 K1");
  const next = move(start, rackIds(start, 1, 2, 0), { to: "new" });
  assert.equal(table(next), "[R5 R6 R7]");
  assert.equal(rack(next), "K1");
  assert.equal(placed(next).length, 3);
  assert.equal(table(start), ".");
});

test("a tile goes between the tiles of a meld, also within one meld", () => {
  const start = at("R5 R7 R6", "R8");
  const added = move(start, rackIds(start, 0), { to: "meld", meld: start.melds[0]!.id, index: 3 });
  assert.equal(table(added), "[R5 R7 R6 R8]");
  const meld = added.melds[0]!.id;
  const moved = move(added, meldIds(added, 0, 1), { to: "meld", meld, index: 3 });
  assert.equal(table(moved), "[R5 R6 R7 R8]");
});

test("a meld that loses all tiles is gone, and a changed meld does not state its kind", () => {
  const start = at("R5 R6 R7 | R8 R9 R10", "");
  assert.equal(start.melds[0]!.kind, MeldKind.RUN);
  const [first, second] = start.melds;
  const next = move(start, meldIds(start, 0, 0, 1, 2), { to: "meld", meld: second!.id, index: 0 });
  assert.equal(table(next), "[R5 R6 R7 R8 R9 R10]");
  assert.equal(next.melds[0]!.kind, MeldKind.UNSPECIFIED);
  assert.equal(first!.kind, MeldKind.RUN);
});

test("a tile of the table does not go to the rack, a tile of the rack does", () => {
  const start = at("R5 R6 R7", "R8 K1");
  assert.equal(move(start, meldIds(start, 0, 0), { to: "rack", index: 0 }), start);
  const laid = move(start, rackIds(start, 0), { to: "new" });
  const back = move(laid, meldIds(laid, 1, 0), { to: "rack", index: 0 });
  assert.equal(rack(back), "R8 K1");
  assert.ok(isSameTable(back, start));
});

test("a move that changes nothing returns the same arrangement", () => {
  const start = at("R5 R6 R7", "R8");
  assert.equal(move(start, meldIds(start, 0, 1), { to: "meld", meld: start.melds[0]!.id, index: 2 }), start);
  assert.equal(move(start, [], { to: "new" }), start);
});

test("a meld splits before a tile, and its parts join again", () => {
  const start = at("R5 R6 R7 R8 R9 R10", "");
  const cut = split(start, meldIds(start, 0, 3)[0]!);
  assert.equal(table(cut), "[R5 R6 R7] | [R8 R9 R10]");
  assert.equal(split(start, meldIds(start, 0, 0)[0]!), start);
  const low = cut.melds[0]!.id;
  assert.equal(table(move(cut, meldIds(cut, 1, 0, 1, 2), { to: "meld", meld: low, index: 3 })), "[R5 R6 R7 R8 R9 R10]");
});

test("a suggested order is laid with the same pieces", () => {
  const start = at("R7 J R6", "");
  const next = reorder(start, start.melds[0]!.id, tiles("R6 R7 J"));
  assert.equal(table(next), "[R6 R7 J]");
  assert.deepEqual(new Set(next.melds[0]!.pieces), new Set(start.melds[0]!.pieces));
});

test("the rack sorts by color for runs and by number for groups, jokers last", () => {
  const start = at("", "J K3 R9 B3 R2 G1");
  assert.equal(rack(sortRack(start, "color")), "R2 R9 B3 K3 G1 J");
  assert.equal(rack(sortRack(start, "value")), "G1 R2 B3 K3 R9 J");
});

test("jokers of each kind come together after the numbered tiles", () => {
  const start = at("", "C J M R9 D J C");
  for (const order of ["color", "value"] as const) assert.equal(rack(sortRack(start, order)), "R9 J J D M C C");
});

test("a new view of the game keeps the order of the rack and the ids of tiles and melds", () => {
  const start = sortRack(at("R5 R6 R7", "K9 B3 R2"), "value");
  const next = arrange(
    {
      table: [{ tiles: tiles("B1 B2 B3") }, { tiles: tiles("R5 R6 R7") }].map((meld) => create(MeldSchema, meld)),
      rack: tiles("R2 B3 K9 O1"),
    },
    start,
  );
  assert.equal(rack(next), "R2 B3 K9 O1");
  assert.deepEqual(next.rack.slice(0, 3), start.rack);
  assert.equal(next.melds[1]!.id, start.melds[0]!.id);
  assert.equal(new Set([...next.rack, ...next.melds.flatMap(({ pieces }) => pieces)].map(({ id }) => id)).size, 10);
});

test("a draft is restored from table and rack; tiles that it lacks lie as a meld of their own", () => {
  const start = at("R5 R6 R7 | K1 K2 K3", "R8 R8");
  const draft = arrangeAs(start, [{ tiles: tiles("R6 R7 R8"), kind: MeldKind.UNSPECIFIED, declaredFaces: [] }]);
  assert.equal(table(draft), "[R6 R7 R8] | [R5 K1 K2 K3]");
  assert.equal(rack(draft), "R8");
  const same = arrangeAs(start, tableOf(start));
  assert.ok(isSameTable(same, start));
  assert.equal(same.melds[0], start.melds[0]);
});

test("a pull from the River adds its oldest tile; the next pull replaces it", () => {
  const start = at("", "R5 R6");
  const river = tiles("R7 K1 K2");
  const first = pull(start, river, 0);
  assert.equal(first.riverIndex, 0);
  assert.equal(rack(first), "R5 R6 R7");
  const laid = move(
    first,
    first.rack.map(({ id }) => id),
    { to: "new" },
  );
  const second = pull(laid, river, 1);
  assert.equal(table(second), "[R5 R6]");
  assert.equal(rack(second), "K1");
  const back = pull(second, river);
  assert.equal("riverIndex" in back, false);
  assert.equal(rack(back), "");
});

test("a declaration states kind and faces, and is sent", () => {
  const start = at("J J R5", "");
  const next = declare(start, start.melds[0]!.id, MeldKind.GROUP, tiles("B5 K5"));
  assert.deepEqual(tableOf(next), [{ tiles: tiles("J J R5"), kind: MeldKind.GROUP, declaredFaces: tiles("B5 K5") }]);
});

test("the tiles of a table that others changed keep their ids, and so does a meld that lost or won tiles", () => {
  const before = at("R5 R6 R7 R8 | K4 B4 O4", "R9 K1");
  const after = arrange({ table: at("R5 R6 R7 | R8 K4 B4 O4 R9", "").melds.map(meldOf), rack: tiles("K1 B2") }, before);
  const idOf = (arrangement: Arrangement, name: string) =>
    [...arrangement.melds.flatMap(({ pieces }) => pieces), ...arrangement.rack].find((piece) => piece.tile === tiles(name)[0])?.id;
  for (const name of ["R5", "R8", "K4", "R9", "K1"]) assert.equal(idOf(after, name), idOf(before, name), name);
  assert.deepEqual(after.melds.map(({ id }) => id), before.melds.map(({ id }) => id));
  assert.ok(idOf(after, "B2")! >= before.nextId);
});

test("a rack takes the order of another one; tiles that this does not have stay behind their neighbors", () => {
  const start = at("", "R1 R2 R3 R4");
  const sorted = inOrder(start.rack, [start.rack[3]!, start.rack[0]!]);
  assert.equal(tilesText(sorted.map(({ tile }) => tile)), "R4 R1 R2 R3");
});
