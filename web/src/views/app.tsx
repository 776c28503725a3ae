/** The frame of all pages: the header, the page of the address, the developer's drawer. */
import { useEffect, useState } from "preact/hooks";
import { type Route, routeOf } from "../control/router.js";
import { useStore } from "../control/store.js";
import { type Language, language, LANGUAGES, speak, t } from "../i18n/index.js";
import { Drawer } from "./drawer.js";
import { GamePage } from "./game-page.js";
import { Home } from "./home.js";

export function App() {
  const { code } = useStore(language);
  const [route, setRoute] = useState<Route>(routeOf(location.hash));
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  useEffect(() => {
    const follow = () => {
      setRoute(routeOf(location.hash));
      // A screen reader goes on with the new page.
      requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus());
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
        <button
          type="button"
          class="quiet"
          aria-expanded={isDrawerOpen}
          aria-controls={isDrawerOpen ? "drawer" : undefined}
          aria-label={t("drawerTitle")}
          onClick={() => setDrawerOpen(!isDrawerOpen)}
        >
          <span aria-hidden="true">{"{ }"}</span>
          <span class="wide">&nbsp;{t("drawerTitle")}</span>
        </button>
      </header>
      <Page route={route} />
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
      return <Replay key={route.gameId ?? ""} {...(route.gameId !== undefined && { gameId: route.gameId })} />;
    case "unknown":
      return (
        <main class="page" tabIndex={-1}>
          <h1>{t("notFound")}</h1>
          <a href="#/">{t("home")}</a>
        </main>
      );
  }
}

/** The replay, a file of its own that few games need. */
function Replay({ gameId }: { gameId?: string }) {
  const [file, setFile] = useState<typeof import("./replay-page.js")>();
  useEffect(() => void import("./replay-page.js").then(setFile), []);
  if (file === undefined) return <main class="page" tabIndex={-1} />;
  return <file.ReplayPage {...(gameId !== undefined && { gameId })} />;
}
