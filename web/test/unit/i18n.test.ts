import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, ErrorReason, Preset, RefusalSchema, tiles } from "rummikub-client";
import options from "../../src/i18n/options.json";
import { en } from "../../src/i18n/en.js";
import { errorText, fill, LANGUAGES, preferredLanguage, speak, tilesList } from "../../src/i18n/index.js";

const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, key]) => key).sort();

/** The texts that a language may lack, which are shown in English: a new text is not translated into all at once. */
const MOST_MISSING = 40;

test("every language has the texts, with the same values, and says which ones it lacks", async (context) => {
  for (const [code, { load }] of Object.entries(LANGUAGES)) {
    const { texts } = await load();
    const missing = Object.keys(en).filter((key) => !(key in texts));
    if (missing.length > 0) context.diagnostic(`${code} lacks ${missing.join(", ")}`);
    assert.ok(missing.length <= MOST_MISSING, `${code} lacks ${missing.length} texts`);
    for (const [key, text] of Object.entries(texts)) {
      assert.ok(key in en, `${code}: ${key} is no text of the page`);
      assert.notEqual(text, "", `${code}: ${key}`);
      assert.deepEqual(placeholders(text), placeholders(en[key as keyof typeof en]), `${code}: ${key}`);
    }
  }
});

test("a language names presets and options that there are, and says which ones it lacks", async (context) => {
  const names = Object.values(Preset).filter((name) => typeof name === "string" && name !== "UNSPECIFIED");
  const places = [...Object.keys(options.melding), ...Object.keys(options.discard)];
  for (const [code, { load }] of Object.entries(LANGUAGES).filter(([code]) => code !== "en")) {
    const language = await load();
    const missing = [...names.filter((name) => !language.presets?.[name]), ...places.filter((place) => !language.options?.[place])];
    if (missing.length > 0) context.diagnostic(`${code} lacks the names of ${missing.join(", ")}`);
    assert.ok(missing.length <= MOST_MISSING, `${code} lacks ${missing.length} names`);
    assert.deepEqual(Object.keys(language.presets ?? {}).filter((name) => !names.includes(name)), [], code);
  }
});

/** The options that their names and ranges explain. */
const PLAIN = ["tiles.colors", "tiles.copies", "tiles.jokers", "deal.players_min", "deal.players_max", "deal.hand_size"];

test("a language says what the options mean, and which ones it lacks", async (context) => {
  const places = [...new Set([...Object.keys(options.melding), ...Object.keys(options.discard)])];
  for (const [code, { load }] of Object.entries(LANGUAGES).filter(([code]) => code !== "en")) {
    const { meanings = {} } = await load();
    const missing = places.filter((place) => !(place in meanings) && !PLAIN.includes(place));
    if (missing.length > 0) context.diagnostic(`${code} lacks the meanings of ${missing.join(", ")}`);
    assert.ok(missing.length <= MOST_MISSING, `${code} lacks ${missing.length} meanings`);
    assert.deepEqual(Object.keys(meanings).filter((place) => !places.includes(place)), [], code);
  }
});

test("the service's catalog has a text for every reason, and a name and a symbol for every color", async () => {
  const reasons = Object.values(ErrorReason).filter((name) => typeof name === "string" && name !== "ERROR_REASON_UNSPECIFIED");
  for (const { load } of Object.values(LANGUAGES)) {
    const { catalog } = await load();
    assert.deepEqual(Object.keys(catalog.reasons).sort(), [...reasons].sort());
    assert.equal(Object.keys(catalog.colors).length, 6);
  }
});

test("errors without a reason of the service say what to do", () => {
  assert.match(errorText(new ConnectError("no", Code.Unavailable)), /does not answer/);
  assert.match(errorText(new ConnectError("no", Code.Unimplemented)), /older than this page/);
  assert.equal(errorText(new ConnectError("broken", Code.DataLoss)), "broken");
});

test("a reason of a newer service is shown with its own text", () => {
  const detail = { desc: RefusalSchema, value: { reason: 9_999 as ErrorReason } };
  assert.match(errorText(new ConnectError("a new rule", Code.FailedPrecondition, undefined, [detail])), /a new rule/);
});

test("each joker has a name of its own", async () => {
  assert.equal(tilesList(tiles("R7 J F D M C")), "red 7, joker, false joker, double joker, mirror, color change");
  await speak("de");
  assert.equal(tilesList(tiles("J F D M C")), "Joker, falscher Joker, Doppeljoker, Spiegel, Farbwechsel");
  await speak("en");
});

test("the language is the chosen one, else the browser's, else English", () => {
  assert.equal(preferredLanguage(null, ["de-AT", "en"]), "de");
  assert.equal(preferredLanguage("en", ["de"]), "en");
  assert.equal(preferredLanguage(null, ["eo"]), "en");
  assert.equal(fill("{a} {b}", { a: 1 }), "1 {b}");
});
