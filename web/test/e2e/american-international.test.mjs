import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import {
  act,
  button,
  createGame,
  drag,
  findExtension,
  findMeld,
  inspect,
  leave,
  myTurn,
  openForm,
  openWorld,
  rackTile,
  startGame,
} from "./support.mjs";

const CALM = { turn_time_limit: 0, "game_end.match_rounds": 1 };
/** A place of the table where no meld can be: its padding. */
const FREE = { x: 0.995, y: 0.5 };
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

async function create(page, rules, { options, ...settings } = {}) {
  await openForm(page, rules);
  await createGame(page, { bots: 2, ...settings, options: { ...CALM, ...options } });
  await startGame(page);
}

const laid = (page) => page.locator(".laid");
const melds = (page) => laid(page).locator(".meld:not(.new-meld)");
const message = (page, text) => page.locator(".turn-message", { hasText: text }).waitFor();
const me = (page) => page.locator(".player", { hasText: "(you)" });
const hasOpened = async (page) => (await me(page).getByText(/opened: /).count()) > 0;

/** Returns the tiles of the rack, and of the melds on the table, by their names. */
function tilesOf(page) {
  return page.evaluate(() => {
    const names = (root) => [...root.querySelectorAll("[data-piece]")].map((tile) => tile.dataset.tile);
    return { rack: names(document.querySelector(".stand")), melds: [...document.querySelectorAll(".laid .meld")].map(names) };
  });
}

/** Discards the last tile of the rack that is no joker: by a drag, a click on the own place, the button, or keys. */
async function discardLast(page, way = 0) {
  const tile = page.locator('.stand [data-piece]:not([data-tile="J"])').last();
  const own = page.locator(".board .pile.near-right");
  await act(page, async () => {
    if (way % 4 === 0) return drag(page, tile, own);
    if (way % 4 === 3) {
      const isBelow = Number(await tile.locator("xpath=..").getAttribute("data-slot")) >= 12;
      await tile.focus();
      await page.keyboard.press("Enter");
      for (let row = isBelow ? 2 : 1; row > 0; row--) await page.keyboard.press("ArrowUp");
      await page.locator("[data-spoken]", { hasText: "your discards" }).waitFor();
      return page.keyboard.press("Enter");
    }
    await tile.click();
    if (way % 4 === 1) await own.getByRole("button", { name: /^Discard / }).click();
    else await button(page, "Discard").click();
  });
}

/** Puts tiles of the rack on the table as a new meld: by drags, or by clicks. */
async function arrangeMeld(page, names, isDragged) {
  const before = await melds(page).count();
  if (isDragged) {
    await drag(page, rackTile(page, names[0]), laid(page), FREE);
    await melds(page).nth(before).waitFor();
    for (const name of names.slice(1))
      await drag(page, rackTile(page, name), melds(page).nth(before).locator("[data-piece]").last(), { x: 0.95 });
  } else {
    for (const name of names) await rackTile(page, name).click();
    await button(page, "New meld").click();
  }
  await melds(page).nth(before).locator("[data-piece]").nth(names.length - 1).waitFor();
}

/** Does what a hint suggests. */
async function followHint(page) {
  await button(page, "Hint").click();
  await button(page, "What would a bot do?").click();
  await message(page, "Suggestion: ");
  await act(page, () => button(page, "Do this").click());
}

const mayDiscard = (page) => button(page, "Discard").count();
const mayTake = (page) => button(page, "Take from the pool").count();

/** Takes a tile of the pool; of an empty one the player passes. */
async function take(page, isClicked) {
  const pool = isClicked ? page.locator("button[data-place=pool]") : button(page, "Take from the pool");
  const isEmpty = await button(page, "Pass: end the round").count();
  await act(page, () => (isEmpty ? button(page, "Pass: end the round") : pool).click());
}

/** Takes the trump by a click, and lays it beside a meld, or puts it back for a tile of the pool. */
async function takeTrump(page) {
  const trump = page.locator("button[data-place=trump]");
  const name = await trump.locator("[data-tile]").getAttribute("data-tile");
  await act(page, () => trump.click());
  await page.locator(`.stand .in-hand[data-tile="${name}"]`).waitFor();
  const extension = findExtension([name], (await tilesOf(page)).melds);
  if (extension === undefined) {
    await act(page, () => button(page, "Put it back").click());
    return;
  }
  await layOff(page, extension, page.locator(".stand .in-hand"));
  assert.equal(await page.locator(".board .captioned").count(), 0);
}

