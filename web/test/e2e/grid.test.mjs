import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  CALM,
  QUICK,
  act,
  button,
  createGame,
  drawOrPass,
  findMeld,
  inspect,
  leave,
  myTurn,
  openForm,
  openWorld,
  rackTile,
  settled,
  startGame,
  tilesOf,
} from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

async function createGridGame(page, settings) {
  await openForm(page, "Cross layout");
  await page.locator(".help", { hasText: "as in a crossword" }).waitFor();
  assert.equal(await page.getByLabel("Play with the River").count(), 0);
  await createGame(page, settings);
}

/** Returns the tiles of the table with their cells. */
function cellsOf(page) {
  return page.locator(".felt .cell[data-x]:has([data-tile])").evaluateAll((cells) =>
    cells.map(({ dataset: { x, y }, firstElementChild }) => ({
      name: firstElementChild.dataset.tile,
      x: Number(x),
      y: Number(y),
    })),
  );
}

/** Scrolls a cell into the middle of the table, and returns its middle in the window. */
async function pointOf(page, { x, y }) {
  await page.locator(".felt .grid-view .plane").waitFor(); // a part of the page that is loaded later
  return page.evaluate(
    ({ x, y }) => {
      const view = document.querySelector(".felt .grid-view");
      const plane = view.querySelector(".plane");
      const { left, top, columns, rows } = plane.dataset;
      const [width, height] = [plane.offsetWidth / columns, plane.offsetHeight / rows];
      const [inX, inY] = [(x - left + 0.5) * width, (y - top + 0.5) * height];
      view.scrollIntoView({ block: "center" });
      view.scrollTo(inX - view.clientWidth / 2, inY - view.clientHeight / 2);
      const box = plane.getBoundingClientRect();
      return { x: box.left + inX, y: box.top + inY };
    },
    { x, y },
  );
}

/** Drags a tile of the rack into a cell. */
async function dragTo(page, name, cell) {
  await settled(page);
  const point = await pointOf(page, cell);
  const start = await rackTile(page, name).boundingBox();
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await page.mouse.move(point.x, point.y, { steps: 3 });
  const now = await pointOf(page, cell); // the table may have scrolled under the tile
  await page.mouse.move(now.x + 1, now.y);
  await page.mouse.up();
}

/** Clicks tiles of the rack one after the other, and then a cell. */
async function clickTo(page, names, cell) {
  for (const name of names) await page.locator(`.rack [data-tile="${name}"]:not(.selected)`).first().click();
  const { x, y } = await pointOf(page, cell);
  await page.mouse.click(x, y);
}

const hasTile = (cells, x, y) => cells.some((cell) => cell.x === x && cell.y === y);

/** Returns a tile of the rack and a cell at the end of a run, beside which no other tile is. */
function findExtension(rack, cells) {
  for (const { name, x, y } of cells) {
    const isInRun = hasTile(cells, x - 1, y);
    const next = `${name[0]}${Number(name.slice(1)) + 1}`;
    const around = [[1, 0], [2, 0], [1, -1], [1, 1]];
    const isFree = around.every(([dx, dy]) => !hasTile(cells, x + dx, y + dy));
    if (name !== "J" && isInRun && isFree && rack.includes(next)) return { name: next, x: x + 1, y };
  }
  return undefined;
}

/** Returns the first cell of a new meld: near the middle, and beside no tile. */
function findPlace(cells, meld) {
  const isRun = meld[0][0] === meld[1][0];
  const isFree = ({ x, y }) =>
    meld.every((_, i) => {
      const [ownX, ownY] = isRun ? [x + i, y] : [x, y + i];
      const around = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]];
      return around.every(([dx, dy]) => !hasTile(cells, ownX + dx, ownY + dy));
    });
  const near = Array.from({ length: 41 * 41 }, (_, i) => ({ x: (i % 41) - 20, y: Math.floor(i / 41) - 20 }));
  near.sort((a, b) => Math.hypot(a.x, a.y * 3) - Math.hypot(b.x, b.y * 3));
  return near.find(isFree);
}

