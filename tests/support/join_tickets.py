"""Join tickets as the back end of a front end signs them, with PyJWT."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.harness import START_MS

SECRET: Final = b"a secret of the back end of the front end web"
PRIVATE_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(32))
SECONDS: Final = 300
"""How long a ticket is valid by default."""


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


EDDSA_KEY: Final = f"EdDSA:{base64url(PRIVATE_KEY.public_key().public_bytes_raw())}"
HS256_KEY: Final = f"HS256:{base64url(SECRET)}"
ENTRY: Final = f'ticket_keys = ["{EDDSA_KEY}"]'
"""An entry of a keys file that accepts tickets."""


def signed(
    ref: str,
    key: Ed25519PrivateKey | bytes = PRIVATE_KEY,
    algorithm: str = "EdDSA",
    *,
    seconds: float = SECONDS,
    **claims: object,
) -> str:
    """Returns a ticket for the key `web` of a server on a FakeClock that has not advanced; None leaves out a claim."""
    expires = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(seconds=seconds)
    content = {"sub": ref, "aud": "web", "exp": expires} | claims
    present = {name: value for name, value in content.items() if value is not None}
    return jwt.encode(present, key, algorithm)


def unsigned(algorithm: str | None, **claims: object) -> str:
    """Returns a JWT with an empty signature."""
    parts = {"alg": algorithm}, {"sub": "ada", "aud": "web", "exp": START_MS / 1000 + SECONDS} | claims
    return ".".join(base64url(json.dumps(part).encode()) for part in parts) + "."
