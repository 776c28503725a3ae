/** The package rummikub-board: its size, and the element in Chromium by mouse, touch and keyboard. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { AXE, launched, takePicture } from "./support.mjs";

const DIST = join(import.meta.dirname, "../../board/dist");
const LIMIT = 20 * 1024;
const POLICY = "default-src 'self'";
const PAGE = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Board</title>
<script type="module" src="/index.js"></script>
<main><h1>Board</h1>
<rummikub-board id="first" table="R7 R8 R9 | K3 B3 O3" rack="R10 J K5 R7">in words</rummikub-board></main></html>`;

let browser, server;

before(async () => {
  server = createServer(async (request, response) => {
    const isPage = request.url === "/" || request.url === "/bare";
    const text = request.url === "/bare" ? PAGE.replace(/<script.*script>/, "") : isPage ? PAGE : await readFile(join(DIST, request.url.slice(1)), "utf8").catch(() => "");
    response.writeHead(text ? 200 : 404, { "content-type": isPage ? "text/html" : "text/javascript", "content-security-policy": POLICY });
    response.end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await launched();
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Opens the page of this test. */
async function open(options = {}) {
  const page = await browser.newPage({ viewport: { width: 800, height: 600 }, ...options });
  page.setDefaultTimeout(60_000);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && !/favicon|404/.test(message.text()) && page.faults.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.locator("#first .rack [data-piece]").first().waitFor();
  return page;
}

async function leave(page) {
  assert.deepEqual(page.faults, []);
  await page.close();
}

/** Returns what the player intends, as a text such as "R7 R8 R9 | K3 B3 O3 / R10 J". */
function intended(page, selector = "#first") {
  return page.locator(selector).evaluate(({ intended: { table, rack } }) => `${table.map((meld) => meld.join(" ")).join(" | ")} / ${rack.join(" ")}`);
}

const tile = (page, name, part = ".board") => page.locator(`#first ${part} [data-tile="${name}"]`).first();
const button = (page, name) => page.getByRole("button", { name, exact: true });

async function drag(page, from, to, { x = 0.5, y = 0.5 } = {}) {
  await settledIn(page);
  const [start, end] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await page.mouse.move(end.x + end.width * x, end.y + end.height * y, { steps: 4 });
  await page.mouse.up();
}

/** Waits until no tile moves to its place any more. */
function settledIn(page) {
  return page.waitForFunction(() => document.querySelector("rummikub-board").shadowRoot.getAnimations().length === 0);
}

