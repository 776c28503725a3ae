import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { act, button, createGame, drag, inspect, leave, myTurn, openForm, openWorld, startGame } from "./support.mjs";

const CALM = { turn_time_limit: 0 };
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

async function createOkeyGame(page, settings, rules = "Okey") {
  await openForm(page, rules);
  await page.locator(".help", { hasText: rules === "Okey" ? "Take a tile, discard one" : "opposite seats" }).waitFor();
  assert.equal(await page.getByLabel("Play with the River").count(), 0);
  await createGame(page, { ...settings, options: { ...CALM, ...settings.options } });
}

const slot = (page, index) => page.locator(`.stand [data-slot="${index}"]`);
const ownPile = (page) => page.locator(".board .pile.near-right");
const spoken = (page) => page.locator("[data-spoken]").textContent();

/** Returns the tile of the rack with a name such as "red 7". */
const named = (page, name) => page.locator(".stand").getByRole("button", { name: new RegExp(`^${name}(,|$)`) }).first();

/** Returns the names of the tiles in the slots; null for a gap. */
function slotsOf(page) {
  return page
    .locator(".stand [data-slot]")
    .evaluateAll((slots) => slots.map((slot) => slot.querySelector("[data-tile]")?.dataset.tile ?? null));
}

/** Takes a tile of the pool unless the player has one too many. */
async function takeIfNeeded(page) {
  const pool = page.locator("[data-place=pool]");
  if (await button(page, "Discard").count()) return;
  await act(page, () => pool.click());
  await button(page, "Discard").waitFor();
}

/** Discards a tile: by a drag, a click on the own place, the button, or keys. */
const DISCARDS = [
  (page, tile) => drag(page, tile, ownPile(page)),
  async (page, tile) => {
    await tile.click();
    await ownPile(page).getByRole("button", { name: /^Discard / }).click();
  },
  async (page, tile) => {
    await tile.click();
    await button(page, "Discard").click();
  },
  async (page, tile) => {
    const isBelow = Number(await tile.locator("xpath=..").getAttribute("data-slot")) >= 12;
    await tile.focus();
    await page.keyboard.press("Enter");
    for (let row = isBelow ? 2 : 1; row > 0; row--) await page.keyboard.press("ArrowUp");
    await page.locator("[data-spoken]", { hasText: "your discards" }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".stand [data-piece]:focus").waitFor();
  },
];

/** Finishes with a tile: by a drag onto the indicator, or the button. */
const FINISHES = [
  (page, tile) => drag(page, tile, page.locator(".board .indicator")),
  async (page, tile) => {
    await tile.click();
    await button(page, "Finish").click();
  },
];

/** Does what a hint suggests, each time in another way. */
async function followHint(page, count) {
  await button(page, "Hint").click();
  await button(page, "What would a bot do?").click();
  const notice = page.locator(".turn-message", { hasText: "Suggestion: " });
  await notice.waitFor();
  const suggestion = /Suggestion: (.*)\.$/.exec(await notice.textContent())[1];
  const [, discard] = /^Discard (.*)$/.exec(suggestion) ?? [];
  const [, finish] = /^Finish with (.*) as the discard$/.exec(suggestion) ?? [];
  const way = (ways) => ways[count % ways.length];
  await act(page, async () => {
    if (discard !== undefined) await way(DISCARDS)(page, named(page, discard));
    else if (finish !== undefined) await way(FINISHES)(page, named(page, finish));
    else if (suggestion === "Take the discard")
      await (count % 2 === 0 ? page.locator("[data-place=pile]") : button(page, suggestion)).click();
    else if (suggestion === "Take from the pool")
      await (count % 2 === 0 ? page.locator("[data-place=pool]") : button(page, suggestion)).click();
    else await button(page, "Show the indicator").click();
  });
}

test("a round of Okey is played by clicks, drags and keys against bots, and replayed", async () => {
  const page = await world.open();
  await createOkeyGame(page, { bots: 3, level: "hard", options: { "game_end.match_rounds": 1 } });
  await startGame(page);
  await page.locator(".player", { hasText: "20 points" }).nth(3).waitFor();
  for (let count = 0; await myTurn(page); count++) {
    assert.ok(count < 100, "the round ends");
    await followHint(page, count);
    if (count !== 5 || !(await myTurn(page))) continue;
    await takeIfNeeded(page);
    await button(page, "Sort by color").click();
    await inspect(page, "okey");
  }
  await page.getByText("The game is over").first().waitFor();
  const end = page.locator("section.result");
  const finished = end.getByText(/finishes with (melds|pairs)/);
  await finished.or(end.getByText("The pool is empty.")).first().waitFor();
  if (await finished.count()) assert.ok((await end.locator(".meld .tile").count()) === 14);
  await inspect(page, "okey-over");
  await button(page, "Replay").click();
  await button(page, "Check the deals").click();
  await page.getByText("All deals follow from the seeds of the server and the players: 1.").waitFor();
  await page.getByText("The commitment is the one that this browser noted before the first deal.").waitFor();
  await page.getByText("Your seed in the record is the one that this browser sent.").waitFor();
  await page.getByText("Not checked here: the rules of turns").waitFor();
  await button(page, "Last").click();
  await page.locator(".replay .winner").waitFor();
  assert.equal(await page.locator(".replay .board .pile").count(), 4);
  assert.equal(await button(page, "Review").count(), 0);
  await inspect(page, "okey-replay");
  await leave(page);
});

