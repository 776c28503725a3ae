"""Plays two rounds against bots, with the turns that the service suggests.

Usage: first_game.py [host:port [preset]]
"""

import sys

import rummikub

target = sys.argv[1] if sys.argv[1:] else "127.0.0.1:50051"
preset = rummikub.Preset.Value(sys.argv[2] if sys.argv[2:] else "PRESET_SABRA")

with rummikub.Rummikub(target) as lobby:
    two_rounds = rummikub.GameEndOptions(match_end=rummikub.MATCH_END_FIXED_ROUNDS, match_rounds=2)
    rules = rummikub.Ruleset(melding=rummikub.MeldingRuleset(preset=preset, game_end=two_rounds))
    created = lobby.games.CreateGame(rummikub.CreateGameRequest(ruleset=rules))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)  # store the tokens: they are returned once
    ann = lobby.seated(host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann")).seat_token)
    for _ in range(1, created.game.ruleset.melding.deal.players_min):
        ann.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_EASY))
    ann.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
    for game in ann.watch_games(game_id):
        print(rummikub.table_text(game.table), "rack:", rummikub.tiles_text(game.rack))
        if game.turn.seat == game.seat:
            ann.turns.PlayTurn(ann.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=game_id)).turn)
        elif game.state == rummikub.GAME_STATE_ROUND_OVER:
            ann.turns.StartNextRound(rummikub.StartNextRoundRequest(game_id=game_id))
