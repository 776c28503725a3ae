"""Who may do what: the answer of every RPC to every kind of caller is in callers.toml.

A new RPC has to enter it. `PYTHONPATH=.:tests python tests/service/grpc_api/test_callers.py` writes the file again:
review what changed as permissions.
"""

import asyncio
import json
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import grpc.aio
import pytest
from google.protobuf import message_factory
from prometheus_client import generate_latest

from engine.game import Aborted, Game, Lobby, Phase, Playing, RoundOver
from engine.melding.round import MeldingRound
from engine.melding.ruleset import SABRA
from engine.room_settings import Hints, Spectators
from engine.seats import Player, Rack, Turn
from rummikub.admin.v1 import admin_service_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.codec.fields import encode_etag
from service.runtime.keys import HEADER
from service.server import Server
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    bearer,
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
from support.rpcs import METHODS, MUTATING, names_a_game, send_raw, usual_request

pytestmark = pytest.mark.slow

TABLE: Final = Path(__file__).with_name("callers.toml")
GRANTED: Final = "OK"
OPERATOR_TOKEN: Final = "the-token-of-the-operator"  # noqa: S105 - of this test
ADMIN: Final = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
ALL_RIGHTS: Final = f"{ENTRY}\nposition_searches = true\nreissue_seat_tokens = true"

OF_THE_LOBBY: Final = {"JoinGame", "AddBot", "LeaveGame", "KickPlayer", "SetReady", "StartGame"}
AFTER_A_ROUND: Final = {"StartNextRound"}
AFTER_THE_GAME: Final = {"CreateRematch", "ExportGame", "ReviewGame"}
PLAYERS: Final = (Player(1, "Ada", is_host=True), Player(2, "Ben"))

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scene:
    """A server whose callers have keys, and what is behind it."""

    client: Client
    store: Store
    clock: FakeClock
    server: Server
    secrets: set[str] = field(default_factory=set)
    """The tokens and tickets that callers have sent."""

    def sent(self, metadata: Metadata, ticket: str = "") -> list[str]:
        """Notes what a caller sends. Returns what of it is secret."""
        texts = (ticket, *(value.removeprefix("Bearer ") for _, value in metadata))
        secrets = [text for text in texts if len(text) >= len(OPERATOR_TOKEN)]
        self.secrets.update(secrets)
        return secrets


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
    elif rpc in AFTER_THE_GAME:
        phase = Aborted(round_)
    return Game(*parts(room(SABRA, hints=Hints.TURN, **settings)), 1, PLAYERS, phase)


@dataclass(frozen=True)
class Caller:
    """A kind of caller.

    Attributes:
        sends: Returns the metadata of a call on a game, apart from the key.
        key: The key that is sent; empty for none.
        settings: Settings of the game.
        before: What happens before the call. It returns metadata in place of that of `sends`, or None.
        ticket: Returns the ticket that is sent, given a game; None for callers without.
    """

    sends: Callable[[GameAtHand], Metadata] = lambda game: game.as_seat(1)
    key: str = "web"
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Scene, GameAtHand], Awaitable[Metadata | None]] | None = None
    ticket: Callable[[GameAtHand], str] | None = None


async def _of_another_game(scene: Scene, _game: GameAtHand) -> Metadata:
    three = replace(game_for("JoinGame"), players=(*PLAYERS, Player(3, "Cleo")))
    return (await put_game(scene.client, scene.store, three, scene.clock(), key="web")).as_seat(3)


async def _renewed(scene: Scene, game: GameAtHand) -> Metadata:
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    answer = await scene.client.games.RenewSeatToken(request, metadata=(*game.as_seat(1), (HEADER, "web")))
    return bearer(answer.seat_token)


async def _replaced(scene: Scene, game: GameAtHand) -> Metadata:
    await _renewed(scene, game)
    return game.as_seat(1)


async def _expired(scene: Scene, game: GameAtHand) -> None:
    await scene.store.games.delete(game.game_id)


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
    "another key": Caller(key="partner"),
    "another key without rights": Caller(key="plain"),
    "an unknown key": Caller(key="none"),
    "no key": Caller(key=""),
    "a ticket": Caller(lambda _: (), ticket=lambda _: signed("cleo", jti=new_id())),
    "a ticket of another game": Caller(lambda _: (), ticket=lambda _: signed("cleo", jti=new_id(), game_id="0" * 32)),
    "a ticket of another seat": Caller(lambda _: (), ticket=lambda _: signed("cleo", jti=new_id(), seat=2)),
    "an expired ticket": Caller(lambda _: (), ticket=lambda _: signed("cleo", jti=new_id(), seconds=-60)),
    "a ticket of another key": Caller(lambda _: (), key="partner", ticket=lambda _: signed("cleo", jti=new_id())),
}


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Scene]:
    """Runs a server whose callers have keys; the operator's token is OPERATOR_TOKEN."""
    token = folder / "token"
    token.write_text(OPERATOR_TOKEN)
    clock = FakeClock()
    store = memory_store(clock, log_ms=1_000)
    settings = server_settings(
        keys_file=keys_file(folder, web=ALL_RIGHTS, partner=ALL_RIGHTS, plain=""),
        admin_listen="127.0.0.1:0",
        admin_token_file=token,
        sweep_seconds=3_600,
        heartbeat_seconds=0.05,
    )
    async with running_server(store, settings) as (server, client):
        yield Scene(client, store, clock, server)