test("the package has at most 20 KB gzipped, no dependency, and imports nothing", async () => {
  const text = await readFile(join(DIST, "index.js"));
  assert.ok(gzipSync(text).length <= LIMIT, `${gzipSync(text).length} bytes`);
  assert.doesNotMatch(text.toString(), /\bimport\b\s*[{("'*]/);
  const about = JSON.parse(await readFile(join(DIST, "../package.json"), "utf8"));
  assert.equal(about.dependencies, undefined);
  const { LocalTable } = await import(join(DIST, "index.js"));
  assert.deepEqual(new LocalTable({ rack: "7R" }).intended.rack, ["R7"]);
});

test("a tile is dragged with the mouse into a meld, to a new one, and back", async () => {
  const page = await open();
  await page.evaluate(() => {
    globalThis.changes = [];
    document.addEventListener("change", ({ detail }) => changes.push(detail.played.join(" ")));
  });
  await drag(page, tile(page, "R10", ".rack"), tile(page, "R9"), { x: 0.9 });
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / J K5 R7");
  await drag(page, tile(page, "K5"), page.locator("#first .table"), { x: 0.8, y: 0.7 });
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 | K5 / J R7");
  await drag(page, tile(page, "K5"), tile(page, "J"), { x: 0.1 });
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / K5 J R7");
  await drag(page, tile(page, "K3"), tile(page, "J"));
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / K5 J R7");
  assert.equal(await page.locator("#first .said").innerText(), "Tiles of the table stay on the table.");
  assert.deepEqual(await page.evaluate(() => changes), ["R10", "R10 K5", "R10"]);
  await leave(page);
});

test("a whole meld is dragged by its grip, and a drag is ended by Escape", async () => {
  const page = await open();
  await drag(page, page.locator("#first .grip").first(), tile(page, "O3"), { x: 0.9 });
  assert.equal(await intended(page), "K3 B3 O3 R7 R8 R9 / R10 J K5 R7");
  const from = await tile(page, "J").boundingBox();
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(300, 40, { steps: 3 });
  await page.locator("#first .ghost").waitFor();
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.equal(await page.locator("#first .ghost").count(), 0);
  assert.equal(await intended(page), "K3 B3 O3 R7 R8 R9 / R10 J K5 R7");
  await leave(page);
});

test("a finger drags a tile, and the page does not scroll with it", async () => {
  const page = await open({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 700 } });
  await page.evaluate(() => (document.body.style.minHeight = "3000px"));
  const touch = await page.context().newCDPSession(page);
  const [from, to] = [await tile(page, "R10", ".rack").boundingBox(), await tile(page, "R9").boundingBox()];
  const send = (type, x, y) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  const at = (box, x) => [box.x + box.width * x, box.y + box.height / 2];
  await send("touchStart", ...at(from, 0.5));
  const [[x0, y0], [x1, y1]] = [at(from, 0.5), at(to, 0.9)];
  for (const part of [0.25, 0.5, 0.75, 1]) await send("touchMove", x0 + (x1 - x0) * part, y0 + (y1 - y0) * part);
  await send("touchEnd");
  await page.waitForFunction(() => document.querySelector("#first").intended.played.length === 1);
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / J K5 R7");
  assert.equal(await page.evaluate(() => scrollY), 0);
  await leave(page);
});

test("tiles are chosen by a tap and laid at a place by another one, where nothing moves", async () => {
  const page = await open();
  const before = await tile(page, "K3").boundingBox();
  await tile(page, "R7", ".rack").click();
  await tile(page, "J").click();
  assert.deepEqual(await tile(page, "K3").boundingBox(), before);
  await button(page, "At the start of meld 1").click();
  assert.equal(await intended(page), "R7 J R7 R8 R9 | K3 B3 O3 / R10 K5");
  assert.equal(await tile(page, "R7").evaluate((one) => one.getRootNode().activeElement === one), true);
  await tile(page, "K5").click();
  await button(page, "New meld").click();
  assert.equal(await intended(page), "R7 J R7 R8 R9 | K3 B3 O3 | K5 / R10");
  await button(page, "Undo").click();
  await button(page, "Start over").click();
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / R10 J K5 R7");
  await button(page, "Sort by number").click();
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / K5 R7 R10 J");
  await leave(page);
});

test("all is done by keys, and each step is said", async () => {
  const page = await open();
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const said = () => page.locator("#first .said").innerText();
  await tile(page, "R10", ".rack").focus();
  await press("ArrowRight", "ArrowLeft", "Enter");
  assert.equal(await said(), "Carrying red 10. New meld");
  await press("ArrowUp", "ArrowUp");
  assert.equal(await said(), "At the start of meld 1");
  await press("ArrowRight", "ArrowRight", "ArrowRight");
  assert.equal(await said(), "In meld 1, after red 9");
  await press("Enter");
  assert.equal(await said(), "Laid.");
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / J K5 R7");
  // The focus has gone with the tile: on to the next meld, all of which is carried and put back.
  await press("ArrowRight", "Shift+Enter", "Escape");
  assert.equal(await said(), "Put back.");
  await press("Control+z");
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / R10 J K5 R7");
  await press("Control+y");
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / J K5 R7");
  await leave(page);
});

test("melds are marked as they are judged, while tiles are carried over them", async () => {
  const page = await open({ viewport: { width: 640, height: 380 } });
  await page.evaluate(() => {
    document.querySelector("#first").judge = ({ table }) => ({
      isLegal: false,
      melds: table.map((meld) => ({ isLegal: meld.at(-1) !== "K5", text: meld.at(-1) === "K5" ? "no run" : undefined, faulty: [meld.length - 1] })),
    });
  });
  const [from, to] = [await tile(page, "K5").boundingBox(), await tile(page, "R9").boundingBox()];
  await page.mouse.move(from.x + 9, from.y + 9);
  await page.mouse.down();
  await page.mouse.move(to.x + to.width - 3, to.y + 20, { steps: 3 });
  await page.locator("#first .meld.illegal").waitFor();
  await page.mouse.up();
  await page.locator("#first .faulty[data-tile=K5]").waitFor();
  const meld = page.locator("#first .meld").first();
  assert.equal(await meld.getAttribute("aria-label"), "Meld 1: red 7, red 8, red 9, black 5. not legal");
  assert.equal(await meld.locator(".fault").innerText(), "no run");
  assert.equal(await page.locator("#first .meld").nth(1).getAttribute("class"), "meld");
  assert.equal(await page.locator("#first .fresh").count(), 0);
  await page.mouse.move(0, 0);
  await takePicture(page, "board", { clip: { x: 0, y: 70, width: 640, height: 300 } });
  await leave(page);
});

test("another position moves its tiles from where they were, unless nothing should move", async () => {
  const moved = async (page) => {
    await page.evaluate(() => {
      globalThis.moved = 0;
      const { animate } = Element.prototype;
      Element.prototype.animate = function (...parts) {
        globalThis.moved++;
        return animate.apply(this, parts);
      };
      const board = document.querySelector("#first");
      board.table = "K3 B3 O3 | R7 R8 R9 R10";
      board.rack = [{ joker: "joker" }, "K5", { color: "red", value: 7 }];
    });
    await page.locator("#first .meld [data-tile=R10]").waitFor();
    return page.evaluate(() => globalThis.moved);
  };
  const page = await open();
  assert.ok((await moved(page)) >= 7);
  await settledIn(page);
  assert.equal(await intended(page), "K3 B3 O3 | R7 R8 R9 R10 / J K5 R7");
  await leave(page);
  const calm = await open({ reducedMotion: "reduce" });
  assert.equal(await moved(calm), 0);
  await leave(calm);
});

test("a tile that is tapped twice goes where it fits, if there is one such place; melds of the rack are shown", async () => {
  const page = await open();
  const show = (table, rack) => page.evaluate((position) => Object.assign(document.querySelector("#first"), position), { table, rack });
  await tile(page, "R10", ".rack").dblclick();
  assert.equal(await intended(page), "R7 R8 R9 R10 | K3 B3 O3 / J K5 R7");
  await tile(page, "K5").dblclick();
  await page.locator("#first .message", { hasText: "black 5 fits at 0 places." }).waitFor();
  await show("R7 R8 R9 | B10 K10 O10", "R10 K2 B4 R4 R5 O4 R6");
  await tile(page, "K2").waitFor();
  await tile(page, "R10", ".rack").dblclick();
  await page.locator("#first .message", { hasText: "red 10 fits at 2 places." }).waitFor();
  await button(page, "Show melds").click();
  assert.equal(await intended(page), "R7 R8 R9 | B10 K10 O10 / R4 R5 R6 R10 B4 K2 O4");
  assert.equal(await page.locator("#first .message").isVisible(), false);
  await leave(page);
});

test("what the last position has moved is shown again", async () => {
  const page = await open();
  await page.evaluate(() => Object.assign(document.querySelector("#first"), { table: "K3 B3 O3 | R7 R8 R9 O10", rack: "R10 J K5 R7" }));
  await tile(page, "O10").waitFor();
  await settledIn(page);
  await page.evaluate(() => {
    globalThis.moving = [];
    Element.prototype.animate = function (_, options) {
      globalThis.moving.push([this.dataset.tile, options.duration ?? options]);
    };
  });
  await button(page, "Show again").click();
  const moving = await page.evaluate(() => globalThis.moving);
  assert.deepEqual(moving.map(([name]) => name).toSorted(), ["B3", "K3", "O10", "O3", "R7", "R8", "R9"]);
  assert.ok(moving.every(([, duration]) => duration === 400));
  await leave(page);
});

test("two fingers enlarge the table, and carry nothing", async () => {
  const page = await open({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 700 } });
  const session = await page.context().newCDPSession(page);
  const before = (await tile(page, "K3").boundingBox()).width;
  const { x, y } = await tile(page, "R8").boundingBox();
  const touch = (type, apart) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: apart === undefined ? [] : [{ x, y, id: 0 }, { x: x + apart, y, id: 1 }] });
  await touch("touchStart", 80);
  for (const apart of [90, 100, 110, 120]) await touch("touchMove", apart);
  await touch("touchEnd");
  await page.waitForFunction((least) => document.querySelector("#first").shadowRoot.querySelector("[data-tile=K3]").getBoundingClientRect().width > least, before * 1.3);
  assert.equal(await page.locator("#first .ghost").count(), 0);
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / R10 J K5 R7");
  await leave(page);
});