/** Takes a turn: lays melds by clicks, lengthens runs by drags, and plays; or draws, or passes. */
async function takeTurn(page, onLegal) {
  let hasLaid = false;
  const hasMelded = await page.locator(".player.has-turn .badge.good").count();
  for (;;) {
    const cells = await cellsOf(page);
    const { rack } = await tilesOf(page);
    const meld = findMeld(rack);
    const extension = hasMelded ? findExtension(rack, cells) : undefined;
    if (meld !== undefined) {
      await clickTo(page, meld, findPlace(cells, meld));
    } else if (extension !== undefined) await dragTo(page, extension.name, extension);
    else break;
    await page.locator(".felt .cell[data-x]:has([data-tile])").nth(cells.length).waitFor();
    hasLaid = true;
  }
  if (!hasLaid) return drawOrPass(page);
  await page.locator(".turn-message.good").waitFor();
  await onLegal();
  await act(page, () => button(page, "Play").click());
}

test("a round on a grid is played by clicks and drags, and replayed", async () => {
  const page = await world.open();
  await createGridGame(page, { bots: 2, level: "hard", options: { ...QUICK, "deal.hand_size": 9 } });
  await startGame(page);
  let isPictured = false;
  for (let turn = 0; await myTurn(page); turn++) {
    assert.ok(turn < 150, "the round ends");
    await takeTurn(page, async () => {
      if ((await cellsOf(page)).length < 25 || isPictured) return;
      await button(page, "Sort by color").click();
      await button(page, "Show all").click();
      await page.evaluate(() => window.scrollTo(0, 0));
      await inspect(page, "cross");
      isPictured = true;
    });
  }
  await button(page, "Replay").click();
  await button(page, "Last").click();
  await page.locator(".replay .winner").waitFor();
  assert.ok((await page.locator(".replay .felt .plane .tile").count()) > 0);
  await inspect(page, "cross-replay");
  await leave(page);
});

test("wrong cells and lines are marked; tiles move on, go back, and change places", async () => {
  const page = await world.open();
  await createGridGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  await page.getByText("Lay runs in rows and groups in columns.").waitFor();
  const names = [...new Set((await tilesOf(page)).rack.filter((name) => name !== "J"))].slice(0, 3);
  await dragTo(page, names[0], { x: 0, y: 0 });
  await page.locator(".turn-message", { hasText: "This tile needs neighbors" }).waitFor();
  assert.equal(await page.locator(".felt .tile.faulty").count(), 1);
  await dragTo(page, names[1], { x: 1, y: 0 });
  await page.locator(".turn-message", { hasText: "Tiles side by side must be a run" }).waitFor();
  assert.equal(await page.locator(".felt .mark.fault").count(), 1);
  await button(page, "Play").click();
  await page.locator(".turn-message[role=alert]", { hasText: "Tiles side by side must be a run" }).waitFor();
  await inspect(page, "cross-illegal");
  await page.locator(".felt .tile.mine").last().click();
  const { x, y } = await pointOf(page, { x: 3, y: -2 });
  await page.mouse.click(x, y);
  assert.deepEqual(await cellsOf(page), [{ name: names[1], x: 3, y: -2 }, { name: names[0], x: 0, y: 0 }]);
  await dragTo(page, names[2], { x: 0, y: 0 });
  assert.deepEqual((await cellsOf(page)).map(({ name }) => name), [names[1], names[2]]);
  await page.locator(".felt .tile.mine").first().click();
  await page.getByRole("button", { name: "Rack", exact: true }).click();
  assert.deepEqual((await cellsOf(page)).map(({ name }) => name), [names[2]]);
  await button(page, "Undo").click();
  assert.equal((await cellsOf(page)).length, 2);
  await button(page, "Reset").click();
  assert.deepEqual(await cellsOf(page), []);
  await leave(page);
});

