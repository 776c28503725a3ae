"""Join tickets: a JWT with which the holder of a key says who a player is, and what the player may join.

Each ticket key fixes its algorithm, so a ticket cannot choose how it is verified, and `alg: none` is never accepted.
PyJWT and cryptography take 0.15 s and 21 MB, so they are imported only where a key has ticket keys.
"""

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.errors import (
    TicketAlgorithmNotAllowed,
    TicketAudienceWrong,
    TicketExpired,
    TicketMalformed,
    TicketOutOfScope,
    TicketRequired,
    TicketSignatureInvalid,
)

EDDSA: Final = "EdDSA"
HS256: Final = "HS256"
PUBLIC_KEY_BYTES: Final = 32
"""The size of an Ed25519 public key."""
SECRET_BYTES_LEAST: Final = 32
"""The least size of a secret of HS256 (RFC 7518, section 3.2)."""
TICKET_MS_MAX: Final = 86_400_000
"""How far the expiry of a ticket may be in the future. A used ticket is remembered as long."""
_SECONDS_MAX: Final = 253_402_300_799
"""The end of the year 9999."""
_SEATS_MAX: Final = 9


@dataclass(frozen=True, slots=True)
class TicketKey:
    """A key that verifies tickets: its algorithm, and a raw Ed25519 public key or the secret of HS256."""

    algorithm: str
    material: bytes


@dataclass(frozen=True, slots=True)
class TicketPolicy:
    """How the players of a key prove who they are.

    Attributes:
        keys: The keys of which one has signed each ticket; two while one is replaced.
        audience: The audience that tickets name.
        is_required: Whether nobody joins without a ticket.
    """

    keys: tuple[TicketKey, ...]
    audience: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class JoinTicket:
    """A verified ticket, maybe expired.

    Attributes:
        digest: Identifies what was signed, however the signature is spelled: 32 hexadecimal digits.
        player_ref: Who the player is.
        expires_ms: When it expires, in milliseconds since 1970.
        name: The player's name; empty if the player chooses it.
        game_id: The only game that it joins; empty for any.
        labels: The labels that a game must have.
        seat: The only seat that it takes; 0 for any.
        is_program: Whether the player is a program (claim `bot`).
    """

    digest: str
    player_ref: str
    expires_ms: int
    name: str = ""
    game_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    seat: int = 0
    is_program: bool = False

    def check_scope(self, game_id: str, labels: tuple[tuple[str, str], ...], seat: int) -> None:
        """Raises TicketOutOfScope if it does not join a game with labels; `seat` is the wanted one, 0 for any."""
        if self.game_id and self.game_id != game_id:
            raise TicketOutOfScope("game_id")
        if not set(labels).issuperset(self.labels):
            raise TicketOutOfScope("labels")
        if self.seat and seat not in {0, self.seat}:
            raise TicketOutOfScope("seat")

    def check_time(self, now_ms: int) -> None:
        """Raises TicketExpired, and TicketMalformed for an expiry too far in the future."""
        if now_ms >= self.expires_ms:
            raise TicketExpired
        if self.expires_ms - now_ms > TICKET_MS_MAX:
            raise TicketMalformed("exp")


@dataclass(frozen=True, slots=True)
class Person:
    """Who wants to join.

    Attributes:
        name: The name as sent; empty for none.
        player_ref: The operator's reference: proven with a ticket, else a claim; empty for none.
        ticket: The ticket.
        needs_ticket: Whether the person may not join without one.
        is_program: Whether it is a program, which everyone then sees.
    """

    name: str
    player_ref: str = ""
    ticket: JoinTicket | None = None
    needs_ticket: bool = False
    is_program: bool = False


def identified(policy: TicketPolicy | None, ticket: JoinTicket | None, name: str, player_ref: str) -> Person:
    """Returns who sends a ticket, a name and a reference, each empty for none.

    Raises TicketRequired for a reference that needs a ticket, TicketOutOfScope if the ticket says something else.

    Args:
        policy: How players of the caller's key prove who they are; None: they make claims.
        ticket: The ticket.
        name: The name.
        player_ref: The reference.
    """
    if ticket is None:
        if policy and player_ref:
            raise TicketRequired
        return Person(name, player_ref, needs_ticket=policy is not None and policy.is_required)
    if player_ref not in {"", ticket.player_ref}:
        raise TicketOutOfScope("sub")
    if ticket.name and name not in {"", ticket.name}:
        raise TicketOutOfScope("name")
    return Person(ticket.name or name, ticket.player_ref, ticket, is_program=ticket.is_program)


