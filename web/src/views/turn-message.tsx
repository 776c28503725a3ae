/** What is wrong or right with the tiles as they lie, how far the initial meld is, and the time that is left. */
import { ErrorReason, type Game } from "rummikub-client";
import { violationSummary } from "../control/arranging.js";
import type { GameSession } from "../control/game-session.js";
import type { SessionState } from "../control/session-state.js";
import { useStore } from "../control/store.js";
import { t, tileText } from "../i18n/index.js";
import { discardChoices, openingOf } from "../model/discards.js";
import { placed } from "../model/layout.js";
import type { Judgment } from "../model/marks.js";
import { isStand } from "../model/stand.js";
import { choices, meldingOf, playerOf } from "../model/turn.js";
import { tick } from "./alerts.js";
import { Countdown } from "./clock.js";

/** When a screen reader is told how much time the player has left, in seconds. */
const WARNINGS = [30, 10];
const LAST_SECONDS = 10;

export function TurnMessage({ game, session }: { game: Game; session: GameSession }) {
  const { problem, notice, ...state } = useStore(session.state, (one) => [
    one.problem,
    one.notice,
    one.history,
    judgmentOf(one),
  ]);
  const judgment = judgmentOf(state);
  const isLegal = judgment?.marks.isLegal === true;
  const verdict = judgment && (isLegal ? legalText(judgment.answer) : violationSummary(judgment.marks, isStand(judgment.arrangement)));
  const kind = problem !== undefined ? "bad" : isLegal ? "good" : "";
  const text = problem?.text ?? ([verdict, notice].filter(Boolean).join(" ") || promptText(game, placed(state.history.present).length === 0));
  const isMine = game.turn?.seat === game.seat;
  const onSeconds = (seconds: number) => {
    if (WARNINGS.includes(seconds)) session.state.say(t("secondsLeft", { seconds }));
    if (seconds > 0 && seconds <= LAST_SECONDS) tick();
  };
  return (
    <div class="turn-line">
      {isMine && game.turn?.deadline && <Countdown time={game.turn.deadline} clock={session.clock} onSeconds={onSeconds} />}
      <InitialMeld game={game} state={state} />
      <p class={`turn-message ${kind}`} role={problem === undefined ? "status" : "alert"}>
        {text}
      </p>
    </div>
  );
}

/** Returns what the player has to do, where no notice says more. */
function promptText(game: Game, isEmpty: boolean): string {
  const { mayPlay } = choices(game);
  const points = meldingOf(game)?.initialMeld?.threshold ?? 0;
  if (mayPlay) return isEmpty && points > 0 && playerOf(game, game.seat)?.hasMelded === false ? t("firstPlay", { points }) : "";
  const { mayTake, mayPass, takeable, trump, mayDiscard, mayFinish, mayLay, owed } = discardChoices(game);
  if (mayTake) {
    const text = mayPass ? t("mustTakeOrPass") : takeable === undefined ? t("mustTakePool") : t("mustTake");
    return trump === undefined ? text : `${text} ${t("orTrump")}`;
  }
  if (owed !== undefined && mayLay) return t("mustLay", { tile: tileText(owed) });
  const opening = openingOf(game);
  if (mayLay && opening !== undefined) {
    const { points, pairs } = opening;
    const text = pairs === undefined ? t("mayLayOrOpenMelds", { points }) : t("mayLayOrOpen", { points, pairs });
    return mayFinish ? `${text} ${t("orConcealed")}` : text;
  }
  if (mayLay) return t("mayLay");
  if (mayDiscard && !mayFinish) return t("mustDiscardOnly");
  return mayDiscard ? t("mustDiscard") : "";
}

/** Returns the judgment of the tiles as they lie; undefined while they are carried or not judged yet. */
export function judgmentOf({ judgment, carried, history }: Pick<SessionState, "judgment" | "carried" | "history">): Judgment | undefined {
  return carried === undefined && judgment?.arrangement === history.present ? judgment : undefined;
}

/** How many points of the initial meld lie, in a turn of a player who has not melded. */
function InitialMeld({ game, state }: { game: Game; state: Omit<SessionState, "problem" | "notice"> }) {
  const needed = meldingOf(game)?.initialMeld?.threshold ?? 0;
  if (!choices(game).mayPlay || needed === 0 || playerOf(game, game.seat)?.hasMelded !== false) return null;
  const judgment = judgmentOf(state);
  const below = judgment?.marks.table.find(({ reason }) => reason === ErrorReason.INITIAL_MELD_BELOW_THRESHOLD);
  const isEmpty = placed(state.history.present).length === 0;
  const points = below?.metadata.total ?? (judgment?.marks.isLegal ? judgment.answer.points : undefined) ?? (isEmpty ? 0 : "…");
  return (
    <span class="badge initial" title={t("initialMeld", { points: needed })}>
      {t("pointsOf", { points: String(points), needed })}
    </span>
  );
}

function legalText({ points, goesOut, opening, isFoot }: Judgment["answer"]): string {
  if (isFoot === true) return t("legalFoot");
  if (opening !== undefined) return t(opening.isPairs ? "opensPairs" : "opensMelds", { amount: opening.amount });
  if (points === undefined) return t("legalLay");
  return goesOut ? t("legalOut") : t("legalTurn", { points });
}
