import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  CALM,
  FREE,
  QUICK,
  act,
  beginAt,
  button,
  createGame,
  drag,
  drawOrPass,
  firstPaint,
  findExtension,
  findMeld,
  inspect,
  layMeld,
  leave,
  myTurn,
  openForm,
  openWorld,
  rackTile,
  startGame,
  tilesOf,
} from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

/** Takes a turn by drags: lays a meld, adds tiles to melds, plays; or draws, or passes. */
async function takeTurn(page, onLegal = async () => {}) {
  let hasLaid = false;
  const hasMelded = await page.locator(".player.has-turn .badge.good").count();
  for (;;) {
    const { rack, melds } = await tilesOf(page);
    const meld = findMeld(rack);
    const extension = hasMelded || hasLaid ? findExtension(rack, hasMelded ? melds : []) : undefined;
    if (meld !== undefined) await layMeld(page, meld);
    else if (extension !== undefined) {
      const tiles = page.locator(".felt .meld").nth(extension.meld).locator("[data-piece]");
      await drag(page, rackTile(page, extension.name), extension.x > 0.5 ? tiles.last() : tiles.first(), {
        x: extension.x,
      });
    } else break;
    hasLaid = true;
  }
  if (hasLaid) {
    await page.locator(".turn-message.good").waitFor({ timeout: 15_000 }); // a tile that fell beside its place stays there
    await onLegal();
    await act(page, () => button(page, "Play").click());
  } else {
    await drawOrPass(page);
  }
}

test("a round is played to its end by drags and clicks against bots; the next follows, and a rematch", async (context) => {
  const page = await world.open();
  const paint = await firstPaint(page);
  context.diagnostic(`first contentful paint after ${Math.round(paint)} ms`);
  assert.ok(paint < 5_000, "the page appears soon");
  await createGame(page, {
    level: "expert",
    options: { ...QUICK, "deal.hand_size": 6, "game_end.match_end": "FIXED_ROUNDS", "game_end.match_rounds": 2, round_pause: 0 },
  });
  await inspect(page, "lobby");
  await startGame(page);
  let isPictured = false;
  for (let turn = 0; await myTurn(page); turn++) {
    assert.ok(turn < 150, "the round ends");
    await takeTurn(page, async () => {
      if ((await page.locator(".felt .meld").count()) < 7 || isPictured) return;
      await button(page, "Sort by color").click();
      await inspect(page, "table");
      isPictured = true;
    });
  }
  await page.getByText("Round 1 is over").first().waitFor();
  await inspect(page, "scores");
  await button(page, "Next round").click();
  await page.locator(".rack [data-piece]").first().waitFor();
  await button(page, "Game").click();
  await button(page, "Resign").click();
  await button(page, "Yes").click();
  await page.getByText("The game is over").first().waitFor();
  await button(page, "Rematch").click();
  await page.getByText("The game starts in 0:0").waitFor(); // the bot has its seat already
  await inspect(page, "countdown");
  await myTurn(page);
  await leave(page);
});

test("an illegal play is explained at its tiles, and undone", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const { rack } = await tilesOf(page);
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 1));
  await page.locator(".felt .meld.illegal", { hasText: "A meld needs at least three tiles." }).waitFor();
  assert.equal(await page.locator(".felt .tile.faulty").count(), 1);
  await button(page, "Play").click();
  const refusal = page.locator(".turn-message[role=alert]", { hasText: "A meld needs at least three tiles." });
  await refusal.waitFor();
  await inspect(page, "illegal-play");
  await button(page, "Undo").click();
  await refusal.waitFor({ state: "detached" });
  assert.deepEqual((await tilesOf(page)).melds, []);
  await button(page, "Redo").click();
  assert.equal((await tilesOf(page)).melds.length, 1);
  await button(page, "Reset").click();
  assert.deepEqual((await tilesOf(page)).melds, []);
  await leave(page);
});

test("tiles are judged while they are dragged", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const [from, felt] = [
    await page.locator(".rack [data-piece]").first().boundingBox(),
    await page.locator(".felt").boundingBox(),
  ];
  await page.mouse.move(from.x + 10, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(felt.x + felt.width / 2, felt.y + felt.height / 2, { steps: 5 });
  await page.locator(".new-meld.illegal").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".ghost").waitFor({ state: "detached" });
  await page.mouse.up();
  assert.deepEqual((await tilesOf(page)).melds, []);
  await leave(page);
});

