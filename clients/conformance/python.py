"""Checks the Python client against a live server; README.md in this folder describes the checks.

Usage: python.py --target host:port --validation host:port --wire path/to/wire.json --games id:token,... [--aio]
"""

import argparse
import asyncio
import itertools
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict
from proxy import Proxy

import rummikub

CHECKS = (
    "wire",
    "batch",
    "stream",
    "refusal",
    "game",
    "turns",
    "rules",
    "names",
    "unknown",
    "deadline",
    "retry",
    "watches",
)
NAMES = ("Zoë", "李雷", "שלום", "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}")
CUTS = (1, 2)
"""In which turns of the person the watch is cut: then no change can have been received ahead."""
ROUNDS = 3
"""How many rounds are tried: about one in 600 ends before the person's second turn."""
UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WATCHES = 150
BATCH = 100
"""The server's maximum of turns in a batch."""


class Blocking:
    """aio.Rummikub with the surface of the client for threads, so that the same checks show both."""

    loop = asyncio.new_event_loop()

    def __init__(self, target: str, client: rummikub.aio.Rummikub | None = None) -> None:
        self.target = target
        self.client = client or self.run(self._connected(target))

    @classmethod
    def run(cls, coroutine: Any) -> Any:  # noqa: ANN401 - what the coroutine returns
        return asyncio.run_coroutine_threadsafe(coroutine, cls.loop).result()

    async def _connected(self, target: str) -> rummikub.aio.Rummikub:
        return rummikub.aio.Rummikub(target)

    def __getattr__(self, name: str) -> "BlockingStub":
        return BlockingStub(getattr(self.client, name))

    def seated(self, token: str) -> "Blocking":
        return Blocking(self.target, self.client.seated(token))

    def watch(self, game_id: str, **named: Any) -> Iterator[rummikub.WatchGameResponse]:  # noqa: ANN401 - as Rummikub.watch
        async def begun() -> rummikub.aio.Watch:
            return self.client.watch(game_id, **named)

        watch = self.run(begun())
        while (update := self.run(anext(watch, None))) is not None:
            yield update

    def watch_games(self, game_id: str) -> Iterator[rummikub.Game]:
        games = self.client.watch_games(game_id)
        while (game := self.run(anext(games, None))) is not None:
            yield game

    def close(self) -> None:
        self.run(self.client.close())


class BlockingStub:
    """A stub of the client for asyncio with blocking calls."""

    def __init__(self, stub: Any) -> None:  # noqa: ANN401 - any of the stubs
        self._stub = stub

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(request: Any, **named: Any) -> Any:  # noqa: ANN401 - any request
            call = getattr(self._stub, name)(request, **named)
            return [message async for message in call] if name == "StreamValidateTurns" else await call

        return lambda request, **named: Blocking.run(answer(request, **named))


