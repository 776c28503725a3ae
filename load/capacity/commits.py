"""Commits a second of one Redis over TCP, for each fsync policy: the commit script with recorded changes of rounds.

The commands are made in advance, and each connection has some in flight, as servers have. So Redis is what limits.
"""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final

import hiredis
import redis.asyncio as redis_client

from load.bench.play import ANSWER, HISTORY, LIFETIMES, RULESET
from load.capacity.measuring import Step, Stopwatch, redis_cpu_seconds
from load.corpus.recorded_turns import rounds
from service.model.change import NO_ETAG, Commit, Memo, lineage
from service.model.record import Record, SeatToken
from service.storage.redis.nodes import OneRedis, Script, Word
from service.storage.redis.store import RedisStore
from service.storage.stored_events import encode_change
from tools.redis_servers import HOST, RedisServer, running_redis
from tools.servers import free_port

POLICIES: Final = ("no", "everysec", "always")
CONNECTIONS: Final = 8
IN_FLIGHT: Final = 32
"""Commands in flight on a connection."""
TEMPLATES: Final = 4
COMMITS: Final = 100_000
QUICK_COMMITS: Final = 3_000
BATCH: Final = 4_000
"""Commits whose commands are made at once."""


class _CommandRecorder(OneRedis):
    """A Redis whose scripts are kept instead of sent, and commit everything."""

    def __init__(self, client: redis_client.Redis) -> None:
        super().__init__(client)
        self.script = ""
        self.commands: list[bytes] = []

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Word], _: object = None) -> Any:  # noqa: ANN401 - Nodes'
        self.script = script.text
        self.commands.append(packed("EVALSHA", script.sha, len(keys), *keys, *arguments))
        return [b"committed", 0]


def packed(*parts: Word) -> bytes:
    """Returns a command in Redis's protocol."""
    encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join((b"*%d\r\n" % len(parts), *(b"$%d\r\n%s\r\n" % (len(part), part) for part in encoded)))


async def measure(step: Step, *, quick: bool) -> dict[str, Any]:
    """Returns commits a second, and Redis's CPU and the bytes of its log for a commit, by policy."""
    commits = QUICK_COMMITS if quick else COMMITS
    found = {}
    for policy in POLICIES:
        step(f"{commits:,} commits with appendfsync {policy}")
        options = ("--appendfsync", policy, "--auto-aof-rewrite-percentage", "0")
        with running_redis(*options, port=free_port()) as redis:
            templates = [await _template(redis, seed) for seed in range(TEMPLATES)]
            found[policy] = _measure_policy(redis, templates, commits)
    return found


async def _template(redis: RedisServer, seed: int) -> tuple[str, list[bytes]]:
    """Returns the id of a game, and the commands of all changes of its first round."""
    recorder = _CommandRecorder(redis_client.Redis.from_url(redis.url))
    store = RedisStore(recorder, LIFETIMES, HISTORY)
    game_id, record = f"{seed:032x}", None
    [recorded] = islice(rounds(seed, RULESET, 0), 1, 2)  # the second round's history has the whole first one
    for game, events in recorded.before:
        change = encode_change(game.revision, 0, bytes(16), events)
        previous = record.etag if record else NO_ETAG
        tokens = tuple(SeatToken(player.seat, bytes(32)) for player in game.players)
        record = Record(game_id, game, lineage(previous, change), tokens, 0, 0)
        sender = f"{game.revision % 4:064x}"
        memo = Memo(bytes(32), ANSWER)
        await store.games.commit(Commit(previous, record, change, f"{game.revision:064x}", memo, sender))
    redis.execute("SCRIPT", "LOAD", recorder.script)
    await store.close()
    return game_id, recorder.commands


def _measure_policy(redis: RedisServer, templates: list[tuple[str, list[bytes]]], commits: int) -> dict[str, float]:
    log, cpu, seconds, sent = _log_bytes(redis), redis_cpu_seconds(redis), 0.0, 0
    with ExitStack() as stack:
        lines = [stack.enter_context(_connected(redis)) for _ in range(CONNECTIONS)]
        commands = _commands(templates)
        while sent < commits:
            batch = list(islice(commands, BATCH))
            watch = Stopwatch()
            _send(lines, batch)
            seconds += watch.seconds
            sent += len(batch)
    return {
        "commits": sent,
        "a_second": sent / seconds,
        "redis_us": (redis_cpu_seconds(redis) - cpu) / sent * 1e6,
        "log_bytes": (_log_bytes(redis) - log) / sent,
    }


def _log_bytes(redis: RedisServer) -> int:
    return int(redis.execute("INFO", "persistence")["aof_current_size"])


def _connected(redis: RedisServer) -> socket.socket:
    line = socket.create_connection((HOST, redis.port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def _commands(templates: Sequence[tuple[str, list[bytes]]]) -> Iterator[bytes]:
    """Yields commits of ever new games: of CONNECTIONS * IN_FLIGHT games at a time, a change of each in turn."""
    number = 0
    while True:
        games = []
        for _ in range(CONNECTIONS * IN_FLIGHT):
            number += 1
            game_id, commands = templates[number % len(templates)]
            games.append((game_id.encode(), f"{number:016x}{0:016x}".encode(), commands))
        for place in range(min(len(commands) for _, _, commands in games)):
            yield from (commands[place].replace(old, new) for old, new, commands in games)


def _send(lines: Sequence[socket.socket], commands: Sequence[bytes]) -> None:
    """Sends commands over connections, IN_FLIGHT of each at a time; raises AssertionError if one is refused."""
    window = len(lines) * IN_FLIGHT
    for start in range(0, len(commands), window):
        waiting = []
        for place, line in enumerate(lines):
            some = commands[start + place * IN_FLIGHT : min(start + (place + 1) * IN_FLIGHT, len(commands))]
            line.sendall(b"".join(some))
            waiting.append((line, len(some)))
        for line, count in waiting:
            _check_replies(line, count)


def _check_replies(line: socket.socket, count: int) -> None:
    reader = hiredis.Reader()
    while count:
        reply = reader.gets()
        if reply is False:
            reader.feed(line.recv(65_536))
        elif isinstance(reply, list) and reply[0] == b"committed":
            count -= 1
        else:
            raise AssertionError(f"a commit was refused: {reply}")