test("while a tile is carried, the melds to which it fits are marked", async () => {
  const page = await world.open();
  await beginAt(page, { melds: [["R1", "R2", "R3"], ["B4", "K4", "O4"], ["K9", "B9", "R9"]], racks: [["R4", "K13"], ["O1"]] });
  const fitting = () => page.locator(".felt .meld").evaluateAll((melds) => melds.map(({ classList }) => classList.contains("fits")));
  for (const [name, expected] of [["R4", [true, true, false]], ["K13", [false, false, false]]]) {
    const { x, y } = await rackTile(page, name).boundingBox();
    await page.mouse.move(x + 10, y + 10);
    await page.mouse.down();
    await page.mouse.move(x + 10, y - 60, { steps: 3 });
    await page.locator(".ghost").waitFor();
    assert.deepEqual(await fitting(), expected);
    await page.keyboard.press("Escape");
    await page.mouse.up();
    assert.deepEqual(await fitting(), [false, false, false]);
  }
  await leave(page);
});

test("the keyboard picks up, moves and drops a tile, and sorts the rack", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  await button(page, "Sort by number").press("Enter");
  const values = (await tilesOf(page)).rack.filter((name) => name !== "J").map((name) => Number(name.slice(1)));
  assert.deepEqual(
    values,
    [...values].sort((a, b) => a - b),
  );
  await page.locator('.rack [data-piece][tabindex="0"]').focus();
  await page.keyboard.press("ArrowRight");
  const name = await page.evaluate(() => document.activeElement.dataset.tile);
  await page.keyboard.press("Enter");
  await page.locator(".new-meld").waitFor();
  assert.match(await page.locator("[data-spoken]").textContent(), /Picked up: .* New meld/);
  await page.keyboard.press("Enter");
  assert.deepEqual((await tilesOf(page)).melds, [[name]]);
  await page.waitForFunction((tile) => document.activeElement?.dataset.tile === tile, name);
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("[data-spoken]").textContent(), "Rack");
  await page.keyboard.press("Escape");
  await page.locator('.rack [data-piece][tabindex="0"]').focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  assert.equal((await tilesOf(page)).melds[0].length, 2);
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  assert.deepEqual((await tilesOf(page)).melds, []);
  await leave(page);
});

const focusedTile = (page) => page.evaluate(() => document.activeElement?.dataset.tile);

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

test("keys that follow each other before the next frame are not lost, and a late frame takes no focus back", async () => {
  const page = await world.open();
  await beginAt(page);
  await page.evaluate(() => {
    globalThis.lateFrames = [];
    globalThis.requestAnimationFrame = (act) => globalThis.lateFrames.push(act);
  });
  await rackTile(page, "R4").focus();
  await press(page, "Enter", "Enter"); // a new meld
  for (let i = 0; i < 2; i++) await press(page, "ArrowRight", "Enter", "ArrowLeft", "Enter"); // the next tile behind it
  assert.deepEqual((await tilesOf(page)).melds, [["R4", "R5", "R6"]]);
  await press(page, "Enter", "Escape");
  await rackTile(page, "K9").focus();
  await page.evaluate(() => globalThis.lateFrames.forEach((act) => act()));
  assert.equal(await focusedTile(page), "K9");
  await leave(page);
});

test("a tile keeps the focus when it is sorted into its run, and when it is taken back", async () => {
  const page = await world.open();
  await beginAt(page);
  await rackTile(page, "R5").focus();
  await press(page, "Enter", "Enter");
  for (const name of ["R6", "R4"]) {
    await rackTile(page, name).focus();
    await press(page, "Enter", "ArrowLeft", "Enter");
  }
  await page.waitForFunction(() => document.querySelector(".felt .meld [data-piece]").dataset.tile === "R4");
  assert.equal(await focusedTile(page), "R4");
  await press(page, "Control+z");
  await page.waitForFunction(() => document.querySelectorAll(".felt .meld [data-piece]").length === 2);
  assert.equal(await focusedTile(page), "R4");
  await leave(page);
});

test("a change that comes between the first rendering of the table and its effects is shown", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await page.evaluate(() => {
    const wait = globalThis.setTimeout;
    const held = [];
    globalThis.requestAnimationFrame = () => 0;
    globalThis.setTimeout = (act, ms) => (ms === 35 ? held.push(act) : wait(act, ms)); // Preact runs effects after a frame or 35 ms
    globalThis.runEffects = () => {
      globalThis.setTimeout = wait;
      for (const act of held) act();
    };
  });
  await startGame(page);
  await myTurn(page);
  await button(page, "Sort by number").click();
  await page.evaluate(() => globalThis.runEffects());
  await button(page, "Sort by number").and(page.locator("[aria-pressed=true]")).waitFor();
  await leave(page);
});

