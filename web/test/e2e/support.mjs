/** What the tests in a browser share: the servers, Chromium, axe, pictures, and a player's hands. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createServer, connect } from "node:net";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const ROOT = join(import.meta.dirname, "../../..");
/** The folder of the pictures. */
export const PICTURES = join(ROOT, "docs/pictures");
const FAILURES = join(ROOT, "web/build/failures");
// The shell without windows takes half of the time.
const PROGRAMS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const CHROMIUM = process.env.CHROMIUM ?? PROGRAMS.find(existsSync);
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
export const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Whether the pictures of docs/pictures are taken. */
export const UPDATES_PICTURES = process.env.UPDATE_PICTURES === "1";

/** The sizes at which each screen is looked at: a desktop, a phone, and the phone sideways. */
const SCREENS = join(ROOT, "web/build/screens");
const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
  { width: 844, height: 390 },
];

/** Takes pictures of a screen at each of SIZES, for web/build/screens. */
async function takeScreens(page, name) {
  await mkdir(SCREENS, { recursive: true });
  const before = page.viewportSize();
  for (const { width, height } of SIZES) {
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: join(SCREENS, `${name}-${width}x${height}.png`), animations: "disabled" });
  }
  await page.setViewportSize(before);
}

/** Returns a port that is free now. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts the service and the edge before it, as `make web` does. TABLE_EDGE is the port of an edge that runs already. */
export async function startEdge() {
  if (process.env.TABLE_EDGE) return { port: Number(process.env.TABLE_EDGE), stop: async () => {} };
  const port = await freePort();
  const environment = {
    ...process.env,
    RUMMIKUB_LISTEN: "127.0.0.1:0",
    RUMMIKUB_VALIDATION_LISTEN: "127.0.0.1:0",
    RUMMIKUB_METRICS_LISTEN: "127.0.0.1:0",
    RUMMIKUB_REDIS_URL: "memory://",
    RUMMIKUB_BOT_DELAY_MS: "50",
  };
  const python = join(ROOT, ".venv/bin/python");
  const process_ = spawn(python, ["-m", "tools.web", "--port", String(port), "--no-build"], {
    cwd: ROOT,
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve, reject) => {
    process_.once("exit", (code) => reject(new Error(`tools.web ended with ${code}`)));
    process_.stdout.once("data", resolve);
  });
  const stop = async () => {
    const ended = new Promise((resolve) => process_.once("exit", resolve));
    process_.kill("SIGTERM");
    await ended;
  };
  return { port, stop };
}

/** A proxy between the browser and the edge, which can be cut like a cable. */
async function startCable(edgePort) {
  const sockets = new Set();
  const server = createServer((near) => {
    const far = connect(edgePort, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  const listen = (port) =>
    new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server.address().port)));
  const port = await listen(0);
  const cut = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `http://127.0.0.1:${port}/`, cut, restore: () => listen(port) };
}

/** Starts Chromium. */
export function launched() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** Starts servers and browser. `clear` closes the pages that a failed test left, after a picture of each. */
export async function openWorld() {
  const edge = await startEdge();
  const cable = await startCable(edge.port);
  const pages = [];
  const browser = await launched();
  /** Opens a page as somebody else; any error in it fails the test that closes it. */
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1040, height: 720 }, locale: "en-US", ...options });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    pages.push(page);
    page.setDefaultTimeout(60_000); // a bot may wait for a busy machine
    page.faults = [];
    page.on("pageerror", (error) => page.faults.push(error.stack ?? error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text()))
        page.faults.push(message.text());
    });
    await page.goto(cable.url);
    return page;
  };
  const clear = async () => {
    for (const [i, page] of pages.splice(0).entries()) {
      if (page.isClosed()) continue;
      await page.screenshot({ path: join(FAILURES, `${Date.now()}-${i}.png`) });
      await page.context().close();
    }
  };
  const close = async () => {
    await browser.close();
    cable.cut();
    await edge.stop();
  };
  return { open, clear, close, ...cable };
}

