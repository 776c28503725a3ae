/** What a player must never miss: what happened, what is new, the time, and whose turn it is. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  RACKS,
  act,
  begin,
  beginAt,
  button,
  drag,
  inspect,
  layMeld,
  leave,
  myTurn,
  openWorld,
  rackTile,
  tilesOf,
} from "./support.mjs";

const CALM = { "deal.hand_size": 7, "initial_meld.threshold": 200, turn_time_limit: 0 };
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

const lines = (page) => page.locator(".log-lines li");

test("the log has a time-out with its penalty tiles, which are marked on the rack until the next turn is over", async () => {
  const page = await begin(await world.open(), { options: { ...CALM, turn_time_limit: 8, absent_after_timeouts: 0 } });
  const { rack } = await tilesOf(page);
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 1));
  await page.locator(".rack [data-piece]").nth(rack.length + 2).waitFor();
  assert.equal(await page.locator(".rack .tile.fresh").count(), 3);
  await button(page, "Log").click();
  const told = page.locator(".log-drawer li", { hasText: "Your time is up. You draw" });
  await told.first().waitFor();
  const penalty = await told.first().locator("[data-tile]").evaluateAll((tiles) => tiles.map((tile) => tile.dataset.tile));
  assert.equal(penalty.length, 3);
  const marked = await page.locator(".rack .tile.fresh").evaluateAll((tiles) => tiles.map((tile) => tile.dataset.tile));
  assert.deepEqual(marked.toSorted(), penalty.toSorted());
  await inspect(page, "log");
  await button(page, "Close").click();
  assert.deepEqual((await tilesOf(page)).rack.slice(0, rack.length), rack, "the laid tile is back in its place");
  await leave(page);
});

test("the log is there after a reload, and its last lines are of this round", async () => {
  const page = await begin(await world.open(), { bots: 3, options: CALM });
  await act(page, () => button(page, "Draw").click());
  await myTurn(page);
  await lines(page).filter({ hasText: /Bot \S+ draws/ }).first().waitFor();
  const told = await lines(page).allTextContents();
  await page.reload();
  await lines(page).filter({ hasText: /Bot \S+ draws/ }).first().waitFor();
  assert.deepEqual(await lines(page).allTextContents(), told);
  await button(page, "Log").click();
  await page.locator(".log-drawer li", { hasText: "Round 1 is dealt." }).waitFor();
  assert.equal(await page.locator(".log-drawer li", { hasText: "You draw" }).locator("[data-tile]").count(), 1);
  await leave(page);
});

test("what a bot lays is marked, told with its tiles, moves to its place, and can be shown again", async () => {
  const page = await world.open();
  await page.evaluate(() => {
    globalThis.moved = [];
    const { animate } = Element.prototype;
    Element.prototype.animate = function (frames, options) {
      globalThis.moved.push({ tile: this.dataset.tile, isOnTable: this.closest(".felt") !== null, ms: options.duration });
      return animate.call(this, frames, options);
    };
  });
  await beginAt(page, { racks: RACKS.toReversed() });
  const played = lines(page).last().filter({ hasText: /Bot \S+ plays/ });
  await page.evaluate(() => globalThis.moved.splice(0));
  await act(page, () => button(page, "Draw").click());
  await played.waitFor();
  assert.ok(await myTurn(page));
  const tiles = await played.locator("[data-tile]").evaluateAll((all) => all.map((tile) => tile.dataset.tile));
  const marked = await page.locator(".felt .tile.fresh").evaluateAll((all) => all.map((tile) => tile.dataset.tile));
  assert.deepEqual(marked.toSorted(), tiles.toSorted());
  const moved = await page.evaluate(() => globalThis.moved.splice(0));
  assert.equal(moved.filter(({ isOnTable }) => isOnTable).length, tiles.length);
  assert.ok(moved.every(({ ms }) => ms >= 150 && ms <= 400));
  await button(page, "Show again").click();
  const again = await page.evaluate(() => globalThis.moved.map(({ tile }) => tile));
  assert.ok(tiles.every((tile) => again.includes(tile)));
  await leave(page);
});

test("with reduced motion no tile is animated", async () => {
  const page = await world.open({ reducedMotion: "reduce" });
  await page.evaluate(() => {
    Element.prototype.animate = () => assert.fail();
  });
  await beginAt(page, { racks: RACKS.toReversed() });
  await act(page, () => button(page, "Draw").click());
  await lines(page).last().filter({ hasText: /Bot \S+ plays/ }).waitFor();
  assert.equal(await button(page, "Show again").count(), 0);
  await leave(page);
});

test("notices and refusals end with their turn", async () => {
  const page = await begin(await world.open(), { options: { ...CALM, turn_time_limit: 10, absent_after_timeouts: 0 } });
  const { rack } = await tilesOf(page);
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 1));
  await button(page, "Play").click();
  await page.locator(".turn-message.bad").waitFor();
  await page.locator(".rack [data-piece]").nth(rack.length + 2).waitFor(); // the time is up
  assert.equal(await page.locator(".turn-message.bad").count(), 0);
  await leave(page);
});

test("drawing while a legal play lies asks first", async () => {
  const page = await world.open();
  await beginAt(page);
  const { rack } = await tilesOf(page);
  await layMeld(page, ["R4", "R5", "R6"]);
  await page.locator(".turn-message.good").waitFor();
  await button(page, "Draw").click();
  await page.getByText("Your tiles lie legally. Draw all the same?").waitFor();
  await inspect(page, "draw-sure");
  await button(page, "Back").click();
  assert.equal((await tilesOf(page)).melds.length, 1);
  await button(page, "Draw").click();
  await act(page, () => button(page, "Take back and draw").click());
  await page.locator(".rack [data-piece]").nth(rack.length).waitFor();
  await leave(page);
});

test("a hint is offered only where the game gives hints", async () => {
  const page = await begin(await world.open(), { options: { ...CALM, hints: "TILES" } });
  await button(page, "Hint").click();
  await button(page, "Which tiles?").waitFor();
  assert.equal(await button(page, "Show a best turn").count(), 0);
  await page.goto(world.url);
  await begin(page, { options: { ...CALM, hints: "OFF" } });
  assert.equal(await button(page, "Hint").count(), 0);
  await leave(page);
});

test("below the initial meld the points are counted, no meld is checked, and Play does not invite", async () => {
  const page = await world.open();
  await beginAt(page, { options: { initialMeld: { threshold: 30 } } });
  await page.locator(".badge.initial", { hasText: "0 of 30" }).waitFor();
  await layMeld(page, ["R4", "R5", "R6"]);
  await page.locator(".badge.initial", { hasText: /^15 of 30$/ }).waitFor();
  assert.equal(await page.locator(".felt .verdict").count(), 0);
  assert.equal(await page.locator(".turn-actions .primary").count(), 0);
  await inspect(page, "initial-meld");
  await leave(page);
});

test("the clock is at the hand, and the last ten seconds are seen and heard, unless the sound is off", async () => {
  const page = await world.open();
  await page.evaluate(() => {
    globalThis.notes = 0;
    OscillatorNode.prototype.start = () => globalThis.notes++;
    OscillatorNode.prototype.stop = () => {};
  });
  await begin(page, { options: { ...CALM, turn_time_limit: 12, absent_after_timeouts: 0 } });
  await page.locator(".hand .clock", { hasText: /^0:0[1-9]$/ }).waitFor();
  assert.ok(await page.locator(".hand .clock.urgent").count());
  await page.waitForFunction(() => globalThis.notes >= 4); // two of the turn, one each second
  await button(page, "Game").click();
  await page.getByLabel("Sound").uncheck();
  const heard = await page.evaluate(() => globalThis.notes);
  await page.locator(".hand .clock", { hasText: /^0:0[1-5]$/ }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.notes), heard);
  await page.reload();
  await button(page, "Game").click();
  assert.equal(await page.getByLabel("Sound").isChecked(), false);
  await leave(page);
});

test("the turn is told in the tab's title and icon, by vibration, and by a notification if it is allowed", async () => {
  const page = await world.open();
  await page.context().grantPermissions(["notifications"]);
  await page.evaluate(() => {
    globalThis.told = [];
    navigator.vibrate = () => globalThis.told.push("vibration");
    globalThis.Notification = class {
      static requestPermission = async () => "granted";
      constructor(_title, { body }) {
        globalThis.told.push(body);
      }
    };
    Object.defineProperty(document, "hidden", { get: () => true });
  });
  await begin(page, { options: CALM });
  const icon = () => page.locator("link[rel=icon]").getAttribute("href");
  const mine = await icon();
  assert.match(await page.title(), /Your turn/);
  await button(page, "Game").click();
  await page.getByLabel("Notification").check();
  await page.evaluate(() => globalThis.told.splice(0));
  await act(page, () => button(page, "Draw").click());
  await page.waitForFunction(() => document.title.includes("Your turn") && globalThis.told.length > 0);
  assert.deepEqual(await page.evaluate(() => globalThis.told), ["vibration", "It is your turn."]);
  await page.getByLabel("Vibration").uncheck();
  await page.getByLabel("Notification").uncheck();
  await page.evaluate(() => globalThis.told.splice(0));
  await act(page, () => button(page, "Draw").click());
  await page.waitForFunction(() => document.title.includes("Your turn"));
  assert.deepEqual(await page.evaluate(() => globalThis.told), []);
  await page.goto(`${world.url}#/`);
  await page.getByRole("heading", { name: "New game" }).waitFor();
  assert.equal(await page.title(), "Rummikub");
  assert.notEqual(await icon(), mine);
  await leave(page);
});

test("a place says its meld's tiles, and Ctrl with Enter plays or draws", async () => {
  const page = await world.open();
  await beginAt(page);
  await layMeld(page, ["R4", "R5", "R6"]);
  await page.locator(".turn-message.good").waitFor();
  const [, tiles] = (await page.locator(".felt .meld").last().getAttribute("aria-label")).split(/: |\./);
  await page.locator(".rack [data-piece]").first().press("Enter");
  await page.keyboard.press("ArrowLeft");
  const place = await page.locator("[data-spoken]").textContent();
  assert.ok(place.includes(tiles), place);
  await page.keyboard.press("Escape");
  await act(page, () => page.keyboard.press("Control+Enter"));
  assert.ok(await myTurn(page));
  await act(page, () => page.keyboard.press("Control+Shift+Enter"));
  await lines(page).filter({ hasText: "You draw" }).first().waitFor();
  await leave(page);
});

test("a first turn says what it needs, and who resigns reads that the others play on", async () => {
  const page = await world.open();
  await beginAt(page, { racks: [...RACKS, ["K1"], ["B13"]], options: { initialMeld: { threshold: 30 } } });
  const prompt = page.locator(".turn-message", { hasText: "Your first play needs 30 points: lay runs or groups, or draw." });
  await page.setViewportSize({ width: 390, height: 844 });
  await prompt.waitFor();
  const place = await page.locator(".felt").boundingBox();
  await layMeld(page, ["R4"]);
  await prompt.waitFor({ state: "detached" });
  assert.deepEqual(await page.locator(".felt").boundingBox(), place, "the text moves nothing");
  await button(page, "Game").click();
  await button(page, "Resign").click();
  await button(page, "Yes").click();
  await page.getByText("You have resigned. The others play on.").waitFor();
  assert.equal(await page.locator(".rack").count(), 0);
  await inspect(page, "resigned");
  await page.locator("main, .table-page").getByRole("link", { name: "Home" }).click();
  await page.getByRole("heading", { name: "New game" }).waitFor();
  await leave(page);
});

test("a run that gets a tile it has offers to be split, and a joker says what it stands for", async () => {
  const page = await world.open();
  await beginAt(page, { melds: [["R3", "R4", "R5", "R6", "R7"], ["K8", "J", "K10"]], racks: [["R5", "K13"], ["O1"]] });
  assert.equal(await page.locator('.felt [data-tile="J"]').getAttribute("aria-label"), "joker for black 9");
  await drag(page, rackTile(page, "R5"), page.locator('.felt [data-tile="R5"]'), { x: 0.95 });
  await page.locator(".felt .meld.illegal").waitFor();
  await page.locator(".turn-actions .primary", { hasText: "Split" }).click();
  await page.locator(".turn-message.good").waitFor();
  assert.deepEqual((await tilesOf(page)).melds, [["R3", "R4", "R5"], ["K8", "J", "K10"], ["R5", "R6", "R7"]]);
  await act(page, () => button(page, "Play").click());
  await leave(page);
});

test("a turn is played by keys alone", async () => {
  const page = await world.open();
  await beginAt(page);
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await rackTile(page, "R4").focus();
  await press("Space", "ArrowRight", "Space", "ArrowRight", "Space", "Enter");
  await page.locator(".new-meld").waitFor();
  await press("Enter");
  await page.locator(".turn-message.good").waitFor();
  assert.deepEqual((await tilesOf(page)).melds, [["R4", "R5", "R6"]]);
  await act(page, () => page.keyboard.press("Control+Enter"));
  await page.locator(".log-lines, .log-drawer").getByText("Ann plays").waitFor();
  await leave(page);
});

test("one seat in two windows has one draft, and the other one says that tiles were moved", async () => {
  const page = await begin(await world.open(), { options: CALM });
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator(".rack [data-piece]").first().waitFor();
  const [name] = (await tilesOf(page)).rack;
  await layMeld(page, [name]);
  await other.getByText("Your tiles were moved in another window.").waitFor();
  assert.deepEqual((await tilesOf(other)).melds, [[name]]);
  await button(other, "Undo").click();
  await page.waitForFunction(() => document.querySelectorAll(".felt .meld").length === 0);
  await leave(page);
});

test("messages say what happened: a tile that is put back needs none, a refused hint leaves the verdict", async () => {
  const page = await begin(await world.open(), { options: CALM });
  const { rack } = await tilesOf(page);
  const tile = page.locator(".rack [data-piece]").first();
  const { x, y } = await tile.boundingBox();
  await page.mouse.move(x + 10, y + 10);
  await page.mouse.down();
  await page.mouse.move(x + 10, y - 100, { steps: 3 });
  await page.mouse.move(x + 10, y + 10, { steps: 3 });
  await page.mouse.up();
  assert.deepEqual((await tilesOf(page)).rack, rack);
  assert.equal(await page.getByText("Tiles of the table stay on the table.").count(), 0);
  await layMeld(page, rack.slice(0, 1));
  const verdict = page.locator(".turn-message", { hasText: "Not legal yet" });
  await verdict.waitFor();
  assert.equal(await page.locator(".turn-actions .primary").count(), 0);
  await page.route("**/SuggestTurn", (route) => route.abort());
  await button(page, "Hint").click();
  await button(page, "Can I play?").click();
  await verdict.filter({ hasText: /Not legal yet.+/ }).waitFor();
  await page.locator(".felt .meld.illegal").waitFor();
  await leave(page);
});
