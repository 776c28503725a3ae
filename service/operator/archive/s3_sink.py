"""The archive in an S3-compatible object storage: one object for each game, with its line as content.

A deleted game's object has the line of its deletion. Empty objects `players/<player>/<game_id>` list the games of a
player.

The credentials are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or of the machine's role.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from service.errors import StoredFormatUnknown
from service.operator.archive.archived_game import ArchivedGame, deletion_line, from_line, head_of_line, to_line
from service.operator.archive.sink import SinkUnavailable, WriteResult, reason_of, write_result

if TYPE_CHECKING:
    from obstore import Attributes, PutMode
    from obstore.store import S3Config

TIMEOUT: Final = timedelta(seconds=4)
"""The longest time of one request, without retries: the archive's worker retries."""
ATTRIBUTES: "Final[Attributes]" = {"Content-Type": "application/json"}
SUFFIX: Final = ".json"
"""The end of the name of a game's object."""
OPTIONS: Final = frozenset({"endpoint", "region"})
WRITES: Final = 3
"""How often a game is written that other servers write at the same time."""


class S3Sink:
    """Archived games in a bucket. The constructor raises ValueError.

    Args:
        url: `s3://bucket/prefix?endpoint=URL&region=NAME`. Without an endpoint it is Amazon's.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        endpoint = options.get("endpoint", "")
        if not parts.hostname or not options.keys() <= OPTIONS or "@" in parts.netloc or "@" in endpoint:
            raise ValueError("expected s3://bucket/prefix?endpoint=URL&region=NAME, without user and password")
        config: S3Config = {}  # an option that is None is refused
        if "endpoint" in options:
            config["endpoint"] = endpoint
        if "region" in options:
            config["region"] = options["region"]
        try:
            self._store = S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                config=config,
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "timeout": TIMEOUT,
                    "connect_timeout": TIMEOUT,
                },
                retry_config={"max_retries": 0, "retry_timeout": TIMEOUT},
            )
        except BaseError as error:  # also for a variable AWS_...
            raise ValueError(reason_of(error)) from None

    async def write(self, game: ArchivedGame) -> WriteResult:
        """See Sink. An object is replaced only if it is still the one that was read."""
        game_id, players, line = game.record.game_id, game.head.players, await asyncio.to_thread(to_line, game)
        for _ in range(WRITES):
            before, etag = await self._line(game_id)
            if before == line:  # replacing it would not change its etag, so `delete` would not notice
                return WriteResult.WRITTEN
            head = head_of_line(before) if before else None
            listed = head.players if head else frozenset()
            result = write_result(head, game) if before else WriteResult.WRITTEN
            if result is not WriteResult.WRITTEN:
                await self._unlist(players - listed, game_id)  # an earlier attempt listed it
                return result
            await self._list(players, game_id)
            if await self._put(game_id, line, etag):
                await self._unlist(listed - players, game_id)
                return WriteResult.WRITTEN
        raise SinkUnavailable("other servers write the game")

    async def _line(self, game_id: str) -> tuple[bytes, str | None]:
        """Returns the line of a game and the object's etag; b"" and None if there is none."""
        with _answering():
            try:
                found = await obstore.get_async(self._store, _name(game_id))
                return bytes(await found.bytes_async()), found.meta["e_tag"]
            except FileNotFoundError:
                return b"", None

    async def _put(self, game_id: str, line: bytes, etag: str | None) -> bool:
        """Stores a line in place of the object with an etag, or of none; returns False if there is another one."""
        mode: PutMode = "create" if etag is None else {"e_tag": etag}
        with _answering():
            try:
                await obstore.put_async(self._store, _name(game_id), line, attributes=ATTRIBUTES, mode=mode)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    async def read(self, game_id: str) -> ArchivedGame | None:
        line, _ = await self._line(game_id)
        if not line or head_of_line(line) is None:
            return None
        return await asyncio.to_thread(from_line, line)

    async def delete(self, game_id: str) -> bool:
        """See Sink. A game that cannot be read may leave objects that lead from its players to its id."""
        for _ in range(WRITES):
            line, etag = await self._line(game_id)
            if line:
                with contextlib.suppress(StoredFormatUnknown):
                    head = head_of_line(line)
                    if head is None:
                        return False
                    await self._unlist(head.players, game_id)
            if await self._put(game_id, deletion_line(game_id), etag):
                return bool(line)
        raise SinkUnavailable("other servers write the game")

    async def games_of(self, player: str) -> Sequence[str]:
        with _answering():
            found = [item async for chunk in obstore.list(self._store, f"players/{player}/") for item in chunk]
        return [item["path"].rpartition("/")[2] for item in found]

    async def unlist(self, player: str, game_id: str) -> None:
        await self._unlist((player,), game_id)

    async def prune(self, before_ms: int) -> int:
        """See Sink. The age of a game is that of its object, which is renewed when a player is forgotten."""
        deleted, before = 0, datetime.fromtimestamp(before_ms / 1000, UTC)
        with _answering():
            async for chunk in obstore.list(self._store):
                names = [item["path"].rpartition("/")[2] for item in chunk if item["last_modified"] < before]
                games = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
                deleted += sum(await asyncio.gather(*map(self._prune, games)))
        return deleted

    async def _prune(self, game_id: str) -> bool:
        """Deletes a game's object, unless it is the mark of a deletion; returns whether it did."""
        line, _ = await self._line(game_id)
        with contextlib.suppress(StoredFormatUnknown):
            head = head_of_line(line) if line else None
            if head is None:
                return False
            await self._unlist(head.players, game_id)
        await obstore.delete_async(self._store, _name(game_id))
        return True

    async def _list(self, players: Collection[str], game_id: str) -> None:
        with _answering():
            await asyncio.gather(
                *(obstore.put_async(self._store, _listed_name(player, game_id), b"") for player in players)
            )

    async def _unlist(self, players: Collection[str], game_id: str) -> None:
        with _answering():
            await asyncio.gather(
                *(obstore.delete_async(self._store, _listed_name(player, game_id)) for player in players)
            )

    async def close(self) -> None:
        pass


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Raises SinkUnavailable for failures of requests."""
    try:
        yield
    except (BaseError, OSError) as error:
        raise SinkUnavailable(reason_of(error)) from error


def _listed_name(player: str, game_id: str) -> str:
    return f"players/{player}/{game_id}"


def _name(game_id: str) -> str:
    return f"{game_id}{SUFFIX}"
