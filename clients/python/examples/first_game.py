"""Seats a player and a bot, starts their game, and prints the best first turn.

Usage: first_game.py [host:port]
"""

import sys

import rummikub

with rummikub.Rummikub(sys.argv[1] if sys.argv[1:] else "127.0.0.1:50051") as lobby:
    created = lobby.games.CreateGame(rummikub.CreateGameRequest())
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    ann = lobby.seated(host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann")).seat_token)
    ann.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_EASY))
    game = ann.games.StartGame(rummikub.StartGameRequest(game_id=game_id)).game
    print("Ann's rack:", rummikub.tiles_text(game.rack))
    best = ann.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=game_id)).suggestion
    print("The best turn:", "; ".join(step.text for step in best.steps) or "draw a tile")
