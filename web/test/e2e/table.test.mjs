import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, test } from "node:test";
import {
  FREE,
  act,
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
  openWorld,
  rackTile,
  startGame,
  tilesOf,
} from "./support.mjs";

const QUICK = { "deal.hand_size": 7, "initial_meld.threshold": 0, turn_time_limit: 0 };
/** Nobody can make the initial meld: the table stays empty. */
const CALM = { ...QUICK, "initial_meld.threshold": 200 };
/** The example of a watch in the page on the web edge. */
const EVENTS = /### Events.*?```js\n(.*?)```/s.exec(await readFile(new URL("../../../docs/web-edge.md", import.meta.url), "utf8"))[1];
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
    await page.locator(".turn-message.good").waitFor();
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
  await page.locator(".help", { hasText: "The standard game" }).waitFor();
  await inspect(page, "home");
  await createGame(page, {
    level: "hard",
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

test("a cut is shown and mended, and a reload keeps seat and draft", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  await myTurn(page);
  const { rack } = await tilesOf(page);
  await layMeld(page, rack.filter((name) => name !== "J").slice(0, 2));
  const laid = (await tilesOf(page)).melds;
  assert.equal(laid[0].length, 2);
  world.cut();
  await page.getByText("Connection lost. Reconnecting").first().waitFor();
  await inspect(page, "reconnecting");
  assert.equal(await button(page, "Draw").isDisabled(), true);
  await world.restore();
  await page.locator(".banner.lost").waitFor({ state: "detached" });
  assert.deepEqual((await tilesOf(page)).melds, laid);
  await page.waitForTimeout(500); // the draft that was laid last is saved
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

test("two people play in one game: join by code, ready, live drafts; a third one watches", async () => {
  const ann = await world.open();
  await createGame(ann, { bots: 0, options: CALM });
  const code = await ann.locator("output.code").textContent();
  const ben = await world.open({ locale: "de-DE" });
  await ben.getByLabel("Dein Name").fill("Ben");
  await ben.getByLabel("Code des Spiels").fill(code);
  await ben.getByRole("button", { name: "Mitspielen", exact: true }).click();
  await ben.getByRole("button", { name: "Bereit", exact: true }).click();
  await ann.locator(".seats li", { hasText: "Ben" }).getByText("Ready").waitFor();
  await startGame(ann);
  await ben.locator(".rack [data-piece]").first().waitFor();
  const isAnnsTurn = (await ann.locator(".turn-title", { hasText: "Your turn" }).count()) > 0;
  const [mover, other] = isAnnsTurn ? [ann, ben] : [ben, ann];
  const { rack } = await tilesOf(mover);
  const names = rack.filter((name) => name !== "J").slice(0, 3);
  await layMeld(mover, names);
  const draft = other.locator(".felt.others-draft");
  await draft.getByText(isAnnsTurn ? "Ann legt Steine" : "Ben moves tiles").waitFor();
  await draft.locator(".tile.fresh").nth(2).waitFor();
  const seen = await draft.locator("[data-tile]").evaluateAll((tiles) => tiles.map((tile) => tile.dataset.tile));
  assert.deepEqual(seen.toSorted(), names.toSorted());
  await inspect(other, "live-draft");
  const guest = await world.open();
  await guest.goto(ann.url());
  await guest.getByText("You are watching.").waitFor();
  await guest.locator(".felt.others-draft .tile").first().waitFor();
  assert.equal(await guest.locator(".rack").count(), 0);
  await inspect(guest, "watching");
  await leave(guest, ben, ann);
});

/** Ann opens a lobby, and the others join it by its code; then Ann starts the game. */
async function startWith(ann, ...others) {
  await createGame(ann, { bots: 0, options: CALM });
  const code = await ann.locator("output.code").textContent();
  for (const [page, name] of others) {
    await page.getByLabel("Your name").fill(name);
    await page.getByLabel("Code of the game").fill(code);
    await button(page, "Join").click();
    await ann.locator(".seats li", { hasText: name }).waitFor();
  }
  await startGame(ann);
}

async function abort(page) {
  await button(page, "Game").click();
  await button(page, "Abort game").click();
  await button(page, "Yes").click();
}

test("a rematch reserves the seats: one is taken, the host gives one up, and the game starts by itself", async () => {
  const [ann, ben, cem] = [await world.open(), await world.open(), await world.open()];
  await startWith(ann, [ben, "Ben"], [cem, "Cem"]);
  await abort(ann);
  await button(ann, "Rematch").click();
  const reserved = (name) => ann.locator(".seats li", { hasText: name }).getByText("reserved");
  await reserved("Ben").waitFor();
  await reserved("Cem").waitFor();
  assert.equal(await button(ann, "Start game").isDisabled(), true);
  await inspect(ann, "rematch");
  await button(ann, "Remove Cem").click();
  await reserved("Cem").waitFor({ state: "detached" });
  await button(cem, "To the rematch").click();
  await cem.locator(".result .problem", { hasText: "This seat is no longer yours here." }).waitFor();
  await button(ben, "To the rematch").click();
  await ann.getByText("The game starts in 0:0").waitFor();
  for (const page of [ann, ben]) await page.locator(".rack [data-piece]").first().waitFor();
  await ben.goBack();
  await ben.getByRole("link", { name: "To the rematch" }).click(); // the seat is the same, not taken again
  await ben.locator(".rack [data-piece]").first().waitFor();
  await leave(cem, ben, ann);
});

test("strangers start a full table by itself, abort it together, and one declines the rematch", async () => {
  const [ann, ben] = [await world.open(), await world.open()];
  for (const [page, name] of [[ann, "Ann"], [ben, "Ben"]]) {
    await page.getByLabel("Your name").fill(name);
    await page.getByLabel("Time for a turn").selectOption({ label: "no limit" });
    await page.getByText("All options").click();
    await page.locator("label.field", { has: page.locator('code:text-is("deal.players_max")') }).locator("input").fill("2");
    await button(page, "Play with anyone").click();
    await page.getByRole("heading", { name: "Lobby" }).waitFor();
  }
  await ann.getByText("The game starts in 0:0").waitFor();
  await ann.locator(".rack [data-piece]").first().waitFor();
  await abort(ann); // the host among strangers has a vote like all
  await ben.getByText("Votes to abort the game: Ann.").waitFor();
  await inspect(ben, "abort-vote");
  await button(ben, "Abort it").click();
  await ann.getByText("The game was aborted").first().waitFor();
  await button(ann, "Replay").click();
  await button(ann, "Last").click();
  await ann.locator(".move-text", { hasText: "The game was aborted" }).waitFor();
  await ann.goBack();
  await button(ann, "Rematch").click();
  await button(ben, "No rematch").click();
  await ben.locator(".result").getByText("You have given up your seat in the rematch.").waitFor();
  await ann.locator(".seats li", { hasText: "Seat 2: free" }).waitFor();
  await button(ann, "Leave").click(); // else the other tests see a public lobby
  await leave(ben, ann);
});

test("a removed player is told so, and only the new link leads into the lobby", async () => {
  const ann = await world.open();
  await createGame(ann, { bots: 0, options: CALM });
  const code = () => ann.locator("output.code").textContent();
  const link = async () => {
    await button(ann, "Copy link").click();
    await ann.getByText("Copied.").waitFor();
    return ann.evaluate(() => navigator.clipboard.readText());
  };
  const [oldCode, oldLink] = [await code(), await link()];
  const ben = await world.open();
  await ben.goto(oldLink);
  await ben.getByLabel("Your name").fill("Ben");
  await button(ben, "Sit here").first().click();
  await button(ben, "Leave").waitFor(); // Ben's page watches with the token that becomes void
  await ann.locator(".seats li", { hasText: "Ben" }).waitFor();
  await button(ann, "Remove Ben").click();
  await ben.getByText("The host has removed you from this game.").waitFor();
  await ann.locator("output.code", { hasNotText: oldCode }).waitFor();
  const cem = await world.open();
  const sit = async (address) => {
    await cem.goto(address);
    await cem.reload();
    await cem.getByLabel("Your name").fill("Cem");
    await button(cem, "Sit here").first().click();
  };
  await sit(oldLink);
  await cem.getByText("No open game has this code.").waitFor();
  await sit(ann.url());
  await cem.getByText("To join this game you need its new code.").waitFor();
  await sit(await link());
  await ann.locator(".seats li", { hasText: "Cem" }).waitFor();
  await leave(cem, ben, ann);
});

test("the home page names the players of one's own games, says whose turn it is, and forgets games that are gone", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await startGame(page);
  assert.ok(await myTurn(page));
  await page.evaluate(() => {
    const seats = JSON.parse(localStorage.getItem("rummikub.seats"));
    for (const digit of "01234") seats.push({ ...seats[0], gameId: digit.repeat(32), time: Date.now() + 1_000 });
    localStorage.setItem("rummikub.seats", JSON.stringify(seats));
  });
  await page.goto(world.url);
  const own = page.locator("section", { hasText: "Your games" }).locator("li");
  await own.filter({ hasText: "Bot 1" }).filter({ hasText: "Your turn" }).waitFor();
  await page.waitForFunction(() => JSON.parse(localStorage.getItem("rummikub.seats")).length === 1);
  assert.equal(await own.count(), 1);
  await leave(page);
});

test("a token that is refused in one tab leaves the seat that the browser has in the game", async () => {
  const page = await world.open();
  await createGame(page, { options: CALM });
  await page.evaluate(() => {
    const [seat] = JSON.parse(localStorage.getItem("rummikub.seats"));
    sessionStorage.setItem("rummikub.seats", JSON.stringify([{ ...seat, token: "x".repeat(43) }]));
  });
  await page.goto(world.url);
  await page.waitForFunction(() => sessionStorage.getItem("rummikub.seats") === "[]");
  await page.reload();
  await page.locator("section", { hasText: "Your games" }).locator("li", { hasText: "Bot 1" }).waitFor();
  await leave(page);
});

test("a game that is not there, a seat that is not one's own, and a service that is away are explained", async () => {
  const page = await world.open();
  const gameId = "0".repeat(32);
  await page.goto(`${world.url}#/game/${gameId}`);
  await page.getByText("The game was not found, or you are not part of it.").waitFor();
  const seat = { gameId, token: "not a token", seat: 1, name: "Ann", time: 0 };
  await page.evaluate((seats) => sessionStorage.setItem("rummikub.seats", seats), JSON.stringify([seat]));
  await page.reload();
  await page.getByText("The app could not prove that this is your seat. Please join again.").waitFor();
  await inspect(page, "failure");
  await button(page, "Forget").click();
  await page.getByRole("heading", { name: "New game" }).waitFor();
  world.cut();
  await button(page, "Create game").click();
  await page.getByText("The service does not answer.").waitFor();
  await world.restore();
  await page.goto(`${world.url}#/nowhere`);
  await page.getByText("There is nothing at this address.").waitFor();
  await leave(page);
});

test("the EventSource of the page on the web edge resumes after a cut, and closes at the end of the game", async () => {
  const page = await world.open();
  await page.evaluate(async () => {
    const post = async (path, body, token) => {
      const headers = token ? { authorization: `Bearer ${token}` } : {};
      return (await fetch(`/v1/games${path}`, { method: "POST", body: JSON.stringify(body), headers })).json();
    };
    const { game, hostToken } = await post("", {});
    const { seatToken } = await post(`/${game.gameId}:join`, { name: "Ann" }, hostToken);
    globalThis.gameId = game.gameId;
    globalThis.change = (verb, body = {}) => post(`/${game.gameId}:${verb}`, body, seatToken);
    globalThis.shown = [];
    globalThis.show = ({ revision, ruleset }) => globalThis.shown.push(ruleset.melding.deal.playersMax === 4 && revision);
  });
  await page.evaluate(`globalThis.events = (() => { ${EVENTS} return events; })()`);
  const shown = async (...revisions) => {
    await page.waitForFunction((count) => globalThis.shown.length >= count, revisions.length);
    assert.deepEqual(await page.evaluate(() => globalThis.shown), revisions);
  };
  const state = (wanted) => page.waitForFunction((state) => globalThis.events.readyState === state, wanted);
  await shown(2);
  await page.evaluate(() => globalThis.change("setReady", { isReady: true }));
  await shown(2, 3);
  world.cut();
  await state(0); // it connects again
  await world.restore();
  await state(1);
  await page.evaluate(() => globalThis.change("setReady"));
  await shown(2, 3, 4);
  await page.evaluate(() => globalThis.change("abort"));
  await shown(2, 3, 4, 5);
  await state(2);
  await leave(page);
});

test("hints: whether, which tiles, and a best turn step by step that is laid and played", async () => {
  const page = await world.open();
  await createGame(page, { options: { ...QUICK, "deal.hand_size": 21 } });
  await startGame(page);
  await myTurn(page);
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
  await createGame(page, { options: { ...CALM, turn_time_limit: 4, absent_after_timeouts: 0 } });
  await startGame(page);
  await myTurn(page);
  const { rack } = await tilesOf(page);
  await page.locator(".player.has-turn .clock", { hasText: /0:0[1-4]/ }).waitFor();
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

test("a finished game is replayed, explained and reviewed; its text is imported", async () => {
  const page = await world.open();
  await createGame(page, { level: "hard", options: QUICK });
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
  await page.getByRole("button", { name: "Developer" }).click();
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
