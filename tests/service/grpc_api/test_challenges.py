"""Challenges between two players with join tickets, over every store, and in the one stream of a player."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from rummikub.v1 import challenge_service_pb2 as cs
from rummikub.v1 import game_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    client_with_key,
    error_info,
    field_violations,
    keys_file,
    new_id,
    running_server,
    server_settings,
)
from support.join_tickets import ENTRY, signed
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

PARTNERS = ruleset_pb2.DiscardRuleset(preset=ruleset_pb2.PRESET_OKEY_101_PARTNERS)
OPEN, ACCEPTED, DECLINED = cs.CHALLENGE_STATE_OPEN, cs.CHALLENGE_STATE_ACCEPTED, cs.CHALLENGE_STATE_DECLINED
CANCELED, EXPIRED = cs.CHALLENGE_STATE_CANCELED, cs.CHALLENGE_STATE_EXPIRED
ANN, BOB, EVE = signed("ann", name="Ann"), signed("bob", name="Bob", bot=True), signed("eve", name="Eve")


@asynccontextmanager
async def served(folder: Path, store: Store, *keys: str) -> AsyncIterator[Client]:
    """Yields a client of a server with keys, the first of which the client sends."""
    names = keys or ("web",)
    entries = dict.fromkeys(names, f'{ENTRY}\nticket_audience = "web"')
    settings = server_settings(keys_file=keys_file(folder, **entries), sweep_seconds=3_600, heartbeat_seconds=0.2)
    async with running_server(store, settings) as (server, _), client_with_key(server.port, names[0]) as client:
        yield client


@pytest.fixture
async def web(tmp_path: Path, store: Store) -> AsyncIterator[Client]:
    async with served(tmp_path, store) as client:
        yield client


@pytest.fixture(params=STORES_AND_CLUSTER)
async def every_store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, a cluster too, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


async def challenge(client: Client, ticket: str = ANN, to: str = "bob", **fields: Any) -> cs.Challenge:  # noqa: ANN401 - of a request
    request = cs.ChallengePlayerRequest(join_ticket=ticket, player_ref=to, **fields)
    return (await client.challenges.ChallengePlayer(request)).challenge


async def accept(client: Client, challenge_id: str, ticket: str = BOB) -> cs.Challenge:
    request = cs.AcceptChallengeRequest(challenge_id=challenge_id, join_ticket=ticket)
    return (await client.challenges.AcceptChallenge(request)).challenge


async def decline(client: Client, challenge_id: str, ticket: str = BOB) -> cs.Challenge:
    request = cs.DeclineChallengeRequest(
        challenge_id=challenge_id, join_ticket=ticket, reason=cs.DECLINE_REASON_NO_PROGRAMS
    )
    return (await client.challenges.DeclineChallenge(request)).challenge


async def cancel(client: Client, challenge_id: str, ticket: str = ANN) -> cs.Challenge:
    request = cs.CancelChallengeRequest(challenge_id=challenge_id, join_ticket=ticket)
    return (await client.challenges.CancelChallenge(request)).challenge


async def listed(client: Client, ticket: str) -> list[cs.Challenge]:
    answer = await client.challenges.ListChallenges(cs.ListChallengesRequest(join_ticket=ticket))
    return list(answer.challenges)


async def join(client: Client, game_id: str, ticket: str) -> game_pb2.Game:
    request = gs.JoinGameRequest(game_id=game_id, join_ticket=ticket, request_id=new_id())
    return (await client.games.JoinGame(request)).game


async def reason_of(call: Any) -> str:  # noqa: ANN401 - a call of any kind
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


async def next_update(watch: Any, kind: str) -> Any:  # noqa: ANN401 - an update of a kind
    async with asyncio.timeout(20):
        while True:
            update = await watch.read()
            assert update is not grpc.aio.EOF
            if update.WhichOneof("update") == kind:
                return getattr(update, kind)


def watching(client: Client, ticket: str) -> Any:  # noqa: ANN401 - a stream
    return client.games.WatchOwnGames(gs.WatchOwnGamesRequest(join_ticket=ticket))


async def test_two_players_get_a_game_by_a_challenge(tmp_path: Path, every_store: Store) -> None:
    """The players are at two servers, and each has one stream for all that happens."""
    async with served(tmp_path, every_store) as web, served(tmp_path, every_store) as elsewhere:
        bobs, anns = watching(elsewhere, BOB), watching(web, ANN)
        made = await challenge(web, labels={"event": "cup"})
        assert (made.state, made.is_incoming, made.challenger_is_program) == (OPEN, False, False)
        received = await next_update(bobs, "challenge")
        assert (received.challenge_id, received.is_incoming, received.state) == (made.challenge_id, True, OPEN)
        assert (received.challenger_name, dict(received.labels)) == ("Ann", {"event": "cup"})
        assert [one.challenge_id for one in await listed(web, ANN)] == [made.challenge_id]
        assert (await next_update(anns, "challenge")).state == OPEN
        accepted = await accept(elsewhere, made.challenge_id)
        assert await accept(elsewhere, made.challenge_id) == accepted, "accepting again is the same"
        told = await next_update(anns, "challenge")
        assert (told.state, told.game_id) == (ACCEPTED, accepted.game_id)
        assert (await next_update(anns, "game")).game_id == accepted.game_id
        assert (await next_update(bobs, "game")).game_id == accepted.game_id
        await join(elsewhere, accepted.game_id, BOB)
        game = await join(web, accepted.game_id, ANN)
        assert [(player.name, player.is_program) for player in game.players] == [("Ann", False), ("Bob", True)]
        assert game.HasField("next_round_time")
        assert await listed(web, ANN) == await listed(web, BOB) == []
        for stream in (bobs, anns):
            stream.cancel()


async def test_a_challenge_is_declined_or_canceled_once(web: Client) -> None:
    first, second = await challenge(web), await challenge(web)
    declined = await decline(web, first.challenge_id)
    assert (declined.state, declined.decline_reason) == (DECLINED, cs.DECLINE_REASON_NO_PROGRAMS)
    assert await decline(web, first.challenge_id) == declined
    assert await reason_of(accept(web, first.challenge_id)) == "CHALLENGE_OVER"
    assert (await cancel(web, second.challenge_id)).state == CANCELED
    assert (await cancel(web, second.challenge_id)).state == CANCELED
    assert await reason_of(decline(web, second.challenge_id)) == "CHALLENGE_OVER"
    assert await reason_of(cancel(web, first.challenge_id)) == "CHALLENGE_OVER"
    assert await listed(web, BOB) == []


async def test_of_two_answers_at_once_one_counts(web: Client) -> None:
    for _ in range(5):
        made = await challenge(web)
        answers = await asyncio.gather(
            accept(web, made.challenge_id), cancel(web, made.challenge_id), return_exceptions=True
        )
        won = [answer for answer in answers if isinstance(answer, cs.Challenge)]
        assert len(won) == 1


async def test_a_challenge_expires_and_the_stream_says_so(web: Client, clock: FakeClock) -> None:
    made = await challenge(web, expire_after={"seconds": 10})
    watch = watching(web, signed("bob"))
    assert (await next_update(watch, "challenge")).state == OPEN
    clock.advance(10)
    assert (await next_update(watch, "challenge")).state == EXPIRED
    assert await reason_of(accept(web, made.challenge_id)) == "CHALLENGE_OVER"
    assert await listed(web, ANN) == []
    watch.cancel()


async def test_others_do_not_see_answer_or_cancel_a_challenge(tmp_path: Path, store: Store, web: Client) -> None:
    made = await challenge(web)
    calls = (
        accept(web, made.challenge_id, EVE),
        decline(web, made.challenge_id, EVE),
        cancel(web, made.challenge_id, EVE),
    )
    assert {await reason_of(call) for call in calls} == {"CHALLENGE_NOT_FOUND"}
    assert await reason_of(accept(web, "0" * 32, EVE)) == "CHALLENGE_NOT_FOUND"
    assert await reason_of(accept(web, made.challenge_id, ANN)) == "CHALLENGE_NOT_FOUND", "the challenger"
    assert await reason_of(cancel(web, made.challenge_id, BOB)) == "CHALLENGE_NOT_FOUND", "the challenged"
    assert await listed(web, EVE) == []
    async with served(tmp_path, store, "other", "web") as other:
        assert await reason_of(accept(other, made.challenge_id)) == "CHALLENGE_NOT_FOUND"
        assert await listed(other, BOB) == []


async def test_no_answer_shows_who_exists_or_a_reference(web: Client) -> None:
    known, unknown = await challenge(web, to="bob"), await challenge(web, to="nobody ever")
    for answer in (known, unknown):
        answer.ClearField("challenge_id")
    assert known == unknown
    seen = str(await listed(web, BOB))
    assert not any(ref in seen for ref in ("ann", "bob"))


async def test_a_repeated_request_is_one_challenge(web: Client) -> None:
    fields: dict[str, Any] = {"request_id": new_id()}
    made = await challenge(web, **fields)
    assert await challenge(web, **fields) == made
    assert await reason_of(challenge(web, to="eve", **fields)) == "DUPLICATE_REQUEST"
    await decline(web, made.challenge_id)
    assert (await challenge(web, **fields)).state == DECLINED
    assert len(await listed(web, ANN)) == 0


async def test_challenges_are_limited(web: Client, clock: FakeClock) -> None:
    for _ in range(20):
        await cancel(web, (await challenge(web)).challenge_id)
    assert await reason_of(challenge(web)) == "TOO_MANY_CHALLENGES", "in a minute"
    clock.advance(60)
    for number in range(20):
        await challenge(web, signed("ann", name="Ann"), to=f"player {number}")
    clock.advance(60)
    assert await reason_of(challenge(web, signed("ann", name="Ann"))) == "TOO_MANY_CHALLENGES", "open ones"
    clock.advance(120)
    assert len(await listed(web, signed("ann", seconds=1_000))) == 20
    clock.advance(120)
    assert (await challenge(web, signed("ann", name="Ann", seconds=1_000))).state == OPEN, "the others have expired"


async def test_one_player_cannot_shut_out_others(web: Client, clock: FakeClock) -> None:
    for _ in range(2):
        await challenge(web)
    assert await reason_of(challenge(web)) == "TOO_MANY_CHALLENGES", "to this player"
    await challenge(web, EVE)
    await challenge(web, BOB, to="ann")
    for number in range(57):
        clock.advance(2)
        await challenge(web, signed(f"stranger {number}", name=f"Stranger {number}"))
    assert await reason_of(challenge(web, signed("one more", name="One More"))) == "TOO_MANY_CHALLENGES", (
        "to this player by all"
    )
    await challenge(web, signed("bob", name="Bob"), to="cleo")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"to": "ann"}, "player_ref"),
        ({"to": ""}, "player_ref"),
        ({"to": "a" * 65}, "player_ref"),
        ({"expire_after": {"seconds": 9}}, "expire_after"),
        ({"expire_after": {"seconds": 86_401}}, "expire_after"),
        ({"expire_after": {"seconds": -1}}, "expire_after"),
        ({"ticket": signed("ann")}, "name"),
        ({"labels": {"": ""}}, "labels"),
        ({"request_id": "short"}, "request_id"),
        ({"ruleset": ruleset_pb2.Ruleset(discard=PARTNERS)}, "ruleset"),
    ],
)
async def test_malformed_challenges_are_refused(web: Client, fields: dict[str, Any], path: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await challenge(web, **fields)
    assert field_violations(refused.value) == [path]
    assert await listed(web, ANN) == []


async def test_malformed_answers_are_refused(web: Client) -> None:
    made = await challenge(web)
    for call, path in (
        (accept(web, "x"), "challenge_id"),
        (accept(web, made.challenge_id, signed("bob")), "name"),
        (
            web.challenges.DeclineChallenge(
                cs.DeclineChallengeRequest(challenge_id=made.challenge_id, join_ticket=BOB, reason=9)  # type: ignore[arg-type]
            ),
            "reason",
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert field_violations(refused.value) == [path]
    assert (await listed(web, ANN))[0].state == OPEN


async def test_a_room_without_bots_and_a_name_like_the_other(web: Client) -> None:
    of_people = room_settings_pb2.RoomSettings(bots=room_settings_pb2.BOTS_OFF)
    assert await reason_of(challenge(web, BOB, "ann", settings=of_people)) == "BOTS_NOT_ALLOWED"
    made = await challenge(web, settings=of_people)
    assert await reason_of(accept(web, made.challenge_id)) == "BOTS_NOT_ALLOWED"
    assert (await accept(web, made.challenge_id, signed("bob", name="Bob"))).state == ACCEPTED
    made = await challenge(web)
    assert await reason_of(accept(web, made.challenge_id, signed("bob", name="ANN"))) == "PLAYER_ALREADY_JOINED"