/** Closes a page of `open`, and fails if it reported an error. */
export async function leave(...pages) {
  for (const page of pages) {
    await page.context().close();
    assert.deepEqual(page.faults, []);
  }
}

/** Checks a screen with axe in both color schemes, its own last, and takes its picture if UPDATE_PICTURES is 1. */
export async function inspect(page, name) {
  if (UPDATES_PICTURES) await takeScreens(page, name);
  await page.evaluate(AXE);
  const schemes = await page.evaluate(() => (matchMedia("(prefers-color-scheme: dark)").matches ? ["light", "dark"] : ["dark", "light"]));
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme });
    const found = await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes.slice(0, 3).map(({ html }) => html) }));
    });
    const grave = found.filter(({ impact }) => impact === "serious" || impact === "critical");
    assert.deepEqual(grave, [], `axe on ${name} in ${colorScheme} colors`);
  }
  await takePicture(page, name);
}

/** Takes a picture again if UPDATE_PICTURES is 1 and docs/pictures has it: only pictures that a page shows are there. */
export async function takePicture(page, name, options = {}) {
  const path = join(PICTURES, `${name}.png`);
  if (UPDATES_PICTURES && existsSync(path)) await page.screenshot({ path, animations: "disabled", ...options });
}

/** Returns when the page first painted content, in milliseconds after the navigation began. */
export function firstPaint(page) {
  return page.evaluate(
    () =>
      new Promise((resolve) => {
        const observer = new PerformanceObserver((list) => {
          const paint = list.getEntriesByName("first-contentful-paint")[0];
          if (paint !== undefined) resolve(paint.startTime);
        });
        observer.observe({ type: "paint", buffered: true });
      }),
  );
}

/** Options of a game that is soon over. */
export const QUICK = { "deal.hand_size": 7, "initial_meld.threshold": 0, turn_time_limit: 0 };
/** Nobody can make the initial meld: the table stays empty. */
export const CALM = { ...QUICK, "initial_meld.threshold": 200 };

/** Opens the form of a new game, and chooses the rules by their title. */
export async function openForm(page, rules) {
  const toggle = button(page, "Choose rules and players");
  if ((await toggle.getAttribute("aria-expanded")) === "false") await toggle.click();
  if (rules !== undefined) await page.getByLabel(/^Rules/).selectOption({ label: rules });
  return page.locator(".new-game form");
}

/** Sets options by their names in the contract. */
export async function setOptions(page, options) {
  if (Object.keys(options).length > 0) await page.getByText("All options").click();
  for (const [option, value] of Object.entries(options)) {
    const field = page.locator(`[data-option="${option}"]`);
    await field.waitFor();
    const input = field.locator("input");
    if (await input.count()) await input.fill(String(value));
    else await field.locator("select").selectOption({ label: wordsOf(value) });
  }
}

const wordsOf = (name) => name.charAt(0) + name.slice(1).toLowerCase().replaceAll("_", " ");

/** Creates a game. `options` are those of the contract by name; `bots` and `level` as in the form. */
export async function createGame(page, { name = "Ann", bots = 1, level = "easy", checks = {}, options = {} } = {}) {
  const form = await openForm(page);
  await form.getByLabel("Your name").fill(name);
  await form.getByLabel(/^Bots/).first().selectOption(String(bots));
  await form.getByLabel("Strength").first().selectOption({ label: level });
  for (const [label, isOn] of Object.entries(checks)) await form.getByLabel(label).setChecked(isOn);
  await setOptions(page, options);
  await button(page, "Create game").click();
  await button(page, "Start game").waitFor();
}

export async function startGame(page) {
  await page.getByRole("button", { name: "Start game" }).click();
  await page.locator(".rack [data-piece]").first().waitFor();
}

/** Creates a game and starts it, until the page's player has the turn. */
export async function begin(page, settings) {
  await createGame(page, settings);
  await startGame(page);
  assert.ok(await myTurn(page));
  return page;
}

