/** The home page: play at once, create, join, find, continue and replay games. */
import { GameState, type GameSummary, type OwnGame, Preset } from "rummikub-client";
import { useEffect, useState } from "preact/hooks";
import { joinGame, listGames, listOwnGames, playNow, seats } from "../control/lobby.js";
import { go } from "../control/router.js";
import { errorText, presetTitle, t } from "../i18n/index.js";
import { lazy } from "./lazy.js";
import { NameField, storedName, storeName } from "./fields.js";
import { rulesetOf } from "../model/turn.js";

/** The form with all rules, which only few need. */
const NewGameForm = lazy(async () => (await import("./rules.js")).NewGameForm);

/** What a form of the home page can do. */
export interface FormProps {
  isBusy: boolean;
  /** Does something that leads to a game, and goes there. */
  enter: (act: () => Promise<string>) => Promise<void>;
  onProblem: (text: string) => void;
}

/** Whether the browser has a connection. */
function useOnline(): boolean {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const follow = () => setOnline(navigator.onLine);
    window.addEventListener("online", follow);
    window.addEventListener("offline", follow);
    return () => {
      window.removeEventListener("online", follow);
      window.removeEventListener("offline", follow);
    };
  }, []);
  return isOnline;
}

export function Home() {
  const isOnline = useOnline();
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isFormShown, setFormShown] = useState(false);
  const enter = async (act: () => Promise<string>) => {
    if (isBusy) return;
    setBusy(true);
    setProblem("");
    try {
      go(`game/${await act()}`);
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  const form = { isBusy, enter, onProblem: setProblem };
  return (
    <main class="page home" tabIndex={-1}>
      <h1>{t("title")}</h1>
      <p class="tagline">{t("tagline")}</p>
      <p class="problem" role="alert">
        {problem}
      </p>
      {!isOnline && (
        <p class="banner" role="status">
          {t("offline")} <a href="#/how-to-play">{t("howToPlay")}</a>
        </p>
      )}
      <div class="columns">
        <section class="card new-game">
          <h2>{t("newGame")}</h2>
          <button
            type="button"
            class="primary play-now"
            disabled={isBusy}
            onClick={() => enter(() => playNow(storedName() || t("player")))}
          >
            {t("playNow")}
          </button>
          <p class="help">
            {t("playNowHelp")} <a href="#/how-to-play">{t("howToPlay")}</a> · <a href="#/puzzle">{t("puzzleOfTheDay")}</a>
          </p>
          <button type="button" aria-expanded={isFormShown} onClick={() => setFormShown(!isFormShown)}>
            {t("chooseRules")}
          </button>
          {isFormShown && <NewGameForm {...form} />}
        </section>
        <div>
          <JoinForm {...form} />
          <YourGames />
          <OpenGames />
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

function JoinForm({ isBusy, enter }: FormProps) {
  const [code, setCode] = useState("");
  const [name, setName] = useState(storedName());
  return (
    <section class="card">
      <h2>{t("joinTitle")}</h2>
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          storeName(name);
          void enter(() => joinGame({ case: "joinCode", value: code.trim() }, name.trim() || t("player")));
        }}
      >
        <NameField name={name} onName={setName} />
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

function OpenGames() {
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
          <a class="button" href={`#/game/${gameId}`}>
            {t("join")}
          </a>
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

/** The preset of a game, with its name in the contract for a title. */
function presetOf(game: GameSummary): { name: string; title: string } {
  const name = Preset[rulesetOf(game)?.preset ?? Preset.SABRA] ?? "";
  return { name, title: name.charAt(0) + name.slice(1).toLowerCase().replaceAll("_", " ") };
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
              {presetTitle(presetOf(game))} {game.seatsTaken}/{game.playersMax}
            </small>
          </span>
          {action(game)}
        </li>
      ))}
    </ul>
  );
}
