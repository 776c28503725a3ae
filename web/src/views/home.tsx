/** The home page: create, join, find, continue and replay games. */
import { BotLevel, GameState, type GameSummary, type NamedRuleset, type OwnGame, Preset, TableLayout } from "rummikub-client";
import { useEffect, useState } from "preact/hooks";
import { createGame, joinAnyGame, joinGame, listGames, listOwnGames, listRulesets, type NewGame, seats } from "../control/lobby.js";
import { go } from "../control/router.js";
import { errorText, t } from "../i18n/index.js";
import { AllOptions } from "./options.js";
import { meldingOf, rulesetOf } from "../model/turn.js";

const NAME = "rummikub.name";
const SECONDS = [30, 60, 120, 300];

export function Home() {
  const [name, setName] = useState(localStorage.getItem(NAME) ?? "");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  /** Does something that leads to a game, and goes there. */
  const enter = async (act: () => Promise<string>) => {
    if (isBusy) return;
    setBusy(true);
    setProblem("");
    try {
      localStorage.setItem(NAME, name);
      go(`game/${await act()}`);
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="page home" tabIndex={-1}>
      <h1>{t("title")}</h1>
      <p class="tagline">{t("tagline")}</p>
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="name-row">
        <label class="field">
          {t("yourName")}
          <input
            value={name}
            maxLength={40}
            autocomplete="nickname"
            required
            onInput={(e) => setName(e.currentTarget.value)}
          />
        </label>
      </div>
      <div class="columns">
        <CreateForm name={name} isBusy={isBusy} enter={enter} onProblem={(error) => setProblem(errorText(error))} />
        <div>
          <JoinForm name={name} isBusy={isBusy} enter={enter} />
          <YourGames />
          <OpenGames name={name} enter={enter} />
          <section class="card">
            <h2>{t("replayTitle")}</h2>
            <a class="button" href="#/replay">
              {t("recordText")}
            </a>
          </section>
        </div>
      </div>
    </main>
  );
}

interface FormProps {
  name: string;
  isBusy: boolean;
  enter: (act: () => Promise<string>) => Promise<void>;
}

function CreateForm({ name, isBusy, enter, onProblem }: FormProps & { onProblem: (error: unknown) => void }) {
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
    listRulesets().then(setRulesets, onProblem);
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
  return (
    <section class="card">
      <h2>{t("newGame")}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void enter(() => createGame(wanted));
        }}
      >
        <label class="field">
          {t("rules")}
          <select value={preset} onChange={(e) => choose(Number(e.currentTarget.value))}>
            {rulesets.length === 0 && <option value={Preset.SABRA}>Sabra</option>}
            {rulesets.map((named) => (
              <option key={named.title} value={rulesetOf(named)?.preset}>
                {named.title}
              </option>
            ))}
          </select>
        </label>
        <p class="help" lang="en">
          {chosen?.summary}
        </p>
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
          <button type="button" disabled={isBusy} onClick={() => enter(() => joinAnyGame(wanted))}>
            {t("quickMatch")}
          </button>
        </div>
      </form>
    </section>
  );
}

export function LevelSelect({ value, onChange }: { value: BotLevel; onChange: (level: BotLevel) => void }) {
  return (
    <select value={value} onChange={(e) => onChange(Number(e.currentTarget.value))} aria-label={t("botLevel")}>
      <option value={BotLevel.EASY}>{t("easy")}</option>
      <option value={BotLevel.MEDIUM}>{t("medium")}</option>
      <option value={BotLevel.HARD}>{t("hard")}</option>
    </select>
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

function JoinForm({ name, isBusy, enter }: FormProps) {
  const [code, setCode] = useState("");
  return (
    <section class="card">
      <h2>{t("joinTitle")}</h2>
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          void enter(() => joinGame({ case: "joinCode", value: code.trim() }, name.trim() || t("player")));
        }}
      >
        <label class="field">
          {t("code")}
          <input
            class="code"
            value={code}
            maxLength={6}
            required
            autocapitalize="characters"
            onInput={(e) => setCode(e.currentTarget.value)}
          />
        </label>
        <button disabled={isBusy || code.trim().length !== 6}>{t("join")}</button>
      </form>
    </section>
  );
}

function YourGames() {
  const [all, setAll] = useState(seats.all());
  const [known, setKnown] = useState(new Map<string, OwnGame>());
  useEffect(() => {
    listOwnGames(all).then(
      (games) => {
        setKnown(games);
        setAll(seats.all());
      },
      () => {},
    );
  }, []);
  if (all.length === 0) return null;
  return (
    <section class="card">
      <h2>{t("yourGames")}</h2>
      <ul class="games">
        {all.slice(0, 5).map(({ gameId, token, name, time }) => (
          <li key={gameId}>
            <span>
              {namesIn(known.get(gameId)) || name} ·{" "}
              {new Date(time).toLocaleString(document.documentElement.lang, { dateStyle: "short", timeStyle: "short" })}{" "}
              {isOnTurn(known.get(gameId)) && <strong>{t("yourTurn")}</strong>}
            </span>
            <a class="button" href={`#/game/${gameId}`}>
              {t("goOn")}
            </a>
            <button
              type="button"
              class="quiet"
              onClick={() => {
                seats.forget({ gameId, token });
                setAll(seats.all());
              }}
            >
              {t("forget")}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function namesIn(own?: OwnGame): string {
  return own?.found.case === "game" ? own.found.value.playerNames.join(", ") : "";
}

function isOnTurn(own?: OwnGame): boolean {
  return own?.found.case === "game" && own.seat !== undefined && own.found.value.turnSeat === own.seat;
}

function OpenGames({ name, enter }: Pick<FormProps, "name" | "enter">) {
  const [open, setOpen] = useState<GameSummary[]>([]);
  const [running, setRunning] = useState<GameSummary[]>([]);
  const refresh = () => {
    listGames(GameState.LOBBY).then(setOpen, () => {});
    listGames(GameState.PLAYING, GameState.ROUND_OVER).then(setRunning, () => {});
  };
  useEffect(refresh, []);
  return (
    <section class="card">
      <div class="head">
        <h2>{t("openGames")}</h2>
        <button type="button" class="quiet" onClick={refresh}>
          {t("refresh")}
        </button>
      </div>
      <GameList
        games={open.filter(({ seatsFree }) => seatsFree > 0)}
        action={({ gameId }) => (
          <button
            type="button"
            onClick={() => enter(() => joinGame({ case: "gameId", value: gameId }, name.trim() || t("player")))}
          >
            {t("join")}
          </button>
        )}
      />
      <h3>{t("runningGames")}</h3>
      <GameList
        games={running}
        action={({ gameId }) => (
          <a class="button" href={`#/game/${gameId}`}>
            {t("watch")}
          </a>
        )}
      />
    </section>
  );
}

function GameList({ games, action }: { games: GameSummary[]; action: (game: GameSummary) => preact.ComponentChild }) {
  if (games.length === 0) return <p class="help">{t("noGames")}</p>;
  return (
    <ul class="games">
      {games.map((game) => (
        <li key={game.gameId}>
          <span>
            {game.playerNames.join(", ") || "–"}{" "}
            <small class="help">
              {Preset[rulesetOf(game)?.preset ?? 0]} {game.seatsTaken}/{game.playersMax}
            </small>
          </span>
          {action(game)}
        </li>
      ))}
    </ul>
  );
}
