/** The frame of all pages: the header, the page of the address, the developer's drawer. */
import { useEffect, useState } from "preact/hooks";
import { type Route, routeOf } from "../control/router.js";
import { settings } from "../control/settings.js";
import { useStore } from "../control/store.js";
import { focusWhenRendered } from "../input/focus.js";
import { type Language, language, LANGUAGES, speak, t } from "../i18n/index.js";
import { GamePage } from "./game-page.js";
// Several files that are loaded later share it: here it is in the chunk of the start.
import "./copy.js";
import { Home } from "./home.js";
import { lazy } from "./lazy.js";

const Drawer = lazy(async () => (await import("./settings.js")).Drawer);
const SettingsDialog = lazy(async () => (await import("./settings.js")).SettingsDialog);
const HowToPlay = lazy(async () => (await import("./how-to-play.js")).HowToPlay);
const PuzzlePage = lazy(async () => (await import("./puzzle-page.js")).PuzzlePage);
const ReplayPage = lazy(async () => (await import("./replay-page.js")).ReplayPage);

export function App() {
  const { code } = useStore(language);
  const [route, setRoute] = useState<Route>(routeOf(location.hash));
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [areSettingsOpen, setSettingsOpen] = useState(false);
  const { developer } = useStore(settings);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // A key that no text field, browser or screen reader has.
      if (event.ctrlKey && event.altKey && event.code === "KeyD") setDrawerOpen((isOpen) => !isOpen);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    const follow = () => {
      setRoute(routeOf(location.hash));
      // A screen reader goes on with the new page.
      focusWhenRendered(() => document.querySelector<HTMLElement>("main"));
    };
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    document.title = t("title");
  }, [code]);
  return (
    <div class={isDrawerOpen ? "frame with-drawer" : "frame"}>
      <header class="top">
        <a class="brand" href="#/">
          {t("title")}
        </a>
        <label class="language">
          <span class="hidden">{t("language")}</span>
          <select value={code} onChange={(event) => void speak(event.currentTarget.value as Language)}>
            {Object.entries(LANGUAGES).map(([value, { name }]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <a class="button quiet" href="#/how-to-play" aria-label={t("howToPlay")}>
          <span aria-hidden="true">?</span>
          <span class="wide">&nbsp;{t("howToPlay")}</span>
        </a>
        <button type="button" class="quiet" aria-label={t("settings")} onClick={() => setSettingsOpen(true)}>
          <span aria-hidden="true">⚙</span>
        </button>
        {developer === "on" && (
          <button
            type="button"
            class="quiet"
            aria-expanded={isDrawerOpen}
            aria-controls={isDrawerOpen ? "drawer" : undefined}
            aria-label={t("drawerTitle")}
            onClick={() => setDrawerOpen(!isDrawerOpen)}
          >
            <span aria-hidden="true">{"{ }"}</span>
          </button>
        )}
      </header>
      <Page route={route} />
      {areSettingsOpen && <SettingsDialog onClose={() => setSettingsOpen(false)} />}
      {isDrawerOpen && <Drawer onClose={() => setDrawerOpen(false)} />}
    </div>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "home":
      return <Home />;
    case "game":
      return <GamePage key={route.gameId} gameId={route.gameId} joinCode={route.joinCode} />;
    case "replay":
      return <ReplayPage key={route.gameId ?? ""} {...route} />;
    case "how-to-play":
      return <HowToPlay />;
    case "puzzle":
      return <PuzzlePage />;
    case "unknown":
      return (
        <main class="page" tabIndex={-1}>
          <h1>{t("notFound")}</h1>
          <a href="#/">{t("home")}</a>
        </main>
      );
  }
}
