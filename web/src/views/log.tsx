/** What happened in the game: the last lines at the table, and all of them in a drawer. */
import type { Game } from "rummikub-client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { eventText, eventTiles } from "../control/events.js";
import type { GameSession } from "../control/game-session.js";
import type { LogEntry } from "../control/session-state.js";
import { useStore } from "../control/store.js";
import { t } from "../i18n/index.js";
import { playerOf } from "../model/turn.js";
import { isCalm } from "./motion.js";
import { StaticTile } from "./tile.js";

/** The lines at the table. On a narrow or low screen the style shows the last one only. */
const LINES = 2;
/** Stands for the tiles of a sentence. */
const TILES = "\u0000";

/** A sentence with its tiles as pictures; a screen reader reads their names. */
function Line({ entry: { event }, game }: { entry: LogEntry; game: Game }) {
  const [before = "", after] = eventText(event, game, (tiles) => (tiles.length > 0 ? TILES : "")).split(TILES);
  return (
    <li>
      {before}
      {after !== undefined && (
        <>
          {eventTiles(event).map((tile, i) => (
            <StaticTile key={i} tile={tile} />
          ))}
          {after}
        </>
      )}
    </li>
  );
}

/** The last lines, and what can be done with the last play. */
export function Log({ game, session, onShowAgain }: { game: Game; session: GameSession; onShowAgain: () => void }) {
  const { log, lastPlay } = useStore(session.state, (state) => [state.log, state.lastPlay]);
  const [isOpen, setOpen] = useState(false);
  const last = log.slice(-LINES);
  const again = lastPlay !== undefined && lastPlay.seat !== game.seat && (
    <>
      {!isCalm() && (
        <button type="button" class="quiet" onClick={onShowAgain}>
          {t("showAgain")}
        </button>
      )}
      {(game.table?.placements.length ?? 0) === 0 && game.discardBoard === undefined && (
        <button
          type="button"
          class="quiet"
          onClick={() => session.hints.explainLastPlay(playerOf(game, lastPlay.seat)?.name ?? "")}
        >
          {t("explainPlay")}
        </button>
      )}
    </>
  );
  return (
    <div class="log">
      <ol class="log-lines">
        {last.map((entry) => (
          <Line key={entry.id} entry={entry} game={game} />
        ))}
      </ol>
      <span class="wide">{again}</span>
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t("log")}
      </button>
      {isOpen && <LogDrawer log={log} game={game} again={again} onClose={() => setOpen(false)} />}
    </div>
  );
}

interface DrawerProps {
  log: readonly LogEntry[];
  game: Game;
  /** The buttons that show the last play again. */
  again: ComponentChildren;
  onClose: () => void;
}

function LogDrawer({ log, game, again, onClose }: DrawerProps) {
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => list.current?.lastElementChild?.scrollIntoView({ block: "nearest" }), [log.length]);
  return (
    <aside class="log-drawer" aria-label={t("logTitle")} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <div class="head">
        <h2>{t("logTitle")}</h2>
        <button type="button" class="quiet" onClick={onClose}>
          {t("close")}
        </button>
      </div>
      <div class="actions">{again}</div>
      <ol ref={list} class="log-all" tabIndex={0}>
        {log.map((entry) => (
          <Line key={entry.id} entry={entry} game={game} />
        ))}
      </ol>
    </aside>
  );
}
