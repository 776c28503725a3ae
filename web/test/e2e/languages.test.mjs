/** Ten languages, one from right to left. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { inspect, leave, openWorld } from "./support.mjs";

let world;
before(async () => {
  world = await openWorld();
});
afterEach(() => world.clear());
after(() => world?.close());

test("the page speaks the ten languages of the catalog, and stays in the chosen one", async () => {
  const page = await world.open({ locale: "ja-JP" });
  await page.getByRole("button", { name: "今すぐ遊ぶ" }).waitFor();
  const languages = page.locator(".language select");
  assert.equal(await languages.locator("option").count(), 10);
  for (const [code, name] of [["es", "Jugar ahora"], ["fr", "Jouer maintenant"], ["nl", "Nu spelen"], ["pl", "Graj teraz"], ["pt", "Jogar agora"], ["tr", "Hemen oyna"]]) {
    await languages.selectOption(code);
    await page.getByRole("button", { name, exact: true }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), code);
  }
  await page.getByRole("button", { name: "Kuralları ve oyuncuları seç" }).click();
  await page.getByText("Olağan oyun: 30 puanlık ilk açılış").waitFor();
  await page.getByText("Bütün seçenekler").click();
  await page.getByLabel("Oyuncu başına taş").waitFor();
  await page.locator('[data-option="deal.order"]').getByText("Kuranın dağıtımdan önce mi sonra mı çekildiği.").waitFor();
  await inspect(page, "options-tr");
  await page.reload();
  await page.getByRole("button", { name: "Hemen oyna", exact: true }).waitFor();
  await leave(page);
});

test("in Hebrew the page runs from right to left, and the numbers of a run from left to right", async () => {
  const page = await world.open({ locale: "he-IL", colorScheme: "dark" });
  const play = page.getByRole("button", { name: "לשחק עכשיו" });
  await play.waitFor();
  const { x, width } = await page.locator(".brand").boundingBox();
  assert.ok(x + width > 1_000, "the name of the game is on the right");
  await inspect(page, "home-he");
  await play.click();
  const tiles = page.locator(".rack [data-piece]");
  await tiles.nth(13).waitFor();
  const [first, second] = await tiles.evaluateAll((all) => all.slice(0, 2).map((tile) => tile.getBoundingClientRect().x));
  assert.ok(first < second);
  await inspect(page, "table-he");
  await leave(page);
});
