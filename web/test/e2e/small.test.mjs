/** Phones, low windows and late games: what is in sight, what scrolls, what stays where it is. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  LATE,
  RACKS,
  act,
  begin,
  beginAt,
  button,
  drag,
  drawOrPass,
  findExtension,
  inspect,
  layMeld,
  leave,
  myTurn,
  openForm,
  openWorld,
  rackTile,
  tilesOf,
} from "./support.mjs";

const CALM = { "deal.hand_size": 14, "initial_meld.threshold": 200, turn_time_limit: 0 };
const OPEN = { "deal.hand_size": 21, "initial_meld.threshold": 0, turn_time_limit: 0 };
const UPRIGHT = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const SIDEWAYS = { viewport: { width: 844, height: 390 }, hasTouch: true, isMobile: true };
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

/** The width as it is laid out: boxes of tiles on their way are fractions. */
const widthOf = (page, selector) => page.locator(selector).first().evaluate(({ offsetWidth }) => offsetWidth);
const box = (page, selector) => page.locator(selector).first().boundingBox();

/** Returns how many melds are wholly in sight. */
const meldsInSight = (page) =>
  page.evaluate(() => {
    const view = document.querySelector(".felt > .melds").getBoundingClientRect();
    const end = Math.min(view.bottom, document.querySelector(".hand").getBoundingClientRect().top + 1e4 * (innerHeight < 480));
    const boxes = [...document.querySelectorAll(".felt .meld")].map((meld) => meld.getBoundingClientRect());
    return boxes.filter(({ top, bottom }) => top >= view.top - 1 && bottom <= end + 1).length;
  });

for (const [name, options, inSight] of [
  ["390x844", UPRIGHT, 26],
  ["1280x800", { viewport: { width: 1280, height: 800 } }, 26],
  ["844x390", SIDEWAYS, 12],
]) {
  test(`a round of four with 26 melds is played to its end at ${name}`, async () => {
    const page = await world.open(options);
    await beginAt(page, LATE);
    assert.equal(await page.locator(".felt .meld").count(), 26);
    assert.ok((await meldsInSight(page)) >= inSight, `${await meldsInSight(page)} melds are in sight`);
    assert.ok((await widthOf(page, ".rack [data-piece]")) >= 40);
    const width = await widthOf(page, ".felt [data-piece]");
    assert.ok(width >= 28 && width <= 40, `${width}`);
    const scrolls = () => page.evaluate(() => [document.documentElement.scrollHeight > innerHeight, document.documentElement.scrollWidth > innerWidth]);
    await inspect(page, `late-${name}`);
    for (let turns = 0; await myTurn(page); turns++) {
      assert.ok(turns < 20, "the round ends");
      assert.deepEqual(await scrolls(), [false, false]);
      const { rack, melds } = await tilesOf(page);
      const { name: tile, meld, x } = findExtension(rack, melds) ?? {};
      if (tile === undefined) {
        await drawOrPass(page);
        continue;
      }
      await drag(page, rackTile(page, tile), page.locator(".felt .meld").nth(meld).locator("[data-piece]").last(), { x });
      await page.locator(".turn-message.good").waitFor();
      await act(page, () => button(page, "Play").click());
    }
    assert.equal(await page.locator(".winner").count() > 0, true);
    await leave(page);
  });
}

test("six players sideways on a phone: all of them, the table and the hand are in sight", async () => {
  const page = await world.open(SIDEWAYS);
  await openForm(page, "Sabra for up to six");
  await begin(page, { bots: 5, options: CALM });
  const { width, height } = SIDEWAYS.viewport;
  const boxes = await page.locator(".player, .felt, .hand, .rack, .turn-actions button").evaluateAll((all) =>
    all.map((one) => [one.className, one.getBoundingClientRect().toJSON()]),
  );
  assert.equal(boxes.filter(([name]) => /^player /.test(name)).length, 6);
  for (const [name, { left, right, top, bottom }] of boxes)
    assert.ok(left >= 0 && right <= width + 1 && top >= 0 && bottom <= height + 1, `${name}: ${[left, right, top, bottom]}`);
  assert.ok((await box(page, ".felt")).height >= 200);
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight > innerHeight), false);
  await inspect(page, "six-players");
  await leave(page);
});

test("sideways on a phone, and in a window of 640x400, table and hand are side by side", async () => {
  const page = await begin(await world.open(SIDEWAYS), { bots: 3, options: OPEN });
  for (const viewport of [SIDEWAYS.viewport, { width: 640, height: 400 }]) {
    await page.setViewportSize(viewport);
    const [felt, hand] = [await box(page, ".felt"), await box(page, ".hand")];
    assert.ok(felt.height >= 240, `${felt.height} px of table`);
    assert.ok(hand.x >= felt.x + felt.width);
    assert.ok(hand.y + hand.height <= viewport.height + 1);
    assert.ok((await widthOf(page, ".rack [data-piece]")) >= 40);
    await inspect(page, `sideways-${viewport.width}`);
  }
  await leave(page);
});