test("the table is enlarged by buttons and the wheel, and moved by dragging an empty place", async () => {
  const page = await world.open();
  await createGridGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const view = page.locator(".grid-view");
  const width = () => page.locator(".plane").evaluate((plane) => plane.offsetWidth);
  const before = await width();
  await button(page, "Larger").click();
  assert.ok((await width()) > before);
  await button(page, "Smaller").click();
  assert.equal(await width(), before);
  const box = await view.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await page.waitForFunction((old) => document.querySelector(".plane").offsetWidth > old, before);
  const scroll = () => view.evaluate(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]);
  const [left, top] = await scroll();
  await rackTile(page, (await tilesOf(page)).rack[0]).click();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 60, box.y + box.height / 2 - 40, { steps: 4 });
  await page.mouse.up();
  assert.deepEqual(await scroll(), [left + 60, top + 40]);
  assert.deepEqual(await cellsOf(page), [], "the end of the way lays no tile");
  await button(page, "Show all").click();
  assert.equal(await width(), before);
  await leave(page);
});

test("the keyboard lays tiles in cells, and takes them back", async () => {
  const page = await world.open();
  await createGridGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await page.locator('.rack [data-piece][tabindex="0"]').focus();
  const [first, second] = (await tilesOf(page)).rack;
  await page.keyboard.press("Enter");
  assert.match(await page.locator("[data-spoken]").textContent(), /Picked up: .* column 0, row 0$/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("[data-spoken]").textContent(), "column 1, row 1");
  await page.keyboard.press("Enter");
  assert.deepEqual(await cellsOf(page), [{ name: first, x: 1, y: 1 }]);
  await page.waitForFunction((tile) => document.activeElement?.dataset.tile === tile, first);
  await page.locator(".rack [data-piece]").first().focus();
  await page.keyboard.press(" ");
  await page.locator(".felt .is-cursor").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "empty, column 2, row 1");
  await page.keyboard.press("Enter");
  await page.waitForFunction((tile) => document.activeElement?.dataset.tile === tile, second);
  assert.match(await focused(), /, column 2, row 1$/);
  await page.keyboard.press("Enter");
  assert.deepEqual((await cellsOf(page)).map(({ name }) => name), [first]);
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "empty, column 2, row 1");
  await page.keyboard.press("Control+z");
  assert.equal((await cellsOf(page)).length, 2);
  await leave(page);
});

/** Starts a game of Ann with Ben, whose page is in German, in which Ann has the turn and a meld on her rack. */
async function startWithBen(ann, ben, options) {
  await createGridGame(ann, { bots: 0, options: { ...QUICK, "deal.hand_size": 21, ...options } });
  const code = await ann.locator("output.code").textContent();
  await ben.getByLabel("Dein Name").fill("Ben");
  await ben.getByLabel("Code des Spiels").fill(code);
  await ben.getByRole("button", { name: "Mitspielen", exact: true }).click();
  await ann.locator(".seats li", { hasText: "Ben" }).waitFor();
  await startGame(ann);
  await ben.locator(".rack [data-piece]").first().waitFor();
  if ((await ann.locator(".turn-title", { hasText: "Your turn" }).count()) === 0) await letBenDraw(ann, ben);
  while (findMeld((await tilesOf(ann)).rack) === undefined) {
    await act(ann, () => button(ann, "Draw").click());
    await letBenDraw(ann, ben);
  }
}

async function letBenDraw(ann, ben) {
  await ben.getByRole("button", { name: "Ziehen", exact: true }).click();
  await myTurn(ann);
}

