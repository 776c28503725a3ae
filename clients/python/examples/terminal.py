"""A front end in a terminal: a person plays against a bot.

Usage: terminal.py [host:port]
"""

import contextlib
import os
import re
import sys

import grpc
from google.protobuf.duration_pb2 import Duration

import rummikub

with contextlib.suppress(ImportError):
    import readline  # noqa: F401 - arrow keys edit a command

HELP = """\
new R7 R8 R9     lay tiles of your rack as a new meld
add R10 2        add tiles of your rack to meld 2
move R7 2 3      move tiles of meld 2 to meld 3, or to a new one: move R7 R8 2 new
undo, done       take everything back; end the turn with the table as it is
draw, pass       end the turn without a play
hint             lay the best play that the service finds
help, quit"""
NO_LIMIT = rummikub.RoomSettings(turn_time_limit=Duration())
INKS = {"R": 91, "B": 94, "K": 1, "O": 93, "J": 95}
"""The colors of tiles on a terminal, by the first letter of their names."""
HAS_COLORS = sys.stdout.isatty() and "NO_COLOR" not in os.environ
Texts = dict[rummikub.ErrorReason.ValueType, str]
"""The texts of the reasons why a turn is refused."""


def start(lobby: rummikub.Rummikub) -> tuple[rummikub.Rummikub, str]:
    """Creates a game against a bot; returns the person's connection and the game's id."""
    created = lobby.games.CreateGame(rummikub.CreateGameRequest(settings=NO_LIMIT))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    person = lobby.seated(host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="You")).seat_token)
    person.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_MEDIUM))
    person.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
    return person, game_id


class Draft:
    """The table and the rack as the person arranges them in a turn.

    Args:
        game: The game as the person sees it.
    """

    def __init__(self, game: rummikub.Game) -> None:
        self.game = game
        self.reset()

    def reset(self) -> None:
        """Takes everything back."""
        self.melds = rummikub.melds_of(self.game.table.melds)
        self.rack = list(self.game.rack)

    def edit(self, verb: str, words: list[str]) -> None:
        """Lays, adds or moves tiles. Raises ValueError, without effect, for another command."""
        places = [self._place(word) for word in words if word == "new" or word.isdecimal()]
        tiles = [rummikub.tile(word) for word in words[: len(words) - len(places)]]
        if not tiles or len(places) != {"new": 0, "add": 1, "move": 2}[verb]:
            raise ValueError(HELP)
        left = list(self.melds[places[0]].tiles if verb == "move" else self.rack)
        for tile in tiles:
            if tile not in left:
                raise ValueError(f"{rummikub.tile_name(tile)} is not there")
            left.remove(tile)
        if verb == "move":
            self.melds[places[0]] = rummikub.Meld(tiles=left)
        else:
            self.rack = left
        self.melds.append(rummikub.Meld())
        place = places[-1] if places else -1
        before = list(self.melds[place].tiles)
        is_lower = 0 < value(tiles[0]) < min(filter(None, map(value, before)), default=0)
        self.melds[place] = rummikub.Meld(tiles=tiles + before if is_lower else before + tiles)
        self.melds = [meld for meld in self.melds if meld.tiles]

    def _place(self, word: str) -> int:
        """Returns the index of a meld that a word names."""
        place = len(self.melds) if word == "new" else int(word) - 1
        if not 0 <= place < len(self.melds) + (word == "new"):
            raise ValueError(f"there is no meld {word}")
        return place

    def lay(self, best: rummikub.Suggestion) -> None:
        """Lays a suggested play. Raises ValueError if there is none."""
        if not best.tiles_played:
            raise ValueError("no play is possible")
        self.reset()
        self.melds = rummikub.melds_of(best.table.melds)
        for tile in best.tiles_played:
            self.rack.remove(tile)

    def show(self) -> None:
        """Prints what the person sees: the players, the table and the own rack."""
        players = ", ".join(f"{player.name} {player.tile_count}" for player in self.game.players)
        print(f"\nTiles on racks: {players}. In the pool: {self.game.pool_count}.")
        for number, meld in enumerate(self.melds, 1):
            print(f"{number:4}  {painted(rummikub.tiles_text(meld.tiles))}")
        print("Rack:", painted(rummikub.tiles_text(self.rack)))


def value(tile: rummikub.Tile.ValueType) -> int:
    """Returns the value of a tile; 0 for a joker."""
    return int(rummikub.tile_name(tile)[1:] or 0)


def painted(text: str) -> str:
    """Returns tiles in their colors, on a terminal."""
    if not HAS_COLORS:
        return text
    return re.sub(r"([RBKOJ])\d*", lambda match: f"\033[{INKS[match[1]]}m{match[0]}\033[0m", text)


def arrange(person: rummikub.Rummikub, draft: Draft, verb: str, words: list[str]) -> None:
    """Changes the draft by a command, and asks the service whether the table is legal. Raises ValueError, RpcError."""
    match verb:
        case "new" | "add" | "move":
            draft.edit(verb, words)
        case "hint":
            draft.lay(person.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=draft.game.game_id)).suggestion)
        case "undo":
            draft.reset()
        case "quit":
            sys.exit()
        case _:
            raise ValueError(HELP)
    draft.show()
    if verb != "undo":
        turn = rummikub.play(draft.game, draft.melds)
        turn.validate_only = True
        person.turns.PlayTurn(turn)
        print("This is legal: done plays it.")


def take_turn(person: rummikub.Rummikub, game: rummikub.Game, texts: Texts) -> None:
    """Asks for commands until the service accepts a turn."""
    draft = Draft(game)
    draft.show()
    while True:
        verb, *words = input("> ").split() or ["help"]
        ends = {"done": rummikub.play(game, draft.melds), "draw": rummikub.draw(game), "pass": rummikub.pass_turn(game)}
        try:
            if verb in ends:
                drawn = person.turns.PlayTurn(ends[verb]).tiles_drawn
                print(f"You drew {painted(rummikub.tiles_text(drawn))}" if drawn else "Played")
                return
            arrange(person, draft, verb, words)
        except ValueError as error:  # the command is none
            print(error)
        except grpc.RpcError as error:  # the service refuses the turn
            for violation in rummikub.violations(error):
                print("-", texts[violation.reason].format_map(violation.metadata), rummikub.tiles_text(violation.tiles))
            if not rummikub.violations(error):
                print(texts.get(rummikub.refusal(error).reason) or rummikub.explain(error, person.target))


def main() -> None:
    """Plays a game."""
    with rummikub.Rummikub(sys.argv[1] if sys.argv[1:] else "127.0.0.1:50051") as lobby:
        try:
            messages = lobby.validation.ListMessages(rummikub.ListMessagesRequest(language="en"), timeout=0.7)
        except grpc.RpcError as error:
            sys.exit(rummikub.explain(error, lobby.target))
        person, game_id = start(lobby)
        print(HELP)
        for game in person.watch_games(game_id):
            if game.state == rummikub.GAME_STATE_FINISHED:
                print("\n" + ", ".join(f"{player.name}: {player.total_points}" for player in game.players))
            elif game.turn.seat == game.seat:
                take_turn(person, game, {message.reason: message.text for message in messages.reasons})


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, EOFError):
        print()
