/** The table of a running game: players, melds, River, rack, and what the player may do. */
import { type Game, GameState } from "rummikub-client";
import { useEffect, useRef } from "preact/hooks";
import type { GameSession } from "../control/game-session.js";
import { useStore } from "../control/store.js";
import { onShortcut, onTableKey } from "../input/keyboard.js";
import { followPointer } from "../input/pointer.js";
import { t } from "../i18n/index.js";
import { isGrid } from "../model/grid.js";
import { choices, playerOf } from "../model/turn.js";
import { Actions } from "./actions.js";
import { useTurnAlert } from "./alerts.js";
import { ArrangedTable, OthersTable, type TabStop, useTabStop } from "./arranged-table.js";
import { useKeptFocus } from "./kept-focus.js";
import { lazy } from "./lazy.js";
import { Log } from "./log.js";
import { Menu } from "./menu.js";
import { useMotion } from "./motion.js";
import { Players } from "./players.js";
import { Rack } from "./rack.js";
import { River, RiverChoice } from "./river.js";
import { ShownClaim } from "./claim.js";
import { Stepper } from "./stepper.js";
import { TurnMessage } from "./turn-message.js";

// The tables that the games of melds do not have are files of their own.
const GridTable = lazy(async () => (await import("./grid-table.js")).GridTable);
const DiscardTable = lazy(async () => (await import("./discard-table.js")).DiscardTable);
const StandView = lazy(async () => (await import("./discard-table.js")).StandView);
const DiscardActions = lazy(async () => (await import("./discard-table.js")).DiscardActions);
const Result = lazy(async () => (await import("./result.js")).Result);

export function TableView({ game, session }: { game: Game; session: GameSession }) {
  // Not of what is carried: a movement renders the tables and the rack only.
  const state = useStore(session.state, ({ history, fresh, lastPlay, shown, othersDraft }) => [history, fresh, lastPlay, shown, othersDraft]);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => followPointer(root.current!, session.arranging), [session]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => onShortcut(event, session.arranging);
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [session]);
  const may = choices(game);
  const board = game.discardBoard;
  const me = playerOf(game, game.seat);
  const isPlaying = me !== undefined && !me.resigned;
  const tabStop = useTabStop();
  const isOver = game.state !== GameState.PLAYING;
  const showAgain = useMotion(root, session.state);
  useKeptFocus(root);
  useTurnAlert(game);
  const log = <Log game={game} session={session} onShowAgain={showAgain} />;
  return (
    <div
      class="table-page"
      data-revision={game.revision}
      ref={root}
      onKeyDown={(event) => onTableKey(event, root.current!, session.arranging)}
    >
      <div class="scene">
        <div class="status-row">
          <h1 class="turn-title">{title(game)}</h1>
          {board === undefined && !isOver && (
            <span class="badge" data-pool role="img" aria-label={t("poolLabel", { count: game.poolCount })}>
              {t("pool", { count: game.poolCount })}
            </span>
          )}
          {!isOver && <span class="badge">{t("round", { round: game.round })}</span>}
          <Menu game={game} acting={session.acting} />
        </div>
        <Players game={game} clock={session.clock} />
        {isOver && <Result game={game} session={session} />}
        {may.mayClaim && <ShownClaim game={game} acting={session.acting} />}
        {state.shown !== undefined && (
          <Stepper
            title={state.shown.title}
            before={state.shown.before}
            after={state.shown.after}
            steps={state.shown.steps}
            onClose={() => session.hints.closeShown()}
            {...(may.mayPlay && state.shown.play && { onApply: () => session.arranging.layHint() })}
          />
        )}
        {board !== undefined ? (
          <DiscardTable game={game} session={session} board={board} tabStop={tabStop} />
        ) : state.othersDraft !== undefined && !isOver ? (
          <OthersTable game={game} draft={state.othersDraft} />
        ) : (
          <Arranged game={game} session={session} tabStop={tabStop} />
        )}
        {game.river.length > 0 && <River game={game} arranging={session.arranging} />}
        {may.toLay.length > 0 && <RiverChoice tiles={may.toLay} acting={session.acting} />}
        {may.mayReturn && (
          <p class="banner">
            {t("youAreAbsent")}{" "}
            <button type="button" onClick={() => session.acting.returnToSeat()}>
              {t("returnToSeat")}
            </button>
          </p>
        )}
        <AbortVotes game={game} session={session} />
        {!isPlaying && !isOver && (
          <>
            {log}
            <p class="help center">
              {me === undefined ? (
                t("spectator")
              ) : (
                <>
                  {t("youResigned")} <a href="#/">{t("home")}</a>
                </>
              )}
            </p>
          </>
        )}
      </div>
      {isPlaying && !isOver && (
        <div class="hand">
          <div class="hand-head">
            <TurnMessage game={game} session={session} />
            {log}
          </div>
          {board === undefined ? (
            <>
              <Rack arranging={session.arranging} tabStop={tabStop} />
              <Actions game={game} session={session} />
            </>
          ) : (
            <>
              <StandView game={game} session={session} board={board} tabStop={tabStop} />
              <DiscardActions game={game} session={session} />
            </>
          )}
        </div>
      )}
    </div>
  );
}

/** The table as the player arranges it, in the game's layout. */
function Arranged({ game, session, tabStop }: { game: Game; session: GameSession; tabStop: TabStop }) {
  const { arranging } = session;
  const { present } = useStore(session.state, ({ history }) => [history]).history;
  if (isGrid(present)) return <GridTable game={game} grid={present} arranging={arranging} />;
  return <ArrangedTable arranging={arranging} tabStop={tabStop} />;
}

function title(game: Game): string {
  if (game.turn === undefined)
    return game.state === GameState.ROUND_OVER ? t("roundOver", { round: game.round }) : t("gameOver");
  if (game.turn.seat === game.seat) return t("yourTurn");
  return t("turnOf", { name: playerOf(game, game.turn.seat)?.name ?? "" });
}

/** Who has voted to abort the game, and the vote of the player. */
function AbortVotes({ game, session }: { game: Game; session: GameSession }) {
  const isRunning = game.state === GameState.PLAYING || game.state === GameState.ROUND_OVER;
  const voters = game.players.filter(({ wantsAbort }) => wantsAbort);
  if (!isRunning || voters.length === 0) return null;
  const me = playerOf(game, game.seat);
  return (
    <p class="banner">
      {t("abortVotesOf", { names: voters.map(({ name }) => name).join(", ") })}{" "}
      {me !== undefined && !me.resigned && !me.wantsAbort && (
        <button type="button" onClick={() => session.acting.abort()}>
          {t("abortToo")}
        </button>
      )}
    </p>
  );
}
