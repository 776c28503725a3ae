import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  act,
  button,
  createGame,
  drag,
  findExtension,
  findMeld,
  inspect,
  leave,
  myTurn,
  openForm,
  openWorld,
  rackTile,
  startGame,
} from "./support.mjs";

const CALM = { turn_time_limit: 0 };
/** Bots cannot open, so that the round goes on. */
const CLOSED = { "opening.points": 201, "opening.pairs": 10 };
/** A place of the table where no meld can be: its padding. */
const FREE = { x: 0.995, y: 0.5 };
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

async function create101Game(page, { options, ...settings }, rules = "101 Okey") {
  await openForm(page, rules);
  await createGame(page, { ...settings, options: { ...CALM, ...options } });
  await startGame(page);
}

const laid = (page) => page.locator(".laid");
const melds = (page) => laid(page).locator(".meld:not(.new-meld)");
const message = (page, text) => page.locator(".turn-message", { hasText: text }).waitFor();
const mayDiscard = (page) => button(page, "Discard").count();

/** Returns the tiles of the rack, and of the melds on the table, by their names. */
function tilesOf(page) {
  return page.evaluate(() => {
    const names = (root) => [...root.querySelectorAll("[data-piece]")].map((tile) => tile.dataset.tile);
    return { rack: names(document.querySelector(".stand")), melds: [...document.querySelectorAll(".laid .meld")].map(names) };
  });
}

/** Discards the last tile of the rack. */
async function discardLast(page) {
  await act(page, async () => {
    await page.locator(".stand [data-piece]").last().click();
    await button(page, "Discard").click();
  });
}

/** Waits for a turn in which the player may lay tiles: any but a first one without a tile taken. */
async function turnToLay(page) {
  while (await myTurn(page)) {
    if (!(await mayDiscard(page))) {
      await act(page, () => page.locator("[data-place=pool]").click());
      await button(page, "Lay the tiles").waitFor();
    }
    if (await button(page, "Lay the tiles").count()) return true;
    await discardLast(page);
  }
  return false;
}

/** Does what a hint suggests. */
async function followHint(page) {
  await button(page, "Hint").click();
  await button(page, "What would a bot do?").click();
  await message(page, "Suggestion: ");
  await act(page, () => button(page, "Do this").click());
}

/** Puts tiles of the rack on the table as a new meld: by drags, or by clicks. */
async function arrangeMeld(page, names, isDragged) {
  const before = await melds(page).count();
  if (isDragged) {
    await drag(page, rackTile(page, names[0]), laid(page), FREE);
    await melds(page).nth(before).waitFor();
    for (const name of names.slice(1))
      await drag(page, rackTile(page, name), melds(page).nth(before).locator("[data-piece]").last(), { x: 0.95 });
  } else {
    for (const name of names) await rackTile(page, name).click();
    await button(page, "New meld").click();
  }
  await melds(page).nth(before).locator("[data-piece]").nth(names.length - 1).waitFor();
}

test("tiles are arranged on the table, judged with what an opening lacks, and taken back", async () => {
  const page = await world.open();
  await create101Game(page, { bots: 1, options: CLOSED });
  assert.ok(await turnToLay(page));
  await message(page, "Open with melds of 201 points or with 10 pairs, or discard a tile.");
  assert.equal(await button(page, "Lay the tiles").isDisabled(), true);
  const { rack } = await tilesOf(page);
  const first = page.locator(".stand [data-piece]").first();
  await drag(page, first, laid(page), FREE);
  await laid(page).locator(".meld.illegal .violation").waitFor();
  await message(page, "The melds of your opening have 0 points. You need 201.");
  await first.click();
  await button(page, "Discard").click();
  await message(page, "Lay your tiles first, or take them back.");
  await button(page, "Lay the tiles").click();
  await page.locator(".turn-message[role=alert]").waitFor();
  await button(page, "Reset").click();
  assert.deepEqual((await tilesOf(page)).rack, rack);
  assert.equal(await melds(page).count(), 0);
  await button(page, "Undo").click();
  const tile = melds(page).last().locator("[data-piece]").first();
  await drag(page, tile, page.locator('.stand [data-slot="29"]'));
  await page.locator('.stand [data-slot="29"] [data-piece]').focus();
  await page.keyboard.press("Enter");
  for (const step of ["row 1, slot 15", "your discards", "New meld"]) {
    await page.keyboard.press("ArrowUp");
    await page.locator("[data-spoken]", { hasText: step }).waitFor();
  }
  await page.keyboard.press("Enter");
  await melds(page).first().waitFor();
  await leave(page);
});

test("a discard that is taken has to be laid, or is put back for a tile of the pool", async () => {
  const page = await world.open();
  await create101Game(page, { bots: 1, options: CLOSED });
  const take = button(page, "Take the discard");
  // The starter takes nothing in the first turn.
  while ((await myTurn(page)) && (await mayDiscard(page))) await discardLast(page);
  await act(page, () => take.click());
  const owed = page.locator(".stand [data-piece].in-hand");
  assert.match(await owed.getAttribute("aria-label"), /, to be laid$/);
  const name = await owed.getAttribute("data-tile");
  await message(page, ", which you took, or put it back.");
  await owed.click();
  await button(page, "Discard").click();
  await message(page, "Lay the discard that you took, or put it back");
  await inspect(page, "okey-101-taken");
  await act(page, () => button(page, "Put it back").click());
  assert.equal(await owed.count(), 0);
  assert.equal(await page.locator(".board .pile.far-left [data-tile]").getAttribute("data-tile"), name);
  await discardLast(page);
  await leave(page);
});

