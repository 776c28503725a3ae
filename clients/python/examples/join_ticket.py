"""Signs a join ticket for a player who is signed in, as a back end does (docs/tickets.md). Needs pyjwt[crypto].

Usage: python join_ticket.py AUDIENCE PLAYER_REF NAME <private key in PEM
"""

import secrets
import sys
import time

import jwt


def join_ticket(private_key: str, audience: str, player_ref: str, name: str) -> str:
    """Returns a ticket that seats the player in one game within five minutes."""
    claims = {"aud": audience, "sub": player_ref, "name": name, "exp": int(time.time()) + 300}
    return jwt.encode(claims | {"jti": secrets.token_hex(16)}, private_key, algorithm="EdDSA")


if __name__ == "__main__":
    print(join_ticket(sys.stdin.read(), *sys.argv[1:4]))