test("choosing a tile, aiming at the table and the next turn move no meld and no hand", async () => {
  const page = await world.open(UPRIGHT);
  await beginAt(page);
  await layMeld(page, ["R4", "R5", "R6"]);
  const boxes = () =>
    page.evaluate(() =>
      [".felt", ".felt .meld", ".hand", ".rack"].map((one) => {
        const { x, y, width, height } = document.querySelector(one).getBoundingClientRect();
        return [x, y, width, height].map(Math.round).join(" ");
      }),
    );
  await page.locator(".turn-message.good").waitFor();
  const before = await boxes();
  await page.locator(".rack [data-piece]").first().click();
  await page.locator(".felt .slot").first().waitFor();
  assert.deepEqual(await boxes(), before);
  await inspect(page, "places");
  await page.locator(".felt .slot").last().click();
  await page.locator(".felt .meld.legal [data-piece]").nth(3).waitFor(); // the new tile is judged
  const [felt, , hand] = await boxes();
  assert.deepEqual([felt, hand], [before[0], before[2]]);
  await button(page, "Undo").click();
  await page.locator(".turn-message.good").waitFor();
  await act(page, () => button(page, "Play").click());
  await myTurn(page);
  assert.deepEqual([(await boxes())[0], (await boxes())[2]], [before[0], before[2]]);
  await leave(page);
});

/** Returns a function that sends a touch event at a point. */
async function finger(page) {
  const session = await page.context().newCDPSession(page);
  return (type, x, y) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
}

test("a finger along the rack scrolls it, across it carries; on a full table it scrolls, a long press carries", async () => {
  const page = await world.open(UPRIGHT);
  await beginAt(page, { melds: LATE.melds, racks: [LATE.racks.flat(), ["J"]] });
  const touch = await finger(page);
  // On a busy machine the first movement of a swipe may come after the time of a long press: then that time is longer.
  await page.evaluate(() => {
    const wait = globalThis.setTimeout;
    globalThis.setTimeout = (act, ms) => wait(act, ms === 280 ? globalThis.longPress : ms);
  });
  const longPress = (ms) => page.evaluate((ms) => (globalThis.longPress = ms), ms);
  await longPress(60_000);
  const swipe = async (x, y, dx, dy) => {
    await touch("touchStart", x, y);
    for (let part = 1; part <= 10; part++) await touch("touchMove", x + (dx * part) / 10, y + (dy * part) / 10);
    await touch("touchEnd");
  };
  const { melds } = await tilesOf(page);
  const tile = await box(page, ".rack [data-piece] >> nth=4");
  const [x, y] = [tile.x + tile.width / 2, tile.y + tile.height / 2];
  await swipe(x, y, -150, 0);
  await page.waitForFunction(() => document.querySelector(".rack").scrollLeft > 50);
  assert.equal((await tilesOf(page)).melds.length, melds.length);
  await page.locator(".rack").evaluate((rack) => (rack.scrollLeft = 0));
  await swipe(x, y, 0, -300);
  await page.locator(".felt .meld").nth(melds.length).waitFor();
  await page.locator(".zoom button").last().click();
  await page.locator(".zoom button").last().click(); // now the table is higher than its place
  const lying = await box(page, ".felt [data-piece]");
  const [tx, ty] = [lying.x + lying.width / 2, lying.y + lying.height / 2];
  const scrolled = () => page.locator(".felt > .melds").evaluate(({ scrollTop }) => scrollTop);
  await swipe(tx, ty + 200, 0, -150);
  const hasScrolled = () => {
    const { scrollTop } = document.querySelector(".felt > .melds");
    const isStill = scrollTop > 20 && scrollTop === globalThis.lastTop;
    globalThis.lastTop = scrollTop;
    return isStill;
  };
  await page.waitForFunction(hasScrolled, undefined, { polling: 200 });
  assert.equal(await page.locator(".ghost").count(), 0);
  await longPress(280);
  await page.locator(".felt > .melds").evaluate((melds) => (melds.scrollTop = 0));
  await touch("touchStart", tx, ty);
  await page.locator(".ghost").waitFor();
  await touch("touchMove", tx, ty + 20);
  assert.equal(await scrolled(), 0);
  await touch("touchEnd");
  await leave(page);
});

test("at the edge of a full table it scrolls while a tile is held there; buttons and the wheel enlarge it", async () => {
  const page = await world.open({ viewport: { width: 1280, height: 600 } });
  await beginAt(page, LATE);
  const before = await box(page, ".felt [data-piece]");
  await page.locator(".felt").hover();
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await page.waitForFunction((width) => document.querySelector(".felt [data-piece]").offsetWidth > width * 1.2, before.width);
  await button(page, "Larger").click();
  const felt = await box(page, ".felt");
  const tile = await box(page, ".rack [data-piece]");
  await page.mouse.move(tile.x + 10, tile.y + 10);
  await page.mouse.down();
  await page.mouse.move(felt.x + 100, felt.y + felt.height - 40, { steps: 4 });
  await page.waitForFunction(() => document.querySelector(".felt > .melds").scrollTop > 60); // the mouse does not move
  await page.keyboard.press("Escape");
  await page.mouse.up();
  await leave(page);
});