/** Drags a tile of the rack beside a meld, and lays it. */
async function layOff(page, { name, meld, x }, tile = rackTile(page, name)) {
  const tiles = melds(page).nth(meld).locator("[data-piece]");
  const before = await tiles.count();
  await drag(page, tile, x < 0.5 ? tiles.first() : tiles.last(), { x });
  await message(page, "Legal.");
  await act(page, () => button(page, "Lay the tiles").click());
  assert.equal(await tiles.count(), before + 1);
}

/** Lays a meld to open with, or a tile beside one. Returns what was laid, if anything. */
async function layByHand(page, isDragged) {
  const { rack, melds: table } = await tilesOf(page);
  if (!(await hasOpened(page))) {
    const meld = findMeld(rack);
    if (meld === undefined) return undefined;
    await arrangeMeld(page, meld, isDragged);
    await message(page, "Legal: you open with ");
    await act(page, () => button(page, "Lay the tiles").click());
    await me(page).getByText(/opened: \d+ points/).waitFor();
    return "opening";
  }
  const extension = rack.length > 1 ? findExtension(rack, table) : undefined;
  if (extension === undefined) return undefined;
  await layOff(page, extension);
  return "lay-off";
}

/** Plays to the end of a round. `onTurn` may do more in a turn. Returns what the player has done. */
async function playRound(page, onTurn = async () => {}) {
  const done = new Set();
  for (let turns = 0; await myTurn(page); turns++) {
    assert.ok(turns < 60, "the round ends");
    if (await mayTake(page)) {
      if (await page.locator("button[data-place=trump]").count()) {
        await takeTrump(page);
        done.add("trump");
      } else if (turns % 3 === 2) await followHint(page);
      else await take(page, turns % 2 === 0);
    }
    while ((await myTurn(page)) && (await mayDiscard(page))) {
      await onTurn(done);
      const isOwing = (await page.locator(".stand .in-hand").count()) > 0;
      const step = isOwing ? undefined : await layByHand(page, turns % 2 === 0);
      if (step !== undefined) done.add(step);
      else if (isOwing || (await tilesOf(page)).rack.every((name) => name === "J")) await followHint(page);
      else {
        await discardLast(page, turns);
        break;
      }
    }
  }
  return done;
}

/** Plays rounds until one has what is asked for, and leads to its result. */
async function playUntil(page, rules, options, has, onTurn) {
  for (let games = 0; ; games++) {
    await create(page, rules, { options });
    const done = await playRound(page, onTurn);
    if (has(done)) return;
    assert.ok(games < 8, "a round has what is asked for");
    await page.locator("section.result").getByText("Home").click();
  }
}

async function replay(page, picture) {
  await button(page, "Replay").click();
  await button(page, "Last").click();
  await page.locator(".replay .winner").waitFor();
  await inspect(page, picture);
}

test("a round of American Rummikub by drags, clicks and keys: the trump, openings, lay-offs, the points", async () => {
  const page = await world.open();
  let isInspected = false;
  const onTurn = async () => {
    if (isInspected || (await melds(page).count()) < 3 || (await page.locator(".board .captioned").count()) === 0) return;
    await page.evaluate(() => scrollTo(0, 0));
    await button(page, "Sort by color").click();
    await inspect(page, "american");
    isInspected = true;
  };
  // Any meld opens, so that a round is enough.
  const options = { "opening.points": 1 };
  await playUntil(page, "American Rummikub", options, (done) => done.has("lay-off") && done.has("trump") && isInspected, onTurn);
  await page.getByText("The game is over").first().waitFor();
  assert.equal(await page.getByText("The fewest points win the game.").count(), 0);
  assert.equal(await page.locator(".scores thead th").count(), 4);
  await inspect(page, "american-over");
  await replay(page, "american-replay");
  await leave(page);
});

test("in International Rummikub a discard is kept, the hands that win are listed, and refusals are explained", async () => {
  const page = await world.open();
  await create(page, "International Rummikub", { bots: 1, options: { "opening.points": 200 } });
  await myTurn(page);
  await page.getByText("Hands that win").click();
  await page.getByText("runs: 3 · groups: 0 · each run of another color · no tile below 10 · 1 counts high").waitFor();
  await page.getByText("Low runs").waitFor();
  await inspect(page, "international-hands");
  await page.getByText("Hands that win").click(); // the list lies over the table
  if ((await mayTake(page)) && (await page.locator("button[data-place=pile]").count()) === 0) {
    await take(page, true);
    await discardLast(page);
    await myTurn(page);
  }
  await act(page, () => page.locator("button[data-place=pile]").click());
  await message(page, "Open with melds of 200 points, or discard a tile. Or win concealed");
  assert.equal(await page.locator(".stand .in-hand").count(), 0, "who has not opened may keep the discard");
  const tile = page.locator(".stand [data-piece]").last();
  await drag(page, tile, page.locator(".board .indicator"));
  await message(page, "These tiles are none of the hands that win.");
  await drag(page, tile, laid(page), FREE);
  await laid(page).locator(".meld.illegal").waitFor();
  await button(page, "Declare a Foot").click();
  await message(page, "For a Foot, lay all your tiles but the one to discard.");
  await leave(page);
});