test("the table is enlarged by its buttons and by the wheel with Ctrl", async () => {
  const page = await open();
  const width = async () => (await tile(page, "K3").boundingBox()).width;
  const before = await width();
  await button(page, "Enlarge").click();
  assert.ok((await width()) > before * 1.2);
  await tile(page, "K3").hover();
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 100);
  await page.waitForFunction((least) => document.querySelector("#first").shadowRoot.querySelector("[data-tile=K3]").getBoundingClientRect().width < least, before * 1.1);
  await leave(page);
});

test("boards in shadow roots are of their own: places, ids, size, colors and language", async () => {
  const page = await open({ bypassCSP: true });
  await page.evaluate(() => {
    const host = document.querySelector("main").appendChild(document.createElement("div"));
    host.style.transform = "translateX(30px)";
    host.attachShadow({ mode: "open" }).innerHTML = `<style>
      rummikub-board { --rummikub-tile-width: 50px; --rummikub-felt: rgb(1, 2, 3); }
      rummikub-board::part(rack) { background: rgb(4, 5, 6); }
    </style><rummikub-board id="second" table="R1 R2 R3" rack="R4"></rummikub-board>`;
  });
  const before = await intended(page);
  await drag(page, page.locator("#second [data-tile=R4]"), page.locator("#second [data-tile=R3]"), { x: 0.9 });
  assert.equal(await intended(page, "#second"), "R1 R2 R3 R4 / ");
  assert.equal(await intended(page), before);
  await drag(page, page.locator("#second [data-tile=R4]"), page.locator("#first .rack"));
  assert.equal(await intended(page, "#second"), "R1 R2 R3 R4 / ");
  const style = (part, name) => page.locator(`#second ${part}`).evaluate((one, key) => getComputedStyle(one)[key], name);
  assert.deepEqual(
    [await style(".table", "backgroundColor"), await style(".rack", "backgroundColor"), await style("[data-tile=R1] svg", "width")],
    ["rgb(1, 2, 3)", "rgb(4, 5, 6)", "50px"],
  );
  const idsOf = (selector) => page.locator(`${selector} [id]`).evaluateAll((all) => all.map(({ id }) => id));
  const [first, second] = [await idsOf("#first"), await idsOf("#second")];
  assert.ok(first.length > 0 && first.every((id) => !second.includes(id)));
  await page.evaluate(() => (document.querySelector("#first").texts = { rack: "Bank", tile: ({ color, value }) => `${color}!${value}` }));
  assert.equal(await page.locator("#first .rack").getAttribute("aria-label"), "Bank");
  assert.equal(await tile(page, "K5").getAttribute("aria-label"), "black!5");
  assert.equal(await page.locator("#second .rack").getAttribute("aria-label"), "Rack");
  await leave(page);
});

