"""A `Bot` in Python on a server whose clock stands still, so that no time-out ever moves a game on."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

import rummikub
from rummikub import aio
from rummikub.bot import FIRST_DELAY_SECONDS, Bot, Legal
from rummikub.v1 import challenge_service_pb2 as cs
from rummikub.v1 import game_service_pb2 as gs
from support.harness import (
    FakeClock,
    GameAtHand,
    keys_file,
    memory_store,
    new_id,
    running_server,
    server_settings,
)
from support.join_tickets import ENTRY, signed

TWO = rummikub.DealOptions(players_min=2, players_max=2)
MELDING = rummikub.Ruleset(melding=rummikub.MeldingRuleset(preset=rummikub.PRESET_SABRA, deal=TWO))
DISCARDS = (rummikub.PRESET_OKEY, rummikub.PRESET_OKEY_101, rummikub.PRESET_AMERICAN, rummikub.PRESET_INTERNATIONAL)


def discards(preset: rummikub.Preset.ValueType) -> rummikub.Ruleset:
    """Returns the rules of a round of two."""
    for_two = rummikub.DiscardDealOptions(players_min=2, players_max=2)
    one_round = rummikub.DiscardGameEndOptions(match_rounds=1)
    return rummikub.Ruleset(discard=rummikub.DiscardRuleset(preset=preset, deal=for_two, game_end=one_round))


class Suggested(Bot):
    """Plays what the service suggests."""

    async def choose(self, view: rummikub.Game, legal: Legal) -> rummikub.PlayTurnRequest:  # noqa: ARG002 - of no use here
        return await legal.suggest()


class Broken(Bot):
    """Has a mistake in `choose`."""

    async def choose(self, view: rummikub.Game, legal: Legal) -> rummikub.PlayTurnRequest:  # noqa: ARG002 - as above
        raise KeyError("a mistake of the program")


TURNS = 5


async def plays(rules: rummikub.Ruleset, make: Callable[[aio.Rummikub], Bot]) -> None:
    """Lets two bots play some turns. Raises TimeoutError if they stop."""
    async with (
        running_server(memory_store(FakeClock())) as (server, _),
        aio.Rummikub(f"127.0.0.1:{server.port}") as client,
        asyncio.timeout(30),
    ):
        created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=rules, request_id=new_id()))
        game_id, bots, turns = created.game.game_id, [make(client), make(client)], set[int]()
        for name, bot in zip(("Ada", "Ben"), bots, strict=True):
            joining = gs.JoinGameRequest(game_id=game_id, name=name, is_program=True, request_id=new_id())
            bot.add(game_id, (await client.games.JoinGame(joining)).seat_token)
        await client.seated(created.host_token).games.StartGame(gs.StartGameRequest(game_id=game_id))
        running = [asyncio.create_task(bot.run()) for bot in bots]
        try:
            async for game in client.watch_games(game_id):
                turns.add(game.turn.revision)
                if len(turns) > TURNS:
                    break
        finally:
            for task in running:
                task.cancel()


@pytest.mark.parametrize("rules", [MELDING, discards(rummikub.PRESET_OKEY)], ids=["melding", "discards"])
async def test_a_bot_whose_choice_fails_takes_its_turns(rules: rummikub.Ruleset) -> None:
    await plays(rules, Broken)


@pytest.mark.parametrize("preset", DISCARDS, ids=rummikub.Preset.Name)
async def test_a_bot_plays_where_hints_are_not_allowed(preset: rummikub.Preset.ValueType) -> None:
    await plays(discards(preset), Suggested)


async def test_a_program_that_is_started_again_returns_to_its_seat() -> None:
    clock, absent = FakeClock(), rummikub.RoomSettings(absent_after_timeouts=1, turn_time_limit=Duration(seconds=60))
    async with (
        running_server(memory_store(clock)) as (server, client),
        aio.Rummikub(f"127.0.0.1:{server.port}") as connection,
        asyncio.timeout(60),
    ):
        creation = gs.CreateGameRequest(ruleset=MELDING, settings=absent, request_id=new_id())
        created = await client.games.CreateGame(creation)
        game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
        await game.join("Ada")
        await game.join("Ben")
        seat = (await game.start()).turn.seat
        clock.advance(61)
        async for seen in connection.watch_games(game.game_id):
            if seen.players[seat - 1].is_absent:
                break
        bot = Suggested(connection)
        bot.add(game.game_id, game.tokens[seat])
        running = asyncio.create_task(bot.run())
        async for seen in connection.watch_games(game.game_id):
            if not seen.players[seat - 1].is_absent:
                break
        assert seen.turn.seat != seat, "the other player has the turn all the time"
        running.cancel()


@asynccontextmanager
async def with_tickets(folder: Path) -> AsyncIterator[aio.Rummikub]:
    """Yields a connection to a server, with a key whose tickets it takes, for 30 seconds at most."""
    settings = server_settings(keys_file=keys_file(folder, web=ENTRY))
    async with (
        running_server(memory_store(FakeClock()), settings) as (server, _),
        aio.Rummikub(f"127.0.0.1:{server.port}", api_key="web") as client,
        asyncio.timeout(30),
    ):
        yield client


async def test_a_bot_has_no_more_games_than_its_most(tmp_path: Path) -> None:
    async with with_tickets(tmp_path) as client:
        bot = Suggested(client, lambda: signed("deep", name="deep"), games_max=1)
        for _ in range(2):
            proposal = cs.ChallengePlayerRequest(join_ticket=signed("ann", name="Ann"), player_ref="deep")
            await client.challenges.ChallengePlayer(proposal)
        own = rummikub.WatchOwnGamesRequest(join_ticket=signed("ann"))
        found: dict[str, cs.Challenge] = {}
        running: asyncio.Task[None] | None = None
        async for update in client.games.WatchOwnGames(own):
            if update.HasField("challenge"):
                found[update.challenge.challenge_id] = update.challenge
            if len(found) == 2 and running is None:  # both are watched: a new stream has no answered challenges
                running = asyncio.create_task(bot.run())
            if len(found) == 2 and cs.CHALLENGE_STATE_OPEN not in {one.state for one in found.values()}:
                break
        answers = sorted((one.state, one.decline_reason) for one in found.values())
        accepted = (cs.CHALLENGE_STATE_ACCEPTED, cs.DECLINE_REASON_UNSPECIFIED)
        assert answers == [accepted, (cs.CHALLENGE_STATE_DECLINED, cs.DECLINE_REASON_LATER)]
        assert running
        running.cancel()


async def test_a_bot_counts_no_game_that_it_was_removed_from(tmp_path: Path) -> None:
    async with with_tickets(tmp_path) as client:
        seats = [gs.SeatReservation(seat=2, player_ref="deep", name="deep")]
        created = await client.games.CreateGame(gs.CreateGameRequest(reserved_seats=seats, request_id=new_id()))
        game_id, tickets = created.game.game_id, itertools.count()
        bot = Suggested(client, lambda: signed("deep", name="deep", jti=str(next(tickets))), games_max=1)
        running = asyncio.create_task(bot.run())
        async for lobby in client.watch_games(game_id):
            if lobby.players:
                break
        kick = gs.KickPlayerRequest(game_id=game_id, seat=2, request_id=new_id())
        await client.seated(created.host_token).games.KickPlayer(kick)
        proposal = cs.ChallengePlayerRequest(join_ticket=signed("ann", name="Ann"), player_ref="deep")
        await client.challenges.ChallengePlayer(proposal)
        own = rummikub.WatchOwnGamesRequest(join_ticket=signed("ann"))
        async for update in client.games.WatchOwnGames(own):
            if update.HasField("game"):  # the challenge is accepted
                break
        running.cancel()


class Updates:
    """Answers as a service whose stream has an update of a game, and the next one about when the last one is handled.

    Args:
        steps: How many steps of the loop after the next update its handling takes longer.
    """

    target = "of-the-test"

    def __init__(self, steps: int) -> None:
        self.games = self.turns = self
        self.handled = 0
        self._steps = steps
        self._next = asyncio.Event()
        self._next.set()

    def seated(self, _token: str) -> "Updates":
        """Returns the connection of a seat."""
        return self

    def WatchOwnGames(self, _request: object, *, wait_for_ready: bool) -> "Updates":  # noqa: N802, ARG002 - as the stub
        """Returns the stream."""
        return self

    async def read(self) -> gs.WatchOwnGamesResponse:
        """Returns the next update."""
        await self._next.wait()
        self._next.clear()
        game = rummikub.GameSummary(state=rummikub.GAME_STATE_PLAYING, turn_seat=1)
        return gs.WatchOwnGamesResponse(game=gs.OwnGame(game_id="g", seat=1, game=game))

    def cancel(self) -> None:
        """Ends the stream."""

    async def ReturnToSeat(self, _request: object) -> None:  # noqa: N802 - as the stub
        """Does nothing."""

    async def GetGame(self, _request: object) -> gs.GetGameResponse:  # noqa: N802 - as the stub
        """Returns a game in which there is nothing to do."""
        self.handled += 1
        self._next.set()
        for _ in range(self._steps):
            await asyncio.sleep(0)
        return gs.GetGameResponse(game=rummikub.Game(state=rummikub.GAME_STATE_LOBBY))


@pytest.mark.parametrize("steps", range(8))
async def test_a_bot_handles_an_update_that_comes_as_it_ends_the_one_before(steps: int) -> None:
    updates = Updates(steps)
    bot = Suggested(updates)  # type: ignore[arg-type]  # what it uses of a client
    bot.add("g", "token")
    running = asyncio.create_task(bot.run())
    for _ in range(300):
        await asyncio.sleep(0)
    bot.stop()
    await running
    assert updates.handled > 5, "it has missed an update, and waits for ever"


class LastGame(Updates):
    """Answers as a service whose stream has the end of a game, and heartbeats."""

    async def read(self) -> gs.WatchOwnGamesResponse:
        """Returns the next update."""
        await asyncio.sleep(0)
        game = rummikub.GameSummary(state=rummikub.GAME_STATE_FINISHED)
        return gs.WatchOwnGamesResponse(game=gs.OwnGame(game_id="g", seat=1, game=game, winner_seats=[1]))


async def test_a_bot_without_tickets_ends_after_what_it_does_at_the_end_of_its_last_game() -> None:
    done = []

    class Slow(Suggested):
        async def over(self, game_id: str, _game: rummikub.GameSummary, *, won: bool) -> None:
            await asyncio.sleep(2 * FIRST_DELAY_SECONDS)  # longer than the bot waits for its next stream
            done.append((game_id, won))

    bot = Slow(LastGame(0))  # type: ignore[arg-type]  # what it uses of a client
    bot.add("g", "token")
    async with asyncio.timeout(30):
        await bot.run()
    assert done == [("g", True)]
