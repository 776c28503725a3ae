"""A watch by JSON is a stream of server-sent events from which a browser's EventSource resumes by itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from support.edge import EdgeProcess, Web, running_web
from support.soak import few_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTENTS = ["WATCH_CONTENT_CHANGES", "WATCH_CONTENT_GAMES", "WATCH_CONTENT_BOTH"]
HAS_ID = {
    "WATCH_CONTENT_CHANGES": {"snapshot", "change"},
    "WATCH_CONTENT_GAMES": {"snapshot", "game"},
    "WATCH_CONTENT_BOTH": {"snapshot", "game"},
}
"""The updates from which a watch can resume: a change whose game is still to come is none."""


class GivenUpError(Exception):
    """An EventSource has closed for good."""


@dataclass
class EventSource:
    """A browser's EventSource, by the rules of the HTML standard.

    Attributes:
        edge: The edge.
        path: The path and query of its URL.
        last_id: The id of the last event that had one.
        retry_seconds: The time to wait before it connects again; a browser waits some seconds unless the server says.
        connections: How often it has connected.
    """

    edge: EdgeProcess
    path: str
    last_id: str = ""
    retry_seconds: float = 0.1
    connections: int = field(default=0, init=False)

    async def updates(self) -> AsyncIterator[tuple[str, Any]]:
        """Yields the id and the data of each event. Raises GivenUpError."""
        while True:
            async for event in self._connected():
                yield event
            await asyncio.sleep(self.retry_seconds)

    async def _connected(self) -> AsyncIterator[tuple[str, Any]]:
        """Yields the events of one connection."""
        self.connections += 1
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.edge.port)
        except ConnectionError:
            return
        lines = [f"GET {self.path} HTTP/1.1", "host: localhost", "accept: text/event-stream"]
        lines += [f"last-event-id: {self.last_id}"] if self.last_id else []
        writer.write("\r\n".join([*lines, "", ""]).encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 ") or b"content-type: text/event-stream\r\n" not in head:
                raise GivenUpError(head.decode())
            async for event in self._events(reader):
                yield event
        finally:
            writer.close()

    async def _events(self, reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, Any]]:
        event_id, kind, data = "", "", ""
        while line := (await reader.readline()).decode():
            if line.endswith("\r\n"):  # the size or the end of a chunk, or the last one
                if line == "0\r\n":
                    return
                continue
            name, _, value = line.rstrip("\n").partition(": ")
            match name:
                case "id":
                    self.last_id = event_id = value
                case "retry":
                    self.retry_seconds = int(value) / 1000
                case "event":
                    kind = value
                case "data":
                    data += value
                case _:
                    assert not name, line
                    if data:
                        update = json.loads(data)
                        assert [kind] == [*update]
                        yield event_id, update
                    event_id, kind, data = "", "", ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("edge")
    settings = {"RUMMIKUB_REDIS_URL": "", "RUMMIKUB_DATA_DIR": str(folder / "data")}
    async with running_web(folder, settings=settings) as web:
        yield web


@dataclass
class Game:
    """A game in its lobby, which changes with each call of `change`.

    Attributes:
        edge: The edge.
        game_id: The game.
        token: The token of its player.
        is_ready: Whether the player is ready.
    """

    edge: EdgeProcess
    game_id: str
    token: str
    is_ready: bool = False

    async def change(self) -> int:
        """Changes the game; returns its revision."""
        self.is_ready = not self.is_ready
        path, body = f"/v1/games/{self.game_id}:setReady", {"isReady": self.is_ready}
        return int((await self.edge.call(path, body, self.token)).json["game"]["revision"])

    def watched(self, content: str, more: str = "") -> EventSource:
        """Returns an EventSource that watches the game."""
        return EventSource(self.edge, f"/v1/games/{self.game_id}:watch?content={content}{more}")


async def new_game(web: Web) -> Game:
    created = (await web.edge.call("/v1/games", {"labels": {"etag": "ff", "revision": "9"}})).json
    game_id = created["game"]["gameId"]
    joined = await web.edge.call(f"/v1/games/{game_id}:join", {"name": 'data: {"change":{"'}, created["hostToken"])
    return Game(web.edge, game_id, joined.json["seatToken"])


def id_of(update: dict[str, Any]) -> str:
    """Returns the id that an update should have; empty if a watch cannot resume from it."""
    [(kind, content)] = update.items()
    return str(content["etag"]) if kind in {"snapshot", "change", "game"} else ""


@pytest.mark.parametrize("content", CONTENTS)
async def test_an_update_from_which_a_watch_can_resume_has_its_etag_as_id(web: Web, content: str) -> None:
    game, kinds, last = await new_game(web), set[str](), 0
    async with asyncio.timeout(20):
        async for event_id, update in game.watched(content).updates():
            [kind] = update
            kinds.add(kind)
            assert event_id == (id_of(update) if kind in HAS_ID[content] else "")
            if kind in {"snapshot", "heartbeat"}:
                last = await game.change()
            if kinds >= {"heartbeat", *HAS_ID[content]} and update.get(kind, {}).get("revision") == last:
                break


@pytest.mark.parametrize("content", CONTENTS)
async def test_an_event_source_resumes_without_a_gap_after_every_update(web: Web, content: str) -> None:
    game = await new_game(web)
    source, seen, last = game.watched(content, "&etag="), list[int](), 0
    kind = "change" if content == "WATCH_CONTENT_CHANGES" else "game"
    for _ in range(6):  # each time it has lost its connection
        last = await game.change()
        async with asyncio.timeout(20):
            async for _, update in source.updates():
                revision = update.get(kind, update.get("snapshot", {})).get("revision", 0)
                seen += [revision] if revision else []
                if revision == last:
                    break
    assert source.connections == 6
    assert seen == [*range(seen[0], last + 1)] if content == "WATCH_CONTENT_CHANGES" else seen == sorted(set(seen))


async def test_a_change_whose_game_was_not_sent_is_sent_again(web: Web) -> None:
    game = await new_game(web)
    source, last = game.watched("WATCH_CONTENT_BOTH"), 0
    async with asyncio.timeout(20):
        async for _, update in source.updates():
            if "snapshot" in update:
                last = await game.change()
            if "change" in update:
                break  # before the game
        async for _, update in source.updates():
            if "game" in update:
                assert update["game"]["revision"] == last
                break


@pytest.mark.parametrize("content", few_of(CONTENTS, 1))
async def test_an_event_source_survives_a_restart_of_the_service(web: Web, content: str) -> None:
    game = await new_game(web)
    source, seen, last = game.watched(content), list[int](), 0
    kind = "change" if content == "WATCH_CONTENT_CHANGES" else "game"
    async with asyncio.timeout(60):
        async for _, update in source.updates():
            revision = update.get(kind, update.get("snapshot", {})).get("revision", 0)
            seen += [revision] if revision else []
            if revision and not last:
                await web.service.terminate()
                away = await web.edge.send("GET", source.path, accept="text/event-stream")
                assert (away.status, away.body) == (200, b"retry: 3000\n\n")
                assert (await web.edge.send("GET", source.path)).status == 503
                await web.service.start_again()
                await web.edge.ready()
                last = await game.change()
            elif revision and revision == last:
                break
    assert seen[-1] == seen[0] + 1
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("event_id", ["7", "7.", "7.x&etag=", "."])
async def test_an_id_of_another_stream_is_passed_over(web: Web, event_id: str) -> None:
    source = (await new_game(web)).watched("WATCH_CONTENT_CHANGES")
    source.last_id = event_id
    async with asyncio.timeout(20):
        _, update = await anext(source.updates())
    assert "snapshot" in update


async def test_an_event_source_gives_up_where_it_has_to(web: Web) -> None:
    source = EventSource(web.edge, f"/v1/games/{'0' * 32}:watch")
    with pytest.raises(GivenUpError, match=" 404 "):
        await anext(source.updates())
    lost = (await new_game(web)).watched("WATCH_CONTENT_CHANGES")
    lost.last_id = f"1-{'0' * 32}"  # a history that the store has lost
    with pytest.raises(GivenUpError, match=" 400 "):
        await anext(lost.updates())


async def test_an_event_source_of_a_player_watches_with_a_ticket(web: Web) -> None:
    game = await new_game(web)
    made = (await web.edge.call(f"/v1/games/{game.game_id}:createWatchTicket", {}, game.token)).json
    source = game.watched("WATCH_CONTENT_GAMES", f"&ticket={made['ticket']}")
    for connections in (1, 2):
        last = await game.change()
        async with asyncio.timeout(20):
            async for _, update in source.updates():
                seen = update.get("game", update.get("snapshot", {}))
                if seen.get("revision") == last:
                    assert (seen["seat"], source.connections) == (1, connections)
                    break
    void = game.watched("WATCH_CONTENT_GAMES", f"&ticket={made['ticket'][::-1]}")
    with pytest.raises(GivenUpError, match=" 400 "):
        await anext(void.updates())


async def test_a_long_poll_over_the_edge_returns_the_next_change(web: Web) -> None:
    game = await new_game(web)
    known = await game.change()
    path = f"/v1/games/{game.game_id}/changes?after_revision={known}&wait_seconds=25"
    polled = asyncio.create_task(web.edge.call(path, token=game.token))
    await asyncio.sleep(0.3)
    assert not polled.done()
    assert await game.change() == known + 1
    assert [change["revision"] for change in (await polled).json["changes"]] == [known + 1]
