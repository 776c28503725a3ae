"""How games are found: lists of public games, join codes, quick play; and lobbies that vanish."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc
import grpc.aio
import pytest
import redis

from rummikub.v1 import game_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.commands.command import RequestIdentity
from service.app.game_lists import READ_AT_ONCE, READS_MAX
from service.app.identity import CODE_ALPHABET, SPECTATOR, join_codes, requested_game_id
from service.errors import StoreUnavailable
from service.model.change import Commit, Outcome
from service.model.record import EMPTIED_MS, GameState, Record
from service.storage.memory import MemoryStore
from service.storage.store import BRIEF_MS, Store
from support.delegating_store import DelegatingStore
from support.harness import (
    LIFETIMES,
    Client,
    FakeClock,
    GameAtHand,
    bearer,
    error_info,
    from_another_address,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_settings,
)
from tools.games import creation, game_rules, options

pytestmark = pytest.mark.slow

PUBLIC, UNLISTED = game_pb2.VISIBILITY_PUBLIC, game_pb2.VISIBILITY_UNLISTED
LOBBY, PLAYING = game_pb2.GAME_STATE_LOBBY, game_pb2.GAME_STATE_PLAYING
QUICK_PLAY = options(start_by=room_settings_pb2.START_BY_FULL_OR_READY, abort_by=room_settings_pb2.ABORT_BY_ALL)
"""The rules of JoinOrCreateGame where the caller names none."""
SWEEPLESS = server_settings(sweep_seconds=3600.0)


@pytest.fixture
async def clients(store: Store) -> AsyncIterator[tuple[Client, Client]]:
    """Two servers on one store."""
    async with running_server(store, SWEEPLESS) as (_, first), running_server(store, SWEEPLESS, seed=2) as (_, second):
        yield first, second


@pytest.fixture
def client(clients: tuple[Client, Client]) -> Client:
    return clients[0]


@pytest.fixture
async def own(empty_redis_url: str) -> AsyncIterator[tuple[Client, redis.Redis]]:
    """A server on Redis, and that Redis."""
    store = redis_store(empty_redis_url)
    with redis.Redis.from_url(empty_redis_url) as keys:
        async with running_server(store, SWEEPLESS) as (_, client):
            yield client, keys
    await store.close()


def with_messages(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns fields of a request; where `ruleset` has options by name, with their messages."""
    rules = fields.get("ruleset")
    return fields if rules is None or isinstance(rules, ruleset_pb2.Ruleset) else {**fields, **creation(rules)}


async def create(client: Client, **fields: Any) -> game_pb2.Game:  # noqa: ANN401 - any field
    return (await hosted(client, **fields))[1]


async def hosted(client: Client, **fields: Any) -> tuple[GameAtHand, game_pb2.Game]:  # noqa: ANN401 - any field
    """Creates a game; returns it with the host token, and as the response shows it."""
    request = gs.CreateGameRequest(**{"visibility": PUBLIC, **with_messages(fields)})
    created = await client.games.CreateGame(request)
    return GameAtHand(client, created.game.game_id, host_token=created.host_token), created.game


async def listed(client: Client, **filters: Any) -> list[str]:  # noqa: ANN401 - any field
    """Returns the ids of all games that pass filters, over all pages."""
    found: list[str] = []
    token = ""
    while True:
        answer = await client.games.ListGames(gs.ListGamesRequest(page_token=token, **filters))
        found += [game.game_id for game in answer.games]
        token = answer.next_page_token
        if not token:
            return found


async def quick(client: Client, name: str, **fields: Any) -> gs.JoinOrCreateGameResponse:  # noqa: ANN401 - any field
    request = gs.JoinOrCreateGameRequest(name=name, **{"request_id": new_id(), **with_messages(fields)})
    return await client.games.JoinOrCreateGame(request)