test("a tile joins the meld at the end of a row, whose fault is told inside the table", async () => {
  const page = await begin(await world.open(), { bots: 1, options: CALM });
  const names = [...new Set((await tilesOf(page)).rack)];
  for (const name of names.slice(0, 4)) await layMeld(page, [name]);
  const last = page.locator(".felt .meld").nth(3);
  await last.locator(".violation").waitFor();
  const { x, width } = await last.boundingBox();
  await page.setViewportSize({ width: Math.ceil(x + width + 25), height: 720 });
  await page.waitForFunction(() => {
    const right = (name) => document.querySelector(name).getBoundingClientRect().right;
    return right(".meld:nth-child(4) .violation") <= right(".felt");
  });
  await drag(page, rackTile(page, names[4]), last.locator("[data-piece]").last(), { x: 0.95 });
  assert.deepEqual((await tilesOf(page)).melds[3], names.slice(3, 5));
  await leave(page);
});

test("the order of the rack stays over draws, undo and a reload; sorting is kept until a tile is moved", async () => {
  const page = await begin(await world.open(), { bots: 1, options: CALM });
  const rack = async () => (await tilesOf(page)).rack;
  const [first, ...others] = await rack();
  const last = page.locator(".rack [data-piece]").last();
  await drag(page, rackTile(page, first), last, { x: 0.95 });
  const order = [...others, first];
  assert.deepEqual(await rack(), order);
  await layMeld(page, order.slice(2, 3));
  await button(page, "Undo").click();
  assert.deepEqual(await rack(), order);
  await act(page, () => button(page, "Draw").click());
  await myTurn(page);
  const drawn = (await rack()).at(-1);
  assert.deepEqual(await rack(), [...order, drawn]);
  await page.reload();
  await page.locator(".rack [data-piece]").first().waitFor();
  assert.deepEqual(await rack(), [...order, drawn]);
  await button(page, "Sort by number").click();
  await act(page, () => button(page, "Draw").click());
  await myTurn(page);
  const values = (await rack()).filter((name) => name !== "J").map((name) => Number(name.slice(1)));
  assert.deepEqual(values, [...values].sort((a, b) => a - b));
  await leave(page);
});

test("a double tap lays a tile where it fits, and the melds of the rack are shown", async () => {
  const page = await world.open();
  await beginAt(page, { racks: [RACKS[0].toSorted(), RACKS[1]] });
  await button(page, "Show melds").click();
  const { rack } = await tilesOf(page);
  assert.deepEqual([rack.slice(0, 4), rack.slice(4, 7).toSorted()], [RACKS[0].slice(0, 4), ["B9", "K9", "O9"]]);
  await layMeld(page, ["R4", "R5", "R6"]);
  await page.locator(".turn-message.good").waitFor();
  await rackTile(page, "R7").dblclick();
  await page.waitForFunction(() => document.querySelectorAll(".felt .meld [data-piece]").length === 4);
  await rackTile(page, "B2").dblclick();
  await page.locator(".turn-message", { hasText: "fits at" }).waitFor();
  await leave(page);
});

test("at 2560x1440 the table uses the width, with larger tiles", async () => {
  const page = await world.open({ viewport: { width: 2560, height: 1440 } });
  await beginAt(page);
  await layMeld(page, ["R4", "R5", "R6"]);
  assert.ok((await widthOf(page, ".felt")) > 2450);
  assert.ok((await widthOf(page, ".felt [data-piece]")) >= 56);
  assert.ok((await widthOf(page, ".rack [data-piece]")) >= 56);
  await leave(page);
});

test("two fingers enlarge the table", async () => {
  const page = await world.open(UPRIGHT);
  await beginAt(page);
  await layMeld(page, ["R4", "R5", "R6"]);
  const before = await widthOf(page, ".felt [data-piece]");
  const { x, y, width } = await box(page, ".felt");
  const session = await page.context().newCDPSession(page);
  const touch = (type, apart) => {
    const at = (side) => ({ x: x + width / 2 + (side * apart) / 2, y: y + 150, id: side + 1 });
    return session.send("Input.dispatchTouchEvent", { type, touchPoints: apart === 0 ? [] : [at(-1), at(1)] });
  };
  await touch("touchStart", 80);
  for (const apart of [90, 100, 110, 120]) await touch("touchMove", apart);
  await touch("touchEnd", 0);
  await page.waitForFunction((width) => document.querySelector(".felt [data-piece]").offsetWidth > width * 1.3, before);
  await leave(page);
});

test("in forced colors the hand hides what is under it, and the player to move is marked", async () => {
  const page = await begin(await world.open({ forcedColors: "active" }), { bots: 1, options: CALM });
  const style = (selector, name) => page.locator(selector).evaluate((element, name) => getComputedStyle(element)[name], name);
  assert.notEqual(await style(".hand", "backgroundColor"), "rgba(0, 0, 0, 0)");
  assert.equal(await style(".player.has-turn", "outlineStyle"), "solid");
  await leave(page);
});
