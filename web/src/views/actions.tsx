/** What the player may do at a table of melds or cells. */
import { type Game, HintTier } from "rummikub-client";
import { useState } from "preact/hooks";
import { splittingPiece } from "rummikub-board/model";
import type { GameSession } from "../control/game-session.js";
import { useStore } from "../control/store.js";
import { DRAW_KEYS, PLAY_KEYS } from "../input/keyboard.js";
import { t } from "../i18n/index.js";
import { type Arrangement, meldWith } from "../model/arrangement.js";
import { faceOf } from "../model/tiles.js";
import { isGrid } from "../model/grid.js";
import { placed } from "../model/layout.js";
import { choices } from "../model/turn.js";
import { HintMenu } from "./hint-menu.js";
import { judgmentOf } from "./turn-message.js";

export function Actions({ game, session }: { game: Game; session: GameSession }) {
  const { history, isBusy, connection, selection, judgment, carried, sorting } = useStore(session.state, (state) => [
    state.history,
    state.isBusy,
    state.connection,
    state.selection,
    judgmentOf(state),
    state.sorting,
  ]);
  /** The arrangement with which the player would draw although it may be played. */
  const [asked, setAsked] = useState<Arrangement>();
  const may = choices(game);
  const isReady = !isBusy && connection === "open";
  const laid = placed(history.present).length;
  const [single] = selection;
  const canSplit =
    selection.length === 1 && (meldWith(history.present, single!)?.pieces.findIndex(({ id }) => id === single) ?? 0) > 0;
  // A tile that a run has already makes two runs of it.
  const offered = splittingPiece(history.present, faceOf);
  const splitAt = may.mayPlay ? (canSplit ? single : offered) : undefined;
  const isLegal = laid > 0 && judgmentOf({ judgment, carried, history })?.marks.isLegal === true;
  const draw = () => (isLegal ? setAsked(history.present) : session.acting.draw());
  if (asked === history.present && isLegal) {
    return (
      <div class="actions turn-actions" role="group" aria-label={t("drawSure")}>
        <strong role="alert">{t("drawSure")}</strong>
        <button type="button" class="primary" aria-keyshortcuts={PLAY_KEYS} disabled={!isReady} onClick={() => session.acting.play()}>
          {t("play")}
        </button>
        <button type="button" aria-keyshortcuts={DRAW_KEYS} disabled={!isReady} onClick={() => session.acting.draw()}>
          {t("drawAnyway")}
        </button>
        <button type="button" onClick={() => setAsked(undefined)}>
          {t("back")}
        </button>
      </div>
    );
  }
  const goesOut = judgment?.arrangement === history.present && judgment.answer.goesOut;
  return (
    <div class="actions turn-actions">
      <button
        type="button"
        class={isLegal ? "primary" : ""}
        aria-keyshortcuts={PLAY_KEYS}
        disabled={!isReady || !may.mayPlay || laid === 0}
        onClick={() => session.acting.play()}
      >
        {t("play")}
      </button>
      {may.mustCall && goesOut && (
        <button type="button" class="primary" disabled={!isReady} onClick={() => session.acting.play({ callsRummikub: true })}>
          {t("callWin")}
        </button>
      )}
      {may.mayKnockWithPlay && (
        <button type="button" disabled={!isReady || (laid === 0 && !may.mayKnock)} onClick={() => session.acting.knock()}>
          {t("knock")}
        </button>
      )}
      {may.mayPass ? (
        <button type="button" aria-keyshortcuts={DRAW_KEYS} disabled={!isReady} onClick={() => session.acting.pass()}>
          {game.poolCount === 0 ? t("pass") : t("endTurn")}
        </button>
      ) : (
        <button type="button" aria-keyshortcuts={DRAW_KEYS} disabled={!isReady || !may.mayDraw} onClick={draw}>
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
          <button
            type="button"
            class={offered === undefined ? "" : "primary"}
            disabled={splitAt === undefined}
            onClick={() => session.arranging.split(splitAt!)}
          >
            {t("split")}
          </button>
        )}
      </span>
      <span class="group">
        <button type="button" aria-label={t("sortRuns")} aria-pressed={sorting === "color"} onClick={() => session.arranging.sort("color")}>
          {t("byColor")}
        </button>
        <button type="button" aria-label={t("sortGroups")} aria-pressed={sorting === "value"} onClick={() => session.arranging.sort("value")}>
          {t("byNumber")}
        </button>
        <button type="button" onClick={() => session.arranging.showMelds()}>
          {t("showMelds")}
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
