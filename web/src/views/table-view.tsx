/** The table of a running game: players, melds, River, rack, and what the player may do. */
import { type Game, GameState, HintTier, type Tile } from "rummikub-client";
import { useEffect, useRef } from "preact/hooks";
import { violationSummary } from "../control/arranging.js";
import type { GameSession } from "../control/game-session.js";
import { useStore } from "../control/store.js";
import { onShortcut, onTableKey } from "../input/keyboard.js";
import { followPointer } from "../input/pointer.js";
import { t, tilesList } from "../i18n/index.js";
import { meldWith } from "../model/arrangement.js";
import { isGrid } from "../model/grid.js";
import { placed } from "../model/layout.js";
import type { Judgment } from "../model/marks.js";
import { isStand } from "../model/stand.js";
import { choices, playerOf } from "../model/turn.js";
import { ArrangedTable, OthersTable, type TabStop, useTabStop } from "./arranged-table.js";
import { DiscardActions, DiscardTable, promptText, StandView } from "./discard-table.js";
import { GridTable } from "./grid-table.js";
import { HintMenu } from "./hint-menu.js";
import { Menu } from "./menu.js";
import { Players } from "./players.js";
import { Rack } from "./rack.js";
import { Result } from "./result.js";
import { River, RiverChoice } from "./river.js";
import { ShownClaim } from "./claim.js";
import { Stepper } from "./stepper.js";