const COLORS = { R: "RED", B: "BLUE", K: "BLACK", O: "ORANGE" };
const NUMBERS = Array.from({ length: 13 }, (_, i) => i + 1);
const FACES = Object.keys(COLORS).flatMap((color) => NUMBERS.map((number) => color + number));

/** Returns tiles by their names, such as "R7", as JSON of the contract has them. */
function tilesOfNames(names) {
  return names.map((name) => (name === "J" ? "TILE_JOKER" : `TILE_${COLORS[name[0]]}_${name.slice(1)}`));
}

/** Returns the tiles of a set without some of them. */
function setWithout(names) {
  const rest = [...FACES, ...FACES, "J", "J"];
  for (const name of names) rest.splice(rest.indexOf(name), 1);
  return rest;
}

/** A rack with two melds, and one of a bot without any. */
export const RACKS = [
  ["R4", "R5", "R6", "R7", "B9", "K9", "O9", "B2", "K13", "O1"],
  ["R1", "B5", "K7", "O12"],
];

/**
 * Opens a game that begins with a table and racks in place of a deal. The page has seat 1 and the first turn, bots have the
 * other seats. `next` are the tiles that are drawn first. `options` are those of the ruleset, and `settings` the room's.
 */
export async function beginAt(page, { melds = [], racks = RACKS, next = [], options = {}, settings = {}, level = "EASY" } = {}) {
  const position = {
    table: { melds: melds.map((names) => ({ tiles: tilesOfNames(names) })) },
    seats: racks.map((rack, i) => ({ seat: i + 1, rack: tilesOfNames(rack), hasMelded: melds.length > 0 })),
    pool: tilesOfNames([...next, ...setWithout([...melds, ...racks, next].flat())]),
    turnSeat: 1,
  };
  const created = {
    ruleset: { melding: { preset: "PRESET_SABRA", initialMeld: { threshold: 0 }, ...options } },
    settings: { turnTimeLimit: "0s", ...settings },
    position,
  };
  const gameId = await page.evaluate(
    async ([created, bots, level]) => {
      const post = async (path, body, token) => {
        const headers = token ? { authorization: `Bearer ${token}` } : {};
        const response = await fetch(`/v1/games${path}`, { method: "POST", body: JSON.stringify(body), headers });
        if (!response.ok) throw new Error(await response.text());
        return response.json();
      };
      const { game, hostToken } = await post("", created);
      const { gameId } = game;
      const { seatToken: token } = await post(`/${gameId}:join`, { name: "Ann" }, hostToken);
      const seat = { gameId, token, seat: 1, name: "Ann", time: Date.now() };
      for (const storage of [sessionStorage, localStorage]) storage.setItem("rummikub.seats", JSON.stringify([seat]));
      for (let bot = 0; bot < bots; bot++) await post(`/${gameId}:addBot`, { level: `BOT_LEVEL_${level}` }, token);
      await post(`/${gameId}:start`, {}, token);
      return gameId;
    },
    [created, racks.length - 1, level],
  );
  await page.goto(`${page.url().replace(/#.*/, "")}#/game/${gameId}`);
  await page.locator(".rack [data-piece]").first().waitFor();
  assert.ok(await myTurn(page));
}

/** A late round of four: 26 groups lie on the table, two of each number. All tiles of the racks fit to one of them. */
export const LATE = {
  melds: NUMBERS.flatMap((number) => [["R", "B", "K"], ["R", "B", "O"]].map((colors) => colors.map((color) => color + number))),
  racks: ["O1 O2 O3 O4 O5", "O6 O7 O8 O9 O10", "O11 O12 O13 K1 K2", "K3 K4 K5 K6 K7"].map((names) => names.split(" ")),
};

export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const isOver = (page) => page.locator("section.result").count();

/** Waits until the page's player has the turn. Returns false if the round is over. */
export async function myTurn(page) {
  const mine = page.locator(".turn-title", { hasText: "Your turn" });
  await mine.or(page.locator("section.result")).first().waitFor();
  return (await isOver(page)) === 0;
}