def seated(client: Client, joined: gs.JoinOrCreateGameResponse) -> GameAtHand:
    return GameAtHand(client, joined.game.game_id, {0: "", joined.seat: joined.seat_token})


async def leave(game: GameAtHand, seat: int) -> gs.LeaveGameResponse:
    request = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    return await game.client.games.LeaveGame(request, metadata=game.as_seat(seat))


async def reason_of(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return str(error_info(refusal.value).reason)


# Visibility and summaries


async def test_a_game_is_unlisted_unless_its_creator_asks(client: Client, store: Store) -> None:
    unset = (await client.games.CreateGame(gs.CreateGameRequest())).game
    unlisted = await create(client, visibility=UNLISTED)
    public = await create(client)
    assert [game.visibility for game in (unset, unlisted, public)] == [UNLISTED, UNLISTED, PUBLIC]
    assert await listed(client) == [public.game_id]
    assert (await store.lists.count())[GameState.LOBBY] == 3, "metrics count all games"


async def test_an_unlisted_game_appears_in_no_list_in_any_state(client: Client) -> None:
    game, _ = await hosted(client, visibility=UNLISTED)
    for name in ("Ada", "Ben"):
        await game.join(name)
    await game.start()
    await client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    assert (await game.see()).state == game_pb2.GAME_STATE_FINISHED
    for state in (LOBBY, PLAYING, game_pb2.GAME_STATE_ROUND_OVER, game_pb2.GAME_STATE_FINISHED):
        assert await listed(client, states=[state]) == []


async def test_a_summary_has_what_a_list_shows(client: Client, clock: FakeClock) -> None:
    fair = room_settings_pb2.FAIR_DEAL_COMMITTED  # the default of public games
    rules = options(preset=ruleset_pb2.PRESET_INTL_OFFICIAL, players_max=3, turn_time_limit_seconds=90, fair_deal=fair)
    labels = {"region": "eu", "league": ""}
    game, created = await hosted(client, ruleset=rules, labels=labels)
    await game.join("Ada")
    bot = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY, name="Robo")
    await client.games.AddBot(bot, metadata=game.as_seat(1))
    (found,) = (await client.games.ListGames(gs.ListGamesRequest())).games
    expected = game_pb2.GameSummary(
        game_id=created.game_id,
        state=LOBBY,
        player_names=["Ada", "Robo"],
        players_max=3,
        create_time=created.create_time,
        revision=3,
        **creation(rules),
        seats_taken=2,
        seats_free=1,
        bots=1,
        labels=labels,
    )
    expected.turn_time_limit.FromSeconds(90)
    assert found == expected
    assert dict((await game.see()).labels) == labels
    await game.start()
    (found,) = (await client.games.ListGames(gs.ListGamesRequest(states=[PLAYING]))).games
    assert (found.seats_free, found.round) == (0, 1)
    assert found.create_time.ToMilliseconds() == clock.now_ms


async def test_the_rules_of_a_summary_create_a_game_with_the_same_rules(client: Client) -> None:
    rules = game_rules(preset=ruleset_pb2.PRESET_MACHIAVELLI, players_min=3)
    first = await create(client, ruleset=rules)
    (found,) = (await client.games.ListGames(gs.ListGamesRequest())).games
    assert found.ruleset == rules
    assert not found.HasField("turn_time_limit")
    assert (await create(client, ruleset=found.ruleset)).ruleset == first.ruleset


# Filters


