"""Keeps a chat room for each game, for its players only. Replace ROOMS by the server of your chat.

Usage: chat.py host:port PORT

host:port is RUMMIKUB_LISTEN of a server; API_KEY is the front end's key. The chat listens on PORT of this machine (0:
any) and prints it. POST /GAME_ID adds the body to the room of a game, GET /GAME_ID adds nothing; both return all
messages. `Authorization: Bearer` has a join ticket or the seat token. After its game a room can only be read.
"""

import json
import os
import sys
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

import rummikub

OVER = (rummikub.GAME_STATE_FINISHED, rummikub.GAME_STATE_ABORTED)
SERVICE = rummikub.Rummikub(sys.argv[1], api_key=os.environ.get("API_KEY"))
ROOMS: dict[str, list[dict[str, object]]] = defaultdict(list)


def seat_of(proof: str, game_id: str, *, writes: bool) -> int:
    """Returns the seat of a person who may read or write. Raises PermissionError, and RpcError for a wrong ticket."""
    by_token = rummikub.ListOwnGamesRequest(seats=[rummikub.OwnSeat(game_id=game_id, seat_token=proof)])
    request = rummikub.ListOwnGamesRequest(join_ticket=proof) if "." in proof else by_token
    for own in SERVICE.games.ListOwnGames(request, timeout=10).games:
        if own.game_id == game_id and own.HasField("seat"):
            if writes and own.game.state in OVER:
                raise PermissionError("the game is over")
            return own.seat
    raise PermissionError("you have no seat in this game")


class Chat(BaseHTTPRequestHandler):
    """Adds and returns messages."""

    def answer(self) -> None:
        """Adds the body unless it is empty, and sends all messages of the room, or the reason of a refusal."""
        length = self.headers.get("Content-Length", "") if self.command == "POST" else ""
        game_id, proof = self.path[1:], self.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            text = self.rfile.read(min(int("0" + length), 2_000)).decode(errors="replace")  # "0-1" is none
            seat = seat_of(proof, game_id, writes=bool(text))
            if text:
                ROOMS[game_id].append({"seat": seat, "text": text})
            status, answer = 200, json.dumps(ROOMS.get(game_id, []))
        except (PermissionError, ValueError, grpc.RpcError) as refusal:
            status, answer = 403, str(refusal.details() if isinstance(refusal, grpc.RpcError) else refusal)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    do_GET = do_POST = answer  # noqa: N815 - the names that http.server calls


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Chat)
print(server.server_port, flush=True)
server.serve_forever()
