import assert from "node:assert/strict";
import { test } from "node:test";
import { tiles } from "rummikub-client";
import { readSettings } from "../../src/control/settings.js";
import { meldPoints } from "../../src/model/first-turn.js";

test("a first meld is a run or a group, and counts its numbers", () => {
  assert.equal(meldPoints(tiles("R9 R10 R11")), 30);
  assert.equal(meldPoints(tiles("R11 R9 R10")), 30, "in any order");
  assert.equal(meldPoints(tiles("R11 B11 K11")), 33);
  for (const text of ["R9 R10", "R9 R10 B11", "R9 R10 R12", "R11 B11 B11", "R11 J K11"]) assert.equal(meldPoints(tiles(text)), undefined, text);
});

test("settings that are broken or unknown have their defaults", () => {
  const usual = readSettings(null);
  assert.deepEqual(usual, { scheme: "system", size: "normal", tiles: "classic", palette: "usual", developer: "off" });
  assert.deepEqual(readSettings('{"scheme": "dark", "size": "huge"}'), { ...usual, scheme: "dark" });
  assert.deepEqual(readSettings("{"), usual);
});
