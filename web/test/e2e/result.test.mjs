/** The end of a game, its review, addresses of moves; how to play, without a connection too. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { RACKS, act, beginAt, button, createGame, inspect, leave, myTurn, openWorld } from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

test("the result has places, rounds and what is left; the review shows missed tiles, and a move has an address", async () => {
  const page = await world.open();
  // The bot plays in its first turn, draws in the second, and goes out in the third.
  const racks = [RACKS[0], ["B13", "K13", "O13", "K5", "K6"]];
  await beginAt(page, { racks, next: ["B1", "O2", "K7", "R12"], level: "EXPERT" });
  while (await myTurn(page)) await act(page, () => button(page, "Draw").click());
  const row = page.locator(".scores tbody tr", { hasText: "Ann (you)" });
  await row.waitFor();
  assert.deepEqual(await page.locator(".scores thead th").allTextContents(), ["Place", "Player", "Round 1", "Total"]);
  const [place, points, total] = await row.locator("td").allTextContents();
  assert.deepEqual([place, points], ["2.", total]);
  assert.match(points, /^−\d+$/);
  assert.equal(await row.locator("td").nth(1).evaluate((cell) => getComputedStyle(cell).textAlign), "end");
  await page.locator(".tiles-left li", { hasText: "Ann" }).locator("[data-tile]").first().waitFor();
  assert.equal(await page.locator("[data-pool]").count(), 0, "nothing goes on");
  const lying = page.locator(".felt [data-piece]").first();
  const { x, y } = await lying.boundingBox();
  await page.mouse.move(x + 10, y + 10);
  await page.mouse.down();
  await page.mouse.move(x + 10, y + 60, { steps: 3 });
  assert.equal(await page.locator(".ghost").count(), 0, "no tile moves any more");
  await page.mouse.up();
  await lying.click();
  assert.equal(await page.locator(".felt .slot, .felt [aria-pressed=true]").count(), 0);
  await lying.press("Enter");
  assert.doesNotMatch(await page.locator("[data-spoken]").textContent(), /Picked up/);
  await inspect(page, "result");
  await button(page, "Review").click();
  const bar = page.locator(".graph .bar.missed").last();
  await bar.waitFor();
  await page.getByText("Missed tiles by turn").waitFor();
  await page.getByLabel("My turns only").waitFor();
  const mine = await page.locator(".graph .bar").count();
  for (const label of await page.locator(".graph .bar").evaluateAll((bars) => bars.map((one) => one.ariaLabel)))
    assert.match(label, /, Ann: /);
  const move = Number(/^Move (\d+),/.exec(await bar.getAttribute("aria-label"))[1]);
  await bar.press("Enter"); // what loads later moves the bars, also under a pointer that is about to click
  await page.getByText(new RegExp(`^Move ${move} of`)).waitFor();
  await page.locator(".beside .stepper").waitFor();
  await inspect(page, "review-graph");
  await page.getByLabel("My turns only").uncheck();
  assert.ok((await page.locator(".graph .bar").count()) > mine);
  await button(page, "Copy link to this move").click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, new RegExp(`#/replay/[0-9a-f]{32}/${move}$`));
  const friend = await world.open();
  await friend.goto(link);
  await friend.getByText(new RegExp(`^Move ${move} of`)).waitFor();
  await leave(friend, page);
});

test("a player plays on from a position of the replay, against bots", async () => {
  const page = await world.open();
  // The bot plays in its first turn, draws in the second, and goes out in the third.
  const racks = [RACKS[0], ["B13", "K13", "O13", "K5", "K6"]];
  await beginAt(page, { racks, next: ["B1", "O2", "K7", "R12"], level: "EXPERT" });
  while (await myTurn(page)) await act(page, () => button(page, "Draw").click());
  const [gameId] = /[0-9a-f]{32}/.exec(page.url());
  await page.goto(page.url().replace(/#.*/, `#/replay/${gameId}/3`));
  await page.getByText(/^Move 3 of/).waitFor();
  await button(page, "Last").click();
  assert.equal(await button(page, "Play on from here").count(), 0, "the round is over");
  await page.getByRole("slider").fill("2");
  await button(page, "Play on from here").click();
  await page.locator(".rack [data-piece]").first().waitFor();
  assert.ok(await myTurn(page));
  assert.doesNotMatch(page.url(), new RegExp(gameId), "another game");
  assert.equal(await page.locator(".felt [data-piece]").count(), 3, "what the bot has played");
  assert.equal(await page.locator(".rack [data-piece]").count(), 11, "the rack with the tile drawn");
  await act(page, () => button(page, "Draw").click());
  await leave(page);
});

test("how to play has a first turn to try, and is there without a connection", async () => {
  const page = await world.open({ colorScheme: "dark" });
  await page.getByRole("link", { name: "How to play" }).first().click();
  const rack = page.getByRole("group", { name: "Your rack" });
  const choose = async (...names) => {
    for (const name of names) await rack.getByRole("button", { name, exact: true }).click();
    await button(page, "Lay").click();
  };
  await choose("red 2", "red 3", "red 4");
  await page.getByText("9 points: the first play needs 30.").waitFor();
  await choose("orange 5");
  await page.getByText("These tiles are neither a run nor a group.").waitFor();
  await button(page, "Reset").click();
  await choose("red 11", "blue 11", "black 11");
  await page.getByText("Well done: 33 points.").waitFor();
  await inspect(page, "how-to-play");
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.context().setOffline(true);
  await page.reload();
  await rack.waitFor();
  await page.goto(`${world.url}#/`);
  await page.locator(".banner").getByText("You are offline.").waitFor();
  await page.context().setOffline(false);
  const head = await page.evaluate(async () => {
    const manifest = await (await fetch(document.querySelector("link[rel=manifest]").href)).json();
    const files = [...manifest.icons.map(({ src }) => src), document.querySelector("meta[property='og:image']").content];
    return Promise.all(files.map(async (file) => (await fetch(file)).headers.get("content-type")));
  });
  assert.deepEqual(head, ["image/svg+xml", "image/png", "image/png", "image/png"]);
  await leave(page);
});

test("a lobby shows its link as a QR code", async () => {
  const page = await world.open();
  await createGame(page);
  await button(page, "QR").click();
  const code = page.getByRole("img", { name: "QR code of the link to this game" });
  await code.waitFor();
  assert.ok((await code.locator("path").getAttribute("d")).length > 1_000);
  await inspect(page, "lobby-qr");
  await leave(page);
});