class Checks:
    """The checks: public methods without arguments, which raise AssertionError."""

    def __init__(
        self, connect: Callable[[str], Any], target: str, validation: str, wire: Path, games: Sequence[str]
    ) -> None:
        self._games = games
        self._connect = connect
        self._target = target
        self._service = connect(target)
        self._validation = connect(validation).validation
        self._calls = json.loads(wire.read_text(encoding="utf-8"))["calls"]

    def wire(self) -> None:
        for call in self._calls:
            name = call["rpc"].rpartition("/")[2]
            request = ParseDict(call["request"], getattr(rummikub, f"{name}Request")())
            if "response" in call:
                answer = getattr(self._validation, name)(request)
                equal(call["id"], answer, ParseDict(call["response"], type(answer)()))
            else:
                error = refused(getattr(self._validation, name), request)
                equal(call["id"], error.code().name, call["error"]["code"])
                equal(call["id"], rummikub.refusal(error), ParseDict(call["error"]["refusal"], rummikub.Refusal()))

    def batch(self) -> None:
        turns = sorted(self._turns(), key=lambda turn: turn[1].ruleset.SerializeToString(deterministic=True))
        for _, group in itertools.groupby(turns, key=lambda turn: turn[1].ruleset):
            same = list(group)
            for first in range(0, len(same), BATCH):
                part = same[first : first + BATCH]
                request = rummikub.BatchValidateTurnsRequest(turns=[turn for _, turn, _ in part])
                answers = self._validation.BatchValidateTurns(request).turns
                equal("answers of a batch", len(answers), len(part))
                for (name, _, expected), answer in zip(part, answers, strict=True):
                    equal(name, answer, expected)

    def stream(self) -> None:
        turns = self._turns()
        requests = [rummikub.StreamValidateTurnsRequest(turn=turn, correlation_id=name[:64]) for name, turn, _ in turns]
        answers = list(self._validation.StreamValidateTurns(iter(requests)))
        equal("answers of a stream", len(answers), len(turns))
        for (name, _, expected), answer in zip(turns, answers, strict=True):
            equal("the correlation id", answer.correlation_id, name[:64])
            equal(name, answer.turn, expected)

    def refusal(self) -> None:
        game, seats = self._started()
        turn = rummikub.play(game, rummikub.melds("[R1 R2]"))
        found = {one.reason: one for one in rummikub.violations(refused(seats[game.turn.seat].turns.PlayTurn, turn))}
        short = found[rummikub.MELD_TOO_SHORT]
        equal("tiles", list(short.tiles), rummikub.tiles("R1 R2"))
        equal("subject", short.subject, "play.table[0]")
        error = refused(seats[3 - game.turn.seat].turns.PlayTurn, turn)
        equal("reason", rummikub.refusal(error).reason, rummikub.NOT_YOUR_TURN)
        equal("metadata", dict(rummikub.refusal(error).metadata), {"seat": str(game.turn.seat)})
        below, table = rummikub.tiles("R1 R2 R3"), rummikub.Table(melds=rummikub.melds("[R1 R2 R3]"))
        judged = self._validation.ValidateTurn(
            rummikub.ValidateTurnRequest(has_melded=False, rack=below, table_after=table)
        )
        [violation] = judged.violations
        equal("reason", violation.reason, rummikub.INITIAL_MELD_BELOW_THRESHOLD)
        equal("metadata", dict(violation.metadata), {"total": 6, "threshold": 30})
        read = rummikub.GetGameRequest(game_id=game.game_id)
        self._explained(refused(self._service.seated("no token").games.GetGame, read), "seated()")
        self._explained(
            refused(self._service.seated("A" * 43).games.GetGame, read), "use the token that replaced it, or join again"
        )
        unknown = rummikub.GetGameRequest(game_id="0" * 32)
        self._explained(refused(self._service.games.GetGame, unknown), "check the game's id")
        absent = self._connect("127.0.0.1:1")
        error = refused(absent.games.GetGame, unknown, timeout=1)
        self._explained(error, "no service answers at 127.0.0.1:1", absent.target)
        self._explained(error, "`make run`", absent.target)

    def game(self) -> None:
        equal("a round was long enough to be cut twice", any(self._was_cut_twice() for _ in range(ROUNDS)), True)  # noqa: FBT003

    def _was_cut_twice(self) -> bool:
        """Plays a round whose watch is cut in the person's first two turns; returns whether it had two."""
        with Proxy(self._target) as proxy:
            service = self._connect(proxy.target)
            created = service.games.CreateGame(rummikub.CreateGameRequest())
            game_id, host = created.game.game_id, service.seated(created.host_token)
            joined = host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann"))
            ann = service.seated(joined.seat_token)
            for level in (rummikub.BOT_LEVEL_EASY, rummikub.BOT_LEVEL_MEDIUM, rummikub.BOT_LEVEL_HARD):
                ann.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=level))
            watch = ann.watch(game_id, content=rummikub.WATCH_CONTENT_BOTH)
            view = next(watch).snapshot
            ann.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
            turns = 0
            changed_to = view.revision
            for update in watch:
                if update.HasField("change"):
                    equal("the next revision", update.change.revision, changed_to + 1)
                    changed_to = update.change.revision
                elif update.HasField("game"):
                    view = update.game
                    if view.turn.seat == joined.seat:
                        turns += 1
                        if turns in CUTS:
                            proxy.cut()
                        take_turn(ann, game_id)
            truth = self._connect(self._target).seated(joined.seat_token)
            final = truth.games.GetGame(rummikub.GetGameRequest(game_id=game_id)).game
            equal("the revision", changed_to, final.revision)
            equal("the last view", of_the_rules(view), of_the_rules(final))
            if turns < CUTS[-1]:
                return False
            equal("the watch reconnected", proxy.connections > len(CUTS), True)  # noqa: FBT003
            return True

    def rules(self) -> None:
        created = self._service.games.CreateGame(rummikub.CreateGameRequest(labels={"mode": "conformance"})).game
        names = iter(("Ann", "Bob"))
        for game in self._service.watch_games(created.game_id):
            equal("the ruleset", game.ruleset, created.ruleset)
            equal("the settings", game.settings, created.settings)
            equal("the visibility", game.visibility, created.visibility)
            equal("the labels", game.labels, created.labels)
            name = next(names, None)
            if name is None:
                return
            self._service.games.JoinGame(rummikub.JoinGameRequest(game_id=created.game_id, name=name))

    def turns(self) -> None:
        with ThreadPoolExecutor(len(self._games)) as threads:
            list(threads.map(self._play, self._games))

    def _play(self, game: str) -> None:
        """Plays a game to its end with suggested turns."""
        game_id, token = game.split(":")
        person = self._service.seated(token)
        for view in person.watch_games(game_id):
            if view.turn.seat == view.seat:
                take_turn(person, game_id)
            elif view.state == rummikub.GAME_STATE_ROUND_OVER:
                person.turns.StartNextRound(rummikub.StartNextRoundRequest(game_id=game_id))

    def names(self) -> None:
        rules = rummikub.MeldingRuleset(deal=rummikub.DealOptions(players_max=len(NAMES)))
        ruleset = rummikub.Ruleset(melding=rules)
        game = self._service.games.CreateGame(rummikub.CreateGameRequest(ruleset=ruleset)).game
        for name in NAMES:
            game = self._service.games.JoinGame(rummikub.JoinGameRequest(game_id=game.game_id, name=name)).game
        equal("names", [player.name for player in game.players], list(NAMES))

    def unknown(self) -> None:
        game = self._service.games.CreateGame(rummikub.CreateGameRequest()).game
        state = rummikub.Game.DESCRIPTOR.fields_by_name["state"].number
        newer = game.SerializeToString() + varint(state << 3) + varint(9999) + varint(1000 << 3) + varint(1)
        parsed = rummikub.Game.FromString(newer)
        equal("the unknown state", int(parsed.state), 9999)
        equal("what follows the unknown", parsed.SerializeToString().endswith(varint(1000 << 3) + varint(1)), True)  # noqa: FBT003
        equal("a known field", parsed.game_id, game.game_id)
        equal("an unknown tile", rummikub.tile_name(rummikub.Tile.ValueType(99)), "?99")
        for index, sent in ((None, False), (0, True)):
            play = rummikub.PlayTiles.FromString(rummikub.PlayTiles(river_index=index).SerializeToString())
            equal("presence of river_index", play.HasField("river_index"), sent)

    def deadline(self) -> None:
        with Proxy(self._target) as proxy:
            proxy.forwards = False
            service = self._connect(proxy.target)
            error = refused(service.games.CreateGame, rummikub.CreateGameRequest(), timeout=0.2)
            service.close()
        equal("code", error.code().name, "DEADLINE_EXCEEDED")

    def retry(self) -> None:
        request = rummikub.CreateGameRequest(request_id=rummikub.new_request_id())
        first, second = (self._service.games.CreateGame(request) for _ in range(2))
        equal("the game", second.game.game_id, first.game.game_id)
        equal("the host token", second.host_token, first.host_token)
        join = rummikub.JoinGameRequest(game_id=first.game.game_id, name="Ann", request_id=rummikub.new_request_id())
        one, other = (self._service.games.JoinGame(join) for _ in range(2))
        equal("the seat", (other.seat, other.seat_token), (one.seat, one.seat_token))
        with Proxy(self._target) as proxy:
            service = self._connect(proxy.target)
            service.games.CreateGame(rummikub.CreateGameRequest())
            equal("filled in request ids", len(UUID.findall(proxy.sent)), 1)
            service.close()

    def watches(self) -> None:
        service = self._connect(self._target)
        game = service.games.CreateGame(rummikub.CreateGameRequest()).game
        watches = [service.watch(game.game_id) for _ in range(WATCHES)]
        for watch in watches:
            equal("the first update", next(watch).snapshot.game_id, game.game_id)
        answer = service.games.GetGame(rummikub.GetGameRequest(game_id=game.game_id))
        equal("the game", answer.game.game_id, game.game_id)
        service.close()

    def _turns(self) -> list[tuple[str, rummikub.ValidateTurnRequest, rummikub.ValidateTurnResponse]]:
        """Returns the ids, requests and responses of the ValidateTurn calls."""
        return [
            (
                call["id"],
                ParseDict(call["request"], rummikub.ValidateTurnRequest()),
                ParseDict(call["response"], rummikub.ValidateTurnResponse()),
            )
            for call in self._calls
            if call["rpc"].endswith("/ValidateTurn") and "response" in call
        ]

    def _started(self) -> tuple[rummikub.Game, dict[int, Any]]:
        """Returns a game of two people that has started, and their clients by seat."""
        created = self._service.games.CreateGame(rummikub.CreateGameRequest())
        game_id, host = created.game.game_id, self._service.seated(created.host_token)
        joined = [host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann"))]
        joined.append(self._service.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Bob")))
        game = host.games.StartGame(rummikub.StartGameRequest(game_id=game_id)).game
        return game, {seat.seat: self._service.seated(seat.seat_token) for seat in joined}

    def _explained(self, error: grpc.RpcError, advice: str, target: str = "") -> None:
        text = rummikub.explain(error, target)
        equal(f"{advice!r} in {text!r}", advice in text, True)  # noqa: FBT003


def take_turn(person: Any, game_id: str) -> None:  # noqa: ANN401 - either client
    """Takes the suggested turn."""
    person.turns.PlayTurn(person.analysis.SuggestTurn(rummikub.SuggestTurnRequest(game_id=game_id)).turn)


def of_the_rules(game: rummikub.Game) -> rummikub.Game:
    """Returns a game without what belongs to no revision: the time of the answer, presence and join code."""
    bare = rummikub.Game()
    bare.CopyFrom(game)
    bare.ClearField("server_time")
    bare.ClearField("join_code")
    for player in bare.players:
        player.ClearField("is_connected")
        player.ClearField("last_seen_time")
    return bare


def varint(number: int) -> bytes:
    """Returns a number as protobuf encodes it."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def refused(call: Callable[..., Any], request: Any, **named: Any) -> grpc.RpcError:  # noqa: ANN401 - any RPC
    """Returns the error of a call."""
    try:
        answer = call(request, **named)
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"not refused: {answer}")


def equal(name: str, found: object, expected: object) -> None:
    """Raises AssertionError if two values differ."""
    if found != expected:
        raise AssertionError(f"{name}: {found} instead of {expected}")


def main() -> None:
    """Runs the checks and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--target", "--validation", "--wire", "--games"):
        parser.add_argument(name, required=True)
    parser.add_argument("--aio", action="store_true", help="check aio.Rummikub instead of Rummikub")
    arguments = parser.parse_args()
    threading.Thread(target=Blocking.loop.run_forever, daemon=True).start()
    connect = Blocking if arguments.aio else rummikub.Rummikub
    games = arguments.games.split(",")
    checks = Checks(connect, arguments.target, arguments.validation, Path(arguments.wire), games)
    is_good = True
    for name in CHECKS:
        began = time.monotonic()
        try:
            getattr(checks, name)()
            verdict, text = "PASS", ""
        except (AssertionError, grpc.RpcError) as error:
            told = rummikub.explain(error) if isinstance(error, grpc.RpcError) else str(error)
            verdict, text, is_good = "FAIL", " " + " ".join(told.split()), False
        print(f"{verdict} {name} {time.monotonic() - began:.2f}{text}", flush=True)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
