import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  boardText,
  DiscardBoardSchema,
  melds,
  MeldSchema,
  meldsOf,
  meldsText,
  TableSchema,
  tableText,
  Tile,
  tile,
  tileName,
  tiles,
  tilesText,
} from "rummikub-client";

test("every tile has a name and is found by it", () => {
  const all = Object.values(Tile).filter(
    (value): value is Tile => typeof value === "number" && value !== Tile.UNSPECIFIED,
  );
  assert.equal(all.length, 83);
  assert.equal(new Set(all.map(tileName)).size, 83);
  for (const each of all) assert.equal(tile(tileName(each)), each);
  assert.deepEqual(tiles("R7 B13 K1 O10 G5 P2 J F D M C"), [
    Tile.RED_7,
    Tile.BLUE_13,
    Tile.BLACK_1,
    Tile.ORANGE_10,
    Tile.GREEN_5,
    Tile.PURPLE_2,
    Tile.JOKER,
    Tile.FALSE_JOKER,
    Tile.DOUBLE_JOKER,
    Tile.MIRROR,
    Tile.COLOR_CHANGE,
  ]);
});

test("melds and tables are read as they are written", () => {
  assert.equal(meldsText(melds(" [R7 R8 R9]|[K1 B1 O1] ")), "[R7 R8 R9] | [K1 B1 O1]");
  assert.equal(meldsText(melds("[r7 r8 j]")), "[R7 R8 J]");
  for (const none of ["", "."]) assert.deepEqual(melds(none), []);
  assert.equal(meldsText([]), ".");
  assert.throws(() => melds("R7 R8 R9"), /is no meld/);
  assert.equal(tilesText([Tile.JOKER, 99 as Tile]), "J ?99");
});

test("a table of the cross layout is the text of its rows", () => {
  const at = (name: string, x: number, y: number) => ({ tile: tile(name), x, y });
  const row = [at("R4", 1, 0), at("R3", 0, 0)];
  const placed = (placements: ReturnType<typeof at>[]) => tableText(create(TableSchema, { placements }));
  assert.equal(placed(row), "0,0[R3 R4]");
  assert.equal(
    placed([...row, at("B4", 1, 1), at("J", 3, 0), at("R9", -2, -1)]),
    "-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]",
  );
  assert.equal(tableText(create(TableSchema, { melds: melds("[R7 R8 R9]") })), "[R7 R8 R9]");
  assert.equal(tableText(undefined), ".");
});

test("a board of discards is the text of its indicator, okey, newest discards and table", () => {
  const piles = [{ seat: 1, newest: Tile.FALSE_JOKER, tileCount: 2 }, { seat: 3 }];
  const board = create(DiscardBoardSchema, { indicator: Tile.ORANGE_4, okey: Tile.ORANGE_5, piles });
  assert.equal(boardText(board), "O4 / O5 / 1{F} 3{}");
  const table = melds("[R7 R8 R9] | [B1 B1]").map(({ tiles }) => ({ tiles }));
  const laid = create(DiscardBoardSchema, { indicator: Tile.ORANGE_4, okey: Tile.ORANGE_5, piles, table });
  assert.equal(boardText(laid), "O4 / O5 / 1{F} 3{} / [R7 R8 R9] | [B1 B1]");
  assert.equal(boardText(create(DiscardBoardSchema, { trump: Tile.RED_8, piles })), "R8 / 1{F} 3{}");
  assert.equal(boardText(undefined), ".");
});

test("an unknown tile is reported", () => {
  for (const name of ["R14", "X1", "7", ""]) assert.throws(() => tile(name), /unknown tile/);
});

test("a joker with one face declares it when its meld is sent back", () => {
  const faces = (...tiles: Tile[]) => [{ index: 2, faces: tiles }];
  const laid = (jokers: { index: number; faces: Tile[] }[]) =>
    create(MeldSchema, { tiles: tiles("R1 R2 J"), jokers });
  assert.deepEqual(meldsOf([laid(faces(Tile.RED_3))])[0]?.declaredFaces, [Tile.RED_3]);
  assert.deepEqual(meldsOf([laid(faces(Tile.RED_3, Tile.BLUE_3))])[0]?.declaredFaces, []);
});
