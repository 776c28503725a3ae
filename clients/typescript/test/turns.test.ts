import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { draw, GameSchema, melds, pass, play, tilesText } from "rummikub-client";

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
