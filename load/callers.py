"""Who may do what: the answer of every RPC to every kind of caller, compared with tests/service/grpc_api/callers.toml.

Usage: python -m load.callers [--accept]

Writes the figures into docs/reliability.md. A new RPC has to enter the table: `--accept` writes the answers as they
are; review what changed as permissions. Tokens, keys and tickets are looked for in errors, logs, metrics and spans.
"""

import argparse
import asyncio
import hashlib
import io
import json
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import grpc.aio
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest

from engine.game import Game, Lobby, Phase, Playing, RoundOver
from engine.melding.round import MeldingRound
from engine.melding.ruleset import SABRA
from engine.room_settings import Hints, Spectators
from engine.seats import Player, Rack, Turn
from load.bench.figures import Tables, are_met, print_report, printer, requirement, run_facts, told_of_run
from load.hidden.stage import logging_to, tracing_to
from load.pages import text_of, write
from rummikub.admin.v1 import admin_service_pb2
from rummikub.v1 import challenge_service_pb2 as cs
from rummikub.v1 import game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.codec.fields import encode_etag
from service.runtime.keys import HEADER
from service.server import Server
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    bearer,
    client_with_key,
    error_info,
    keys_file,
    memory_store,
    new_id,
    put_game,
    running_server,
    server_settings,
)
from support.join_tickets import ENTRY, signed
from support.rooms import parts, room
from support.rpcs import METHODS, MUTATING, WITH_TICKET, names_a_game, send_raw, usual_request
from tools.servers import ROOT

TABLE: Final = ROOT / "tests" / "service" / "grpc_api" / "callers.toml"
PAGE: Final = "reliability.md"
COMMAND: Final = "make callers"
GRANTED: Final = "OK"
OPERATOR_TOKEN: Final = "the-token-of-the-operator"  # noqa: S105 - of this test
ADMIN: Final = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
ALL_RIGHTS: Final = f"{ENTRY}\nposition_searches = true\nreissue_seat_tokens = true"
OF_LABELS: Final = f'{ENTRY}\nticket_audience = "web"\nlabels = '
ENTRIES: Final = {
    "web": ALL_RIGHTS,
    "partner": ALL_RIGHTS,
    "plain": "",
    "league": f'{OF_LABELS}["league"]',
    "region": f'{OF_LABELS}["region"]',
}
"""The keys of the server."""
LABELS: Final = {"league": "a"}

OF_THE_LOBBY: Final = {"JoinGame", "AddBot", "LeaveGame", "KickPlayer", "SetReady", "StartGame"}
AFTER_A_ROUND: Final = {"StartNextRound"}
AFTER_THE_GAME: Final = {"CreateRematch", "ExportGame", "ReviewGame"}
ON_A_CHALLENGE: Final = {"AcceptChallenge", "DeclineChallenge", "CancelChallenge"}
PLAYERS: Final = (Player(1, "Ada", is_host=True), Player(2, "Ben"))

Metadata = tuple[tuple[str, str], ...]
Table = Mapping[str, Mapping[str, list[str]]]
"""The kinds of callers by RPC and answer."""


@dataclass(frozen=True)
class Scene:
    """A server whose callers have keys, and what is behind it.

    Attributes:
        client: A client without a key.
        web: A client with the key of the games.
        store: The store.
        clock: Its clock.
        server: The server.
        log: What it logs at info.
        spans: What it traces.
        secrets: The tokens, keys and tickets that were sent or returned.
        shown: The statuses that have a secret, by RPC.
    """

    client: Client
    web: Client
    store: Store
    clock: FakeClock
    server: Server
    log: io.BytesIO
    spans: InMemorySpanExporter
    secrets: set[str] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)

    def note(self, texts: Iterator[str] | list[str]) -> None:
        """Notes secrets; shorter texts are none."""
        self.secrets.update(text for text in texts if len(text) >= len(OPERATOR_TOKEN))

    def leaks(self) -> list[str]:
        """Returns where a secret shows: RPCs whose errors have one, the log, metrics, spans."""
        places = {
            "the log": self.log.getvalue().decode(),
            "metrics": generate_latest(self.server.metrics.registry).decode(),
            "spans": "".join(span.to_json() for span in self.spans.get_finished_spans()),
        }
        for place, text in places.items():
            if "PlayTurn" not in text:
                raise RuntimeError(f"{place}: nothing of the calls is there")
        return [*self.shown, *(place for place, text in places.items() if any(one in text for one in self.secrets))]


def key_of(name: str) -> str:
    """Returns the key of an entry of the keys file, 32 characters; empty for no name."""
    return hashlib.sha256(f"the key of {name}".encode()).hexdigest()[:32] if name else ""