async def test_lists_are_filtered_by_preset_free_seats_and_labels(client: Client) -> None:
    sabra = await create(client, labels={"region": "eu", "league": "1"})
    pair = await create(client, ruleset=game_rules(players_max=2), labels={"region": "eu"})
    jumbo = await create(client, ruleset=game_rules(preset=ruleset_pb2.PRESET_JUMBO_DE))
    await GameAtHand(client, pair.game_id).join("Ada")
    filters: list[tuple[dict[str, Any], list[game_pb2.Game]]] = [
        ({}, [sabra, pair, jumbo]),
        ({"preset": ruleset_pb2.PRESET_SABRA}, [sabra, pair]),
        ({"preset": ruleset_pb2.PRESET_JUMBO_DE}, [jumbo]),
        ({"preset": ruleset_pb2.PRESET_VATIKAN}, []),
        ({"seats_free_min": 1}, [sabra, pair, jumbo]),
        ({"seats_free_min": 2}, [sabra, jumbo]),
        ({"seats_free_min": 5}, []),
        ({"labels": {"region": "eu"}}, [sabra, pair]),
        ({"labels": {"region": "eu", "league": "1"}}, [sabra]),
        ({"labels": {"region": "us"}}, []),
        ({"labels": {"region": "eu"}, "seats_free_min": 2}, [sabra]),
        ({"states": [PLAYING], "labels": {"region": "eu"}}, []),
    ]
    for chosen, expected in filters:
        for page_size in (1, 2, 100):
            found = await listed(client, page_size=page_size, **chosen)
            assert sorted(found) == sorted(game.game_id for game in expected), chosen


async def test_games_of_several_states_are_in_one_list_newest_first(
    clients: tuple[Client, Client], clock: FakeClock
) -> None:
    client, second = clients
    games: list[str] = []
    for number in range(6):
        clock.advance(1)
        game, created = await hosted(client)
        games.insert(0, created.game_id)
        if number % 2:
            await game.join("Ada")
            await game.join("Ben")
            await game.start()
    for states, expected in (
        ([LOBBY, PLAYING], games),
        ([PLAYING, LOBBY, PLAYING], games),
        ([PLAYING, game_pb2.GAME_STATE_FINISHED], games[::2]),
        ([], games[1::2]),
    ):
        for page_size in (1, 2, 3, 100):
            assert await listed(second, states=states, page_size=page_size) == expected


async def test_a_page_token_belongs_to_its_filters(client: Client) -> None:
    for _ in range(3):
        await create(client, labels={"region": "eu"})
    chosen: dict[str, Any] = {"labels": {"region": "eu"}, "preset": ruleset_pb2.PRESET_SABRA}
    token = (await client.games.ListGames(gs.ListGamesRequest(page_size=1, **chosen))).next_page_token
    assert (await client.games.ListGames(gs.ListGamesRequest(page_size=2, page_token=token, **chosen))).games
    others: list[dict[str, Any]] = [{}, {"states": [PLAYING], **chosen}, {"seats_free_min": 1, **chosen}]
    for other in others:
        request = gs.ListGamesRequest(page_token=token, **other)
        assert await reason_of(client.games.ListGames(request)) == "FIELD_INVALID"


async def test_a_filtered_page_reads_a_bounded_number_of_games(clock: FakeClock) -> None:
    async with running_server(memory_store(clock), server_settings(games_per_minute=0)) as (_, client):
        wanted = await create(client, labels={"rare": "1"})
        clock.advance(1)
        for _ in range(READ_AT_ONCE * READS_MAX):
            await create(client)
        first = await client.games.ListGames(gs.ListGamesRequest(labels={"rare": "1"}))
        assert not first.games
        assert first.next_page_token
        assert await listed(client, labels={"rare": "1"}) == [wanted.game_id]


# Join codes


async def test_a_join_code_seats_a_player_in_place_of_an_id(clients: tuple[Client, Client]) -> None:
    created = await create(clients[0], visibility=UNLISTED)
    assert len(created.join_code) == 6
    assert set(created.join_code) <= set(CODE_ALPHABET)
    for seat, code in ((1, created.join_code), (2, created.join_code.lower())):
        joined = await clients[1].games.JoinGame(gs.JoinGameRequest(join_code=code, name=f"player {seat}"))
        assert (joined.game.game_id, joined.seat) == (created.game_id, seat)


