/** The way into a game: one tap, the rules in words, how the page looks. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { button, createGame, inspect, leave, openForm, openWorld, startGame } from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

test("one tap plays: three bots, no clock, no name asked for", async () => {
  const page = await world.open();
  await inspect(page, "home");
  await button(page, "Play now").click();
  await page.locator(".rack [data-piece]").nth(13).waitFor();
  assert.equal(await page.locator(".player").count(), 4);
  assert.equal(await page.locator(".hand .clock").count(), 0);
  await page.locator(".player", { hasText: "(you)" }).waitFor();
  await button(page, "Game").click();
  await button(page, "Rules").click();
  await page.getByRole("dialog").getByText("The standard game").waitFor();
  await page.getByRole("dialog").getByText("Time limit of a turn").waitFor();
  await inspect(page, "rules");
  await leave(page);
});

test("options are words with ranges, a number out of range is named, and the lobby tells what differs", async () => {
  const page = await world.open();
  const form = await openForm(page, "Locked jokers");
  await form.getByText("Melds with a joker are locked; the initial meld may use the table.").waitFor();
  await form.getByText("All options").click();
  const size = form.getByLabel("Hand size");
  await size.fill("99");
  await button(page, "Create game").click();
  await page.getByRole("alert").getByText("Hand size: 5 to 21").waitFor();
  assert.equal(await size.getAttribute("aria-invalid"), "true");
  await inspect(page, "options");
  await size.fill("9");
  await createGame(page);
  assert.equal(await button(page, "Ready").count(), 0, "the host alone starts the game");
  await page.getByText("Rules", { exact: true }).click();
  const rules = page.locator(".game-rules li");
  await rules.filter({ hasText: "Hand size: 9 (otherwise 14)" }).waitFor();
  await rules.filter({ hasText: "Mode: Locked (otherwise Free)" }).waitFor();
  await inspect(page, "lobby");
  await startGame(page);
  await leave(page);
});

test("settings: light or dark, size, faces and colors of the tiles, and the developer's button", async () => {
  const page = await world.open({ colorScheme: "dark" });
  await inspect(page, "home-dark");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await button(page, "Settings").click();
  await inspect(page, "settings");
  await page.getByLabel("Light or dark").selectOption({ label: "light" });
  assert.notEqual(await paper(), dark);
  await page.getByLabel("Light or dark").selectOption({ label: "as the system" });
  assert.equal(await paper(), dark);
  await page.getByLabel("Size of the tiles").selectOption({ label: "large" });
  await page.getByLabel(/^Tiles/).selectOption({ label: "flat, large numbers" });
  await page.getByLabel("Colors of the tiles").selectOption({ label: "easy to tell apart" });
  await page.getByLabel("Developer").selectOption({ label: "Yes" });
  await button(page, "Close").click();
  await page.reload();
  await button(page, "Developer").waitFor();
  await button(page, "Play now").click();
  const tile = page.locator(".rack [data-piece]").first();
  await tile.waitFor();
  const width = () => tile.evaluate((element) => element.getBoundingClientRect().width);
  const large = await width();
  await inspect(page, "table-dark");
  await page.evaluate(() => (document.documentElement.dataset.size = "normal"));
  assert.ok(large > (await width()) * 1.1);
  await leave(page);
});
