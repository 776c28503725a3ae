/** The moving picture of README and of the site's home page: two turns of a round, taken from the page. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import {
  act,
  button,
  createGame,
  drag,
  findExtension,
  findMeld,
  layMeld,
  myTurn,
  openWorld,
  PICTURES,
  rackTile,
  settled,
  startGame,
  tilesOf,
  UPDATES_PICTURES,
} from "./support.mjs";

const SIZE = { width: 900, height: 640 };
const LIMIT = 1.5 * 1024 * 1024;
/** How long a frame is shown, in milliseconds: the machine's pauses are cut. */
const SHORTEST = 80;
const LONGEST = 900;
const LAST = 2500;
const OPTIONS = { "initial_meld.threshold": 0, turn_time_limit: 0, bot_pause: 1 };

/** Runs in a page: returns a GIF of frames, in base64; of each frame after the first only what has changed. */
async function encoded(frames) {
  const { GIFEncoder, quantize, applyPalette } = globalThis.gifenc;
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const pixelsOf = async (png) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    [canvas.width, canvas.height] = [image.width, image.height];
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height).data;
  };
  const gif = GIFEncoder();
  const sample = [];
  for (const { png } of frames.filter((_, i) => i % Math.ceil(frames.length / 6) === 0)) sample.push(await pixelsOf(png));
  const palette = quantize(new Uint8ClampedArray(await new Blob(sample).arrayBuffer()), 255);
  let before;
  for (const { png, delay } of frames) {
    const index = applyPalette(await pixelsOf(png), palette);
    const changed = before ? index.map((color, i) => (color === before[i] ? palette.length : color)) : index;
    gif.writeFrame(changed, canvas.width, canvas.height, {
      palette: before ? undefined : [...palette, [0, 0, 0]],
      delay,
      transparent: before !== undefined,
      transparentIndex: palette.length,
      dispose: 1,
    });
    before = index;
  }
  gif.finish();
  return gif.bytes().toBase64?.() ?? btoa(Array.from(gif.bytes(), (byte) => String.fromCharCode(byte)).join(""));
}

/** Opens a game in which the player can lay a meld; tiles are dealt at random. */
async function withMeld(world) {
  for (;;) {
    const page = await world.open({ viewport: SIZE });
    await createGame(page, { bots: 2, level: "medium", options: OPTIONS });
    await startGame(page);
    assert.ok(await myTurn(page));
    const meld = findMeld((await tilesOf(page)).rack);
    if (meld && (await tilesOf(page)).melds.length > 0) return { page, meld };
    await page.context().close();
  }
}

/** Shows where the mouse is: pictures have no pointer. */
function showPointer() {
  const pointer = document.createElement("div");
  pointer.style.cssText =
    "position:fixed;z-index:99999;width:18px;height:18px;margin:-9px;border-radius:50%;pointer-events:none;background:#f59e0baa;border:2px solid #fff";
  addEventListener("pointermove", ({ clientX, clientY }) => {
    [pointer.style.left, pointer.style.top] = [`${clientX}px`, `${clientY}px`];
  }, true);
  document.body.append(pointer);
}

test("two turns of a round make a moving picture", { skip: !UPDATES_PICTURES }, async () => {
  const world = await openWorld();
  try {
    const { page, meld } = await withMeld(world);
    await page.evaluate(showPointer);
    const frames = [];
    const session = await page.context().newCDPSession(page);
    session.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
      frames.push({ png: data, at: metadata.timestamp * 1000 });
      void session.send("Page.screencastFrameAck", { sessionId }).catch(() => {});
    });
    await session.send("Page.startScreencast", { format: "png" });
    await layMeld(page, meld);
    await page.locator(".turn-message.good").waitFor();
    await act(page, () => button(page, "Play").click());
    await myTurn(page);
    await settled(page);
    const { rack, melds } = await tilesOf(page);
    const next = findExtension(rack, melds);
    if (next) {
      await drag(page, rackTile(page, next.name), page.locator(".felt .meld").nth(next.meld), { x: next.x });
      await page.locator(".turn-message.good").waitFor();
    }
    await act(page, () => button(page, next ? "Play" : "Draw").click());
    await myTurn(page);
    await settled(page);
    await session.send("Page.stopScreencast");
    const timed = frames
      .map(({ png, at }, i) => ({ png, delay: i + 1 < frames.length ? Math.min(frames[i + 1].at - at, LONGEST) : LAST }))
      .reduce((kept, frame) => {
        const last = kept.at(-1);
        if (last && last.delay < SHORTEST) kept[kept.length - 1] = { png: frame.png, delay: last.delay + frame.delay };
        else kept.push(frame);
        return kept;
      }, []);
    const { outputFiles } = await build({
      stdin: { contents: 'export * from "gifenc"', resolveDir: import.meta.dirname },
      bundle: true,
      format: "iife",
      globalName: "gifenc",
      write: false,
    });
    const blank = await world.open();
    await blank.goto("about:blank");
    await blank.evaluate(`${outputFiles[0].text};globalThis.gifenc = gifenc`);
    const gif = Buffer.from(await blank.evaluate(encoded, timed), "base64");
    console.log(`${timed.length} frames, ${timed.reduce((sum, { delay }) => sum + delay, 0) / 1000} s, ${gif.length} bytes`);
    assert.ok(gif.length < LIMIT, `${gif.length} bytes`);
    await writeFile(join(PICTURES, "play.gif"), gif);
  } finally {
    await world.close();
  }
});
