/** The end of a round or a game: scores, racks, and how to go on. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { type Game, GameState, RoundEnd, type RoundResult, ScoreSystem, Tile } from "rummikub-client";
import { finishText, rackFinishText } from "../control/finish-text.js";
import type { GameSession } from "../control/game-session.js";
import { seats } from "../control/lobby.js";
import { go } from "../control/router.js";
import { useStore } from "../control/store.js";
import { numberText, signed, t } from "../i18n/index.js";
import { clockText } from "../model/clock.js";
import { wildOf } from "../model/discards.js";
import { discardOf, playerOf } from "../model/turn.js";
import { FinishedHand, OkeyTile } from "./board.js";
import { useSecondsUntil } from "./clock.js";

export function Result({ game, session }: { game: Game; session: GameSession }) {
  const { isBusy, problem } = useStore(session.state);
  const last = game.rounds.at(-1);
  const me = playerOf(game, game.seat);
  const isFinished = game.state === GameState.FINISHED;
  const isOver = isFinished || game.state === GameState.ABORTED;
  const seconds = useSecondsUntil(game.nextRoundTime, session.clock);
  return (
    <section class="card result" aria-labelledby="result-title">
      <h2 id="result-title">{resultTitle(game)}</h2>
      {isFinished && <p class="winner">{winnerText(game)}</p>}
      <p class="problem" role="alert">
        {problem?.text}
      </p>
      {last !== undefined && <Scores game={game} result={last} />}
      <div class="actions">
        {!isOver && me !== undefined && !me.resigned && (
          <button type="button" class="primary" disabled={isBusy} onClick={() => session.acting.nextRound()}>
            {t("nextRound")}
          </button>
        )}
        {!isOver && seconds !== undefined && <span>{t("nextRoundIn", { time: clockText(seconds) })}</span>}
        {isOver && me !== undefined && <Rematch game={game} session={session} />}
        {isOver && (
          <>
            {game.discardBoard === undefined && (
              <button type="button" onClick={() => go(`replay/${game.gameId}/review`)}>
                {t("review")}
              </button>
            )}
            <button type="button" onClick={() => go(`replay/${game.gameId}`)}>
              {t("replay")}
            </button>
            <button type="button" onClick={() => void save(session)}>
              {t("exportRecord")}
            </button>
          </>
        )}
        <a class="button quiet" href="#/">
          {t("home")}
        </a>
      </div>
    </section>
  );
}

/** The way to the rematch, in which a seat is reserved for the player. */
function Rematch({ game, session }: { game: Game; session: GameSession }) {
  const { isBusy, hasDeclined } = useStore(session.state);
  if (hasDeclined) return <span>{t("declined")}</span>;
  if (seats.find(game.rematchGameId) !== undefined) {
    return (
      <a class="button primary" href={`#/game/${game.rematchGameId}`}>
        {t("toRematch")}
      </a>
    );
  }
  const exists = game.rematchGameId !== "";
  return (
    <>
      <button type="button" class="primary" disabled={isBusy} onClick={() => session.acting.rematch()}>
        {exists ? t("toRematch") : t("rematch")}
      </button>
      {exists && (
        <button type="button" disabled={isBusy} onClick={() => session.acting.declineRematch()}>
          {t("declineRematch")}
        </button>
      )}
    </>
  );
}

function resultTitle(game: Game): string {
  if (game.state === GameState.ABORTED) return t("gameAborted");
  if (game.abandoned) return t("gameAbandoned");
  return game.state === GameState.FINISHED ? t("gameOver") : t("roundOver", { round: game.round });
}

function names(game: Game, seats: readonly number[]): string {
  return seats.map((seat) => playerOf(game, seat)?.name ?? t("seat", { seat })).join(", ");
}

function winnerText(game: Game): string {
  return game.winnerSeats.length === 0 ? t("noWinner") : t("winner", { names: names(game, game.winnerSeats) });
}

/** How a round ended: for a finished hand, also its melds. */
function RoundEndView({ game, result }: { game: Game; result: RoundResult }) {
  const board = game.discardBoard;
  const wild = board && wildOf(board);
  const { finish, rackFinish } = board ?? {};
  if (rackFinish !== undefined) return <p>{rackFinishText(names(game, [rackFinish.seat]), rackFinish, wild)}</p>;
  if (finish === undefined || wild === undefined) return <p>{endText(game, result)}</p>;
  return <FinishedHand hand={finish.hand} okey={wild} text={finishText(names(game, [finish.seat]), finish, wild)} />;
}