const COLORS = { R: "RED", B: "BLUE", K: "BLACK", O: "ORANGE" };
const enumName = (name) => (name === "J" ? "TILE_JOKER" : `TILE_${COLORS[name[0]]}_${name.slice(1)}`);
const nameOf = (tile) => {
  const [, color, value] = tile.split("_");
  const letter = Object.keys(COLORS).find((key) => COLORS[key] === color);
  return color === "JOKER" ? "J" : `${letter}${value}`;
};

/** Calls the service in JSON, as the page's seat in its game, or with a token. */
function call(page, path, body, token) {
  return page.evaluate(
    async ([path, body, token]) => {
      const seats = ["sessionStorage", "localStorage"].flatMap((kind) => JSON.parse(globalThis[kind].getItem("rummikub.seats") ?? "[]"));
      const game = /game\/([^?]+)/.exec(location.hash)?.[1];
      const own = token ?? seats.find(({ gameId }) => gameId === game)?.token;
      const response = await fetch(path.replace("{game}", game), {
        method: body === undefined ? "GET" : "POST",
        headers: { "content-type": "application/json", ...(own && { authorization: `Bearer ${own}` }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
    [path, body, token],
  );
}

/** Joins a game with rules that the form has no fields for, against an easy bot, or one that `seat` takes. */
async function joinGame(page, discard, seat = addBot) {
  const settings = { turnTimeLimit: "0s", hints: "HINTS_TURN" };
  const ruleset = { discard: { preset: "PRESET_INTERNATIONAL", gameEnd: { matchRounds: 1 }, ...discard } };
  const { game, hostToken } = await call(page, "/v1/games", { ruleset, settings });
  await page.getByLabel("Your name").fill("Ann");
  await page.getByLabel("Code of the game").fill(game.joinCode);
  await button(page, "Join").first().click();
  await button(page, "Leave").waitFor();
  const other = await seat(page, hostToken);
  await call(page, "/v1/games/{game}:start", {}, hostToken);
  await page.locator(".stand [data-piece]").first().waitFor();
  return other;
}

/** Lets a bot play, which needs no hand here. */
async function addBot(page, hostToken) {
  await call(page, "/v1/games/{game}:addBot", { level: "BOT_LEVEL_EASY" }, hostToken);
  return async () => {};
}

/** Takes a seat for a player who lays tiles and never finishes. Returns what plays its turns. */
async function addOpener(page) {
  const { seatToken } = await call(page, "/v1/games/{game}:join", { name: "Ben" }, "");
  await call(page, "/v1/games/{game}:setReady", { isReady: true }, seatToken);
  const act = (etag, action) => call(page, "/v1/games/{game}:playTurn", { etag, ...action }, seatToken);
  return async () => {
    for (;;) {
      const { game } = await call(page, "/v1/games/{game}", undefined, seatToken);
      if (game.state !== "GAME_STATE_PLAYING" || game.turn.seat !== game.seat) return;
      if (game.turn.step === "TURN_STEP_OPEN") {
        await act(game.etag, game.poolCount > 0 ? { takeFromPool: {} } : { passEmptyPool: {} });
        continue;
      }
      const mayLay = game.rack.length > 8;
      const { turn } = mayLay ? await call(page, "/v1/games/{game}:suggestTurn", { tier: "HINT_TIER_TURN" }, seatToken) : {};
      if (turn?.lay !== undefined) await act(game.etag, { lay: turn.lay });
      else await act(game.etag, { discard: { tile: game.rack[0] } });
    }
  };
}

/** Returns how many tiles a rack lacks until all are in melds, and a tile that it can best do without. */
async function standing(page, rack) {
  const faces = Object.keys(COLORS).flatMap((color) => [7, 6, 8, 5].map((value) => [color, value]));
  // The service judges hands of Okey: a joker is the okey there, of which the rack has none.
  const [color, value] = faces.find(([c, v]) => ![`${c}${v}`, `${c}${v - 1}`].some((name) => rack.includes(name))) ?? ["R", 7];
  const okey = `${color}${value}`;
  const tiles = rack.map((name) => enumName(name === "J" ? okey : name));
  const indicator = enumName(`${color}${value - 1}`);
  const ruleset = { preset: "PRESET_OKEY", melds: { runOneHigh: false } };
  const { spare = [], missing = 0 } = await call(page, "/v1/hands:validate", { ruleset, indicator, tiles });
  const plain = rack.filter((name) => name !== "J");
  return { missing, spare: spare.map(nameOf).find((name) => plain.includes(name)) ?? plain[0] };
}

/** Takes the discard if it brings the hand nearer to melds, else a tile of the pool. */
async function takeForHand(page) {
  const pile = page.locator("button[data-place=pile]");
  if (await pile.count()) {
    const { rack } = await tilesOf(page);
    const newest = await pile.locator("[data-tile]").getAttribute("data-tile");
    const [now, then] = [await standing(page, rack), await standing(page, [...rack, newest])];
    if (then.missing < now.missing) return act(page, () => pile.click());
  }
  return take(page, true);
}

/**
 * Keeps the hand concealed, until it lacks few tiles and the service suggests a finish. Returns it; undefined if the
 * round ends before.
 */
async function findFinish(page, fewTiles, others) {
  for (;;) {
    await others();
    if (!(await myTurn(page))) return undefined;
    if (await mayTake(page)) await takeForHand(page);
    if (!(await myTurn(page))) return undefined;
    const { missing, spare } = await standing(page, (await tilesOf(page)).rack);
    if (missing <= fewTiles) {
      const { turn } = await call(page, "/v1/games/{game}:suggestTurn", { tier: "HINT_TIER_TURN" });
      if (turn?.finish !== undefined) return turn.finish;
    }
    await act(page, async () => {
      await rackTile(page, spare).click();
      await button(page, "Discard").click();
    });
  }
}

/** Joins games until one can be finished. Returns the suggested finish. */
async function findFinishIn(page, rules, fewTiles, seat) {
  for (let games = 0; games < 8; games++) {
    const others = await joinGame(page, rules, seat);
    const finish = await findFinish(page, fewTiles, others);
    if (finish !== undefined) return finish;
    await page.locator("section.result").getByText("Home").click();
  }
  return assert.fail("one of eight rounds can be finished");
}

test("a named hand is shown by a drag onto the place to finish, and wins the round", async () => {
  const page = await world.open();
  // All melds are a hand, and nobody can open.
  const hands = [{ name: "ALL_MELDS", scores: [300, 250, 200] }];
  const { tile } = await findFinishIn(page, { hands, opening: { points: 201 } }, 0);
  await page.getByText("Hands that win").click();
  await page.getByText("all melds").waitFor();
  await drag(page, rackTile(page, nameOf(tile)), page.locator(".board .indicator"));
  const end = page.locator("section.result");
  await end.getByText("Ann finishes with a hand: all melds.").first().waitFor();
  await end.getByText("The fewest points win the game.").waitFor();
  await end.locator(".scores td", { hasText: /^−(300|250|200|600|500|400)$/ }).first().waitFor();
  await inspect(page, "international-hand");
  await replay(page, "international-hand-replay");
  await leave(page);
});

test("a Foot is arranged on the table by drags and clicks, declared, and replayed", async () => {
  const page = await world.open();
  // Only a Foot can be suggested: no hand is named that the tiles could be.
  const hands = [{ name: "NO_COLOR", runsMin: 4, groupsMin: 4, scores: [1, 1, 1] }];
  const { tile, table } = await findFinishIn(page, { hands, opening: { points: 1 } }, 5, addOpener);
  const { melds: before } = await tilesOf(page);
  for (const [place, part] of table.entries()) {
    const names = part.tiles.map(nameOf);
    const old = before[place];
    if (old === undefined) {
      await arrangeMeld(page, names, place % 2 === 0);
      continue;
    }
    const from = names.findIndex((_, i) => old.every((name, k) => names[i + k] === name));
    const tiles = melds(page).nth(place).locator("[data-piece]");
    for (const name of names.slice(0, from).reverse()) await drag(page, rackTile(page, name), tiles.first(), { x: 0.02 });
    for (const name of names.slice(from + old.length)) await drag(page, rackTile(page, name), tiles.last(), { x: 0.95 });
  }
  await message(page, "Legal: a Foot. Declare it.");
  assert.deepEqual((await tilesOf(page)).rack, [nameOf(tile)]);
  await inspect(page, "international");
  await button(page, "Declare a Foot").click();
  await page.locator("section.result").getByText("Ann finishes with a Foot and discards").waitFor();
  await replay(page, "international-replay");
  await leave(page);
});