/** Takes an action of the game, and waits until the table shows what came of it. */
export async function act(page, action) {
  const revision = () => Number(document.querySelector("[data-revision]").dataset.revision);
  const before = await page.evaluate(revision);
  await action();
  await page.waitForFunction((old) => Number(document.querySelector("[data-revision]").dataset.revision) > old, before);
}

export async function drawOrPass(page) {
  const draw = button(page, "Draw");
  await act(page, async () => ((await draw.count()) ? draw : button(page, "Pass")).click());
}

/** Returns the tiles of the rack and of the melds by their names. */
export function tilesOf(page) {
  return page.evaluate(() => {
    const names = (root) => [...root.querySelectorAll("[data-piece]")].map((tile) => tile.dataset.tile);
    return {
      rack: names(document.querySelector(".rack")),
      melds: [...document.querySelectorAll(".felt .meld")].map(names),
    };
  });
}

/** Waits until no tile moves to its place any more. */
export function settled(page) {
  return page.waitForFunction(() => document.getAnimations().every((animation) => animation.constructor !== Animation));
}

/** Drags with the mouse from the middle of one element to the middle, or another place, of another one. */
export async function drag(page, from, to, { x = 0.5, y = 0.5 } = {}) {
  // The hand covers the lower end of the window, and is always in sight.
  await to.evaluate((element) => element.scrollIntoView({ block: "center" }));
  await settled(page);
  const start = await from.boundingBox();
  const aim = async () => {
    const box = await to.boundingBox();
    await page.mouse.move(box.x + box.width * x, box.y + box.height * y, { steps: 3 });
  };
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await aim();
  await aim(); // the table may have scrolled under the tile
  await page.mouse.up();
}

export const rackTile = (page, name) => page.locator(`.rack [data-tile="${name}"]`).first();

/** A place of the table where no meld is and the page does not scroll: its right margin. */
export const FREE = { x: 0.99, y: 0.5 };

/** Drags tiles of the rack to the table, the first one to a free place and the others behind it: a new meld. */
export async function layMeld(page, names) {
  const [first, ...others] = names;
  const before = await page.locator(".felt .meld").count();
  await drag(page, rackTile(page, first), page.locator(".felt"), FREE);
  await page.locator(".felt .meld").nth(before).waitFor();
  for (const name of others) {
    await drag(page, rackTile(page, name), page.locator(".felt .meld").nth(before).locator("[data-piece]").last(), {
      x: 0.95,
    });
  }
}

/** Returns a meld of three or more tiles of a rack, without jokers; undefined if there is none. */
export function findMeld(rack) {
  const plain = [...new Set(rack.filter((name) => name !== "J"))].map((name) => ({
    name,
    color: name[0],
    value: Number(name.slice(1)),
  }));
  for (const { color, value } of plain) {
    const run = [];
    for (let next = value; ; next++) {
      const tile = plain.find((other) => other.color === color && other.value === next);
      if (tile === undefined) break;
      run.push(tile.name);
    }
    if (run.length >= 3) return run;
    const group = plain.filter((tile) => tile.value === value).map(({ name }) => name);
    if (group.length >= 3) return group;
  }
  return undefined;
}

/** Returns a tile of a rack that fits at the end of a meld without jokers, as { name, meld, side }. */
export function findExtension(rack, melds) {
  for (const [meld, names] of melds.entries()) {
    if (names.includes("J") || names.length < 3) continue;
    const tiles = names.map((name) => ({ color: name[0], value: Number(name.slice(1)) }));
    const [first, last] = [tiles[0], tiles.at(-1)];
    const isRun = first.color === last.color;
    for (const name of rack.filter((name) => name !== "J")) {
      const [color, value] = [name[0], Number(name.slice(1))];
      if (isRun && color === first.color && value === last.value + 1) return { name, meld, x: 0.95 };
      if (isRun && color === first.color && value === first.value - 1) return { name, meld, x: 0.02 };
      if (!isRun && value === first.value && !tiles.some((tile) => tile.color === color))
        return { name, meld, x: 0.95 };
    }
  }
  return undefined;
}

export { sleep };
