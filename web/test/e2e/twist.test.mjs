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
  openForm,
  openWorld,
  rackTile,
  startGame,
  tilesOf,
  UPDATES_PICTURES,
} from "./support.mjs";

/** Any meld opens, and there are many jokers and equal tiles, so that a round mostly has melds with several kinds. */
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

test("a round of Twist is played to its end against bots, with melds of special jokers", async () => {
  const page = await world.open();
  const laid = new Set();
  // The picture has a meld of each, for which several rounds may be played.
  const isEnough = (names) => (UPDATES_PICTURES ? [..."DMC"].every((name) => names.has(name)) : names.size > 0);
  const specials = new Set();
  for (let games = 0; !isEnough(specials) || !isEnough(laid); games++) {
    assert.ok(games < 6, "the player and the table have melds of special jokers in six games");
    await openForm(page, "Twist");
    await createGame(page, { level: UPDATES_PICTURES ? "hard" : "medium", options: QUICK });
    await startGame(page);
    for (let turn = 0; await myTurn(page); turn++) {
      assert.ok(turn < 150, "the round ends");
      const { melds } = await tilesOf(page);
      const lying = new Set(melds.flat().filter((name) => "DMC".includes(name)));
      if (!isEnough(specials) && isEnough(lying)) {
        await page.evaluate(() => scrollTo(0, 0));
        await inspect(page, "twist");
        for (const name of lying) specials.add(name);
      }
      await takeTurn(page, turn, laid);
    }
    await page.locator(".winner").first().waitFor();
    await page.locator("section.result").getByText("Home").click();
  }
  await leave(page);
});
