import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { MeldSchema, tile, tiles, tilesText } from "rummikub-client";
import { arrange } from "../../src/model/arrangement.js";
import { fittingPlaces, inMelds, splittingPiece } from "../../board/src/model.js";
import { compareTiles, faceOf } from "../../src/model/tiles.js";

const at = (...melds: string[]) =>
  arrange({ table: melds.map((text) => create(MeldSchema, { tiles: tiles(text) })), rack: [] });

test("a tile fits at the ends of runs and to groups that lack its color", () => {
  const table = at("R5 R6 R7", "K8 B8 O8", "R9 J R11");
  const places = (name: string) => fittingPlaces(table, tile(name), faceOf).map((place) => (place.to === "meld" ? place.index : -1));
  assert.deepEqual(places("R8"), [3, 3]);
  assert.deepEqual(places("R4"), [0]);
  assert.deepEqual(places("K8"), []);
  assert.deepEqual(places("J"), []);
});

test("a run that has a tile twice is split between the two, if both parts are runs", () => {
  const split = at("R3 R4 R5 R5 R6 R7");
  assert.equal(splittingPiece(split, faceOf), split.melds[0]!.pieces[3]!.id);
  assert.equal(splittingPiece(at("R4 R5 R5 R6 R7", "R1 R2 R3 R4"), faceOf), undefined);
});

test("a rack shows its longest runs and groups first, and the rest by color", () => {
  const { rack } = arrange({ table: [], rack: tiles("K1 R7 B7 R5 J R6 R8 O7 K7 O1") });
  assert.equal(tilesText(inMelds(rack, faceOf, compareTiles("color")).map((piece) => piece.tile)), "R5 R6 R7 R8 B7 K7 O7 K1 O1 J");
});
