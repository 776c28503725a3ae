/** How to play: the rules with tiles, and a first turn to try. It needs no service. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { type Tile, tiles } from "rummikub-client";
import { useState } from "preact/hooks";
import { type Key, t } from "../i18n/index.js";
import { FIRST_POINTS, meldPoints } from "../model/first-turn.js";
import { StaticTile } from "./tile.js";

/** What the page says, with the tiles that show it. */
const LINES: readonly (readonly [text: Key, shown?: string])[] = [
  ["htGoal"],
  ["htRun", "R7 R8 R9"],
  ["htGroup", "K4 B4 O4"],
  ["htJoker", "B10 J B12"],
  ["htInitial", "O9 O10 O11"],
  ["htTable", "R7 R8 R9 R10"],
  ["htDraw"],
  ["htEnd"],
];

/** A rack with one group that opens, one run that does not reach the points, and tiles that fit nowhere. */
const RACK = tiles("R2 R3 R4 R11 B6 B11 K1 K11 K13 O5 O8");

export function HowToPlay() {
  return (
    <main class="page how-to-play" tabIndex={-1}>
      <h1>{t("howToPlay")}</h1>
      {LINES.map(([text, shown]) => (
        <section key={text}>
          <p>{t(text)}</p>
          {shown && (
            <div class="felt shown-tiles">
              {tiles(shown).map((tile, i) => (
                <StaticTile key={i} tile={tile} />
              ))}
            </div>
          )}
        </section>
      ))}
      <FirstTurn />
      <a class="button primary" href="#/">
        {t("home")}
      </a>
    </main>
  );
}

function FirstTurn() {
  const [selected, setSelected] = useState<ReadonlySet<Tile>>(new Set());
  const [laid, setLaid] = useState<readonly Tile[]>([]);
  const [answer, setAnswer] = useState("");
  const isOpen = laid.length > 0;
  const choose = (tile: Tile) => {
    const next = new Set(selected);
    if (!next.delete(tile)) next.add(tile);
    setSelected(next);
    setAnswer("");
  };
  const lay = () => {
    const chosen = RACK.filter((tile) => selected.has(tile));
    const points = meldPoints(chosen);
    if (points === undefined) return setAnswer(t("htTryNoMeld"));
    if (points < FIRST_POINTS) return setAnswer(t("htTryFew", { points }));
    setLaid(chosen);
    setAnswer(t("htTryGood", { points }));
  };
  const reset = () => {
    setSelected(new Set());
    setLaid([]);
    setAnswer("");
  };
  return (
    <section class="card" aria-label={t("htTry")}>
      <h2>{t("htTry")}</h2>
      <p>{t("htTryText")}</p>
      {isOpen && (
        <div class="felt shown-tiles">
          {laid.map((tile) => (
            <StaticTile key={tile} tile={tile} />
          ))}
        </div>
      )}
      <div class="rack shown-rack" role="group" aria-label={t("rack")}>
        {RACK.filter((tile) => !laid.includes(tile)).map((tile) => (
          <button
            key={tile}
            type="button"
            class="choice"
            aria-pressed={selected.has(tile)}
            disabled={isOpen}
            onClick={() => choose(tile)}
          >
            <StaticTile tile={tile} />
          </button>
        ))}
      </div>
      <p role="status">
        <strong>{answer}</strong>
      </p>
      <div class="actions">
        <button type="button" class="primary" disabled={selected.size === 0 || isOpen} onClick={lay}>
          {t("lay")}
        </button>
        <button type="button" onClick={reset}>
          {t("reset")}
        </button>
      </div>
    </section>
  );
}