def game_for(rpc: str, **settings: Any) -> Game:  # noqa: ANN401 - each setting has a type of its own
    """Returns a game in the phase in which an RPC is usual. Seat 1 is to move, and is the host."""
    tiles = SABRA.tiles(2)
    racks = (Rack(1, tiles[:14], has_melded=True), Rack(2, tiles[14:28], has_melded=True))
    round_ = MeldingRound(1, (1, 2), (), racks, tiles[28:], Turn(1, None))
    phase: Phase = Playing(round_)
    if rpc in OF_THE_LOBBY:
        phase = Lobby()
    elif rpc in AFTER_A_ROUND:
        phase = RoundOver(round_)
    return Game(*parts(room(SABRA, hints=Hints.TURN, **settings)), 1, PLAYERS, phase)


@dataclass(frozen=True)
class Caller:
    """A kind of caller.

    Attributes:
        sends: Returns the metadata of a call on a game, apart from the key.
        key: The key that is sent; empty for none.
        settings: Settings of the game.
        before: What happens before the call. It returns metadata in place of that of `sends`, or None.
        arrange: Makes another game than the usual one of the RPC.
        ticket: Returns the ticket that is sent, given the person whom the call is for; None for callers without.
        has_label: Whether the request has a label.
    """

    sends: Callable[[GameAtHand], Metadata] = lambda game: game.as_seat(1)
    key: str = "web"
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Scene, GameAtHand], Awaitable[Metadata | None]] | None = None
    arrange: Callable[[Scene, str], Awaitable[GameAtHand]] | None = None
    ticket: Callable[[str], str] | None = None
    has_label: bool = False


async def _of_another_game(scene: Scene, _game: GameAtHand) -> Metadata:
    three = replace(game_for("JoinGame"), players=(*PLAYERS, Player(3, "Cleo")))
    return (await put_game(scene.client, scene.store, three, scene.clock(), key="web")).as_seat(3)


async def _renewed(scene: Scene, game: GameAtHand) -> Metadata:
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    return bearer((await scene.web.games.RenewSeatToken(request, metadata=game.as_seat(1))).seat_token)


async def _replaced(scene: Scene, game: GameAtHand) -> Metadata:
    await _renewed(scene, game)
    return game.as_seat(1)


async def _expired(scene: Scene, game: GameAtHand) -> None:
    await scene.store.games.delete(game.game_id)


async def _stored(scene: Scene, game: Game) -> GameAtHand:
    return await put_game(scene.client, scene.store, game, scene.clock(), key="web")


async def _with_kicked(scene: Scene, _rpc: str) -> GameAtHand:
    """Returns a lobby from which Cleo was kicked, with the token that she had as that of seat 3."""
    game = await scene.web.new_game(start=False)
    ticket = ticket_of("cleo")
    joined = await scene.web.games.JoinGame(
        gs.JoinGameRequest(game_id=game.game_id, join_ticket=ticket, request_id=new_id())
    )
    game.tokens[3] = joined.seat_token
    kick = gs.KickPlayerRequest(game_id=game.game_id, seat=joined.seat, request_id=new_id())
    await scene.web.games.KickPlayer(kick, metadata=game.as_host())
    return game


async def _with_bot(scene: Scene, rpc: str) -> GameAtHand:
    """Returns the same lobby with a bot at the seat."""
    game = await _with_kicked(scene, rpc)
    add = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY, request_id=new_id())
    if (await scene.web.games.AddBot(add, metadata=game.as_host())).game.players[-1].seat != 3:
        raise RuntimeError("the bot has another seat")
    return game


async def _with_program(scene: Scene, rpc: str) -> GameAtHand:
    if rpc in AFTER_THE_GAME:
        return await _finished(scene, Spectators.ALLOWED, with_program=True)
    players = (PLAYERS[0], replace(PLAYERS[1], is_program=True))
    return await _stored(scene, replace(game_for(rpc), players=players))


async def _reserved(scene: Scene, _rpc: str) -> GameAtHand:
    """Returns a lobby whose seats are reserved for others than the caller."""
    names = enumerate(("Ada", "Ben", "Cleo", "Eve"), 1)
    seats = [gs.SeatReservation(seat=seat, name=name, player_ref=name.lower()) for seat, name in names]
    created = await scene.web.games.CreateGame(gs.CreateGameRequest(reserved_seats=seats, request_id=new_id()))
    return GameAtHand(scene.client, created.game.game_id, host_token=created.host_token)


