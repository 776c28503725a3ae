/** The rules in words: the form of a new game, and the rules of a game to read. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { BotLevel, type NamedRuleset, Preset, TableLayout } from "rummikub-client";
import { useEffect, useState } from "preact/hooks";
import { createGame, joinAnyGame, listRulesets, type NewGame } from "../control/lobby.js";
import { errorText, presetSummary, presetTitle, t } from "../i18n/index.js";
import { meldingOf, rulesetOf } from "../model/turn.js";
import type { FormProps } from "./home.js";
import { LevelSelect, NameField, storedName, storeName } from "./fields.js";
import { AllOptions, firstOutOfRange } from "./options.js";

export { GameRules } from "./game-rules.js";

const SECONDS = [30, 60, 120, 300];

/** The form of a new game with all rules. */
export function NewGameForm({ isBusy, enter, onProblem }: FormProps) {
  const [name, setName] = useState(storedName());
  const [rulesets, setRulesets] = useState<NamedRuleset[]>([]);
  const [preset, setPreset] = useState(Preset.SABRA);
  const [bots, setBots] = useState(1);
  const [level, setLevel] = useState(BotLevel.MEDIUM);
  const [turnSeconds, setTurnSeconds] = useState<number>();
  const [rounds, setRounds] = useState(1);
  const [hasRiver, setRiver] = useState(false);
  const [showsDrafts, setDrafts] = useState(true);
  const [isPublic, setPublic] = useState(false);
  const [options, setOptions] = useState<NewGame["options"]>({});
  const [isAllShown, setAllShown] = useState(false);
  useEffect(() => {
    listRulesets().then(setRulesets, (error: unknown) => onProblem(errorText(error)));
  }, []);
  const chosen = rulesets.find((named) => rulesetOf(named)?.preset === preset);
  const family = chosen?.ruleset?.game.case ?? "melding";
  const playersMax = rulesetOf(chosen)?.deal?.playersMax ?? 4;
  const hasMelds = family === "melding";
  const mayHaveRiver = hasMelds && meldingOf(chosen)?.melds?.tableLayout !== TableLayout.GRID;
  const choose = (next: Preset) => {
    setPreset(next);
    // A game of another family has other options.
    const named = rulesets.find((one) => rulesetOf(one)?.preset === next);
    if (named?.ruleset?.game.case !== family) setOptions({});
  };
  const wanted = {
    name: name.trim() || t("player"),
    family,
    preset,
    bots,
    level,
    turnSeconds,
    rounds,
    hasRiver: hasRiver && mayHaveRiver,
    showsDrafts,
    isPublic,
    options,
  };
  /** Does what a button says, if all numbers are in their ranges. */
  const submit = (act: () => Promise<string>) => {
    storeName(name);
    const wrong = firstOutOfRange(family, options);
    if (wrong === undefined) void enter(act);
    else onProblem(wrong);
  };
  return (
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit(() => createGame(wanted));
        }}
      >
        <NameField name={name} onName={setName} />
        <label class="field">
          {t("rules")}
          <select value={preset} onChange={(e) => choose(Number(e.currentTarget.value))}>
            {rulesets.length === 0 && <option value={Preset.SABRA}>Sabra</option>}
            {rulesets.map((named) => (
              <option key={named.title} value={rulesetOf(named)?.preset}>
                {presetTitle(named)}
              </option>
            ))}
          </select>
        </label>
        <p class="help">{chosen && presetSummary(chosen)}</p>
        <div class="pair">
          <label class="field">
            {t("bots")}
            <select value={bots} onChange={(e) => setBots(Number(e.currentTarget.value))}>
              {Array.from({ length: playersMax }, (_, count) => (
                <option key={count} value={count}>
                  {count}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            {t("botLevel")}
            <LevelSelect value={level} onChange={setLevel} />
          </label>
        </div>
        <div class="pair">
          <label class="field">
            {t("turnTime")}
            <select
              value={turnSeconds ?? ""}
              onChange={({ currentTarget: { value } }) => setTurnSeconds(value === "" ? undefined : Number(value))}
            >
              <option value="">{t("asRules")}</option>
              <option value="0">{t("noLimit")}</option>
              {SECONDS.map((seconds) => (
                <option key={seconds} value={seconds}>
                  {t("seconds", { seconds })}
                </option>
              ))}
            </select>
          </label>
          {hasMelds && (
            <label class="field">
              {t("rounds")}
              <input
                type="number"
                min={1}
                max={100}
                value={rounds}
                onInput={(e) => setRounds(Number(e.currentTarget.value))}
              />
            </label>
          )}
        </div>
        {hasMelds && <Check label={t("withDrafts")} isOn={showsDrafts} onChange={setDrafts} />}
        {mayHaveRiver && <Check label={t("withRiver")} isOn={hasRiver} onChange={setRiver} />}
        <Check label={t("isPublic")} isOn={isPublic} onChange={setPublic} />
        <details onToggle={(event) => setAllShown(event.currentTarget.open)}>
          <summary>{t("allOptions")}</summary>
          {isAllShown && <AllOptions family={family} options={options} base={chosen} onChange={setOptions} />}
        </details>
        <div class="actions">
          <button class="primary" disabled={isBusy}>
            {t("create")}
          </button>
          <button type="button" disabled={isBusy} onClick={() => submit(() => joinAnyGame(wanted))}>
            {t("quickMatch")}
          </button>
        </div>
      </form>
  );
}

function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(e) => onChange(e.currentTarget.checked)} />
      {label}
    </label>
  );
}

