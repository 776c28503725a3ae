import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, test } from "node:test";
import { CALM, button, createGame, inspect, layMeld, leave, myTurn, openForm, openWorld, setOptions, startGame, tilesOf } from "./support.mjs";

/** The example of a watch in the page on the web edge. */
const EVENTS = /### Events.*?```js\n(.*?)```/s.exec(await readFile(new URL("../../../docs/web-edge.md", import.meta.url), "utf8"))[1];
let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

test("two people play in one game: join by code, live drafts; a third one watches", async () => {
  const ann = await world.open();
  await createGame(ann, { bots: 0, options: CALM });
  const code = await ann.locator("output.code").textContent();
  const ben = await world.open({ locale: "de-DE" });
  await ben.getByLabel("Dein Name").fill("Ben");
  await ben.getByLabel("Code des Spiels").fill(code);
  await ben.getByRole("button", { name: "Mitspielen", exact: true }).click();
  await ann.locator(".seats li", { hasText: "Ben" }).waitFor();
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
    const form = await openForm(page);
    await form.getByLabel("Your name").fill(name);
    await form.getByLabel("Time for a turn").selectOption({ label: "no limit" });
    await setOptions(page, { "deal.players_max": 2 });
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
  await own.filter({ hasText: "Bot Rosa" }).filter({ hasText: "Your turn" }).waitFor();
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
  await page.locator("section", { hasText: "Your games" }).locator("li", { hasText: "Bot Rosa" }).waitFor();
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
  await button(page, "Play now").click();
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
    globalThis.seat = [game.gameId, seatToken];
    globalThis.change = (verb, body = {}) => post(`/${game.gameId}:${verb}`, body, seatToken);
    globalThis.shown = [];
    globalThis.show = ({ seat, revision, ruleset }) =>
      globalThis.shown.push(seat === 1 && ruleset.melding.deal.playersMax === 4 && revision);
  });
  await page.evaluate(`(async () => { ${EVENTS} globalThis.events = await watch(...globalThis.seat); })()`);
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
