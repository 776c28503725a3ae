"""Signs join tickets for rooms, of which some are sold: no ticket without a purchase. Needs pyjwt[crypto].

Usage: paid_rooms.py AUDIENCE PLAYER_REF NAME ROOM <private key in PEM

The games of a room have the label room=ROOM. Each ticket names one room, that of the free one too, because a ticket
without labels joins any game. The key in the keys file has require_tickets.
"""

import os
import secrets
import sys
import time
from pathlib import Path

import jwt

FREE_ROOM = "free"


def is_paid(player_ref: str, item: str) -> bool:
    """Returns whether a player has bought an item. Replace it: PAID_FILE has a line `PLAYER_REF ITEM` for each sale."""
    return f"{player_ref} {item}" in Path(os.environ["PAID_FILE"]).read_text().splitlines()


def room_ticket(private_key: str, audience: str, player_ref: str, name: str, room: str) -> str:
    """Returns a ticket for a game of a room within five minutes. Raises PermissionError before it is paid."""
    if room != FREE_ROOM and not is_paid(player_ref, room):
        raise PermissionError(f"{player_ref} has not bought {room}")
    claims = {"aud": audience, "sub": player_ref, "name": name, "labels": {"room": room}}
    times = {"exp": int(time.time()) + 300, "jti": secrets.token_hex(16)}
    return jwt.encode(claims | times, private_key, algorithm="EdDSA")


if __name__ == "__main__":
    try:
        print(room_ticket(sys.stdin.read(), *sys.argv[1:5]))
    except PermissionError as refusal:
        sys.exit(str(refusal))