test("a best turn on a grid is shown, laid and played; the other player sees the tiles move, and misses a turn", async () => {
  const [ann, ben] = [await world.open(), await world.open({ locale: "de-DE" })];
  await startWithBen(ann, ben, { hints: "TURN" });
  await button(ann, "Hint").click();
  await button(ann, "Show a best turn").click();
  await ann.locator(".stepper .plane .tile.fresh").first().waitFor();
  await button(ann, "Previous").click();
  assert.equal(await ann.locator(".stepper .tile").count(), 0);
  await button(ann, "Lay it like this").click();
  await ann.locator(".turn-message.good").waitFor();
  const laid = await cellsOf(ann);
  const draft = ben.locator(".felt.others-draft");
  await draft.getByText("Ann legt Steine").waitFor();
  await draft.locator(".tile.fresh").nth(laid.length - 1).waitFor();
  await inspect(ben, "cross-draft");
  const guest = await world.open();
  await guest.goto(ann.url());
  await guest.locator(".felt.others-draft .plane .tile").nth(laid.length - 1).waitFor();
  await act(ann, () => button(ann, "Play").click());
  await ben.locator(".felt:not(.others-draft) .tile.fresh").nth(laid.length - 1).waitFor();
  assert.deepEqual(await cellsOf(ben), laid);
  await letBenDraw(ann, ben);
  await button(ann, "Game").click();
  await button(ann, "Resign").click();
  await button(ann, "Yes").click();
  await button(ann, "Replay").click();
  await button(ann, "Review").click();
  // The service searches for up to 30 seconds.
  await ann.getByText("Ben: 0 tiles played").waitFor({ timeout: 40_000 });
  await ann.getByLabel("My turns only").uncheck(); // the other player has missed it
  await button(ann, "Next missed turn").click();
  assert.ok((await ann.evaluate(() => document.documentElement.scrollWidth)) <= 1040);
  await ann.locator(".beside .stepper .plane .tile.fresh").first().waitFor();
  await inspect(ann, "cross-review");
  await leave(guest, ben, ann);
});

/** Returns three tiles of a rack that are a run, the last one not the highest; undefined if there are none. */
function findRun(rack) {
  const runs = rack.map((name) => [0, 1, 2].map((more) => `${name[0]}${Number(name.slice(1)) + more}`));
  return runs.find((run) => run.every((name) => rack.includes(name)) && !run[2].endsWith("13"));
}

test("a tile that replaces a joker of the table sends it to the hand, from where it is laid again", async () => {
  const [page, ben] = [await world.open(), await world.open({ locale: "de-DE" })];
  const joker = { "tiles.jokers": 0, "tiles.jokers_per_player": 1, "deal.fixed_jokers": 1 };
  let run;
  for (let game = 0; run === undefined; game++) {
    assert.ok(game < 20, "some rack has a run");
    for (const one of [page, ben]) await one.goto(world.url);
    await startWithBen(page, ben, joker);
    run = findRun((await tilesOf(page)).rack);
  }
  const [first, middle, last] = run;
  await clickTo(page, [first, "J", last], { x: 0, y: 0 });
  await page.locator(".turn-message.good").waitFor();
  await act(page, () => button(page, "Play").click());
  await letBenDraw(page, ben);
  assert.match(await page.locator('.felt [data-tile="J"]').getAttribute("aria-label"), /^joker for .*, column 1, row 0$/);
  await clickTo(page, [middle], { x: 1, y: 0 });
  const hand = page.locator(".rack .tile.in-hand");
  await hand.waitFor();
  assert.equal(await hand.getAttribute("aria-label"), "joker, to be laid again");
  await page.locator(".turn-message", { hasText: "A joker of the table must stay on the table." }).waitFor();
  await dragTo(page, "J", { x: 3, y: 0 });
  await page.locator(".turn-message.good").waitFor();
  await page.locator(`.felt [data-tile="${middle}"].mine`).click();
  await page.getByRole("button", { name: "Rack", exact: true }).click();
  const names = async () => (await cellsOf(page)).map(({ name }) => name);
  assert.deepEqual(await names(), [first, "J", last], "the joker goes home");
  await button(page, "Undo").click();
  assert.deepEqual(await names(), [first, middle, last, "J"]);
  await act(page, () => button(page, "Play").click());
  await leave(ben, page);
});

test("on a phone a finger drags a tile into a cell, and nothing scrolls sideways", async () => {
  const page = await world.open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await createGridGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const to = await pointOf(page, { x: 0, y: 0 });
  const from = await page.locator(".rack [data-piece]").first().boundingBox();
  const touch = await page.context().newCDPSession(page);
  const send = (type, x, y) =>
    touch.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  await send("touchStart", x, y);
  for (const part of [0.2, 0.5, 0.8, 1]) await send("touchMove", x + (to.x - x) * part, y + (to.y - y) * part);
  await send("touchEnd");
  await page.locator(".felt .tile.mine").waitFor();
  assert.deepEqual((await cellsOf(page)).map(({ x, y }) => [x, y]), [[0, 0]]);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await inspect(page, "cross-phone");
  await leave(page);
});