test("where it is readonly, only the rack can be ordered", async () => {
  const page = await open();
  await page.evaluate(() => document.querySelector("#first").toggleAttribute("readonly", true));
  await button(page, "Undo").waitFor({ state: "detached" });
  await drag(page, tile(page, "R10"), tile(page, "R9"));
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / R10 J K5 R7");
  await drag(page, tile(page, "R10"), tile(page, "K5"), { x: 0.9 });
  assert.equal(await intended(page), "R7 R8 R9 | K3 B3 O3 / J K5 R10 R7");
  await leave(page);
});

test("its content is shown until it is defined, and what was set before is taken then", async () => {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/bare`);
  assert.equal(await page.locator("#first").innerText(), "in words");
  await page.evaluate(() => Object.assign(document.querySelector("#first"), { table: [["R1", "R2", "R3"]], readonly: true }));
  await page.addScriptTag({ type: "module", url: "/index.js" });
  await page.locator("#first .meld").waitFor();
  assert.equal(await intended(page), "R1 R2 R3 / R10 J K5 R7");
  assert.equal(await button(page, "Undo").count(), 0);
  await page.close();
});

test("it is accessible in both color schemes and where the system forces colors", async () => {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }]) {
    const page = await open({ bypassCSP: true, ...options });
    await tile(page, "J").click();
    await page.addScriptTag({ content: AXE });
    const { violations } = await page.evaluate(() => axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].html]), []);
    await leave(page);
  }
});