async def test_a_retried_join_by_code_gets_its_first_answer_after_the_start(clients: tuple[Client, Client]) -> None:
    game = await clients[0].new_game(players=1, start=False)
    code = (await game.see(1)).join_code
    request = gs.JoinGameRequest(join_code=code, name="Ben", request_id=new_id())
    first = await clients[0].games.JoinGame(request)
    await game.start()
    assert await clients[1].games.JoinGame(request) == first
    late = gs.JoinGameRequest(join_code=code, name="Cleo")
    assert await reason_of(clients[1].games.JoinGame(late)) == "GAME_ALREADY_STARTED"


async def test_only_seats_and_the_creator_see_the_code_and_only_in_the_lobby(client: Client) -> None:
    game, created = await hosted(client)
    seat = await game.join("Ada")
    await game.join("Ben")
    assert (await game.see(seat)).join_code == created.join_code
    assert (await game.see()).join_code == ""
    watching = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), metadata=bearer(""))
    async for update in watching:
        assert update.snapshot.join_code == ""
        break
    watching.cancel()
    left = await leave(game, 2)
    assert left.game.join_code == ""
    await game.join("Cleo")
    await game.start()
    assert (await game.see(seat)).join_code == ""


async def test_games_in_the_lobby_have_different_codes(client: Client, store: Store) -> None:
    created = await create(client)
    secret = await store.secret()
    assert created.join_code == next(join_codes(secret, created.game_id))
    other = "ab" * 16
    await store.names.point(f"code:{next(join_codes(secret, other))}", created.game_id)
    codes = join_codes(secret, other)
    assert await store.names.point(f"code:{next(codes)}", other) == created.game_id
    assert await store.names.point(f"code:{next(codes)}", other) == other


class FailingStore(DelegatingStore):
    """A store that stores no game while it is failing, as if the server died before."""

    is_failing = False

    async def commit(self, commit: Commit) -> Outcome:
        if self.is_failing:
            raise StoreUnavailable
        return await self._store.games.commit(commit)


async def test_a_creation_that_failed_leaves_no_usable_code_and_its_retry_has_the_same_one(store: Store) -> None:
    failing = FailingStore(store)
    async with running_server(failing, SWEEPLESS) as (_, client):
        request_id = new_id()
        failing.is_failing = True
        assert await reason_of(create(client, request_id=request_id)) == "STORE_UNAVAILABLE"
        key = RequestIdentity(SPECTATOR, request_id, b"").key
        secret = await store.secret()
        code = next(join_codes(secret, requested_game_id(secret, key)))
        assert await store.names.find(f"code:{code}"), "the code was reserved"
        joining = gs.JoinGameRequest(join_code=code, name="Ada")
        assert await reason_of(client.games.JoinGame(joining)) == "JOIN_CODE_UNKNOWN"
        failing.is_failing = False
        assert (await create(client, request_id=request_id)).join_code == code
        assert (await client.games.JoinGame(joining)).seat == 1


async def test_a_quick_join_that_failed_leaves_no_game_and_its_retry_has_one_seat(store: Store) -> None:
    failing = FailingStore(store)
    async with running_server(failing, SWEEPLESS) as (_, client):
        request_id = new_id()
        failing.is_failing = True
        assert await reason_of(quick(client, "Ada", request_id=request_id)) == "STORE_UNAVAILABLE"
        assert await listed(client) == []
        failing.is_failing = False
        ben = await quick(client, "Ben")
        ada = await quick(client, "Ada", request_id=request_id)
        assert ada.game.game_id == ben.game.game_id
        assert {ada.seat, ben.seat} == {1, 2}


async def test_the_code_of_a_lobby_is_kept_as_long_as_the_lobby(own: tuple[Client, redis.Redis]) -> None:
    client, keys = own
    created = await create(client)
    key = f"rummikub:name:code:{created.join_code}"
    keys.pexpire(key, 1_000)
    await GameAtHand(client, created.game_id).join("Ada")
    assert keys.pttl(key) > LIFETIMES.lobby * 1_000
    keys.delete(key)
    await GameAtHand(client, created.game_id).join("Ben")
    joined = await client.games.JoinGame(gs.JoinGameRequest(join_code=created.join_code, name="Cleo"))
    assert joined.seat == 3


