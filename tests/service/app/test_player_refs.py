"""What only the operator sees: references to players and operator labels, and how a player is forgotten."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message
from structlog.testing import capture_logs

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import ruleset_pb2
from rummikub.v1 import turn_service_pb2 as ts
from service.model.change import Conflict, Outcome, StoredChange
from service.model.record import DEPARTED_REFS_MAX, NO_OPERATOR_DATA, GameState, OperatorData, PlayerRef, Record
from service.storage.memory import MemoryStore
from service.storage.redis.keys import keys_of
from service.storage.redis.lists import ORPHAN_MS
from service.storage.redis.store import RedisStore
from service.storage.snapshot import decode_record, encode_record
from service.storage.store import ListPage, Store
from support.delegating_store import DelegatingStore
from support.harness import FakeClock, GameAtHand, bearer, error_info, memory_store, new_id, next_change
from support.operator import Operated, changes, operated, traces_of
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

NAME, REF, LABEL = "Annabella Unmistakable", "reference-of-annabella", "label-for-nobody-else"
SECRETS = (REF, LABEL)
LOG_MS = 60_000


@pytest.fixture(params=STORES_AND_CLUSTER)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


@dataclass(frozen=True)
class OnRedis:
    """A server on one Redis or a cluster, with its operator."""

    house: Operated
    url: str

    def traces(self, *texts: str) -> list[bytes]:
        """Returns the keys of the Redis that have a text in their name or value, compressed or not."""
        return traces_of(self.url, *texts)


@pytest.fixture(params=["redis", "cluster"])
async def on_redis(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[OnRedis]:
    async with running_store(request, clock=None, log_ms=LOG_MS) as store, operated(store) as house:
        yield OnRedis(house, redis_url if request.param == "redis" else request.getfixturevalue("cluster").url)


async def game_of_annabella(house: Operated, ruleset: ruleset_pb2.Ruleset | None = None) -> GameAtHand:
    """Returns a game in the lobby, with operator labels and a player who has a reference."""
    request = gs.CreateGameRequest(request_id=new_id(), operator_labels={"secret": LABEL}, ruleset=ruleset)
    created = await house.client.games.CreateGame(request)
    game = GameAtHand(house.client, created.game.game_id, host_token=created.host_token)
    await game.join("Bob")
    await join(game, NAME, REF)
    return game


async def come(rematch: GameAtHand, game: GameAtHand, seat: int) -> int:
    """Takes the seat of a rematch that is reserved for a player of a game."""
    name = next(player.name for player in (await game.see()).players if player.seat == seat)
    request = gs.JoinGameRequest(game_id=rematch.game_id, name=name, request_id=new_id())
    answer = await game.client.games.JoinGame(request, metadata=game.as_seat(seat))
    rematch.tokens[answer.seat] = answer.seat_token
    return answer.seat


async def join(game: GameAtHand, name: str, ref: str) -> int:
    request = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=ref, request_id=new_id())
    answer = await game.client.games.JoinGame(request)
    game.tokens[answer.seat] = answer.seat_token
    return answer.seat


async def resign(game: GameAtHand, seat: int) -> None:
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.turns.ResignGame(request, metadata=game.as_seat(seat))


async def full(house: Operated, game_id: str) -> pb.FullGame:
    return (await house.admin.GetGame(pb.GetGameRequest(game_id=game_id))).game


async def refs(house: Operated, game_id: str) -> list[tuple[int, str]]:
    return [(seat.player.seat, seat.player.player_ref) for seat in (await full(house, game_id)).seats]


async def forget(house: Operated, ref: str = REF) -> list[str]:
    """Forgets a player; returns the ids of the games."""
    progress = [one async for one in house.admin.ForgetPlayer(pb.ForgetPlayerRequest(player_ref=ref))]
    assert [one.is_done for one in progress] == [False] * (len(progress) - 1) + [True]
    return [game_id for one in progress for game_id in one.forgotten_game_ids]


@pytest.fixture
async def house(store: Store) -> AsyncIterator[Operated]:
    async with operated(store) as house:
        yield house


# References and labels


async def test_references_and_labels_are_kept_in_every_store(house: Operated) -> None:
    game = await game_of_annabella(house)
    assert await refs(house, game.game_id) == [(1, ""), (2, REF)]
    await game.start()
    await game.draw()
    assert await refs(house, game.game_id) == [(1, ""), (2, REF)]
    assert dict((await full(house, game.game_id)).operator_labels) == {"secret": LABEL}


async def test_quick_play_has_them_too(house: Operated) -> None:
    def wanted(name: str, ref: str, label: str) -> gs.JoinOrCreateGameRequest:
        labels = {"secret": label}
        return gs.JoinOrCreateGameRequest(name=name, player_ref=ref, operator_labels=labels, request_id=new_id())

    first = await house.client.games.JoinOrCreateGame(wanted("Ann", "first", "a"))
    second = await house.client.games.JoinOrCreateGame(wanted("Bob", "second", "b"))
    assert (second.game.game_id, second.created) == (first.game.game_id, False)
    assert await refs(house, first.game.game_id) == [(1, "first"), (2, "second")]
    assert dict((await full(house, first.game.game_id)).operator_labels) == {"secret": "a"}


async def test_a_rematch_carries_them_over(house: Operated) -> None:
    game = await game_of_annabella(house)
    left = await join(game, "Cy", "who leaves")
    leave = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await house.client.games.LeaveGame(leave, metadata=game.as_seat(left))
    await game.start()
    await resign(game, 1)
    rematch = await game.rematch(2)
    assert await refs(house, rematch.game_id) == []
    for seat in (1, 2):
        await come(rematch, game, seat)
    assert await refs(house, rematch.game_id) == [(1, ""), (2, REF)]
    assert dict((await full(house, rematch.game_id)).operator_labels) == {"secret": LABEL}
    assert set(await forget(house)) == {game.game_id, rematch.game_id}
    assert await refs(house, rematch.game_id) == [(1, ""), (2, "")]


async def test_a_person_with_a_reserved_seat_is_forgotten_too(house: Operated) -> None:
    game = await game_of_annabella(house)
    await game.start()
    await resign(game, 1)
    rematch = await game.rematch(2)
    assert NAME in str(await rematch.see())
    assert set(await forget(house)) == {game.game_id, rematch.game_id}
    assert NAME not in str(await rematch.see())
    history = await house.client.games.ListChanges(gs.ListChangesRequest(game_id=rematch.game_id))
    assert NAME not in str(history)
    assert await come(rematch, game, 2) == 2


async def test_a_new_player_in_a_seat_has_no_reference_of_the_last_one(house: Operated) -> None:
    game = await game_of_annabella(house)
    leave = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await house.client.games.LeaveGame(leave, metadata=game.as_seat(2))
    assert await game.join("Cy") == 2
    assert await refs(house, game.game_id) == [(1, ""), (2, "")]
    listed = pb.ListGamesRequest(filter=pb.GameFilter(player_ref=REF))
    assert not (await house.admin.ListGames(listed)).games


async def test_no_player_and_no_spectator_sees_them(house: Operated) -> None:
    game = await game_of_annabella(house)
    watches = [
        aiter(house.client.games.WatchGame(_watch(game), metadata=bearer(game.tokens[seat]))) for seat in range(3)
    ]
    told: list[Message] = [await anext(watch) for watch in watches]
    told.append(await game.start())
    told += [await game.draw(), await game.see(), await game.see(2)]
    await resign(game, 1)
    told += [await anext(watch) for watch in watches for _ in range(3)]
    told.append(await house.client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id)))
    told.append(await house.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id)))
    assert all(NAME in str(one) for one in (told[0], told[-1])), "the name, however, is public"
    assert [one for one in told if any(secret in str(one) for secret in SECRETS)] == []


def _watch(game: GameAtHand) -> gs.WatchGameRequest:
    return gs.WatchGameRequest(game_id=game.game_id, content=gs.WATCH_CONTENT_BOTH)


async def test_no_log_has_them(capsys: pytest.CaptureFixture[str], house: Operated) -> None:
    game = await game_of_annabella(house)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await join(game, NAME, REF)
    assert not any(secret in f"{refused.value}" for secret in SECRETS)
    logged = capsys.readouterr()
    assert "GameService/JoinGame" in logged.out + logged.err
    assert not any(secret in logged.out + logged.err for secret in SECRETS)


async def test_a_game_without_them_is_stored_without_any(store: Store) -> None:
    async with operated(store) as house:
        game = await house.client.new_game()
        record = (await store.games.load(game.game_id)).record
    assert record
    assert record.operator_data == NO_OPERATOR_DATA
    assert decode_record(encode_record(record)) == record


def test_only_so_many_references_of_players_who_left_are_kept() -> None:
    operator = OperatorData(player_refs=(PlayerRef(1, 1, "who stays"),))
    for revision in range(2, 2 + 2 * DEPARTED_REFS_MAX):
        operator = operator.joined(PlayerRef(revision, 2, str(revision))).left(2)
    assert operator.ref_of(1) == "who stays"
    assert operator.ref_of(2) == ""
    assert len(operator.player_refs) == 1 + DEPARTED_REFS_MAX
    assert operator.player_refs[-1].text == str(1 + 2 * DEPARTED_REFS_MAX)


# Forgetting


async def test_a_forgotten_player_leaves_no_trace(on_redis: OnRedis) -> None:
    house = on_redis.house
    lobby, playing = await game_of_annabella(house), await game_of_annabella(house)
    finished, emptied = await game_of_annabella(house), await game_of_annabella(house)
    for game in (playing, finished):
        await game.start()
        await game.draw()
    await resign(finished, 2)
    leave = gs.LeaveGameRequest(game_id=emptied.game_id, request_id=new_id())
    await house.client.games.LeaveGame(leave, metadata=emptied.as_seat(2))
    games = [lobby, playing, finished, emptied]
    store = house.store
    record = (await store.games.load(lobby.game_id)).record
    assert record
    await store.lists.note_players(record)
    assert await store.lists.games_of("", REF) == [lobby.game_id]
    assert len(on_redis.traces(NAME, REF)) >= 2 * len(games)
    assert sorted(await forget(house)) == sorted(game.game_id for game in games)
    assert on_redis.traces(NAME, REF) == []
    assert await store.lists.games_of("", REF) == []
    assert await forget(house) == []


@pytest.mark.parametrize("is_resigned", [False, True])
async def test_a_rematch_that_is_created_while_games_are_read_is_forgotten_too(
    store: Store, *, is_resigned: bool
) -> None:
    """The lobbies have been read, and the finished games have not; the rematch may be finished by then too."""

    class Rematched(DelegatingStore):
        async def page(
            self, states: Iterable[GameState], cursor: str, limit: int, *, is_public: bool = False
        ) -> ListPage:
            wanted = tuple(states)
            found = await self._store.lists.page(wanted, cursor, limit, is_public=is_public)
            if GameState.FINISHED in wanted and found.games and not rematches:
                rematches.append(await game.rematch(2))
                for seat in (1, 2):
                    await come(rematches[0], game, seat)
                if is_resigned:
                    await rematches[0].start()
                    await resign(rematches[0], 1)
            return found

    rematches: list[GameAtHand] = []
    async with operated(Rematched(store), sweep_seconds=3600) as house:
        game = await game_of_annabella(house)
        await game.start()
        await resign(game, 1)
        assert set(await forget(house)) == {game.game_id, rematches[0].game_id}
        assert await refs(house, rematches[0].game_id) == [(1, ""), (2, "")]
        assert NAME not in str(await rematches[0].see())


@pytest.mark.parametrize("damage", [b"", b"?"], ids=["missing", "unreadable"])
async def test_a_player_is_forgotten_in_all_games_but_a_damaged_one_which_is_named(store: Store, damage: bytes) -> None:
    class Damaged(DelegatingStore):
        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            """Returns changes without the last one, or with bytes that are none of a change."""
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            if game_id != games[1].game_id:
                return found
            return tuple(replace(change, change=damage) for change in found) if damage else found[:-1]

    async with operated(Damaged(store), sweep_seconds=3600) as house:
        games = [await game_of_annabella(house) for _ in range(3)]
        for expected in ({games[0].game_id, games[2].game_id}, set()):
            with capture_logs() as logs:
                reason, forgotten, failed = await failing_forget(house)
            assert reason == "STORED_FORMAT_UNKNOWN"
            assert [log["game_id"] for log in logs if "forgotten" in log["event"]] == [games[1].game_id]
            assert (set(forgotten), failed) == (expected, [games[1].game_id])
        assert [await refs(house, game.game_id) for game in games] == [[(1, ""), (2, ref)] for ref in ("", REF, "")]


async def test_a_game_that_other_calls_change_all_the_time_is_named_and_can_be_tried_again(store: Store) -> None:
    class Busy(DelegatingStore):
        is_busy = True

        async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
            if self.is_busy and record.game_id == games[0].game_id:
                return Conflict()
            return await self._store.games.rewrite(previous_etag, record, stream)

    busy = Busy(store)
    async with operated(busy, sweep_seconds=3600) as house:
        games = [await game_of_annabella(house) for _ in range(2)]
        assert await failing_forget(house) == ("STALE_STATE", [games[1].game_id], [games[0].game_id])
        busy.is_busy = False
        assert await forget(house) == [games[0].game_id]


@pytest.mark.parametrize("state", ["lobby", "playing"])
async def test_a_game_that_this_server_cannot_read_is_named_and_can_be_deleted(
    store: Store, clock: FakeClock, state: str
) -> None:
    async with operated(store, sweep_seconds=3600) as house:
        readable, unreadable = [await game_of_annabella(house) for _ in range(2)]
        if state == "playing":
            await unreadable.start()
        await damage(store, unreadable.game_id)
        assert await failing_forget(house) == ("STORED_FORMAT_UNKNOWN", [readable.game_id], [unreadable.game_id])
        assert await failing_forget(house) == ("STORED_FORMAT_UNKNOWN", [], [unreadable.game_id])
        await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=unreadable.game_id))
        assert await forget(house) == []
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=unreadable.game_id))
        assert error_info(refused.value).reason == "GAME_NOT_FOUND"
        clock.advance(2 * ORPHAN_MS / 1000)
        request = pb.ListGamesRequest(filter=pb.GameFilter(operator_labels={"secret": LABEL}))
        assert [one.game.game_id for one in (await house.admin.ListGames(request)).games] == [readable.game_id]
        assert sum((await store.lists.count()).values()) == 1


async def damage(store: Store, game_id: str) -> None:
    """Makes a stored game one that this version cannot read."""
    if isinstance(store, MemoryStore):
        store.memory.games[game_id].snapshot = b"?"
    else:
        assert isinstance(store, RedisStore)
        key = keys_of(game_id)[0]
        await store._nodes.execute(key, "HSET", key, "snapshot", "?")  # noqa: SLF001 - as above


async def failing_forget(house: Operated) -> tuple[str, list[str], list[str]]:
    """Forgets Annabella; returns the reason of the error, and the games in which that was done, and was not."""
    forgotten, failed = list[str](), list[str]()
    try:
        async for progress in house.admin.ForgetPlayer(pb.ForgetPlayerRequest(player_ref=REF)):
            forgotten += progress.forgotten_game_ids
            failed += progress.failed_game_ids
            assert not progress.is_done
    except grpc.aio.AioRpcError as error:
        return error_info(error).reason, forgotten, failed
    raise AssertionError("it did not fail")


async def test_the_games_of_a_forgotten_player_go_on_with_another_history(on_redis: OnRedis) -> None:
    house = on_redis.house
    game = await game_of_annabella(house)
    before = await game.see()
    await game.start()
    await forget(house)
    after = await game.see(2)
    assert [player.name for player in after.players] == ["Bob", "Player 2"]
    await game.draw()
    await game.draw()
    history = (await house.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))).changes
    assert [change.revision for change in history] == list(range(1, len(history) + 1))
    assert history[-1].etag == (await game.see()).etag
    for change in history:
        request = gs.GetGameRequest(game_id=game.game_id, revision=change.revision)
        earlier = (await house.client.games.GetGame(request)).game
        assert (earlier.etag, NAME in str(earlier)) == (change.etag, False)
    assert history[before.revision - 1].etag != before.etag
    await resign(game, 1)
    exported = await house.client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id))
    assert NAME not in str(exported)


async def test_a_watch_ends_and_an_old_etag_is_refused(on_redis: OnRedis) -> None:
    house = on_redis.house
    game = await game_of_annabella(house)
    watch: Any = house.client.games.WatchGame(_watch(game))  # grpcio's are untyped
    etag = (await watch.read()).snapshot.etag
    await forget(house)
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await next_change(watch)  # a slow one has heartbeats first
    assert error_info(ended.value).reason == "HISTORY_UNAVAILABLE"
    assert etag != (await game.see()).etag
    again = aiter(house.client.games.WatchGame(_watch(game)))
    assert "Player 2" in str(await anext(again))


async def test_the_feed_tells_of_a_rewritten_history(on_redis: OnRedis) -> None:
    house = on_redis.house
    game = await game_of_annabella(house)
    await forget(house)
    await game.start()
    request = pb.WatchGamesRequest(from_oldest=True, filter=pb.GameFilter(operator_labels={"secret": LABEL}))
    told = await changes(house.admin, request, 4)
    kinds = [one.WhichOneof("update") for one in told]
    assert kinds == ["changed", "changed", "rewritten", "changed"], "the old arrival is no longer stored"
    assert told[2].rewritten.game_id == game.game_id
    assert NAME not in str(told)


async def test_a_new_name_is_unlike_the_others(house: Operated) -> None:
    game = await game_of_annabella(house)
    await game.join("player 2")
    await forget(house)
    assert [player.name for player in (await game.see()).players] == ["Bob", "Player 2*", "player 2"]


async def test_a_player_whose_arrival_is_no_longer_stored_is_forgotten_too() -> None:
    store = memory_store(history=2)
    async with operated(store) as house:
        game = await game_of_annabella(house)
        await game.start()
        await game.draw()
        before = await game.see()
        assert await forget(house) == [game.game_id]
        after = await game.see()
        assert (after.revision, after.players[1].name) == (before.revision, "Player 2")
        assert after.etag != before.etag
        await game.draw()