async def _finished(scene: Scene, spectators: Spectators, *, with_program: bool = False) -> GameAtHand:
    """Returns a game with a turn that was aborted."""
    settings = room_settings_pb2.RoomSettings(spectators=getattr(room_settings_pb2, f"SPECTATORS_{spectators.name}"))
    game = await scene.web.new_game(players=1, start=False, settings=settings)
    join = gs.JoinGameRequest(game_id=game.game_id, name="Ben", is_program=with_program, request_id=new_id())
    game.tokens[2] = (await scene.web.games.JoinGame(join)).seat_token
    await game.start()
    seat = (await game.see(1)).turn.seat
    draw = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, draw=ts.DrawTile(), request_id=new_id())
    await scene.web.turns.PlayTurn(draw, metadata=game.as_seat(seat))
    abort = gs.AbortGameRequest(game_id=game.game_id, request_id=new_id())
    await scene.web.games.AbortGame(abort, metadata=game.as_host())
    return game


async def _challenged(scene: Scene) -> tuple[str, str, str]:
    """Returns the id of a new challenge, who made it and to whom."""
    number = new_id()[:8]
    maker, other = f"ada {number}", f"ben {number}"
    request = cs.ChallengePlayerRequest(join_ticket=ticket_of(maker), player_ref=other, request_id=new_id())
    return (await scene.web.challenges.ChallengePlayer(request)).challenge.challenge_id, maker, other


def ticket_of(ref: str, **claims: Any) -> str:  # noqa: ANN401 - each claim has a type of its own
    """Returns a new ticket of a person."""
    return signed(ref, name=ref.title(), jti=new_id(), **claims)


CALLERS: Final[Mapping[str, Caller]] = {
    "the seat to move, the host": Caller(),
    "another seat": Caller(lambda game: game.as_seat(2)),
    "the host token": Caller(GameAtHand.as_host),
    "no token": Caller(lambda _: ()),
    "no token, no spectators": Caller(lambda _: (), settings={"spectators": Spectators.OFF}),
    "a malformed token": Caller(lambda _: bearer("x")),
    "two tokens": Caller(lambda game: game.as_seat(1) * 2),
    "a token of no seat": Caller(lambda _: bearer("s" * 43)),
    "a token of another game": Caller(before=_of_another_game),
    "a renewed token": Caller(before=_renewed),
    "a token before its renewal": Caller(before=_replaced),
    "a token of an expired game": Caller(before=_expired),
    "a kicked player": Caller(lambda game: game.as_seat(3), arrange=_with_kicked),
    "who had the seat of a bot": Caller(lambda game: game.as_seat(3), arrange=_with_bot),
    "the seat of a program": Caller(lambda game: game.as_seat(2), arrange=_with_program),
    "another key": Caller(key="partner"),
    "another key without rights": Caller(key="plain"),
    "an unknown key": Caller(key="none"),
    "no key": Caller(key=""),
    "a key with the label": Caller(lambda _: (), key="league", has_label=True),
    "a key with another label": Caller(lambda _: (), key="region", has_label=True),
    "a ticket": Caller(lambda _: (), ticket=ticket_of),
    "a ticket of another person": Caller(lambda _: (), arrange=_reserved, ticket=lambda _: ticket_of("dora")),
    "a ticket of a kicked player": Caller(lambda _: (), arrange=_with_kicked, ticket=lambda _: ticket_of("cleo")),
    "a ticket of another game": Caller(lambda _: (), ticket=lambda ref: ticket_of(ref, game_id="0" * 32)),
    "a ticket of another seat": Caller(lambda _: (), ticket=lambda ref: ticket_of(ref, seat=2)),
    "an expired ticket": Caller(lambda _: (), ticket=lambda ref: ticket_of(ref, seconds=-60)),
    "a ticket of another key": Caller(lambda _: (), key="partner", ticket=ticket_of),
}


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Scene]:
    """Runs a server whose callers have keys; the operator's token is OPERATOR_TOKEN."""
    token = folder / "token"
    token.write_text(OPERATOR_TOKEN)
    clock, log, spans = FakeClock(), io.BytesIO(), InMemorySpanExporter()
    store = memory_store(clock, log_ms=1_000)
    settings = server_settings(
        keys_file=keys_file(folder, key_of, **ENTRIES),
        admin_listen="127.0.0.1:0",
        admin_token_file=token,
        sweep_seconds=3_600,
        heartbeat_seconds=0.05,
        games_per_minute=0,
    )
    with logging_to(log):
        async with (
            running_server(store, settings, tracing=tracing_to(spans)) as (server, client),
            client_with_key(server.port, key_of("web")) as web,
        ):
            scene = Scene(client, web, store, clock, server, log, spans)
            scene.note([*map(key_of, ENTRIES)])
            yield scene