test("a hand that is not finished is refused, and the tiles that are left over are marked", async () => {
  const page = await world.open();
  await createOkeyGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  await takeIfNeeded(page);
  assert.equal(await button(page, "Finish").isDisabled(), true);
  await drag(page, page.locator(".stand [data-piece]").first(), page.locator(".board .indicator"));
  await page.locator(".turn-message[role=alert]", { hasText: "Left over: " }).waitFor();
  assert.ok((await page.locator(".stand .tile.faulty").count()) > 0);
  await page.locator(".stand [data-piece]").first().click();
  await page.locator(".stand [data-piece]").nth(1).click();
  assert.equal(await button(page, "Finish").isDisabled(), true);
  await leave(page);
});

test("tiles move freely on the rack by drags, clicks and keys, and stay where they are from turn to turn", async () => {
  const page = await world.open();
  await createOkeyGame(page, { bots: 1 });
  await startGame(page);
  await myTurn(page);
  await takeIfNeeded(page);
  const [first, second, third] = await slotsOf(page);
  await drag(page, slot(page, 0).locator("[data-piece]"), slot(page, 11));
  await slot(page, 1).locator("[data-piece]").click();
  await slot(page, 10).getByRole("button", { name: "row 1, slot 11" }).click();
  await slot(page, 2).locator("[data-piece]").focus();
  await page.keyboard.press("Enter");
  assert.match(await spoken(page), /Picked up: .* row 1, slot 3$/);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await spoken(page), "row 1, slot 1");
  await page.keyboard.press("Enter");
  await page.waitForFunction((tile) => document.activeElement?.dataset.tile === tile, third);
  const moved = await slotsOf(page);
  assert.deepEqual([moved[0], moved[1], moved[10], moved[11]], [third, null, second, first]);
  await act(page, async () => {
    await page.locator(".stand [data-piece]").last().click();
    await button(page, "Discard").click();
  });
  await myTurn(page);
  assert.deepEqual((await slotsOf(page)).slice(0, 12), moved.slice(0, 12));
  await button(page, "Sort by number").click();
  assert.notEqual((await slotsOf(page))[1], null);
  await leave(page);
});

test("a player whose time runs out discards; a spectator sees the discards but no hand", async () => {
  const [ann, ben] = [await world.open(), await world.open({ locale: "de-DE" })];
  await createOkeyGame(ann, { bots: 0, options: { turn_time_limit: 3, absent_after_timeouts: 0 } });
  await ben.getByLabel("Dein Name").fill("Ben");
  await ben.getByLabel("Code des Spiels").fill(await ann.locator("output.code").textContent());
  await ben.getByRole("button", { name: "Mitspielen", exact: true }).click();
  await ann.locator(".seats li", { hasText: "Ben" }).waitFor();
  await startGame(ann);
  await ben.locator('.board [aria-label="Ablage von Ann"] [data-tile]').waitFor();
  await ben.locator('.board [aria-label="Ablage von Ben"] [data-tile]').waitFor();
  assert.equal(await ben.locator(".stand [data-piece]").count() >= 14, true);
  const guest = await world.open();
  await guest.goto(ann.url());
  await guest.locator(".board [data-tile]").nth(2).waitFor();
  assert.equal(await guest.locator(".stand").count(), 0);
  await inspect(guest, "okey-watched");
  await leave(guest, ben, ann);
});

test("Okey with partners shows its teams, and its options are those of a game of discards", async () => {
  const page = await world.open();
  await createOkeyGame(page, { bots: 3, options: { "scoring.start": 11 } }, "Okey with partners");
  await startGame(page);
  await page.locator(".player", { hasText: "11 points" }).nth(3).waitFor();
  assert.equal(await page.locator(".player", { hasText: "Team A" }).count(), 2);
  await button(page, "Game").click();
  assert.equal(await page.getByText("Initial meld").count(), 0);
  await leave(page);
});

test("on a phone of 360 px a finger discards a tile, and nothing scrolls sideways", async () => {
  const page = await world.open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await createOkeyGame(page, { bots: 3 });
  await startGame(page);
  await myTurn(page);
  await takeIfNeeded(page);
  await inspect(page, "okey-phone");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await ownPile(page).evaluate((pile) => pile.scrollIntoView({ block: "center" }));
  const middle = async (element) => {
    const { x, y, width, height } = await element.boundingBox();
    return [x + width / 2, y + height / 2];
  };
  const [fromX, fromY] = await middle(page.locator(".stand [data-piece]").first());
  const [toX, toY] = await middle(ownPile(page));
  const touch = await page.context().newCDPSession(page);
  const send = (type, x, y) =>
    touch.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  await act(page, async () => {
    await send("touchStart", fromX, fromY);
    for (const part of [0.2, 0.5, 0.8, 1])
      await send("touchMove", fromX + (toX - fromX) * part, fromY + (toY - fromY) * part);
    await send("touchEnd");
  });
  await ownPile(page).locator("[data-tile]").waitFor();
  await leave(page);
});