GUESSES, PER_MINUTE = 1_000, 30


async def test_guesses_of_join_codes_are_limited_by_address_and_true_codes_are_not() -> None:
    settings = server_settings(join_guesses_per_minute=PER_MINUTE)
    async with running_server(memory_store(), settings) as (server, client), from_another_address(server.port) as port:
        rules = game_rules(players_max=6)
        game = await create(client, ruleset=rules)
        for number in range(5):  # true codes count for nothing
            await client.games.JoinGame(gs.JoinGameRequest(join_code=game.join_code, name=f"player {number}"))
        codes = (code for number in range(GUESSES) for code in [next(join_codes(b"", f"{number:032x}"))])
        began = time.monotonic()
        requests = [gs.JoinGameRequest(join_code=code, name="Eve") for code in codes]
        told: Counter[str] = Counter()
        for start in range(0, GUESSES, 50):
            calls = (reason_of(client.games.JoinGame(request)) for request in requests[start : start + 50])
            told.update(await asyncio.gather(*calls))
        refilled = (time.monotonic() - began) * PER_MINUTE / 60
        assert told.keys() == {"JOIN_CODE_UNKNOWN", "TOO_MANY_GUESSES"}
        assert told.total() == GUESSES
        assert PER_MINUTE <= told["JOIN_CODE_UNKNOWN"] <= PER_MINUTE + refilled + 1
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            request = gs.JoinGameRequest(join_code=game.join_code, name="Flo")
            assert (await Client(channel).games.JoinGame(request)).seat == 6


# Quick play


async def test_quick_play_joins_the_oldest_open_game_else_creates_one(clients: tuple[Client, Client]) -> None:
    first = await quick(clients[0], "Ada")
    assert (first.created, first.seat, first.game.revision, first.game.visibility) == (True, 1, 1, PUBLIC)
    assert [player.name for player in first.game.players] == ["Ada"]
    second = await quick(clients[1], "Ben")
    assert (second.created, second.seat, second.game.game_id) == (False, 2, first.game.game_id)
    assert (await seated(clients[0], first).see(1)).seat == 1
    assert (await seated(clients[1], second).see(2)).seat == 2


async def test_quick_play_joins_games_that_were_created_publicly_and_no_other(client: Client, clock: FakeClock) -> None:
    await create(client, ruleset=QUICK_PLAY, visibility=UNLISTED)
    await create(client, ruleset=game_rules(players_max=3))
    await create(client)
    await create(client, ruleset=QUICK_PLAY, labels={"region": "eu"})
    clock.advance(1)
    oldest = await create(client, ruleset=QUICK_PLAY)
    clock.advance(1)
    await create(client, ruleset=QUICK_PLAY)
    assert (await quick(client, "Ada")).game.game_id == oldest.game_id
    europe = await quick(client, "Ben", labels={"region": "eu"})
    assert not europe.created
    assert dict(europe.game.labels) == {"region": "eu"}


async def test_quick_play_passes_over_full_started_and_emptied_games_and_games_with_a_like_name(
    client: Client, clock: FakeClock
) -> None:
    rules = game_rules(players_max=2)
    first = await quick(client, "Ada", ruleset=rules)
    clock.advance(1)
    assert (await quick(client, "ADA", ruleset=rules)).created
    assert (await quick(client, "Ben", ruleset=rules)).game.game_id == first.game.game_id
    third = await quick(client, "Cleo", ruleset=rules)
    assert third.game.game_id != first.game.game_id
    assert not third.created
    fourth = seated(client, await quick(client, "Dan", ruleset=rules))
    await leave(fourth, 1)
    fifth = await quick(client, "Eve", ruleset=rules)
    assert fifth.game.game_id == fourth.game_id, "who comes within the minute finds the lobby"


