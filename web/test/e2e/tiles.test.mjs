/** The package rummikub-tiles: its texts, its size and types, and the element in Chromium. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import * as tiles from "../../tiles/index.js";
import { AXE, launched } from "./support.mjs";

const FOLDER = join(import.meta.dirname, "../../tiles");
const LIMIT = 8 * 1024;
const TYPES = { css: "text/css", html: "text/html", js: "text/javascript" };
const MELDS = "R7 R8 R9 | K3 B3 O3 J | G13 P1 Y2 | F D M C";
const PAGE = `<!doctype html><html lang="en"><title>Tiles</title><script type="module" src="/index.js"></script>
<main><h1>Tiles</h1><p>A run <rummikub-table id="first" melds="${MELDS}">in words</rummikub-table></p></main></html>`;

let browser, page, server;

before(async () => {
  server = createServer(async (request, response) => {
    const name = request.url === "/" ? "page.html" : request.url.slice(1);
    const text = name === "page.html" ? PAGE : await readFile(join(FOLDER, name), "utf8").catch(() => "");
    const policy = { "content-security-policy": "default-src 'self'" };
    response.writeHead(text ? 200 : 404, { "content-type": TYPES[name.split(".").pop()] ?? "text/plain", ...policy });
    response.end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await launched();
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Opens the page of this test; an error in it fails the test. */
async function open(options = {}) {
  page = await browser.newPage(options);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && !/favicon|404/.test(message.text()) && page.faults.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => document.querySelector("#first").shadowRoot !== null);
}

/** Returns the labels of the melds that an element shows. */
function labels(selector) {
  return page.locator(`${selector} .rummikub-meld`).evaluateAll((melds) => melds.map((meld) => meld.ariaLabel));
}

test("texts are read as the service reads them, and as JSON has them", () => {
  const red7 = { color: "red", value: 7 };
  for (const text of ["R7", "r7", "7R", "R7a", "TILE_RED_7"]) assert.deepEqual(tiles.parseTile(text), red7);
  assert.deepEqual(tiles.parseTile("TILE_FALSE_JOKER"), { joker: "false joker" });
  assert.deepEqual(tiles.parseTile("J*"), { joker: "joker" });
  assert.deepEqual(tiles.parseMelds("[R7, K10] | |J"), [[red7, { color: "black", value: 10 }], [{ joker: "joker" }]]);
  for (const text of ["", "R", "R0", "R14", "X3", "J7", "7", "constructor", "<b>"]) {
    assert.throws(() => tiles.parseTile(text), SyntaxError, text);
  }
});

test("the functions need no DOM, and what they return is safe in a page", () => {
  const html = tiles.tableHtml(tiles.parseMelds("R7 J"), (tile) => ("joker" in tile ? '"<J>"' : "7"));
  assert.match(html, /aria-label="7, &#34;&#60;J&#62;&#34;"/);
  assert.equal(html.match(/<svg /g).length, 2);
});

test("the package has at most 8 KB gzipped, one style and the types of its source", async () => {
  const files = await Promise.all(["index.js", "tiles.css"].map((name) => readFile(join(FOLDER, name))));
  assert.ok(files.reduce((sum, file) => sum + gzipSync(file).length, 0) <= LIMIT);
  assert.equal(files[1].toString(), tiles.css);
  await promisify(execFile)("npx", ["tsc", "-p", "tiles"], { cwd: join(FOLDER, "..") });
  const [made, kept] = await Promise.all(
    [join(FOLDER, "../build/tiles/index.d.ts"), join(FOLDER, "index.d.ts")].map((file) => readFile(file, "utf8")),
  );
  assert.equal(kept, made, "copy web/build/tiles/index.d.ts to web/tiles/");
});

test("an element shows its melds, and a new attribute at once", async () => {
  await open();
  assert.deepEqual(await labels("#first"), [
    "red 7, red 8, red 9",
    "black 3, blue 3, orange 3, joker",
    "green 13, purple 1, orange 2",
    "false joker, double joker, mirror, color change",
  ]);
  const box = await page.locator("#first .rummikub-tile").first().boundingBox();
  assert.ok(box.width > 25 && Math.abs(box.height / box.width - 56 / 42) < 0.05, JSON.stringify(box));
  const colors = await page
    .locator("#first .rummikub-tile")
    .evaluateAll((drawn) => new Set(drawn.map((tile) => getComputedStyle(tile).color)).size);
  assert.equal(colors, 7);
  await page.evaluate(() => document.querySelector("#first").setAttribute("melds", "B1 B2 B3"));
  assert.deepEqual(await labels("#first"), ["blue 1, blue 2, blue 3"]);
  await page.evaluate(() => (document.querySelector("#first").nameOf = (tile) => `blau ${tile.value}`));
  assert.deepEqual(await labels("#first"), ["blau 1, blau 2, blau 3"]);
  await page.evaluate(() => document.querySelector("#first").setAttribute("melds", "B1 <b> B3"));
  assert.deepEqual(await labels("#first"), []);
  assert.equal(await page.locator("#first").evaluate((element) => element.innerText), "in words");
  assert.deepEqual(page.faults, []);
});

test("it works in a shadow root, and takes its size and colors from around it", async () => {
  await open();
  await page.evaluate(() => {
    const host = document.body.appendChild(document.createElement("div"));
    host.id = "host";
    host.style.setProperty("--rummikub-tile-width", "60px");
    host.style.setProperty("--rummikub-red", "rgb(1, 2, 3)");
    host.attachShadow({ mode: "open" }).innerHTML = '<rummikub-table melds="R1 R2 R3"></rummikub-table>';
  });
  const tile = page.locator("#host .rummikub-tile").first();
  assert.equal((await tile.boundingBox()).width, 60);
  assert.equal(await tile.evaluate((drawn) => getComputedStyle(drawn).color), "rgb(1, 2, 3)");
});

test("the documentation site draws the melds of its rules, also from the file system", async () => {
  const program = "import build_site as s; print(s.with_tiles('`R6 R7 | J B1`')); print('<script>', s.tiles_script(), '</script>')";
  const root = join(FOLDER, "../..");
  const { stdout } = await promisify(execFile)(join(root, ".venv/bin/python"), ["-c", program], { cwd: join(root, "docs") });
  page = await browser.newPage();
  await page.setContent(stdout);
  assert.deepEqual(await labels("rummikub-table"), ["red 6, red 7", "joker, blue 1"]);
});

test("it is accessible in both color schemes, and its tiles keep their colors where the system forces others", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await open({ colorScheme, bypassCSP: true });
    await page.addScriptTag({ content: AXE });
    const { violations } = await page.evaluate(() => axe.run());
    assert.deepEqual(violations.map(({ id }) => id), []);
  }
  await open({ forcedColors: "active" });
  const color = await page.locator("#first .red").first().evaluate((drawn) => getComputedStyle(drawn).color);
  assert.equal(color, "rgb(179, 38, 30)");
});
