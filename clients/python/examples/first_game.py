"""Plays two rounds against a bot, with the turns that the service suggests.

Usage: first_game.py [host:port]
"""

import sys

import rummikub

with rummikub.Rummikub(sys.argv[1] if sys.argv[1:] else "127.0.0.1:50051") as lobby:
    rules = rummikub.Ruleset(match_end=rummikub.MATCH_END_FIXED_ROUNDS, match_rounds=2)
    created = lobby.games.CreateGame(rummikub.CreateGameRequest(ruleset=rules))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)  # store the tokens: they are returned once
    ann = lobby.seated(host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann")).seat_token)
    ann.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_EASY))
    ann.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
    for update in ann.watch(game_id, content=rummikub.WATCH_CONTENT_GAMES):
        game = rummikub.view(update)
        if game is None:  # who is connected, for example
            continue
        print(rummikub.melds_text(game.table), "rack:", rummikub.tiles_text(game.rack))
        if game.turn.seat == game.seat:
            ann.turns.PlayTurn(ann.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=game_id)).turn)
        elif game.state == rummikub.GAME_STATE_ROUND_OVER:
            ann.games.StartNextRound(rummikub.StartNextRoundRequest(game_id=game_id))
