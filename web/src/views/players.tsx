/** The players around the table. */
import { BotLevel, type DiscardOpening, type Game, type Player, Teams } from "rummikub-client";
import { numberText, t } from "../i18n/index.js";
import { clockText, type ServerClock } from "../model/clock.js";
import { Countdown } from "./clock.js";
import { LEVELS } from "./fields.js";
import { hasThreeLeft } from "../model/discards.js";
import { rulesetOf } from "../model/turn.js";

export function PlayerName({ player, isMe }: { player: Player; isMe: boolean }) {
  const level = LEVELS[player.botLevel - 1];
  const isBot = player.botLevel !== BotLevel.UNSPECIFIED && !player.isAbsent;
  return (
    <span class="player-name">
      {!isBot && player.isConnected !== undefined && (
        <span
          class={player.isConnected ? "dot on" : "dot"}
          role="img"
          aria-label={player.isConnected ? t("connected") : t("disconnected")}
        />
      )}
      <strong>{player.name}</strong>
      {isMe && <small> ({t("you")})</small>}
      {isBot && (
        <small>
          {" "}
          ({t("bot")}, {level && t(level)})
        </small>
      )}
      {player.isProgram && <small class="badge">{t("bot")}</small>}
      {player.isHost && <small class="badge">{t("host")}</small>}
    </span>
  );
}

function Opened({ opening: { isPairs, amount } }: { opening: DiscardOpening }) {
  const text = t(isPairs ? "openedPairs" : "openedMelds", { amount });
  return (
    <span class="badge good" title={text}>
      <span aria-hidden="true">✓ {isPairs ? `${amount} × 2` : amount}</span>
      <span class="hidden">{text}</span>
    </span>
  );
}

interface PlayersProps {
  game: Game;
  clock: ServerClock;
}

export function Players({ game, clock }: PlayersProps) {
  const order = game.turnOrder.length > 0 ? game.turnOrder : game.players.map(({ seat }) => seat);
  const players = order.flatMap((seat) => game.players.filter((player) => player.seat === seat));
  return (
    <ul class="players">
      {players.map((player) => (
        <PlayerCard key={player.seat} player={player} game={game} clock={clock} />
      ))}
    </ul>
  );
}

function PlayerCard({ player, game, clock }: PlayersProps & { player: Player }) {
  const hasTurn = game.turn?.seat === player.seat;
  const isMe = player.seat === game.seat;
  const board = game.discardBoard;
  const opening = board?.openings.find(({ seat }) => seat === player.seat);
  const penalty = board?.penalties.reduce((sum, { seat, points }) => sum + (seat === player.seat ? points : 0), 0) ?? 0;
  return (
    <li data-seat={player.seat} class={`player ${hasTurn ? "has-turn" : ""} ${player.resigned ? "is-out" : ""}`} aria-current={hasTurn}>
      <PlayerName player={player} isMe={isMe} />
      <span class="facts">
        <span class="count" role="img" aria-label={t("tiles", { count: player.tileCount })}>
          <span class="mini-tile" aria-hidden="true" /> {player.tileCount}
        </span>
        {board === undefined && (
          <span class={player.hasMelded ? "badge good" : "badge unmelded"} title={player.hasMelded ? t("melded") : t("notMelded")}>
            <span aria-hidden="true">{player.hasMelded ? "✓" : "–"}</span>
            <span class="hidden">{player.hasMelded ? t("melded") : t("notMelded")}</span>
          </span>
        )}
        {board?.shownBySeat === player.seat && (
          <span class="badge good" title={t("hasShown")}>
            <span aria-hidden="true">gösterge ✓</span>
            <span class="hidden">{t("hasShown")}</span>
          </span>
        )}
        {opening !== undefined && <Opened opening={opening} />}
        {hasThreeLeft(game, player.seat) && <span class="badge warn">{t("threeLeft")}</span>}
        {penalty > 0 && <span class="badge warn">{t("penalty", { points: penalty })}</span>}
        {(game.rounds.length > 0 || board !== undefined) && <span class="badge">{t("points", { points: numberText(player.totalPoints) })}</span>}
        {rulesetOf(game)?.deal?.teams === Teams.PAIRS && (
          <span class="badge">{t("team", { team: player.seat % 2 === 1 ? "A" : "B" })}</span>
        )}
        {player.timeLeft && !hasTurn && (
          <span class="badge">{t("bank", { time: clockText(Number(player.timeLeft.seconds)) })}</span>
        )}
        {game.lastChanceSeats.includes(player.seat) && <span class="badge warn">{t("lastChance")}</span>}
        {player.isAbsent && <span class="badge warn">{t("absent")}</span>}
        {player.resigned && <span class="badge warn">{t("resigned")}</span>}
        {player.wantsAbort && <span class="badge warn">{t("abortVotes")}</span>}
        {hasTurn && <Countdown time={game.turn?.deadline} clock={clock} />}
      </span>
    </li>
  );
}
