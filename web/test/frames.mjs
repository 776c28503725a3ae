/**
 * Measures the frames while a tile is dragged over a full table on a CPU that is four times slower, and prints their
 * 95th percentile: `npm run frames`. It is no test, because the figure depends on what else the machine does.
 */
import { LATE, beginAt, button, leave, openWorld } from "./e2e/support.mjs";

const SECONDS = 6;
const SLOWER = 4;

const world = await openWorld();
try {
  const page = await world.open({ viewport: { width: 1280, height: 800 } });
  await beginAt(page, LATE);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  const [tile, felt] = [await page.locator(".rack [data-piece]").first().boundingBox(), await page.locator(".felt").boundingBox()];
  await page.mouse.move(tile.x + 10, tile.y + 10);
  await page.mouse.down();
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  const before = await busy();
  await page.evaluate(() => {
    globalThis.frames = [];
    let last = performance.now();
    const next = (now) => {
      globalThis.frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  const end = performance.now() + SECONDS * 1000;
  for (let step = 0; performance.now() < end; step++) {
    const [x, y] = [Math.abs(((step * 0.013) % 2) - 1), Math.abs(((step * 0.029) % 2) - 1)];
    await page.mouse.move(felt.x + 50 + x * (felt.width - 100), felt.y + 50 + y * (felt.height - 100));
  }
  const frames = (await page.evaluate(() => globalThis.frames.slice(1))).sort((a, b) => a - b);
  const share = ((await busy()) - before) / SECONDS;
  const at = (part) => frames[Math.floor(frames.length * part)].toFixed(1);
  console.log(`${frames.length} frames in ${SECONDS} s: median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${frames.at(-1).toFixed(1)} ms`);
  console.log(`the page's thread needed ${((share * 1000 * SECONDS) / frames.length).toFixed(1)} ms of CPU for a frame`);
  await page.keyboard.press("Escape");
  await page.mouse.up();
  await button(page, "Undo").waitFor();
  await leave(page);
} finally {
  await world.close();
}
