/** The program of the tutorial on a front end in a browser (docs/tutorial/web.md): a turn is played with it. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { AXE, button, openWorld } from "./support.mjs";

const WEB = join(import.meta.dirname, "../..");
const FOLDER = join(WEB, "../clients/typescript/examples/table");
const TYPES = { css: "text/css", html: "text/html", js: "text/javascript" };
let server, world;

before(async () => {
  world = await openWorld();
  const { outputFiles } = await build({
    entryPoints: [join(FOLDER, "main.ts")],
    alias: {
      "rummikub-client": join(WEB, "../clients/typescript/src/web.ts"),
      "rummikub-tiles": join(WEB, "tiles/index.js"),
    },
    nodePaths: [join(WEB, "node_modules")],
    bundle: true,
    format: "esm",
    target: "es2022",
    tsconfigRaw: {},
    write: false,
  });
  const files = {
    "index.html": await readFile(join(FOLDER, "index.html"), "utf8"),
    "rummikub-tiles.css": await readFile(join(WEB, "tiles/tiles.css"), "utf8"),
    "main.js": outputFiles[0].text.replace("http://127.0.0.1:8080", world.url.slice(0, -1)),
  };
  server = createServer((request, response) => {
    const name = request.url.slice(1) || "index.html";
    response.writeHead(files[name] ? 200 : 404, { "content-type": TYPES[name.split(".").pop()] ?? "text/plain" });
    response.end(files[name]);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  await world?.close();
  server?.close();
});

test("tiles become a meld, the service judges it, and a draw ends the turn", async () => {
  const page = await world.open();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const status = page.getByRole("status");
  const rack = page.getByRole("group", { name: "Rack" }).getByRole("button");
  const mine = page.getByText("Your turn.", { exact: true });
  await mine.waitFor();
  const dealt = await rack.count();
  assert.ok(dealt >= 14);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.filter(({ impact }) => impact === "serious").map(({ id }) => id), []);
  await rack.nth(0).click();
  await rack.nth(1).click();
  await button(page, "New meld").click();
  await status.filter({ hasText: "a meld needs at least three tiles" }).waitFor();
  assert.equal(await rack.count(), dealt - 2);
  await button(page, "Undo").click();
  assert.equal(await rack.count(), dealt);
  await button(page, "Draw").click();
  await page.locator(`#rack button:nth-child(${dealt + 1})`).waitFor(); // the bot has had its turn, or has it
  await mine.waitFor();
  // The bot plays or draws; in either case the person's next turn comes, and a hint is a play or says that there is none.
  await button(page, "Hint").click();
  await status.filter({ hasText: /This is the best play|No play is possible/ }).waitFor();
  assert.deepEqual(page.faults, []);
});