export function TableView({ game, session }: { game: Game; session: GameSession }) {
  const state = useStore(session.state);
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
  const tabStop = useTabStop();
  const isOver = game.state !== GameState.PLAYING;
  return (
    <div
      class="table-page"
      data-revision={game.revision}
      ref={root}
      onKeyDown={(event) => onTableKey(event, root.current!, session.arranging)}
    >
      <div class="status-row">
        <h1 class="turn-title">{title(game)}</h1>
        {board === undefined && (
          <span class="badge" role="img" aria-label={t("poolLabel", { count: game.poolCount })}>
            {t("pool", { count: game.poolCount })}
          </span>
        )}
        <span class="badge">{t("round", { round: game.round })}</span>
        <Menu game={game} acting={session.acting} />
      </div>
      <Players
        game={game}
        clock={session.clock}
        onWarning={(seconds) => session.state.say(t("secondsLeft", { seconds }))}
      />
      {may.mayReturn && (
        <p class="banner">
          {t("youAreAbsent")}{" "}
          <button type="button" onClick={() => session.acting.returnToSeat()}>
            {t("returnToSeat")}
          </button>
        </p>
      )}
      <AbortVotes game={game} session={session} />
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
      {board === undefined && state.lastPlay !== undefined && state.lastPlay.seat !== game.seat && !isOver && (
        <LastPlay game={game} session={session} seat={state.lastPlay.seat} tiles={state.lastPlay.tiles} />
      )}
      {game.river.length > 0 && <River game={game} arranging={session.arranging} />}
      {may.toLay.length > 0 && <RiverChoice tiles={may.toLay} acting={session.acting} />}
      {me !== undefined && !isOver && (
        <div class="hand">
          <TurnMessage session={session} prompt={promptText(game)} />
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
      {me === undefined && !isOver && <p class="help center">{t("spectator")}</p>}
    </div>
  );
}

/** The table as the player arranges it, in the game's layout. */
function Arranged({ game, session, tabStop }: { game: Game; session: GameSession; tabStop: TabStop }) {
  const { arranging } = session;
  const { present } = useStore(session.state).history;
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

function LastPlay({
  game,
  session,
  seat,
  tiles,
}: {
  game: Game;
  session: GameSession;
  seat: number;
  tiles: readonly Tile[];
}) {
  const name = playerOf(game, seat)?.name ?? "";
  return (
    <p class="last-play">
      {t("lastPlay", { name, tiles: tilesList(tiles) })}{" "}
      {(game.table?.placements.length ?? 0) === 0 && (
        <button type="button" class="quiet" onClick={() => session.hints.explainLastPlay(name)}>
          {t("explainPlay")}
        </button>
      )}
    </p>
  );
}

function legalText({ points, goesOut, opening, isFoot }: Judgment["answer"]): string {
  if (isFoot === true) return t("legalFoot");
  if (opening !== undefined) return t(opening.isPairs ? "opensPairs" : "opensMelds", { amount: opening.amount });
  if (points === undefined) return t("legalLay");
  return goesOut ? t("legalOut") : t("legalTurn", { points });
}

/** What is wrong or right with the tiles as they lie. */
function TurnMessage({ session, prompt }: { session: GameSession; prompt: string }) {
  const { problem, notice, judgment, history, carried } = useStore(session.state);
  let text = notice ?? prompt;
  let kind = "";
  if (problem !== undefined) {
    text = problem.text;
    kind = "bad";
  } else if (judgment !== undefined && carried === undefined && judgment.arrangement === history.present) {
    const { marks, answer } = judgment;
    kind = marks.isLegal ? "good" : "";
    if (marks.isLegal) text = legalText(answer);
    else text = notice ?? violationSummary(marks, isStand(history.present));
  }
  return (
    <p class={`turn-message ${kind}`} role={problem === undefined ? "status" : "alert"}>
      {text}
    </p>
  );
}

function Actions({ game, session }: { game: Game; session: GameSession }) {
  const { history, isBusy, connection, selection, judgment } = useStore(session.state);
  const may = choices(game);
  const isReady = !isBusy && connection === "open";
  const laid = placed(history.present).length;
  const [single] = selection;
  const canSplit =
    may.mayPlay &&
    selection.length === 1 &&
    (meldWith(history.present, single!)?.pieces.findIndex(({ id }) => id === single) ?? 0) > 0;
  const goesOut = judgment?.arrangement === history.present && judgment.answer.goesOut;
  return (
    <div class="actions turn-actions">
      <button
        type="button"
        class="primary"
        disabled={!isReady || !may.mayPlay || laid === 0}
        onClick={() => session.acting.play()}
      >
        {t("play")}
      </button>
      {may.mustCall && goesOut && (
        <button type="button" class="primary" disabled={!isReady} onClick={() => session.acting.play(true)}>
          {t("callWin")}
        </button>
      )}
      {may.mayKnock && (
        <button type="button" disabled={!isReady} onClick={() => session.acting.knock()}>
          {t("knock")}
        </button>
      )}
      {may.mayPass ? (
        <button type="button" disabled={!isReady} onClick={() => session.acting.pass()}>
          {game.poolCount === 0 ? t("pass") : t("endTurn")}
        </button>
      ) : (
        <button type="button" disabled={!isReady || !may.mayDraw} onClick={() => session.acting.draw()}>
          {t("draw")}
        </button>
      )}
      <span class="group">
        <button type="button" disabled={history.past.length === 0} onClick={() => session.arranging.undo()}>
          {t("undo")}
        </button>
        <button type="button" disabled={history.future.length === 0} onClick={() => session.arranging.redo()}>
          {t("redo")}
        </button>
        <button type="button" disabled={history.past.length === 0} onClick={() => session.arranging.reset()}>
          {t("reset")}
        </button>
        {!isGrid(history.present) && (
          <button type="button" disabled={!canSplit} onClick={() => session.arranging.split(single!)}>
            {t("split")}
          </button>
        )}
      </span>
      <span class="group">
        <button type="button" onClick={() => session.arranging.sort("color")}>
          {t("sortRuns")}
        </button>
        <button type="button" onClick={() => session.arranging.sort("value")}>
          {t("sortGroups")}
        </button>
      </span>
      <HintMenu
        session={session}
        isReady={isReady}
        tiers={[
          [HintTier.PLAY_EXISTS, "hintExists"],
          [HintTier.TILES, "hintTiles"],
          [HintTier.TURN, "hintTurn"],
        ]}
      />
      {may.mayRedeal && (
        <button type="button" disabled={!isReady} onClick={() => session.acting.redeal()}>
          {t("redeal")}
        </button>
      )}
    </div>
  );
}
