/** The menu of a running game: resign, abort, rules. */
import { AbortBy, BotLevel, Bots, type Game, GameState, OpenSeat, type Player } from "rummikub-client";
import { useState } from "preact/hooks";
import type { Acting } from "../control/acting.js";
import { useStore } from "../control/store.js";
import { t } from "../i18n/index.js";
import { playerOf } from "../model/turn.js";
import { alerts, setAlert } from "./alerts.js";
import { Dialog } from "./dialog.js";
import { lazy } from "./lazy.js";

const GameRules = lazy(async () => (await import("./rules.js")).GameRules);

const ALERTS = [
  ["sound", "alertSound"],
  ["vibration", "alertVibration"],
  ["notification", "alertNotification"],
] as const;

/** How the player is told that it is their turn. */
function AlertChoices() {
  const chosen = useStore(alerts);
  const offered = ALERTS.filter(([name]) => name !== "notification" || "Notification" in globalThis);
  return (
    <>
      {offered.map(([name, text]) => (
        <label key={name} class="check">
          <input
            type="checkbox"
            checked={chosen[name]}
            onChange={(event) => void setAlert(name, event.currentTarget.checked)}
          />
          {t(text)}
        </label>
      ))}
    </>
  );
}

/** Returns the players who have resigned, if the player may let bots play on for them. */
function seatsForBots({ players, settings }: Game, me: Player): readonly Player[] {
  const isLed = players.some((one) => one.isHost && !one.resigned && one.botLevel === BotLevel.UNSPECIFIED);
  const isOff = settings?.openSeat === OpenSeat.OFF || settings?.bots === Bots.OFF;
  return isOff || (isLed && !me.isHost) ? [] : players.filter(({ resigned }) => resigned);
}

type Question = { text: string; act: () => Promise<void> };

export function Menu({ game, acting }: { game: Game; acting: Acting }) {
  const [isOpen, setOpen] = useState(false);
  const [question, setQuestion] = useState<Question>();
  const [areRulesShown, setRulesShown] = useState(false);
  const me = playerOf(game, game.seat);
  const isRunning = game.state === GameState.PLAYING || game.state === GameState.ROUND_OVER;
  if (me === undefined || me.resigned || !isRunning) return null;
  const isHostsChoice = me.isHost && game.settings?.abortBy === AbortBy.HOST && game.rounds.length === 0;
  const abortText = isHostsChoice ? t("abortSure") : t("abortVoteSure");
  const close = () => {
    setOpen(false);
    setQuestion(undefined);
  };
  return (
    <span class="menu">
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => (isOpen ? close() : setOpen(true))}>
        {t("menu")}
      </button>
      {isOpen && question === undefined && (
        <span class="menu-list">
          <button
            type="button"
            onClick={() => {
              close();
              setRulesShown(true);
            }}
          >
            {t("rules")}
          </button>
          <AlertChoices />
          {seatsForBots(game, me).map(({ seat, name }) => (
            <button
              key={seat}
              type="button"
              onClick={() => {
                close();
                void acting.addBot(BotLevel.MEDIUM, seat);
              }}
            >
              {t("botPlaysOn", { name })}
            </button>
          ))}
          <button type="button" onClick={() => setQuestion({ text: t("resignSure"), act: () => acting.resign() })}>
            {t("resign")}
          </button>
          <button type="button" onClick={() => setQuestion({ text: abortText, act: () => acting.abort() })}>
            {t("abort")}
          </button>
        </span>
      )}
      {isOpen && question !== undefined && (
        <span class="menu-list" role="group" aria-label={question.text}>
          <span>{question.text}</span>
          <button
            type="button"
            onClick={() => {
              close();
              void question.act();
            }}
          >
            {t("yes")}
          </button>
          <button type="button" onClick={close}>
            {t("no")}
          </button>
        </span>
      )}
      {areRulesShown && (
        <Dialog title={t("rules")} onClose={() => setRulesShown(false)}>
          <GameRules game={game} />
        </Dialog>
      )}
    </span>
  );
}
