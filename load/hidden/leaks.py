"""Seeded leaks: faults of the service by which a hidden tile shows, so that the comparison is known to find them.

Each patches one function of the service in this process. What it gives away is a number that follows from hidden tiles.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

import structlog

from engine import sight
from engine.fair_deal import hashed
from engine.game import round_of
from load.hidden.stage import Stage
from service.app import games
from service.app.changes import ChangeLoop
from service.app.games import Games
from service.app.identity import WatchTicket
from service.errors import GameNotFound
from service.grpc_api import interceptor
from service.grpc_api.call_policy import MethodPolicy
from service.grpc_api.rpcs import analysis
from service.metrics.metrics import Metrics
from service.model.record import Record
from service.runtime import opentelemetry_tracing

Wrapper = Callable[["Secret", Callable[..., Any]], Callable[..., Any]]


class Secret:
    """What a leak gives away: numbers that follow from the pool's order and the racks of the game on the shelf."""

    def __init__(self) -> None:
        self.stage: Stage | None = None

    def below(self, limit: int) -> int:
        """Returns a number below a limit."""
        game = self.stage.shelf.game if self.stage else None
        if game is None or game.round is None:
            return 0
        return zlib.crc32(repr((round_of(game).pool, round_of(game).racks)).encode()) % limit


@dataclass(frozen=True)
class SeededLeak:
    """A leak.

    Attributes:
        owner: What the function belongs to: a class or a module.
        name: The function's name.
        wrapper: Makes the function that leaks.
        families: The games by which it is found.
        shows: What shows it: an RPC, or an output of the server; empty for any.
    """

    owner: object
    name: str
    wrapper: Wrapper
    families: tuple[str, ...] = ("SABRA", "OKEY")
    shows: str = ""

    @contextmanager
    def installed(self) -> Iterator[Secret]:
        """Patches the service; yields the secret, which is to be bound to the stage."""
        secret = Secret()
        original = getattr(self.owner, self.name)
        with patch.object(self.owner, self.name, self.wrapper(secret, original)):
            yield secret


def _view(change: Callable[[Secret, Any], dict[str, object]]) -> Wrapper:
    """Returns a wrapper that changes the view of a game."""

    def wrap(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
        async def get_game(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - of the wrapped function
            seen = await original(*args, **options)
            return replace(seen, view=replace(seen.view, **change(secret, seen.view)))

        return get_game

    return wrap


def _status(change: Callable[[Secret, Any], dict[str, object]]) -> Wrapper:
    """Returns a wrapper that changes the status of a refused call."""

    def wrap(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
        def status(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - of the wrapped function
            found = original(*args, **options)
            return replace(found, **change(secret, found))

        return status

    return wrap


def _before(effect: Callable[[Secret, tuple[Any, ...]], None]) -> Wrapper:
    """Returns a wrapper with an effect beside."""

    def wrap(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - of the wrapped function
            effect(secret, args)
            return original(*args, **options)

        return function

    return wrap


def _padded(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    def unary_unary(self: Any, behavior: Any) -> Any:  # noqa: ANN401 - of the wrapped function
        async def padded(request: Any, context: Any) -> Any:  # noqa: ANN401 - as above
            response = await behavior(request, context)
            padding = bytes(secret.below(5))
            return (
                response + b"\xfa\x7f" + bytes((len(padding),)) + padding if isinstance(response, bytes) else response
            )

        return original(self, padded)

    return unary_unary


def _hint(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: original(*args, **options) if secret.below(2) else None


def _refusal(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    async def validate(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - of the wrapped function
        if secret.below(2):
            raise GameNotFound
        return await original(*args, **options)

    return validate


def _label(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    def store(self: Any, operation: str, result: str, seconds: float) -> None:  # noqa: ANN401 - of the wrapped function
        original(self, operation, f"{result} {secret.below(3)}", seconds)

    return store


def _seed(secret: Secret, _seen: object) -> dict[str, object]:
    return {"deal_commitment": hashed(secret.stage.shelf.seed, 1) if secret.stage else b""}


def _any_draft(_secret: Secret, _original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _game, _seat: True


def _next_holder(_secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    def holder(ticket: WatchTicket, record: Record) -> bytes | None:
        found = original(ticket, record)
        digests = [token.digest for token in record.tokens]
        return digests[digests.index(found) - 1] if found in digests else None

    return holder


def _watching(secret: Secret, original: Callable[..., Any]) -> Callable[..., Any]:
    def presence(*args: Any) -> Any:  # noqa: ANN401 - of the wrapped function
        found = original(*args)
        return found and {seat: replace(one, is_connected=bool(secret.below(2))) for seat, one in found.items()}

    return presence


LEAKS: Final[Mapping[str, SeededLeak]] = {
    "a field by the order of the pool": SeededLeak(
        Games, "get_game", _view(lambda secret, _: {"pool_count": secret.below(90)})
    ),
    "the order of the players by a rack": SeededLeak(
        Games, "get_game", _view(lambda secret, view: {"players": view.players[:: 1 if secret.below(2) else -1]})
    ),
    "a tile in the text of an error": SeededLeak(
        MethodPolicy, "status", _status(lambda secret, status: {"message": f"{status.message} {secret.below(53)}"})
    ),
    "a tile in the metadata of an error": SeededLeak(
        MethodPolicy, "status", _status(lambda secret, status: {"metadata": {**status.metadata, "t": secret.below(53)}})
    ),
    "a refusal by the pool": SeededLeak(ChangeLoop, "validate", _refusal),
    "a hint by the pool": SeededLeak(analysis, "own_turn_query", _hint, ("SABRA",)),
    "the size of a response": SeededLeak(interceptor._HandlerWrapper, "unary_unary", _padded),  # noqa: SLF001
    "a line of the log": SeededLeak(
        MethodPolicy,
        "succeeded",
        _before(lambda secret, _: structlog.get_logger().info("turn", top=secret.below(53))),
        shows="log",
    ),
    "a label of a metric": SeededLeak(Metrics, "store", _label, shows="metrics"),
    "an attribute of a span": SeededLeak(
        opentelemetry_tracing._CallSpan,  # noqa: SLF001
        "end",
        _before(lambda secret, args: args[0]._span.set_attribute("tile", secret.below(53))),  # noqa: SLF001
        shows="traces",
    ),
    "the draft of another player": SeededLeak(sight, "sees_drafts", _any_draft, ("SABRA",)),
    "a watch ticket of another seat": SeededLeak(games, "holder_of", _next_holder, shows="WatchGame"),
    "the presence of a player by the pool": SeededLeak(games, "presence_in", _watching),
    "the seed of a fair deal": SeededLeak(Games, "get_game", _view(_seed), ("fair OKEY",)),
}
"""The leaks by name."""
