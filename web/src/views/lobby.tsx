/** The lobby: seats, bots, the code for friends, the start. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { BotLevel, type Game, type Player, StartBy } from "rummikub-client";
import { useState } from "preact/hooks";
import type { GameSession } from "../control/game-session.js";
import { joinGame, seats } from "../control/lobby.js";
import { go, inviteLink } from "../control/router.js";
import { useStore } from "../control/store.js";
import { errorText, t } from "../i18n/index.js";
import { clockText } from "../model/clock.js";
import { playerOf, rulesetOf } from "../model/turn.js";
import { useSecondsUntil } from "./clock.js";
import { CopyButton } from "./copy.js";
import { lazy } from "./lazy.js";
import { LevelSelect, NameField, storedName, storeName } from "./fields.js";
import { PlayerName } from "./players.js";

const QrCode = lazy(async () => (await import("./qr-code.js")).QrCode);
const GameRules = lazy(async () => (await import("./rules.js")).GameRules);

export interface LobbyProps {
  game: Game;
  session: GameSession;
  /** The code of the link that led here. */
  joinCode: string | undefined;
  /** Called when the player has taken a seat. */
  onSeat: () => void;
}

export function Lobby({ game, session, joinCode, onSeat }: LobbyProps) {
  const { isBusy, problem } = useStore(session.state);
  const [name, setName] = useState(storedName());
  const [failure, setFailure] = useState("");
  const [level, setLevel] = useState(BotLevel.MEDIUM);
  const me = playerOf(game, game.seat);
  const isHost = me?.isHost ?? seats.find(game.gameId)?.seat === 0;
  const mayStart = isHost || (me !== undefined && game.settings?.startBy !== StartBy.HOST);
  const free = Array.from({ length: rulesetOf(game)?.deal?.playersMax ?? 4 }, (_, i) => i + 1).filter(
    (seat) => ![...game.players, ...game.reservedSeats].some((taken) => taken.seat === seat),
  );
  const seconds = useSecondsUntil(game.nextRoundTime, session.clock);
  // Where the host alone decides, nobody waits for a player to be ready.
  const countsReady = [StartBy.ALL_READY, StartBy.FULL_OR_READY].includes(game.settings?.startBy ?? StartBy.HOST);
  const [isQrShown, setQrShown] = useState(false);
  const [areRulesShown, setRulesShown] = useState(false);
  const sit = async (seat: number) => {
    storeName(name);
    try {
      const address = joinCode ? { case: "joinCode", value: joinCode } : { case: "gameId", value: game.gameId };
      await joinGame(address as Parameters<typeof joinGame>[0], name.trim() || t("player"), seat);
      onSeat();
    } catch (error) {
      setFailure(errorText(error));
    }
  };
  const leave = async () => {
    await session.acting.leave();
    const seat = seats.find(game.gameId);
    if (seat) seats.forget(seat);
    go("");
  };
  return (
    <section class="card lobby">
      <h1>{t("lobby")}</h1>
      <p class="problem" role="alert">
        {problem?.text ?? failure}
      </p>
      {game.joinCode !== "" && (
        <p class="code-row">
          {t("shareCode")}: <output class="code">{game.joinCode}</output>{" "}
          <CopyButton text={game.joinCode} label={t("copy")} />{" "}
          <CopyButton text={inviteLink(game.gameId, game.joinCode)} label={t("copyLink")} />{" "}
          <button type="button" class="quiet" aria-expanded={isQrShown} onClick={() => setQrShown(!isQrShown)}>
            QR
          </button>
        </p>
      )}
      {isQrShown && <QrCode text={inviteLink(game.gameId, game.joinCode)} />}
      <details onToggle={(event) => setRulesShown(event.currentTarget.open)}>
        <summary>{t("rules")}</summary>
        {areRulesShown && <GameRules game={game} />}
      </details>
      <ul class="seats">
        {game.players.map((player) => (
          <li key={player.seat}>
            <PlayerName player={player} isMe={player.seat === game.seat} />
            {countsReady && <Ready player={player} />}
            {isHost && player.seat !== game.seat && <Remove {...player} session={session} />}
          </li>
        ))}
        {game.reservedSeats.map(({ seat, name }) => (
          <li key={seat} class="free">
            <span>{name}</span>
            <span class="badge">{t("reserved")}</span>
            {isHost && <Remove seat={seat} name={name} session={session} />}
          </li>
        ))}
        {free.map((seat) => (
          <li key={seat} class="free">
            <span>
              {t("seat", { seat })}: {t("freeSeat")}
            </span>
            {me === undefined ? (
              <button type="button" disabled={isBusy} onClick={() => sit(seat)}>
                {t("takeSeat")}
              </button>
            ) : (
              <button type="button" disabled={isBusy} onClick={() => session.acting.addBot(level, seat)}>
                {t("addBot")}
              </button>
            )}
          </li>
        ))}
      </ul>
      {me === undefined ? (
        <NameField name={name} onName={setName} />
      ) : (
        <label class="field">
          {t("botLevel")}
          <LevelSelect value={level} onChange={setLevel} />
        </label>
      )}
      <div class="actions">
        {mayStart && (
          <button
            type="button"
            class="primary"
            disabled={isBusy || game.reservedSeats.length > 0}
            onClick={() => session.acting.start()}
          >
            {t("start")}
          </button>
        )}
        {me !== undefined && (
          <>
            {countsReady && (
              <button type="button" disabled={isBusy} onClick={() => session.acting.setReady(!me.isReady)}>
                {me.isReady ? t("notReady") : t("ready")}
              </button>
            )}
            <button type="button" class="quiet" disabled={isBusy} onClick={leave}>
              {t("leave")}
            </button>
          </>
        )}
      </div>
      {seconds !== undefined ? (
        <p role="timer">
          <strong>{t("startsIn", { time: clockText(seconds) })}</strong>
        </p>
      ) : (
        <p class="help">{waitingText(game, mayStart)}</p>
      )}
    </section>
  );
}

/** Returns what the lobby waits for; empty if only for the player who may start the game. */
function waitingText(game: Game, mayStart: boolean): string {
  if (game.reservedSeats.length > 0) return t("startsWithAll");
  if (game.settings?.startBy === StartBy.FULL_OR_READY) return t("startsWhenFull");
  return mayStart ? "" : `${t("waiting")} …`;
}

function Remove({ seat, name, session }: { seat: number; name: string; session: GameSession }) {
  return (
    <button
      type="button"
      class="quiet"
      disabled={useStore(session.state).isBusy}
      aria-label={t("removePlayer", { name })}
      onClick={() => session.acting.kick(seat)}
    >
      {t("remove")}
    </button>
  );
}

function Ready({ player }: { player: Player }) {
  return <span class={player.isReady ? "badge good" : "badge"}>{player.isReady ? t("ready") : t("notReady")}</span>;
}
