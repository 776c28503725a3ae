"""Watches of both clients resume without a gap after everything that ends a stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import grpc
import pytest
from proxy import Proxy

import rummikub
from support.harness import ServerProcess, memory_store, running_server, server_process, server_settings

pytestmark = pytest.mark.slow

CLIENTS = pytest.mark.parametrize("client", [rummikub.Rummikub, rummikub.aio.Rummikub], ids=["threads", "asyncio"])
SECONDS = 60

Watch = rummikub.Watch | rummikub.aio.Watch
Client = type[rummikub.Rummikub] | type[rummikub.aio.Rummikub]


async def following(watch: Watch) -> rummikub.WatchGameResponse | None:
    """Returns the next update of a watch; None at its end."""
    async with asyncio.timeout(SECONDS):
        if isinstance(watch, rummikub.Watch):
            return await asyncio.to_thread(next, watch, None)
        return await anext(watch, None)


async def closed(closing: Awaitable[None] | None) -> None:
    """Waits for what close() of either client returns."""
    if closing is not None:
        await closing


@contextlib.asynccontextmanager
async def watching(
    client: Client, target: str, game_id: str, *, etag: str = "", patience_seconds: float = 60
) -> AsyncIterator[Watch]:
    """Yields a watch of a new client."""
    service = client(target)
    watch = service.watch(game_id, etag=etag, patience_seconds=patience_seconds)
    yield watch
    await closed(watch.close())
    await closed(service.close())


async def revision_of(watch: Watch) -> int:
    """Returns the revision of the next snapshot or change."""
    while update := await following(watch):
        match update.WhichOneof("update"):
            case "snapshot":
                return update.snapshot.revision
            case "change":
                return update.change.revision
            case other:
                assert other == "presence"
    raise AssertionError("the watch has ended")


class Lobby:
    """A game in the lobby, whose changes are that its player is ready or not."""

    def __init__(self, service: rummikub.aio.Rummikub) -> None:
        self._service = service
        self._is_ready = False

    async def open(self) -> str:
        created = await self._service.games.CreateGame(rummikub.CreateGameRequest())
        self.game_id = created.game.game_id
        join = rummikub.JoinGameRequest(game_id=self.game_id, name="Ann")
        host = self._service.seated(created.host_token)
        joined = await host.games.JoinGame(join)
        self.ann = self._service.seated(joined.seat_token)
        return self.game_id

    async def change(self, times: int = 1) -> None:
        for _ in range(times):
            self._is_ready = not self._is_ready
            request = rummikub.SetReadyRequest(game_id=self.game_id, is_ready=self._is_ready)
            await self.ann.games.SetReady(request)

    async def abort(self) -> None:
        await self.ann.games.AbortGame(rummikub.AbortGameRequest(game_id=self.game_id))


@contextlib.asynccontextmanager
async def lobby_at(target: str) -> AsyncIterator[Lobby]:
    async with rummikub.aio.Rummikub(target) as service:
        lobby = Lobby(service)
        await lobby.open()
        yield lobby


@contextlib.asynccontextmanager
async def local_lobby(history: int = 100) -> AsyncIterator[tuple[str, Lobby]]:
    """Yields the address of a server in this process, and a game on it."""
    async with running_server(memory_store(history=history)) as (server, _):
        target = f"127.0.0.1:{server.port}"
        async with lobby_at(target) as lobby:
            yield target, lobby


@pytest.mark.parametrize(
    ("client", "stops"), [(rummikub.Rummikub, ServerProcess.kill), (rummikub.aio.Rummikub, ServerProcess.terminate)]
)
async def test_a_server_that_is_restarted(
    client: Client, stops: Callable[[ServerProcess], Awaitable[object]], empty_redis_url: str
) -> None:
    async with (
        server_process({"RUMMIKUB_REDIS_URL": empty_redis_url}) as server,
        lobby_at(server.target) as lobby,
        watching(client, server.target, lobby.game_id) as watch,
    ):
        assert await revision_of(watch) == 2
        await lobby.change()
        assert await revision_of(watch) == 3
        await stops(server)
        waiting = asyncio.create_task(revision_of(watch))
        await server.start_again()
        await lobby.change(2)
        assert [await waiting, await revision_of(watch)] == [4, 5]
        await lobby.abort()
        assert await revision_of(watch) == 6
        assert await following(watch) is None


@CLIENTS
async def test_a_connection_that_is_cut(client: Client) -> None:
    async with local_lobby() as (target, lobby):
        with Proxy(target) as proxy:
            async with watching(client, proxy.target, lobby.game_id) as watch:
                assert await revision_of(watch) == 2
                for revision in (3, 6, 9):
                    await lobby.change()
                    assert await revision_of(watch) == revision
                    proxy.cut()
                    await lobby.change(2)
                    assert [await revision_of(watch), await revision_of(watch)] == [revision + 1, revision + 2]
                assert proxy.connections == 4


@CLIENTS
@pytest.mark.parametrize("revision", [1, 7], ids=["too old", "another"])
async def test_another_history_begins_with_a_snapshot(client: Client, revision: int) -> None:
    async with local_lobby(history=2) as (target, lobby):
        await lobby.change(5)
        async with watching(client, target, lobby.game_id, etag=f"{revision}-{'0' * 32}") as watch:
            first = await following(watch)
            assert first
            assert first.snapshot.revision == 7
            await lobby.change()
            assert await revision_of(watch) == 8


@CLIENTS
async def test_a_silent_connection(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rummikub.client, rummikub.aio):
        monkeypatch.setattr(module, "SILENCE_SECONDS", 3)  # a busy machine is silent for a second, too
    async with local_lobby() as (target, lobby):
        with Proxy(target) as proxy:
            async with watching(client, proxy.target, lobby.game_id, patience_seconds=0) as watch:
                assert await revision_of(watch) == 2
                proxy.forwards = False
                with pytest.raises(grpc.RpcError, match="sent nothing"):
                    await revision_of(watch)


@CLIENTS
async def test_a_server_that_stays_away(client: Client) -> None:
    async with watching(client, "127.0.0.1:1", "0" * 32, patience_seconds=0.1) as watch:
        with pytest.raises(grpc.RpcError) as refused:
            await following(watch)
        assert "no service answers at 127.0.0.1:1" in rummikub.explain(refused.value, "127.0.0.1:1")
        assert await following(watch) is None


@CLIENTS
async def test_a_refused_watch(client: Client) -> None:
    async with local_lobby() as (target, _), watching(client, target, "0" * 32) as watch:
        with pytest.raises(grpc.RpcError) as refused:
            await following(watch)
        assert rummikub.refusal(refused.value).reason == rummikub.GAME_NOT_FOUND


@CLIENTS
async def test_closing_ends_a_waiting_watch(client: Client) -> None:
    async with local_lobby() as (target, lobby), watching(client, target, lobby.game_id) as watch:
        assert await revision_of(watch) == 2
        waiting = asyncio.create_task(following(watch))
        while (await asyncio.wait([waiting], timeout=0.2))[0]:  # presence
            assert await waiting
            waiting = asyncio.create_task(following(watch))
        await closed(watch.close())
        assert await waiting is None
        assert await following(watch) is None


async def test_a_cancelled_anext_loses_no_update() -> None:
    async with (
        local_lobby() as (target, lobby),
        watching(rummikub.aio.Rummikub, target, lobby.game_id) as watch,
    ):
        assert await revision_of(watch) == 2
        for revision in (3, 4):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await revision_of(watch)
            await lobby.change()
            assert await revision_of(watch) == revision


async def test_a_watch_that_nobody_uses_ends_its_stream() -> None:
    async with local_lobby() as (target, lobby):
        with rummikub.Rummikub(target) as service:

            def use() -> grpc.Call:
                watch = service.watch(lobby.game_id)
                assert next(watch).snapshot.revision == 2
                return watch._call  # noqa: SLF001 - only the stream shows that it has ended

            assert not (await asyncio.to_thread(use)).is_active()


@CLIENTS
async def test_calls_are_answered_while_more_watches_are_open_than_a_connection_carries(client: Client) -> None:
    async with running_server(memory_store(), server_settings(max_streams=100)) as (server, caller):
        game = await caller.new_game()
        service = client(f"127.0.0.1:{server.port}")
        watches = [service.watch(game.game_id) for _ in range(120)]
        revisions = {await revision_of(watch) for watch in watches}
        request = rummikub.GetGameRequest(game_id=game.game_id)
        if isinstance(service, rummikub.Rummikub):
            answer = await asyncio.to_thread(service.games.GetGame, request, timeout=SECONDS)
        else:
            answer = await service.games.GetGame(request, timeout=SECONDS)
        assert revisions == {answer.game.revision}
        for watch in watches:
            await closed(watch.close())
        await closed(service.close())


@CLIENTS
async def test_a_game_is_watched_as_a_whole(client: Client) -> None:
    seen = []
    async with local_lobby() as (target, lobby):
        service = client(target)
        games = service.watch_games(lobby.game_id)
        for _ in range(2):
            game = await (asyncio.to_thread(next, games) if isinstance(games, Iterator) else anext(games))
            seen.append((game.players[0].is_ready, game.HasField("ruleset")))
            await lobby.change()
        await closed(service.close())
    assert seen == [(False, True), (True, True)]