/**
 * Returns a meld of three tiles of a rack in which the okey stands for the middle one, and that tile, which the rack has
 * too; undefined if there is none.
 */
function findWildMeld(rack, okey) {
  const meld = rack.includes(okey) ? findMeld(rack.filter((name) => name !== okey && name !== "F")) : undefined;
  if (meld === undefined) return undefined;
  const [first, middle, last] = meld;
  return { wild: [first, okey, last], middle };
}

test("an okey of the table comes to the rack when the tile for which it stands takes its place", async () => {
  const page = await world.open();
  let found;
  for (let games = 0; found === undefined; games++) {
    assert.ok(games < 20, "some rack has the okey and a meld");
    await page.goto(world.url);
    await create101Game(page, { bots: 1, options: { "opening.points": 1 } });
    const okey = await page.locator(".okey-name [data-tile]").getAttribute("data-tile");
    found = (await turnToLay(page)) ? findWildMeld((await tilesOf(page)).rack, okey) : undefined;
  }
  const { wild, middle } = found;
  const okey = wild[1];
  await arrangeMeld(page, wild, false);
  await message(page, "Legal: you open with ");
  await act(page, () => button(page, "Lay the tiles").click());
  const { rack: before } = await tilesOf(page);
  const place = melds(page).last().locator(`[data-tile="${okey}"]`);
  await drag(page, rackTile(page, middle), place);
  await message(page, "Legal.");
  await inspect(page, "okey-101-wild");
  await button(page, "Undo").click();
  await place.waitFor();
  await rackTile(page, middle).click();
  await place.click();
  await message(page, "Legal.");
  await act(page, () => button(page, "Lay the tiles").click());
  const { rack, melds: table } = await tilesOf(page);
  assert.deepEqual(table.at(-1), [wild[0], middle, wild[2]]);
  assert.deepEqual([...rack, middle].sort(), [...before, okey].sort());
  await discardLast(page);
  await leave(page);
});

/** Plays a game of one round. Returns whether the player has opened with a meld that was arranged by hand. */
async function playRound(page, isDragged) {
  const me = page.locator(".player", { hasText: "(you)" });
  let hasArranged = false;
  let isInspected = false;
  while (await turnToLay(page)) {
    const { rack, melds: table } = await tilesOf(page);
    const hasOpened = (await me.getByText(/opened: /).count()) > 0;
    const meld = hasOpened ? undefined : findMeld(rack);
    const okey = await page.locator(".okey-name [data-tile]").getAttribute("data-tile");
    // Where a wild tile or a false joker lies, faces do not tell what fits.
    const plain = table.map((names) => (names.includes(okey) || names.includes("F") ? [] : names));
    const extension = hasOpened && rack.length > 1 ? findExtension(rack, plain) : undefined;
    if (meld !== undefined) {
      await arrangeMeld(page, meld, isDragged);
      await message(page, "Legal: you open with ");
      await act(page, () => button(page, "Lay the tiles").click());
      await me.getByText(/opened: \d+ points/).waitFor();
      assert.equal(await melds(page).count(), table.length + 1);
      hasArranged = true;
    } else if (extension !== undefined) {
      const { name, meld: place, x } = extension;
      const tiles = melds(page).nth(place).locator("[data-piece]");
      await drag(page, rackTile(page, name), x < 0.5 ? tiles.first() : tiles.last(), { x });
      await message(page, "Legal.");
      if (table.length > 4 && !isInspected) {
        await page.evaluate(() => scrollTo(0, 0));
        await inspect(page, "okey-101");
        isInspected = true;
      }
      await act(page, () => button(page, "Lay the tiles").click());
      assert.equal(await tiles.count(), table[place].length + 1);
    } else await followHint(page);
  }
  return hasArranged;
}

test("a player opens, lays off and ends a round of 101 Okey against bots, and the game is replayed", async () => {
  const page = await world.open();
  // Any meld opens, so that a round is enough; a hand without one is rare, and then another game is played.
  const options = { "opening.points": 1, "game_end.match_rounds": 1 };
  for (let games = 0; ; games++) {
    await create101Game(page, { bots: 3, options });
    if (await playRound(page, games % 2 === 0)) break;
    assert.ok(games < 5, "the player opens in one of five games");
    await page.locator("section.result").getByText("Home").click();
  }
  await page.getByText("The game is over").first().waitFor();
  await page.locator(".winner").first().waitFor();
  assert.equal(await page.locator(".scores tbody td", { hasText: /^[+−]?\d+$/ }).count(), 8);
  await inspect(page, "okey-101-over");
  await button(page, "Replay").click();
  await button(page, "Last").click();
  await page.locator(".replay .winner").waitFor();
  assert.ok((await page.locator(".replay .laid .meld").count()) > 0);
  await inspect(page, "okey-101-replay");
  await leave(page);
});

test("on a phone of 360 px the rack of 101 Okey with partners fits, and nothing scrolls sideways", async () => {
  const page = await world.open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await create101Game(page, { bots: 3, options: CLOSED }, "101 Okey with partners");
  assert.ok(await turnToLay(page));
  await page.locator(".player", { hasText: "Team A" }).nth(1).waitFor();
  await page.locator(".stand [data-piece]").first().click();
  await button(page, "New meld").click();
  await laid(page).locator(".meld.illegal").waitFor();
  await inspect(page, "okey-101-phone");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await leave(page);
});
