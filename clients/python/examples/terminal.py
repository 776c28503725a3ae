"""A front end in a terminal: a person plays against a bot.

Usage: terminal.py [host:port]
"""

import sys

import grpc
from google.protobuf.duration_pb2 import Duration

import rummikub

HELP = "play [R7 R8 R9] | ... (the whole table after your turn), draw, pass, hint, quit"
NO_LIMIT = rummikub.RoomSettings(turn_time_limit=Duration())


def start(lobby: rummikub.Rummikub) -> tuple[rummikub.Rummikub, str]:
    """Creates a game against a bot; returns the person's connection and the game's id."""
    created = lobby.games.CreateGame(rummikub.CreateGameRequest(settings=NO_LIMIT))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    person = lobby.seated(host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="You")).seat_token)
    person.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_MEDIUM))
    person.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
    return person, game_id


def show(game: rummikub.Game) -> None:
    """Prints what the person sees: the players, the table and the own rack."""
    players = ", ".join(f"{player.name} {player.tile_count}" for player in game.players)
    print(f"\nTiles on racks: {players}. In the pool: {game.pool_count}.")
    print("Table:", rummikub.melds_text(game.table.melds))
    print("Rack: ", rummikub.tiles_text(game.rack))


def turn_of(command: str, game: rummikub.Game) -> rummikub.PlayTurnRequest:
    """Returns the turn that a command describes, for the state of the game that the person sees."""
    verb, _, rest = command.strip().partition(" ")
    match verb:
        case "play":
            return rummikub.play(game, rummikub.melds(rest))
        case "draw":
            return rummikub.draw(game)
        case "pass":
            return rummikub.pass_turn(game)
        case _:
            raise ValueError(HELP)


def take_turn(person: rummikub.Rummikub, game: rummikub.Game, texts: dict[rummikub.ErrorReason.ValueType, str]) -> None:
    """Asks for a turn until the service accepts one."""
    while (command := input("> ").strip()) != "quit":
        if command == "hint":
            best = person.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=game.game_id)).suggestion
            print("play " + rummikub.melds_text(best.table.melds) if best.tiles_played else "no play is possible")
            continue
        try:
            drawn = person.turns.PlayTurn(turn_of(command, game)).tiles_drawn
        except ValueError as error:  # the command is no turn
            print(error)
        except grpc.RpcError as error:  # the service refused the turn
            for violation in rummikub.violations(error):
                print("-", texts[violation.reason].format_map(violation.metadata), rummikub.tiles_text(violation.tiles))
            if not rummikub.violations(error):
                print(texts.get(rummikub.refusal(error).reason) or rummikub.explain(error, person.target))
        else:
            print(f"You drew {rummikub.tiles_text(drawn)}" if drawn else "Played")
            return
    sys.exit()


def main() -> None:
    """Plays a game."""
    with rummikub.Rummikub(sys.argv[1] if sys.argv[1:] else "127.0.0.1:50051") as lobby:
        messages = lobby.validation.ListMessages(rummikub.ListMessagesRequest(language="en"))
        texts = {message.reason: message.text for message in messages.reasons}
        person, game_id = start(lobby)
        print(HELP)
        for game in person.watch_games(game_id):
            if game.state == rummikub.GAME_STATE_FINISHED:
                print("\n" + ", ".join(f"{player.name}: {player.total_points}" for player in game.players))
            elif game.turn.seat == game.seat:
                show(game)
                take_turn(person, game, texts)


if __name__ == "__main__":
    main()
