import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  act,
  button,
  createGame,
  drag,
  drawOrPass,
  findExtension,
  findMeld,
  inspect,
  layMeld,
  leave,
  myTurn,
  openWorld,
  rackTile,
  startGame,
  tilesOf,
} from "./support.mjs";

/** Any meld opens, and there are many jokers and equal tiles, so that one round mostly has melds with each kind. */
const QUICK = {
  "deal.hand_size": 13,
  "initial_meld.threshold": 0,
  "tiles.copies": 3,
  "tiles.jokers": 6,
  turn_time_limit: 0,
};
const NUMBERED = /^[RBKO]\d/;
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

/** Returns the tiles of a rack that form a meld with a special joker, in their order; undefined if none do. */
function findSpecialMeld(rack) {
  const numbered = rack.filter((name) => NUMBERED.test(name));
  const pairs = [...new Set(numbered.filter((name, place) => numbered.indexOf(name) !== place))];
  const valueOf = (name) => Number(name.slice(1));
  const fitsTo = (low) => (steps, isSameColor) => (name) =>
    valueOf(name) === valueOf(low) + steps && (name[0] === low[0]) === isSameColor;
  for (const low of rack.includes("M") ? pairs : []) {
    const twin = pairs.find(fitsTo(low)(1, true)) ?? pairs.find(fitsTo(low)(0, false));
    if (twin !== undefined) return [low, twin, "M", twin, low];
  }
  for (const low of numbered) {
    const fits = fitsTo(low);
    const afterDouble = numbered.find(fits(3, true));
    if (rack.includes("D") && afterDouble !== undefined) return [low, "D", afterDouble];
    const afterChange = numbered.find(fits(2, false));
    if (rack.includes("C") && afterChange !== undefined) return [low, "C", afterChange];
  }
  return undefined;
}

/** Picks tiles of the rack by clicks, one after the other, and lays them as a new meld. */
async function clickMeld(page, names) {
  const before = await page.locator(".felt .meld").count();
  for (const name of names) await page.locator(`.rack [data-tile="${name}"]:not(.selected)`).first().click();
  await button(page, "New meld").click();
  await page.locator(".felt .meld").nth(before).waitFor();
}

/** Takes a turn: lays melds of the rack by drags or clicks, adds tiles to melds, plays; or draws, or passes. */
async function takeTurn(page, turn, laid) {
  let hasLaid = false;
  const hasMelded = await page.locator(".player.has-turn .badge.good").count();
  for (;;) {
    const { rack, melds } = await tilesOf(page);
    const numbered = rack.filter((name) => NUMBERED.test(name));
    const plain = melds.map((names) => (names.every((name) => NUMBERED.test(name)) ? names : []));
    const meld = findSpecialMeld(rack) ?? findMeld(numbered);
    const extension = hasMelded && hasLaid ? findExtension(numbered, plain) : undefined;
    if (meld !== undefined) {
      await (turn % 2 === 0 ? layMeld : clickMeld)(page, meld);
      for (const name of meld.filter((name) => !NUMBERED.test(name))) laid.add(name);
    } else if (extension !== undefined) {
      const tiles = page.locator(".felt .meld").nth(extension.meld).locator("[data-piece]");
      const end = extension.x > 0.5 ? tiles.last() : tiles.first();
      await drag(page, rackTile(page, extension.name), end, { x: extension.x });
    } else break;
    hasLaid = true;
  }
  if (!hasLaid) return drawOrPass(page);
  await page.locator(".turn-message.good").waitFor();
  await act(page, () => button(page, "Play").click());
}

test("a round of Twist is played to its end against bots, with a meld of each special joker", async () => {
  const page = await world.open();
  const laid = new Set();
  const needed = ["D", "M", "C"];
  let isPictured = false;
  for (let games = 0; !isPictured || needed.some((name) => !laid.has(name)); games++) {
    assert.ok(games < 6, "the player lays each special joker, and the table has all, in six games");
    await page.getByLabel(/^Rules/).selectOption({ label: "Twist" });
    await createGame(page, { level: "hard", options: QUICK });
    await startGame(page);
    for (let turn = 0; await myTurn(page); turn++) {
      assert.ok(turn < 150, "the round ends");
      const { melds } = await tilesOf(page);
      if (!isPictured && needed.every((name) => melds.flat().includes(name))) {
        await page.evaluate(() => scrollTo(0, 0));
        await inspect(page, "twist");
        isPictured = true;
      }
      await takeTurn(page, turn, laid);
    }
    await page.locator(".winner").first().waitFor();
    await page.locator("section.result").getByText("Home").click();
  }
  await leave(page);
});
