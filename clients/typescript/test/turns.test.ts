import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  discard,
  draw,
  finish,
  foot,
  GameSchema,
  lay,
  melds,
  meldsText,
  pass,
  passEmptyPool,
  play,
  returnDiscard,
  showIndicator,
  takeDiscard,
  takeFromPool,
  takeTrump,
  Tile,
  tilesText,
} from "rummikub-client";

test("a turn has the state that its player has seen", () => {
  const game = create(GameSchema, { gameId: "g", revision: 7, etag: "e7" });
  const turns = [play(game, melds("[R7 R8 J]")), draw(game), pass(game)];
  for (const { gameId, etag } of turns) assert.deepEqual([gameId, etag], ["g", "e7"]);
  assert.deepEqual(
    turns.map(({ action }) => action.case),
    ["play", "draw", "passTurn"],
  );
  const [{ action } = { action: undefined }] = turns;
  assert.equal(action?.case === "play" && tilesText(action.value.table?.melds[0]?.tiles ?? []), "R7 R8 J");
});

test("a turn of a game of discards has it too", () => {
  const game = create(GameSchema, { gameId: "g", etag: "e7" });
  const pairs = finish(game, Tile.ORANGE_5, melds("[R7 R7]"));
  const laid = lay(game, melds("[R7 R8 R9] | [B1 B1]"));
  const turns = [
    takeFromPool(game),
    takeDiscard(game),
    discard(game, Tile.FALSE_JOKER),
    pairs,
    laid,
    returnDiscard(game),
    showIndicator(game),
    foot(game, Tile.ORANGE_5, melds("[R7 R8 R9]")),
    takeTrump(game),
    passEmptyPool(game),
  ];
  for (const { gameId, etag } of turns) assert.deepEqual([gameId, etag], ["g", "e7"]);
  assert.deepEqual(
    turns.map(({ action }) => action.case),
    [
      ...["takeFromPool", "takeDiscard", "discard", "finish", "lay", "returnDiscard", "showIndicator"],
      ...["finish", "takeTrump", "passEmptyPool"],
    ],
  );
  const footed = turns[7]?.action;
  assert(footed?.case === "finish");
  assert.deepEqual([footed.value.tile, meldsText(footed.value.table)], [Tile.ORANGE_5, "[R7 R8 R9]"]);
  const { action } = pairs;
  assert(action.case === "finish");
  assert.deepEqual([action.value.tile, meldsText(action.value.hand)], [Tile.ORANGE_5, "[R7 R7]"]);
  assert(laid.action.case === "lay");
  assert.equal(meldsText(laid.action.value.table), "[R7 R8 R9] | [B1 B1]");
});
