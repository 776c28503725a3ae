"""Rates players with OpenSkill by the games that end, each once. Needs openskill.

Usage: ratings.py host:port ratings.json

host:port is RUMMIKUB_ADMIN_LISTEN of a server, whose RUMMIKUB_CHANGE_LOG_SECONDS is set. ADMIN_TOKEN is the operator's
token, if the server requires one; ADMIN_CA_FILE has the CA of its certificate, if it uses TLS. The file has the ratings
by player_ref, and the cursor after the last game that they count: both are replaced in one step.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import grpc
from openskill.models import PlackettLuce

from rummikub.admin.v1.admin_service_pb2 import GameChanged, WatchGamesRequest
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub

ADDRESS, FILE = sys.argv[1], Path(sys.argv[2])
METADATA = (("authorization", f"Bearer {token}"),) if (token := os.environ.get("ADMIN_TOKEN")) else ()
CA = Path(path).read_bytes() if (path := os.environ.get("ADMIN_CA_FILE")) else None
RECONNECT_SECONDS = 1.0
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


def follow(admin: AdminServiceStub) -> None:
    """Counts the games that end until the stream ends, from the file's cursor on."""
    state: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"cursor": "", "ratings": {}}
    request = WatchGamesRequest(cursor=state["cursor"], from_oldest=True)
    for update in admin.WatchGames(request, metadata=METADATA):
        for event in update.changed.change.events:
            if event.HasField("game_ended") and not update.changed.from_position:
                rate(state["ratings"], update.changed, set(event.game_ended.winner_seats))
        state["cursor"] = update.cursor
        new = FILE.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.replace(FILE)


while True:
    new_channel = (
        grpc.secure_channel(ADDRESS, grpc.ssl_channel_credentials(CA)) if CA else grpc.insecure_channel(ADDRESS)
    )
    with new_channel as channel:
        try:
            follow(AdminServiceStub(channel))
        except grpc.RpcError as lost:
            if lost.code() is not grpc.StatusCode.UNAVAILABLE:
                sys.exit(f"{ADDRESS}: {lost.code().name}: {lost.details()}")
            print(f"{ADDRESS}: {lost.details()}; reconnecting", file=sys.stderr)
    time.sleep(RECONNECT_SECONDS)