async def answer_to(scene: Scene, rpc: str, caller: Caller) -> str | None:
    """Returns GRANTED or the reason of the refusal of an RPC to a caller; None if the RPC takes no such credential."""
    with_ticket = "join_ticket" in METHODS[rpc].input_type.fields_by_name
    if caller.ticket and not with_ticket:
        return None
    if caller.before in {_renewed, _replaced} and rpc in AFTER_THE_GAME:  # tokens of a game that is over stay
        return None
    game = await put_game(scene.client, scene.store, game_for(rpc, **caller.settings), scene.clock(), key="web")
    metadata = caller.sends(game)
    if caller.before:
        metadata = await caller.before(scene, game) or metadata
    now = (await scene.store.games.load(game.game_id)).record
    request: Any = usual_request(rpc, game.game_id, encode_etag(now.game.revision, now.etag) if now else game.etag)
    fields = request.DESCRIPTOR.fields_by_name
    if "game_id" in fields and not names_a_game(rpc):  # a search, or a review, of a game
        request.Clear()
        request.game_id = game.game_id
    if "seats" in fields:
        request.ClearField("seats")
        if not caller.ticket:
            request.seats.add(game_id=game.game_id, seat_token=_token(metadata))
    if caller.ticket:
        request.join_ticket = caller.ticket(game)
    if rpc in MUTATING:
        request.request_id = new_id()
    if caller.key:
        metadata += ((HEADER, caller.key),)
    call = send_raw(scene.client, METHODS[rpc], request.SerializeToString(), metadata)
    return await reason(call, scene.sent(metadata, getattr(request, "join_ticket", "")))


def _token(metadata: Metadata) -> str:
    return metadata[0][1].removeprefix("Bearer ") if metadata else ""


async def reason(call: Awaitable[object], secrets: Iterable[str]) -> str:
    """Returns the reason of a refusal, which must not contain a secret; GRANTED for an answer."""
    try:
        async with asyncio.timeout(30):
            await call
    except grpc.aio.AioRpcError as error:
        refusal = error
    else:
        return GRANTED
    assert refusal.code() not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}, refusal
    shown = f"{refusal.details()} {refusal.trailing_metadata()}"
    assert not [secret for secret in secrets if secret in shown]
    return str(error_info(refusal).reason)


OPERATORS: Final[Mapping[str, Metadata]] = {
    "the operator's token": bearer(OPERATOR_TOKEN),
    "no token": (),
    "a malformed token": bearer("x"),
    "another token": bearer("t" * 43),
    "a seat's token": bearer("1" * 43),
    "a key in place of the token": ((HEADER, "web"),),
    "the operator's token and a key": (*bearer(OPERATOR_TOKEN), (HEADER, "web")),
}


async def answer_to_operator(scene: Scene, rpc: str, metadata: Metadata) -> str:
    """Returns the same of an RPC of AdminService."""
    method = ADMIN.methods_by_name[rpc]
    game = await put_game(scene.client, scene.store, game_for("JoinGame"), scene.clock(), key="web")
    request: Any = message_factory.GetMessageClass(method.input_type)()
    given: dict[str, object] = {"game_id": game.game_id, "seat": 2, "player_ref": "ada", "request_id": new_id()}
    for name in given.keys() & request.DESCRIPTOR.fields_by_name.keys():
        setattr(request, name, given[name])
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.server.admin_port}") as channel:
        call = send_raw(Client(channel), method, request.SerializeToString(), metadata)
        return await reason(call, scene.sent(metadata))


async def answers(scene: Scene) -> dict[str, dict[str, list[str]]]:
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


def as_text(table: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Returns a table as TOML."""
    lines = ["# The answer of every RPC to every kind of caller: see test_callers.py."]
    for rpc, row in table.items():
        lines += ["", f'["{rpc}"]']
        for answer, names in row.items():
            lines.append(f"{answer} = {json.dumps(names)}")
    return "\n".join(lines) + "\n"


async def test_every_rpc_answers_every_caller_as_stated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stated = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    async with staged(tmp_path) as scene:
        found = await answers(scene)
        metrics = generate_latest(scene.server.metrics.registry).decode()
    output = capfd.readouterr()
    assert "PlayTurn" in output.out + output.err
    assert "PlayTurn" in metrics
    seen = metrics + output.out + output.err
    assert not [secret for secret in scene.secrets if secret in seen]
    assert found.keys() == stated.keys()
    differing = {rpc: row for rpc, row in found.items() if row != stated[rpc]}
    assert not differing


if __name__ == "__main__":

    async def _write() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with staged(Path(folder)) as scene:
                TABLE.write_text(as_text(await answers(scene)), encoding="utf-8")

    asyncio.run(_write())
