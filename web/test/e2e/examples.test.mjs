/** The examples of rummikub-board: each is built and used in Chromium. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launched, startEdge, takePicture } from "./support.mjs";

const FOLDER = join(import.meta.dirname, "../../board/examples");
const TYPES = { html: "text/html", js: "text/javascript" };

let browser, edge, server;

before(async () => {
  await promisify(execFile)(process.execPath, ["build.mjs"], { cwd: FOLDER });
  server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname.replace(/\/$/, "/index.html");
    const text = await readFile(join(FOLDER, "build", path)).catch(() => undefined);
    response.writeHead(text ? 200 : 404, { "content-type": TYPES[path.split(".").pop()] ?? "text/plain" });
    response.end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  [edge, browser] = await Promise.all([startEdge(), launched()]);
});

after(async () => {
  await browser?.close();
  server?.close();
  await edge?.stop();
});

/** Opens an example, and fails the test that leaves it if it reported an error. */
async function open(name, query = "") {
  const page = await browser.newPage({ viewport: { width: 720, height: 560 } });
  page.setDefaultTimeout(60_000);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && !/favicon|404/.test(message.text()) && page.faults.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/${name}/?edge=http://127.0.0.1:${edge.port}${query}`);
  return page;
}

async function leave(page) {
  assert.deepEqual(page.faults, []);
  await page.close();
}

const tile = (page, name) => page.locator(`rummikub-board [data-tile="${name}"]`).first();

async function drag(page, from, to) {
  await page.waitForFunction(() => document.querySelector("rummikub-board").shadowRoot.getAnimations().length === 0);
  const [start, end] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await page.mouse.move(end.x + end.width * 0.9, end.y + end.height / 2, { steps: 4 });
  await page.mouse.up();
}

/** Calls the JSON API. */
async function call(path, body, token) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`http://127.0.0.1:${edge.port}/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}

test("show: a position is drawn", async () => {
  const page = await open("show");
  await page.locator("rummikub-table .rummikub-tile").nth(6).waitFor();
  await leave(page);
});

test("drag: what the player lays is known", async () => {
  const page = await open("drag");
  await drag(page, tile(page, "R10"), tile(page, "R9"));
  await page.locator("#played", { hasText: "R10" }).waitFor();
  await leave(page);
});

test("style: another look and language", async () => {
  const page = await open("style");
  await page.getByRole("group", { name: "Reihe 1: Rot 7, Rot 8, Rot 9" }).waitFor();
  await page.getByRole("button", { name: "Von vorn" }).waitFor();
  assert.equal((await tile(page, "J").boundingBox()).width, 54);
  await takePicture(page, "board-style", { clip: { x: 0, y: 70, width: 720, height: 360 } });
  await leave(page);
});

for (const name of ["judge-json", "judge-grpc-web"]) {
  test(`${name}: the service marks melds`, async () => {
    const page = await open(name);
    await drag(page, tile(page, "K5"), tile(page, "R9"));
    await page.locator(".meld.illegal .fault").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await drag(page, tile(page, "R10"), tile(page, "R9"));
    await page.locator(".meld.legal").waitFor();
    await leave(page);
  });
}

test("watch: a spectator sees the tiles of a game between bots", async () => {
  const { game, hostToken } = await call("games", { ruleset: { melding: { preset: "PRESET_SABRA", initialMeld: { threshold: 1 } } } });
  for (const _ of [1, 2]) await call(`games/${game.gameId}:addBot`, { level: "BOT_LEVEL_HARD" }, hostToken);
  const page = await open("watch", `&game=${game.gameId}`);
  await page.locator("#state", { hasText: "LOBBY" }).waitFor();
  await call(`games/${game.gameId}:start`, {}, hostToken);
  await page.locator("rummikub-board .meld").first().waitFor();
  await leave(page);
});

test("play: a turn is sent, the bot moves, and the player has the turn again", async () => {
  const page = await open("play");
  await page.locator("#go:enabled", { hasText: "Draw" }).waitFor();
  const count = await page.locator("rummikub-board .rack [data-piece]").count();
  await page.locator(".rack [data-piece]").first().click();
  await page.getByRole("button", { name: "New meld" }).click();
  await page.locator("#go", { hasText: "Play" }).click();
  await page.locator("#state", { hasText: /meld/i }).waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator("#go", { hasText: "Draw" }).click();
  await page.locator("rummikub-board .rack [data-piece]").nth(count).waitFor();
  await page.locator("#state", { hasText: "Your turn" }).waitFor();
  await leave(page);
});

for (const name of ["react", "vue", "svelte"]) {
  test(`${name}: properties go in, changes come out`, async () => {
    const page = await open(name);
    await drag(page, tile(page, "K5"), page.locator("rummikub-board .table"));
    await page.getByText("You play: K5").waitFor();
    await page.locator(".meld.illegal").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("You play: nothing").waitFor();
    await page.getByRole("button", { name: "Draw" }).click();
    await tile(page, "B1").waitFor();
    await leave(page);
  });
}
