"""Rates players with OpenSkill by the games that end, each once. Needs openskill.

Usage: ratings.py host:port ratings.json

host:port is RUMMIKUB_ADMIN_LISTEN of a server, whose RUMMIKUB_CHANGE_LOG_SECONDS is set. The file has the ratings by
player_ref, and the cursor after the last game that they count: both are replaced in one step.
"""

import json
import sys
from pathlib import Path
from typing import Any

import grpc
from openskill.models import PlackettLuce

from rummikub.admin.v1.admin_service_pb2 import GameChanged, WatchGamesRequest
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub

ADDRESS, FILE = sys.argv[1], Path(sys.argv[2])
MODEL = PlackettLuce()


def rate(ratings: dict[str, Any], changed: GameChanged, winners: set[int]) -> None:
    """Changes the ratings of a game's players: winners are first, all others second. Bots do not count."""
    rated = [player for player in changed.players if player.player_ref and not player.is_bot]
    if len(rated) < 2:
        return
    teams = [[MODEL.rating(*ratings.get(player.player_ref, ()))] for player in rated]
    ranks = [1.0 if player.seat in winners else 2.0 for player in rated]
    for player, [rating] in zip(rated, MODEL.rate(teams, ranks=ranks), strict=True):
        ratings[player.player_ref] = [rating.mu, rating.sigma]


state: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"cursor": "", "ratings": {}}
with grpc.insecure_channel(ADDRESS) as channel:
    request = WatchGamesRequest(cursor=state["cursor"], from_oldest=True)
    for update in AdminServiceStub(channel).WatchGames(request):
        for event in update.changed.change.events:
            if event.HasField("game_ended") and not update.changed.from_position:
                rate(state["ratings"], update.changed, set(event.game_ended.winner_seats))
        state["cursor"] = update.cursor
        new = FILE.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.replace(FILE)
