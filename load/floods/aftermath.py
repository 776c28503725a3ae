"""What a flood leaves behind in the store and in the server, and the most that it may leave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from load.bench.measured_servers import MeasuredServer
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from service.storage.redis.keys import keys_of
from tools.redis_servers import RedisServer

MOST_CHANGES: Final = 510
"""A lobby has at most 500 changes; players can still leave it."""
MOST_KILOBYTES: Final = 256.0
MOST_FIELDS: Final = 64
"""Eight memos for each of four seats and the host, and a margin."""
MOST_READ_MILLISECONDS: Final = 3.0
MOST_MEGABYTES: Final = 300.0
READS: Final = 200


@dataclass(frozen=True, slots=True)
class Bound:
    """A measured value that a flood may not take beyond a bound."""

    what: str
    measured: float
    most: float

    @property
    def is_kept(self) -> bool:
        """Whether the value is within its bound."""
        return self.measured <= self.most

    @property
    def told(self) -> str:
        """The value as text."""
        return f"{self.measured:,.0f}" if self.measured >= 10 else f"{self.measured:.2g}"

    def __str__(self) -> str:
        """Returns the value with its bound."""
        return f"{self.what}: {self.told} (at most {self.most:g})"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """A server and its store after a flood.

    Attributes:
        server: The server.
        store: Its store.
        peak_megabytes: The most memory that the server's processes have used.
        notes: The notes of the attacker; "games" are the ids of attacked games.
    """

    server: MeasuredServer
    store: RedisServer
    peak_megabytes: float
    notes: dict[str, Any] = field(default_factory=dict)


Measure = Callable[[Aftermath], Sequence[Bound]]


def nothing(_after: Aftermath) -> Sequence[Bound]:
    """Returns no bounds: only the honest callers count."""
    return ()


def changes(after: Aftermath) -> Sequence[Bound]:
    """Returns the changes and the bytes of the attacked game that has most."""
    with after.store.client() as store:
        games = after.notes["games"]
        revisions = [int(store.hget(keys_of(game)[0], "revision") or 0) for game in games]
        sizes = [sum(store.memory_usage(key, samples=0) or 0 for key in keys_of(game)) for game in games]
    return (
        Bound("changes of an attacked game", max(revisions), MOST_CHANGES),
        Bound("its size in the store, KB", max(sizes) / 1e3, MOST_KILOBYTES),
    )


def fields(after: Aftermath) -> Sequence[Bound]:
    """Returns the fields of the attacked game's hashes, and the cost of reading it."""
    [game] = after.notes["games"]
    _, requests, _, _, presence = keys_of(game)
    with after.store.client() as store:
        memos, sightings = int(store.hlen(requests)), int(store.hlen(presence))
    return (
        Bound("memos of the attacked game", memos, MOST_FIELDS),
        Bound("sightings of its players", sightings, MOST_FIELDS),
        Bound("CPU of one GetGame of it, ms", _read_milliseconds(after.server, game), MOST_READ_MILLISECONDS),
    )


def memory(after: Aftermath) -> Sequence[Bound]:
    """Returns the most memory of the server."""
    return (Bound("the server's most memory, MB", after.peak_megabytes, MOST_MEGABYTES),)


def _read_milliseconds(server: MeasuredServer, game_id: str) -> float:
    """Returns the server's CPU of one GetGame, while nobody else calls."""
    with grpc.insecure_channel(server.main) as channel:
        stub, request = GameServiceStub(channel), gs.GetGameRequest(game_id=game_id)
        stub.GetGame(request)
        before = server.cpu_seconds()
        for _ in range(READS):
            stub.GetGame(request)
        return (server.cpu_seconds() - before) / READS * 1e3