@pytest.mark.parametrize("by_code", [False, True])
async def test_who_joins_a_game_that_has_no_host_any_more_is_the_host(client: Client, by_code: bool) -> None:
    rules = options(start_by=room_settings_pb2.START_BY_HOST)
    first = await quick(client, "Ada", ruleset=rules)
    game = seated(client, first)
    await leave(game, 1)
    request = gs.JoinGameRequest(join_code=first.game.join_code, name="Ben")
    second = await client.games.JoinGame(request) if by_code else await quick(client, "Ben", ruleset=rules)
    assert second.game.game_id == game.game_id
    assert second.game.players[0].is_host
    game.tokens[second.seat] = second.seat_token
    await game.join("Cleo")
    await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_seat(second.seat))


async def test_a_lobby_that_its_host_empties_stays(client: Client) -> None:
    created = await client.games.CreateGame(gs.CreateGameRequest(visibility=PUBLIC))
    host = bearer(created.host_token)
    game = GameAtHand(client, created.game.game_id)
    await game.join("Ada")
    game.host_token = created.host_token
    await game.kick(1)
    assert await listed(client) == [game.game_id]
    await client.games.JoinGame(gs.JoinGameRequest(game_id=game.game_id, name="Host"), metadata=host)
    await game.kick(1)
    assert await listed(client) == []


@pytest.mark.parametrize("players_max", [2, 4])
async def test_concurrent_callers_meet_in_as_few_games_as_can_be(
    clients: tuple[Client, Client], store: Store, players_max: int
) -> None:
    rules = game_rules(players_max=players_max)
    calls = (quick(clients[number % 2], f"player {number}", ruleset=rules) for number in range(8))
    joined = await asyncio.gather(*calls)
    games = Counter(answer.game.game_id for answer in joined)
    assert list(games.values()) == [players_max] * (8 // players_max)
    assert sum(answer.created for answer in joined) == len(games)
    assert len({answer.seat_token for answer in joined}) == 8
    assert (await store.lists.count())[GameState.LOBBY] == len(games), "no game is left empty"


async def test_callers_who_meet_count_for_the_games_that_they_create_only(store: Store) -> None:
    async with running_server(store, server_settings(games_per_minute=10)) as (_, client):
        joined = await asyncio.gather(*(quick(client, f"player {number}") for number in range(40)))
        games = Counter(answer.game.game_id for answer in joined)
        assert list(games.values()) == [4] * 10
        assert await reason_of(quick(client, "player 40")) == "TOO_MANY_GAMES"


async def test_a_repeated_quick_join_has_one_seat_although_its_game_was_full(clients: tuple[Client, Client]) -> None:
    rules = game_rules(players_max=2)
    request_id = new_id()
    for name in ("Ada", "Ben", "Cleo"):
        await quick(clients[0], name, ruleset=rules)
    answers = await asyncio.gather(
        *(quick(clients[number % 2], "Dan", ruleset=rules, request_id=request_id) for number in range(6))
    )
    assert len({answer.SerializeToString() for answer in answers}) == 1
    assert answers[0].seat == 2
    assert len((await seated(clients[0], answers[0]).see(2)).players) == 2


async def test_a_refused_quick_join_leaves_no_game_behind(store: Store) -> None:
    async with running_server(store, server_settings(games_per_minute=1)) as (_, client):
        await quick(client, "Ada", labels={"region": "eu"})
        assert await reason_of(quick(client, "Ben")) == "TOO_MANY_GAMES"
        assert (await store.lists.count())[GameState.LOBBY] == 1
        assert not (await quick(client, "Cleo", labels={"region": "eu"})).created


async def test_quick_play_continues_where_a_server_died_before_it_created_the_game(
    client: Client, store: Store
) -> None:
    """The dead server's callers agreed on an id, and no game has it: the next caller creates it."""
    await quick(client, "Ada", labels={"x": "1"})
    names = [name async for name in meeting_names(store)]
    assert len(names) == 1
    promised = "ef" * 16
    before = await store.names.find(names[0])
    assert await store.names.point(names[0], promised, before, kept_ms=BRIEF_MS) == promised
    joined = await quick(client, "ADA", labels={"x": "1"})
    assert (joined.game.game_id, joined.created) == (promised, True)


async def meeting_names(store: Store) -> AsyncIterator[str]:
    """Yields the names under which callers have agreed on games."""
    if isinstance(store, MemoryStore):
        names = [*store.names._names]  # noqa: SLF001 - what it holds
    else:
        keys = [key async for key in store._nodes._client.scan_iter("rummikub:name:*")]  # type: ignore[attr-defined]  # noqa: SLF001 - as above
        names = [key.decode().removeprefix("rummikub:name:") for key in keys]
    for name in names:
        if name.startswith("meeting:"):
            yield name


# Lobbies that vanish


async def test_a_lobby_leaves_the_lists_with_its_last_person_and_bots_do_not_keep_it(
    client: Client, store: Store
) -> None:
    game = GameAtHand(client, (await create(client)).game_id)
    for name in ("Ada", "Ben"):
        await game.join(name)
    bot = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY)
    await client.games.AddBot(bot, metadata=game.as_seat(1))
    await leave(game, 1)
    assert await listed(client) == [game.game_id]
    await leave(game, 2)
    assert await listed(client) == []
    assert (await store.lists.count())[GameState.LOBBY] == 0
    assert [player.name for player in (await game.see()).players] == ["Bot Rosa"]