/** Waits until the service has the tiles that the player has laid, so that a cut or a reload loses none. */
function draftSaved(page, count) {
  return page.waitForFunction(async (count) => {
    const [{ gameId, token }] = JSON.parse(sessionStorage.getItem("rummikub.seats"));
    const answer = await fetch(`/v1/games/${gameId}`, { headers: { authorization: `Bearer ${token}` } });
    const { game } = await answer.json();
    return game.turn.draft?.table.melds.flatMap(({ tiles }) => tiles).length === count;
  }, count);
}

test("a cut is shown and mended, and a reload keeps seat and draft", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const { rack } = await tilesOf(page);
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 2));
  const laid = (await tilesOf(page)).melds;
  assert.equal(laid[0].length, 2);
  const place = await page.locator(".felt").boundingBox();
  await draftSaved(page, 2);
  world.cut();
  await page.getByText("Connection lost. Reconnecting").first().waitFor();
  await inspect(page, "reconnecting");
  assert.deepEqual(await page.locator(".felt").boundingBox(), place, "the banner moves nothing");
  assert.equal(await button(page, "Draw").isDisabled(), true);
  await world.restore();
  await page.locator(".banner.lost").waitFor({ state: "detached" });
  assert.deepEqual((await tilesOf(page)).melds, laid);
  await page.reload();
  await page.getByText("Your tiles lie as you left them.").waitFor();
  assert.deepEqual(
    (await tilesOf(page)).melds.map((meld) => meld.toSorted()),
    laid.map((meld) => meld.toSorted()),
  );
  await button(page, "Reset").click();
  await button(page, "Draw").click();
  await page.locator(".rack [data-piece]").nth(rack.length).waitFor();
  await leave(page);
});

test("hints: whether, which tiles, and a best turn step by step that is laid and played", async () => {
  const page = await world.open();
  await beginAt(page);
  const hint = async (name) => {
    await button(page, "Hint").click();
    await button(page, name).click();
  };
  await hint("Can I play?");
  await page.getByText("You can play.").waitFor();
  await hint("Which tiles?");
  await page.locator(".rack .tile.hinted").first().waitFor();
  await hint("Show a best turn");
  await page.locator(".stepper").getByText("Step 1 of").waitFor();
  await inspect(page, "hint");
  await button(page, "Lay it like this").click();
  await page.locator(".turn-message.good").waitFor();
  await button(page, "Play").click();
  await page.locator(".player").filter({ hasText: "Ann" }).locator(".badge.good").waitFor();
  await leave(page);
});

test("with the River, a player lays one of two drawn tiles, and takes tiles from it", async () => {
  const page = await world.open();
  await createGame(page, { checks: { "Play with the River": true }, options: CALM });
  await startGame(page);
  await myTurn(page);
  if ((await page.locator("[data-river]").count()) === 0) {
    await button(page, "Draw").click();
    await page.getByText("Lay one of these tiles on the River").waitFor();
    await inspect(page, "river-choice");
    await page.locator("[data-lay]").first().click();
    await myTurn(page);
  }
  await page.locator("[data-river]").first().click();
  await page.locator(".rack .tile.from-river").waitFor();
  await page.getByText("Taken from the River").waitFor();
  await inspect(page, "river");
  await button(page, "Put back").click();
  await page.locator(".rack .tile.from-river").waitFor({ state: "detached" });
  await leave(page);
});

test("the time of a turn is counted down, and a time-out puts the tiles back", async () => {
  const page = await world.open();
  await createGame(page, { options: { ...CALM, turn_time_limit: 8, absent_after_timeouts: 0 } });
  await startGame(page);
  await myTurn(page);
  const { rack } = await tilesOf(page);
  await page.locator(".player.has-turn .clock", { hasText: /0:0[1-8]/ }).waitFor();
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 1));
  await page
    .locator(".rack [data-piece]")
    .nth(rack.length + 2)
    .waitFor(); // three penalty tiles
  await leave(page);
});