def verified(policy: TicketPolicy | None, text: str) -> JoinTicket:
    """Returns a ticket whose signature and audience are right. The time is not checked.

    Raises TicketMalformed, TicketAlgorithmNotAllowed, TicketSignatureInvalid, TicketAudienceWrong.
    """
    if policy is None:
        raise TicketAlgorithmNotAllowed
    import jwt  # noqa: PLC0415 - see the module

    try:
        algorithm = jwt.get_unverified_header(text).get("alg")
    except jwt.PyJWTError:
        raise TicketMalformed("header") from None
    keys = [key for key in policy.keys if key.algorithm == algorithm]
    if not keys:
        raise TicketAlgorithmNotAllowed
    # The store's clock judges `exp`, in JoinTicket.
    checks: Any = {"verify_exp": False, "verify_iat": False, "verify_sub": False, "require": ["exp"]}
    for key in keys:
        try:
            claims = jwt.decode(
                text, _loaded(key), algorithms=[key.algorithm], audience=policy.audience, leeway=60, options=checks
            )
        except jwt.InvalidSignatureError:
            continue
        except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError) as error:
            claim = getattr(error, "claim", "aud")
            raise (TicketAudienceWrong if claim == "aud" else TicketMalformed(claim)) from None
        except jwt.ImmatureSignatureError:
            raise TicketMalformed("nbf") from None
        except jwt.PyJWTError:
            raise TicketMalformed("payload") from None
        return _ticket(claims, text)
    raise TicketSignatureInvalid


def key_problem(key: TicketKey) -> str:
    """Returns what is wrong with a key; empty if nothing is."""
    if key.algorithm == HS256:
        is_long = len(key.material) >= SECRET_BYTES_LEAST
        return "" if is_long else f"expected a secret of at least {SECRET_BYTES_LEAST} bytes"
    return "" if len(key.material) == PUBLIC_KEY_BYTES else "expected an Ed25519 public key of 32 bytes"


def read_key(text: str) -> TicketKey | None:
    """Returns a key from `EdDSA:` or `HS256:` and base64url; None for another text."""
    algorithm, _, encoded = text.partition(":")
    if algorithm not in {EDDSA, HS256}:
        return None
    try:
        return TicketKey(algorithm, b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True))
    except ValueError:  # binascii.Error is one
        return None


def new_ticket_key() -> tuple[str, str]:
    """Returns a new Ed25519 private key in PEM, and the text that `read_key` reads of its public key."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - see the module
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - as above

    key, kinds = Ed25519PrivateKey.generate(), serialization
    pem = key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, kinds.NoEncryption())
    public = urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")
    return pem.decode(), f"{EDDSA}:{public}"


def _loaded(key: TicketKey) -> Any:  # noqa: ANN401 - what PyJWT takes
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - see the module

    return key.material if key.algorithm == HS256 else Ed25519PublicKey.from_public_bytes(key.material)


def _ticket(claims: Mapping[str, Any], text: str) -> JoinTicket:
    """Returns a ticket from its claims. Raises TicketMalformed. The codec checks the forms of texts."""
    expires, seat, labels = claims["exp"], claims.get("seat", 0), claims.get("labels", {})
    if type(expires) not in {int, float} or not 0 <= expires <= _SECONDS_MAX:
        raise TicketMalformed("exp")
    if type(seat) is not int or not 0 <= seat <= _SEATS_MAX:
        raise TicketMalformed("seat")
    if type(is_program := claims.get("bot", False)) is not bool:
        raise TicketMalformed("bot")
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise TicketMalformed("labels")
    texts = {claim: claims.get(claim, "") for claim in ("sub", "name", "game_id")}
    for claim, value in texts.items():
        if not isinstance(value, str) or (claim == "sub" and not value):
            raise TicketMalformed(claim)
    return JoinTicket(
        hashlib.sha256(text.rpartition(".")[0].encode()).hexdigest()[:32],
        texts["sub"],
        int(expires * 1000),
        texts["name"],
        texts["game_id"],
        tuple(sorted(labels.items())),
        seat,
        is_program,
    )
