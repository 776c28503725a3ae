import type { RummikubBoard } from "rummikub-board";
import "rummikub-board";
import { BotLevel, connect, draw, explain, type Game, melds, pass, play, refusal, tileName, tilesText } from "rummikub-client";

const lobby = connect(new URLSearchParams(location.search).get("edge") ?? "http://127.0.0.1:8080");
const created = await lobby.games.createGame({});
const gameId = created.game!.gameId;
const { seatToken } = await lobby.seated(created.hostToken).games.joinGame({ game: { case: "gameId", value: gameId }, name: "Ann" });
const ann = lobby.seated(seatToken);
await ann.games.addBot({ gameId, level: BotLevel.EASY });
await ann.games.startGame({ gameId });

const board = document.querySelector<RummikubBoard>("rummikub-board")!;
const go = document.querySelector<HTMLButtonElement>("#go")!;
const state = document.querySelector<HTMLOutputElement>("#state")!;
let game: Game;

/** Plays what lies on the table; draws, or passes if the pool is empty, if nothing does. */
go.onclick = async () => {
  const { table, played } = board.intended;
  const laid = melds(table.map((meld) => `[${meld.join(" ")}]`).join(" | "));
  try {
    await ann.turns.playTurn(played.length > 0 ? play(game, laid) : game.poolCount > 0 ? draw(game) : pass(game));
  } catch (error) {
    const { violations = [] } = refusal(error) ?? {};
    state.value = violations.map(({ text }) => text).join(" ") || explain(error);
  }
};
board.addEventListener("change", () => (go.textContent = board.intended.played.length > 0 ? "Play" : "Draw"));

for await (game of ann.watchGames(gameId)) {
  const isMine = game.turn?.seat === game.seat;
  board.table = (game.table?.melds ?? []).map(({ tiles }) => tiles.map(tileName));
  board.rack = tilesText(game.rack);
  board.readonly = !isMine;
  go.disabled = !isMine;
  go.textContent = "Draw";
  state.value = isMine ? "Your turn" : "The bot has the turn";
}