class SlowStore(DelegatingStore):
    """A store that delays the listing of emptied games until another one has been listed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.others, self.waiting = asyncio.Event(), asyncio.Event()

    async def index(self, record: Record) -> None:
        if record.is_emptied:
            self.waiting.set()
            await self.others.wait()
        await self._store.lists.index(record)
        self.others.set()


async def test_a_player_who_joins_while_the_last_one_leaves_keeps_the_game_in_its_lists(store: Store) -> None:
    slow = SlowStore(store)
    async with running_server(slow, SWEEPLESS) as (_, client):
        game = GameAtHand(client, (await create(client)).game_id)
        await game.join("Ada")
        slow.others.clear()
        leaving = asyncio.create_task(leave(game, 1))
        await slow.waiting.wait()
        await game.join("Ben")  # stored and listed before the lobby of the leave is taken off the lists
        await leaving
        assert await listed(client) == [game.game_id]


async def test_a_lobby_that_nobody_has_joined_yet_is_not_emptied(client: Client) -> None:
    created = await create(client)
    assert await listed(client) == [created.game_id]


async def test_a_repeated_leave_gets_its_answer_and_who_joins_within_the_minute_keeps_the_game(
    clients: tuple[Client, Client],
) -> None:
    game = GameAtHand(clients[0], (await create(clients[0])).game_id)
    await game.join("Ada")
    request = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    first = await clients[0].games.LeaveGame(request, metadata=game.as_seat(1))
    assert await clients[1].games.LeaveGame(request, metadata=game.as_seat(1)) == first
    await game.join("Ben")
    assert await listed(clients[1]) == [game.game_id]


async def test_an_emptied_lobby_is_gone_after_a_minute(own: tuple[Client, redis.Redis]) -> None:
    client, keys = own
    game = GameAtHand(client, (await create(client)).game_id)
    key = f"rummikub:{{{game.game_id}}}:game"
    await game.join("Ada")
    assert keys.pttl(key) > EMPTIED_MS
    await leave(game, 1)
    assert 0 < keys.pttl(key) <= EMPTIED_MS
    await game.join("Ben")
    assert keys.pttl(key) > EMPTIED_MS
