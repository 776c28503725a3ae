/** The puzzle of the day: on a phone and a desktop, an answer is judged, and the solution is shown on demand; one subject. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { button, inspect, leave, openWorld } from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

/** Opens the puzzle from the home page. */
async function openPuzzle(page, link = "Puzzle of the day") {
  await page.getByRole("link", { name: link, exact: true }).click();
  await page.locator("rummikub-board [data-piece]").first().waitFor();
}

const answer = (page) => page.locator(".answer");

for (const [name, options] of [
  ["390x844", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ["1280x800", { viewport: { width: 1280, height: 800 } }],
]) {
  test(`the puzzle of the day is solved at ${name}`, async () => {
    const page = await world.open(options);
    await openPuzzle(page);
    await page.getByText(/^Lay (all )?\d+ tiles of your rack/).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), options.viewport.width);
    await inspect(page, `puzzle-${name}`);
    await button(page, "Check").click();
    await page.getByText("This is not a legal turn yet.").waitFor();
    const before = await page.locator("rummikub-board").evaluate((board) => board.controller.intended.rack.length);
    await button(page, "Show solution").click();
    await page.getByText("This is a best turn.").waitFor();
    const left = await page.locator("rummikub-board").evaluate((board) => board.controller.intended.rack.length);
    assert.ok(left < before, "the solution lies on the table");
    await button(page, "Check").click();
    await page.getByText("Solved! No turn lays more tiles.").waitFor();
    await button(page, "Undo").click();
    assert.equal(await answer(page).textContent(), "", "what was said of another table is gone");
    await inspect(page, `puzzle-solved-${name}`);
    await leave(page);
  });
}

test("a tile is laid by hand, and the service marks the melds", async () => {
  const page = await world.open();
  await openPuzzle(page);
  const board = page.locator("rummikub-board");
  await board.locator(".rack [data-piece], [part~=rack] [data-piece]").first().click();
  await button(page, "New meld").click();
  await board.locator("[part~=illegal]").first().waitFor();
  await button(page, "Check").click();
  await page.getByText(/^This is not a legal turn yet\. ./).waitFor();
  await leave(page);
});

test("the solution is not sent before it is shown", async () => {
  const page = await world.open();
  const asked = [];
  page.on("response", async (response) => {
    if (response.url().endsWith("/GetPuzzle")) asked.push((await response.body()).length);
  });
  await openPuzzle(page);
  await button(page, "Show solution").click();
  await page.getByText("This is a best turn.").waitFor();
  const [first, second] = asked;
  assert.equal(asked.length, 2);
  assert.ok(second > first + 20, `${first} and ${second} bytes`);
  await leave(page);
});

test("the puzzle speaks the language of the page", async () => {
  const page = await world.open({ locale: "de-DE" });
  await openPuzzle(page, "Rätsel des Tages");
  await button(page, "Prüfen").click();
  await page.getByText(/^Das ist noch kein erlaubter Zug\./).waitFor();
  await leave(page);
});