test("where plays are shown before they are judged, the other player objects", async () => {
  const ann = await world.open();
  await createGame(ann, { bots: 0, options: { ...CALM, "turn.invalid_submission": "PENALISE_ON_UNANIMOUS_CLAIM" } });
  const ben = await world.open();
  await ben.getByLabel("Your name").fill("Ben");
  await ben.getByLabel("Code of the game").fill(await ann.locator("output.code").textContent());
  await button(ben, "Join").click();
  await ben.locator(".seats li", { hasText: "Ben" }).waitFor();
  await startGame(ann);
  await ben.locator(".rack [data-piece]").first().waitFor();
  const isAnnsTurn = (await ann.locator(".turn-title", { hasText: "Your turn" }).count()) > 0;
  const [mover, other] = isAnnsTurn ? [ann, ben] : [ben, ann];
  const { rack } = await tilesOf(mover);
  await layMeld(mover, rack.filter((name) => name !== "J").slice(0, 1));
  await button(mover, "Play").click();
  await other.getByText("has shown an illegal play").first().waitFor();
  await inspect(other, "claim");
  await button(other, "Object").click();
  await mover
    .locator(".rack [data-piece]")
    .nth(rack.length + 2)
    .waitFor();
  await leave(ben, ann);
});

const KNOCK_LIMIT = 30;

/** Plays a round of Carousel by clicks. Returns whether the player has ended it with a knock. */
async function playCarousel(page) {
  const knock = button(page, "Knock");
  const lay = button(page, "Lay it like this");
  for (let turn = 0; await myTurn(page); turn++) {
    assert.ok(turn < 100, "the round ends");
    // A turn begins with a draw; no player knocks before it.
    if ((await knock.count()) === 0) {
      await drawOrPass(page);
      continue;
    }
    if (pointsOf((await tilesOf(page)).rack) <= KNOCK_LIMIT) {
      await inspect(page, "carousel");
      await act(page, () => knock.click());
      return true;
    }
    await knock.click();
    await page.locator(".turn-message[role=alert]", { hasText: `you may knock with ${KNOCK_LIMIT} at most` }).waitFor();
    await button(page, "Hint").click();
    await button(page, "Show a best turn").click();
    await lay.or(page.locator(".turn-message", { hasText: "You cannot play." })).first().waitFor();
    if (await lay.count()) {
      await lay.click();
      await page.locator(".turn-message.good").waitFor();
      const { rack } = await tilesOf(page);
      const isKnock = rack.length > 0 && pointsOf(rack) <= KNOCK_LIMIT;
      await act(page, () => (isKnock ? knock : button(page, "Play")).click());
      if (isKnock) return true;
    } else await drawOrPass(page);
  }
  return false;
}

/** Returns the points of cards on a rack: an ace counts 1, a court card 10, a joker 25. */
function pointsOf(rack) {
  return rack.reduce((sum, name) => sum + (name === "J" ? 25 : Math.min(10, Number(name.slice(1)))), 0);
}

test("a round of Carousel is played by clicks and ended with a knock, which the replay names", async () => {
  const page = await world.open();
  for (let games = 0; ; games++) {
    assert.ok(games < 10, "the player knocks before the bot does");
    await openForm(page, "Carousel");
    await page.locator(".help", { hasText: "knock with five points or less" }).waitFor();
    // With the five points of the preset the bot goes out first in most rounds.
    await createGame(page, { options: { "turn.knock_limit": KNOCK_LIMIT, turn_time_limit: 0 } });
    await startGame(page);
    if (await playCarousel(page)) break;
    await page.locator("section.result").getByText("Home").click();
  }
  await page.getByText("A player knocked. The fewest points on the rack win.").waitFor();
  await page.locator(".winner").first().waitFor();
  await inspect(page, "carousel-over");
  await button(page, "Replay").click();
  await button(page, "Last").click();
  await page.locator(".move-text", { hasText: /Ann (plays .* and )?knocks/ }).waitFor();
  await leave(page);
});

