"""Handles a report of a player: shows what the player did in the game, kicks, aborts the game, or forgets the player.

Usage: moderation.py host:port GAME_ID NAME_OR_REF [kick|abort|forget]

host:port is RUMMIKUB_ADMIN_LISTEN of a server on this machine. ADMIN_TOKEN is the operator's token, if the server
requires one. A ban is for your back end, which signs no more join tickets for the player_ref.
"""

import os
import sys

import grpc

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub

METADATA = (("authorization", f"Bearer {token}"),) if (token := os.environ.get("ADMIN_TOKEN")) else ()


def show(admin: AdminServiceStub, game_id: str, player: pb.GamePlayer) -> None:
    """Prints what happened to and by a player in a game. Reads all stored games, so it may take minutes."""
    print(f"seat {player.seat}: {player.name}, player_ref {player.player_ref or 'none: no more is known'}")
    if not player.player_ref:
        return
    for response in admin.ExportPlayer(pb.ExportPlayerRequest(player_ref=player.player_ref), metadata=METADATA):
        for change in response.game.changes if response.game.game_id == game_id else ():
            for event in change.events:
                kind = event.WhichOneof("event")
                if kind and getattr(getattr(event, kind), "seat", 0) == player.seat:
                    print(change.time.ToJsonString(), kind)


def main(address: str, game_id: str, reported: str, action: str = "show") -> None:
    """Does what is to be done about a reported player."""
    with grpc.insecure_channel(address) as channel:
        admin = AdminServiceStub(channel)
        seats = admin.GetGame(pb.GetGameRequest(game_id=game_id), metadata=METADATA).game.seats
        found = [one.player for one in seats if reported in (one.player.player_ref, one.player.name)]
        if len(found) != 1:  # a player may have another one's player_ref as a name
            sys.exit(f"{len(found)} players of this game are {reported}")
        [player] = found
        if action == "kick":
            admin.KickPlayer(pb.KickPlayerRequest(game_id=game_id, seat=player.seat), metadata=METADATA)
        elif action == "abort":
            admin.AbortGame(pb.AbortGameRequest(game_id=game_id), metadata=METADATA)
        elif action == "forget" and not player.player_ref:
            sys.exit(f"{player.name} has no player_ref")
        elif action == "forget":
            forgetting = pb.ForgetPlayerRequest(player_ref=player.player_ref)
            for response in admin.ForgetPlayer(forgetting, metadata=METADATA):
                print("forgotten in", *response.forgotten_game_ids, "failed in", *response.failed_game_ids)
        else:
            show(admin, game_id, player)


main(*sys.argv[1:])