function endText(game: Game, { roundEnd, winnerSeats }: RoundResult): string {
  if (roundEnd === RoundEnd.VOID) return t("roundVoid");
  if (game.discardBoard !== undefined && roundEnd === RoundEnd.BLOCKED) return t("poolEmpty");
  if (roundEnd === RoundEnd.WENT_OUT) return t("wentOut", { names: names(game, winnerSeats) });
  if (roundEnd === RoundEnd.KNOCKED) return t("knocked");
  return roundEnd === RoundEnd.BLOCKED ? t("blocked") : t("allResigned");
}

/** Whether the losers of a game of discards collect points, of which the fewest win. */
function fewestWin(game: Game): boolean {
  const system = discardOf(game)?.scoring?.system;
  return system === ScoreSystem.OKEY_101 || system === ScoreSystem.INTERNATIONAL;
}

/** Whether the values of the racks are shown beside the points: not in Okey and 101 Okey. */
function hasRackValues(game: Game): boolean {
  const { discardBoard: board } = game;
  return board === undefined || wildOf(board) === Tile.JOKER;
}

/** Returns the seats in the order of the game's table, each with its place. */
function ranking(game: Game): readonly { readonly seat: number; readonly place: number }[] {
  const sign = fewestWin(game) ? 1 : -1;
  const total = (seat: number) => playerOf(game, seat)?.totalPoints ?? 0;
  const isWinner = (seat: number) => game.winnerSeats.includes(seat);
  const seats = game.rounds
    .at(-1)!
    .seats.map(({ seat }) => seat)
    .sort((a, b) => Number(isWinner(b)) - Number(isWinner(a)) || sign * (total(a) - total(b)));
  const isEqual = (a: number, b: number) => total(a) === total(b) && isWinner(a) === isWinner(b);
  return seats.map((seat) => ({ seat, place: seats.findIndex((other) => isEqual(other, seat)) + 1 }));
}

function Scores({ game, result }: { game: Game; result: RoundResult }) {
  return (
    <>
      <RoundEndView game={game} result={result} />
      {fewestWin(game) && <p class="help">{t("fewestWin")}</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label={t("roundPoints")}>
        <table class="scores">
          <thead>
            <tr>
              <th scope="col">{t("rank")}</th>
              <th scope="col">{t("player")}</th>
              {game.rounds.map(({ round }) => (
                <th key={round} scope="col" class="number">
                  {t("round", { round })}
                </th>
              ))}
              <th scope="col" class="number">
                {t("total")}
              </th>
            </tr>
          </thead>
          <tbody>
            {ranking(game).map((ranked) => (
              <Score key={ranked.seat} game={game} isWinner={result.winnerSeats.includes(ranked.seat)} {...ranked} />
            ))}
          </tbody>
        </table>
      </div>
      <TilesLeft game={game} result={result} />
    </>
  );
}

function Score({ game, seat, place, isWinner }: { game: Game; seat: number; place: number; isWinner: boolean }) {
  const player = playerOf(game, seat);
  return (
    <tr class={isWinner ? "is-winner" : ""}>
      <td>{place}.</td>
      <th scope="row">
        {player?.name} {seat === game.seat && <small>({t("you")})</small>}
      </th>
      {game.rounds.map(({ round, seats }) => {
        const points = seats.find((one) => one.seat === seat)?.points;
        return (
          <td key={round} class="number">
            {points === undefined ? "–" : signed(points)}
          </td>
        );
      })}
      <td class="number total">{numberText(player?.totalPoints ?? 0)}</td>
    </tr>
  );
}

/** What is left on the racks; the rack of who finished a hand is the hand. */
function TilesLeft({ game, result }: { game: Game; result: RoundResult }) {
  const board = game.discardBoard;
  const left = result.seats.filter(({ seat, rack }) => rack.length > 0 && board?.finish?.seat !== seat);
  if (left.length === 0) return null;
  return (
    <section class="tiles-left" aria-label={t("tilesLeft")}>
      <h3>{t("tilesLeft")}</h3>
      <ul>
        {left.map((seat) => (
          <li key={seat.seat}>
            <strong>{playerOf(game, seat.seat)?.name}</strong>{" "}
            {hasRackValues(game) && <span class="badge">{t("points", { points: seat.rackValue })}</span>}
            <div class="small-tiles">
              {seat.rack.map((tile, i) => (
                <OkeyTile key={i} tile={tile} okey={board && wildOf(board)} />
              ))}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

async function save(session: GameSession): Promise<void> {
  const text = await session.acting.export();
  if (text === undefined) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = `rummikub-${session.gameId.slice(0, 8)}.txt`;
  link.click();
  URL.revokeObjectURL(link.href);
}