async def answer_to(scene: Scene, rpc: str, caller: Caller) -> str | None:
    """Returns GRANTED or the reason of the refusal of an RPC to a caller; None if the RPC takes no such credential."""
    known = METHODS[rpc].input_type.fields_by_name
    if (caller.ticket and "join_ticket" not in known) or (caller.has_label and "labels" not in known):
        return None
    if caller.before in {_renewed, _replaced} and rpc in AFTER_THE_GAME:  # tokens of a game that is over stay
        return None
    game = await _game(scene, rpc, caller)
    metadata = caller.sends(game)
    if caller.before:
        metadata = await caller.before(scene, game) or metadata
    request = await _request(scene, rpc, caller, game, metadata)
    if caller.key:
        metadata += ((HEADER, key_of(caller.key)),)
    return await answer(scene, METHODS[rpc], request, metadata)


async def _game(scene: Scene, rpc: str, caller: Caller) -> GameAtHand:
    if caller.arrange:
        return await caller.arrange(scene, rpc)
    if rpc in AFTER_THE_GAME:
        return await _finished(scene, caller.settings.get("spectators", Spectators.ALLOWED))
    return await _stored(scene, game_for(rpc, **caller.settings))


async def _request(scene: Scene, rpc: str, caller: Caller, game: GameAtHand, metadata: Metadata) -> Message:
    now = (await scene.store.games.load(game.game_id)).record
    request: Any = usual_request(rpc, game.game_id, encode_etag(now.game.revision, now.etag) if now else game.etag)
    fields = request.DESCRIPTOR.fields_by_name
    person = await _person(scene, rpc, request)
    if "game_id" in fields and not names_a_game(rpc):  # a search, or a review, of a game
        request.Clear()
        request.game_id = game.game_id
    if "seats" in fields:
        request.ClearField("seats")
        if not caller.ticket:
            request.seats.add(game_id=game.game_id, seat_token=_token(metadata))
    if caller.ticket:
        request.join_ticket = caller.ticket(person)
        if "name" in fields:
            request.ClearField("name")
    elif rpc in WITH_TICKET:  # it takes no other credential; that of another key is for that key
        request.join_ticket = ticket_of(person, aud="partner" if caller.key == "partner" else "web")
    if caller.has_label:
        request.labels.update(LABELS)
    if rpc in MUTATING:
        request.request_id = new_id()
    message: Message = request
    return message


async def _person(scene: Scene, rpc: str, request: Any) -> str:  # noqa: ANN401 - of any RPC
    """Returns the person who may send a request, after naming a new challenge or another player in it."""
    if rpc == "ChallengePlayer":
        request.player_ref = new_id()
    if rpc not in ON_A_CHALLENGE:
        return "cleo"
    request.challenge_id, maker, other = await _challenged(scene)
    return maker if rpc == "CancelChallenge" else other


def _token(metadata: Metadata) -> str:
    return metadata[0][1].removeprefix("Bearer ") if metadata else ""


async def answer(scene: Scene, method: MethodDescriptor, request: Message, metadata: Metadata) -> str:
    """Returns the reason of a refusal, or GRANTED for an answer; notes the secrets of both sides."""
    scene.note([_shown(value) for _, value in metadata])
    scene.note(_secrets_in(request))
    try:
        async with asyncio.timeout(60):
            data = await send_raw(scene.client, method, request.SerializeToString(), metadata)
    except grpc.aio.AioRpcError as error:
        refusal = error
    else:
        scene.note(_secrets_in(message_factory.GetMessageClass(method.output_type).FromString(data)))
        return GRANTED
    if refusal.code() in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}:
        raise RuntimeError(f"{method.name}: {refusal}")
    status = f"{refusal.details()} {refusal.trailing_metadata()}"
    scene.shown.extend(f"the error of {method.name}" for secret in scene.secrets if secret in status)
    return str(error_info(refusal).reason)


def _shown(value: str) -> str:
    return value.removeprefix("Bearer ")


def _secrets_in(message: Message) -> Iterator[str]:
    """Yields the tokens and tickets in the fields of a message itself."""
    for one, value in message.ListFields():
        if isinstance(value, str) and one.name.endswith(("token", "ticket")) and not one.name.endswith("page_token"):
            yield value


OPERATORS: Final[Mapping[str, Metadata]] = {
    "the operator's token": bearer(OPERATOR_TOKEN),
    "no token": (),
    "a malformed token": bearer("x"),
    "another token": bearer("t" * 43),
    "a seat's token": bearer("1" * 43),
    "a key in place of the token": ((HEADER, key_of("web")),),
    "the operator's token and a key": (*bearer(OPERATOR_TOKEN), (HEADER, key_of("web"))),
}


