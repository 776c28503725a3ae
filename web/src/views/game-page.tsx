/** A game: its lobby, its table, or why it cannot be shown. */
import { GameState } from "rummikub-client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { service } from "../api/connection.js";
import { GameSession } from "../control/game-session.js";
import { keepSeat, seats } from "../control/lobby.js";
import { OtherWindows } from "../control/other-windows.js";
import { RackMemory } from "../control/rack-memory.js";
import { go } from "../control/router.js";
import { useStore } from "../control/store.js";
import { t } from "../i18n/index.js";
import { lazy } from "./lazy.js";
import type { LobbyProps } from "./lobby.js";
import { TableView } from "./table-view.js";

const Lobby = lazy(async () => (await import("./lobby.js")).Lobby);

export function GamePage({ gameId, joinCode }: { gameId: string; joinCode: string | undefined }) {
  // A seat that is taken or given up begins a session anew, with another token.
  const [token, setToken] = useState(seats.find(gameId)?.token);
  const session = useMemo(() => {
    const windows = new OtherWindows(new BroadcastChannel(`rummikub.${gameId}`));
    const memory = new RackMemory(sessionStorage, gameId);
    return new GameSession(token === undefined ? service : service.seated(token), gameId, memory, windows);
  }, [gameId, token]);
  const { game, connection, failure, spoken } = useStore(session.state, (state) => [state.game, state.connection, state.failure, state.spoken]);
  useEffect(() => {
    session.acting.onRematch = async (joined, name) => go(`game/${await keepSeat(joined, name)}`);
    void session.follow();
    const reconnect = () => session.reconnect();
    window.addEventListener("online", reconnect);
    return () => {
      window.removeEventListener("online", reconnect);
      session.stop();
    };
  }, [session]);
  const onSeat = () => setToken(seats.find(gameId)?.token);
  return (
    <main class="game" tabIndex={-1}>
      <Connection connection={connection} isShown={game !== undefined} />
      <div class="hidden" aria-live="polite" role="status" data-spoken>
        {spoken}
      </div>
      {failure !== undefined && <Failure text={failure} gameId={gameId} />}
      {failure === undefined && game !== undefined && (
        <State game={game} session={session} joinCode={joinCode} onSeat={onSeat} />
      )}
    </main>
  );
}

function State({ game, session, joinCode, onSeat }: LobbyProps) {
  const isLobby = game.state === GameState.LOBBY;
  const isAbortedLobby = game.state === GameState.ABORTED && game.round === 0;
  if (isLobby) return <Lobby game={game} session={session} joinCode={joinCode} onSeat={onSeat} />;
  if (isAbortedLobby) return <Failure text={t("gameAborted")} gameId={game.gameId} />;
  return <TableView game={game} session={session} />;
}

function Connection({ connection, isShown }: { connection: string; isShown: boolean }) {
  if (connection === "lost") {
    return (
      <p class="banner lost" role="alert">
        <span class="spinner" aria-hidden="true" /> {t("lost")}
      </p>
    );
  }
  return connection === "connecting" && !isShown ? <p class="banner">{t("connecting")}</p> : null;
}

function Failure({ text, gameId }: { text: string; gameId: string }) {
  const seat = seats.find(gameId);
  return (
    <section class="card center">
      <h1>{t("title")}</h1>
      <p role="alert">{text}</p>
      <div class="actions">
        <a class="button" href="#/">
          {t("home")}
        </a>
        {seat && (
          <button
            type="button"
            onClick={() => {
              seats.forget(seat);
              go("");
            }}
          >
            {t("forget")}
          </button>
        )}
      </div>
    </section>
  );
}
