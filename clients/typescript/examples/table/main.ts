/** A front end in a browser: a person plays against a bot. index.html has its elements. */
import {
  BotLevel,
  connect,
  draw,
  explain,
  type Game,
  GameState,
  type Meld,
  MeldOrder,
  melds,
  meldsOf,
  play,
  refusal,
  type Rummikub,
  type Tile,
  tileName,
  tilesText,
} from "rummikub-client";
import { englishName, parseTile, tileSvg } from "rummikub-tiles";

const element = (id: string) => document.getElementById(id) as HTMLElement;
const say = (text: string) => (element("message").textContent = text);

/** The turn as the person arranges it. `chosen` has places in the rack. */
let game: Game;
let table: Meld[] = [];
let rack: Tile[] = [];
const chosen = new Set<number>();

/** Creates a game against a bot; returns the person's connection and the game's id. */
async function start(lobby: Rummikub): Promise<[Rummikub, string]> {
  // The service puts each meld in order, so that this page does not have to. There is no time limit.
  const melding = { melds: { meldOrder: MeldOrder.CANONICALISE } };
  const created = await lobby.games.createGame({
    ruleset: { game: { case: "melding", value: melding } },
    settings: { turnTimeLimit: { seconds: 0n } },
  });
  const gameId = created.game!.gameId;
  const host = lobby.seated(created.hostToken);
  const { seatToken } = await host.games.joinGame({ game: { case: "gameId", value: gameId }, name: "You" });
  const person = lobby.seated(seatToken); // a real page stores the token: it is returned once
  await person.games.addBot({ gameId, level: BotLevel.MEDIUM });
  await person.games.startGame({ gameId });
  return [person, gameId];
}

/** Returns a button for tiles. */
function tileButton(tiles: readonly Tile[], onClick: () => void): HTMLButtonElement {
  const drawn = tiles.map((tile) => parseTile(tileName(tile)));
  const button = document.createElement("button");
  button.innerHTML = drawn.map(tileSvg).join("");
  button.ariaLabel = drawn.map(englishName).join(", ");
  button.onclick = onClick;
  return button;
}

function show(): void {
  const isMine = game.turn?.seat === game.seat;
  element("players").textContent =
    game.players.map(({ name, tileCount }) => `${name}: ${tileCount} tiles`).join(", ") + `. Pool: ${game.poolCount}.`;
  element("table").replaceChildren(...table.map((meld, i) => tileButton(meld.tiles, () => add(i))));
  element("rack").replaceChildren(
    ...rack.map((tile, place) => {
      const button = tileButton([tile], () => {
        if (!chosen.delete(place)) chosen.add(place);
        show();
      });
      button.ariaPressed = String(chosen.has(place));
      return button;
    }),
  );
  for (const id of ["meld", "undo", "play", "draw", "hint"]) (element(id) as HTMLButtonElement).disabled = !isMine;
}

/** Shows the game as the service sends it, and drops what was arranged. */
function reset(): void {
  table = meldsOf(game.table?.melds ?? []);
  rack = [...game.rack];
  chosen.clear();
  show();
}

/** Moves the chosen tiles to a meld of the table; without a place, to a new one. */
function add(place = table.length): void {
  const tiles = [...(table[place]?.tiles ?? []), ...rack.filter((_, i) => chosen.has(i))];
  if (chosen.size === 0) return;
  table.splice(place, 1, ...melds(`[${tilesText(tiles)}]`));
  rack = rack.filter((_, i) => !chosen.has(i));
  chosen.clear();
  show();
  void judge();
}

/** Asks the service whether the table is legal. Nothing is played. */
async function judge(): Promise<void> {
  await attempt(() => person.turns.playTurn({ ...play(game, table), validateOnly: true }), "This is legal.");
}

/** Makes a call; shows what it led to, or why the service refuses it. The watch shows a turn that was accepted. */
async function attempt(call: () => Promise<unknown>, done?: string): Promise<void> {
  try {
    await call();
    if (done) say(done);
  } catch (error) {
    const violations = refusal(error)?.violations ?? [];
    say(violations.map(({ text, tiles }) => `${text}: ${tilesText(tiles)}`).join("; ") || explain(error));
  }
}

const [person, gameId] = await start(connect("http://127.0.0.1:8080"));
element("meld").onclick = () => add();
element("undo").onclick = reset;
element("play").onclick = () => attempt(() => person.turns.playTurn(play(game, table)));
element("draw").onclick = () => attempt(() => person.turns.playTurn(draw(game)));
element("hint").onclick = () =>
  attempt(async () => {
    const { suggestion } = await person.analysis.suggestTurn({ subject: { case: "gameId", value: gameId } });
    if (!suggestion?.tilesPlayed.length) return say("No play is possible: draw.");
    reset();
    table = meldsOf(suggestion.table?.melds ?? []);
    for (const tile of suggestion.tilesPlayed) rack.splice(rack.indexOf(tile), 1);
    show();
    say("This is the best play.");
  });
for await (game of person.watchGames(gameId)) {
  reset();
  const isOver = game.state !== GameState.PLAYING;
  say(isOver ? "The round is over." : game.turn?.seat === game.seat ? "Your turn." : "The bot's turn.");
}