async def answer_to_operator(scene: Scene, rpc: str, metadata: Metadata) -> str:
    """Returns the same of an RPC of AdminService."""
    method = ADMIN.methods_by_name[rpc]
    game = await _stored(scene, game_for("JoinGame"))
    request: Any = message_factory.GetMessageClass(method.input_type)()
    given: dict[str, object] = {"game_id": game.game_id, "seat": 2, "player_ref": "ada", "request_id": new_id()}
    for name in given.keys() & request.DESCRIPTOR.fields_by_name.keys():
        setattr(request, name, given[name])
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.server.admin_port}") as channel:
        return await answer(replace(scene, client=Client(channel)), method, request, metadata)


async def answers(scene: Scene) -> Table:
    """Returns the kinds of callers by RPC and answer."""
    table: dict[str, dict[str, list[str]]] = {}
    for rpc in METHODS:
        row = defaultdict(list)
        for name, caller in CALLERS.items():
            answer = await answer_to(scene, rpc, caller)
            if answer is not None:
                row[answer].append(name)
        table[rpc] = dict(row)
    for method in ADMIN.methods:
        row = defaultdict(list)
        for name, metadata in OPERATORS.items():
            row[await answer_to_operator(scene, method.name, metadata)].append(name)
        table[f"AdminService.{method.name}"] = dict(row)
    return table


def as_text(table: Table) -> str:
    """Returns a table as TOML."""
    lines = ["# The answer of every RPC to every kind of caller: `make callers`."]
    for rpc, row in table.items():
        lines += ["", f'["{rpc}"]']
        for answer, names in row.items():
            lines.append(f"{answer} = {json.dumps(names)}")
    return "\n".join(lines) + "\n"


def report_of(found: Table, stated: Table, scene: Scene, seconds: float) -> tuple[dict[str, Any], Tables]:
    """Returns the report of a run, and its tables."""
    cells = Counter(answer for row in found.values() for answer, names in row.items() for _ in names)
    kinds = Counter(name for row in found.values() for names in row.values() for name in names)
    granted = Counter(name for row in found.values() for name in row.get(GRANTED, ()))
    differing = [rpc for rpc in found.keys() | stated.keys() if found.get(rpc) != stated.get(rpc)]
    leaks = scene.leaks()
    report = {
        **run_facts("grpcio"),
        "seconds": seconds,
        "requirements": [
            requirement(
                "every RPC of the contract answers every kind of caller as callers.toml states",
                met=not differing,
                measured=f"{len(found) - len(differing)} of {len(found)} RPCs",
            ),
            requirement(
                "no token, key or ticket in errors, logs, metrics or spans",
                met=not leaks,
                measured=", ".join(leaks) or f"none of {len(scene.secrets):,}",
            ),
        ],
    }
    size = [["RPCs", f"{len(found)}"], ["kinds of callers", f"{len(kinds)}"], ["cells", f"{cells.total():,}"]]
    return report, {
        "What was asked": [["what", "number"], *size],
        "Answers": [["answer", "cells"], *([name, f"{count:,}"] for name, count in cells.most_common())],
        "Kinds of callers": [
            ["caller", "RPCs", "that answer"],
            *([name, f"{count}", f"{granted[name]}"] for name, count in kinds.items()),
        ],
    }


async def run(folder: Path) -> tuple[Table, dict[str, Any], Tables]:
    """Returns the answers, the report and its tables."""
    began = time.monotonic()
    stated = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    async with staged(folder) as scene:
        found = await answers(scene)
        return found, *report_of(found, stated, scene, time.monotonic() - began)


def main() -> int:
    """Asks all, and writes the page; returns 1 if an answer is not as stated, or a secret shows."""
    parser = argparse.ArgumentParser(description="Compare the answer of every RPC to every kind of caller.")
    parser.add_argument("--accept", action="store_true", help="write the answers as they are into callers.toml")
    accepts = parser.parse_args().accept
    with tempfile.TemporaryDirectory() as folder:
        found, report, tables = asyncio.run(run(Path(folder)))
    if accepts:
        TABLE.write_text(as_text(found), encoding="utf-8")
    told = told_of_run(report)
    print_report(report, tables, told, printer())
    if are_met(report):
        write(PAGE, COMMAND, text_of(report, told, tables))
    return 0 if accepts or are_met(report) else 1


if __name__ == "__main__":
    sys.exit(main())