test("a knock sends what is laid as a play, is refused with too many points, and is replayed with the play", async () => {
  const page = await world.open();
  const racks = [["R4", "R5", "R6", "B13", "K13", "O13", "B5"], ["R1", "B10"]];
  await beginAt(page, { racks, options: { turn: { knockLimit: 5 } } });
  const knock = button(page, "Knock");
  assert.ok(await knock.isDisabled(), "no tile is drawn or laid");
  await layMeld(page, ["R4", "R5", "R6"]);
  await knock.click();
  await page.locator(".turn-message[role=alert]", { hasText: "44 points are left on your rack" }).waitFor();
  await layMeld(page, ["B13", "K13", "O13"]);
  await page.locator(".turn-message.good").waitFor();
  await act(page, () => knock.click());
  await page.getByText("A player knocked. The fewest points on the rack win.").waitFor();
  await button(page, "Replay").click();
  await button(page, "Last").click();
  await page.locator(".move-text", { hasText: /Ann plays .*red 4.* and knocks/ }).waitFor();
  assert.equal(await page.locator(".felt [data-tile]").count(), 6);
  assert.equal(await page.locator(".open-racks .has-turn .small-tiles [data-tile]").count(), 1);
  await leave(page);
});

test("a finished game is replayed, explained and reviewed; its text is imported", async () => {
  const page = await world.open();
  await createGame(page, { level: "expert", options: QUICK });
  await startGame(page);
  for (let turn = 0; await myTurn(page); turn++) {
    assert.ok(turn < 150, "the round ends");
    await drawOrPass(page);
  }
  const download = page.waitForEvent("download");
  await button(page, "Save record").click();
  const file = await (await download).path();
  await button(page, "Replay").click();
  await page.getByText(/Move 1 of \d+/).waitFor();
  for (let move = 0; move < 5; move++) await button(page, "Next").click();
  await page.getByText(/Move 6 of \d+/).waitFor();
  await button(page, "Last").click();
  await page.locator(".replay .winner").waitFor();
  await inspect(page, "replay");
  await button(page, "First").click();
  const explain = button(page, "Show step by step");
  while ((await explain.count()) === 0) await button(page, "Next").click();
  await explain.click();
  await page.locator(".stepper").getByText("Step 1 of").waitFor();
  await button(page, "First").click();
  await button(page, "Review").click();
  const next = button(page, "Next missed turn");
  await next.waitFor();
  if (await next.isEnabled()) {
    await next.click();
    await page.locator(".beside .stepper").waitFor();
    await page.locator(".beside").scrollIntoViewIfNeeded();
  }
  await inspect(page, "review");
  await page.goto(`${world.url}#/replay`);
  await page.getByLabel("Open a file").setInputFiles(file);
  await button(page, "Replay").click();
  await page.getByText(/Move 1 of \d+/).waitFor();
  await leave(page);
});

test("the developer's drawer shows calls and updates without tokens", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  assert.equal(await button(page, "Developer").count(), 0);
  await page.keyboard.press("Control+Alt+d");
  const drawer = page.locator("#drawer");
  await drawer.getByText("GameService.CreateGame").click();
  await drawer.getByText('"hostToken": "(masked)"').waitFor();
  await inspect(page, "drawer");
  await drawer.getByLabel("Filter").fill("WatchGame");
  assert.equal(await drawer.locator(".call").count(), 1);
  await drawer.getByText("GameService.WatchGame").click();
  await drawer.getByText('"snapshot"').waitFor();
  await drawer.getByLabel("Filter").fill("");
  const tokens = await page.evaluate(() =>
    JSON.parse(sessionStorage.getItem("rummikub.seats")).map(({ token }) => token),
  );
  for (const head of await drawer.locator(".call-head").all()) {
    await head.click();
    const text = await drawer.textContent();
    for (const token of tokens) assert.equal(text.includes(token), false);
  }
  await leave(page);
});

test("on a phone of 360 px a finger drags a tile, and nothing scrolls sideways", async () => {
  const page = await world.open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await createGame(page, { bots: 3, options: { "initial_meld.threshold": 0 } });
  await startGame(page);
  await myTurn(page);
  await page.locator(".felt").evaluate((felt) => felt.scrollIntoView({ block: "center" }));
  const from = await page.locator(".rack [data-piece]").first().boundingBox();
  const to = await page.locator(".felt").boundingBox();
  const touch = await page.context().newCDPSession(page);
  const send = (type, x, y) =>
    touch.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  await send("touchStart", x, y);
  await send("touchMove", x, y - 20); // along the rack it would scroll
  for (const part of [0.2, 0.5, 0.8, 1])
    await send(
      "touchMove",
      x + (to.x + to.width * FREE.x - x) * part,
      y + (to.y + to.height * FREE.y - y) * part,
    );
  await send("touchEnd");
  await page.locator(".felt .meld .tile.mine").waitFor();
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await inspect(page, "phone");
  await page.locator(".top select").selectOption("de");
  await page.getByText("Du bist am Zug").first().waitFor();
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await leave(page);
});
