"""Floods of calls that cost their sender nothing: they fill one game or the store, or are expanded on arrival."""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import grpc.aio
from google.protobuf.message import Message

from load.floods.attack import Attack, forever, unary
from load.tables import LONG_ROUNDS, Table, new_table, sends_once
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2, record_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from tools.games import Client, bearer, creation, new_id

REVISIONS: Final = 6_000
"""The changes of the game whose history is read."""
EMPTY: Final = 130_000
"""Empty messages in a request: two bytes each, which gzip makes nothing of."""
READERS: Final = 20
LABELS: Final = {f"{number:032}": chr(0x1F600) * 64 for number in range(16)}
"""As many bytes as a game may have in labels."""
READINESS: Final = 400
"""How often a seat changes its readiness, unless it is refused."""


async def ready(attack: Attack) -> None:
    """Seats of three lobbies change their readiness, leave or are kicked, as fast as they are answered."""
    async with attack.channels(3) as channels:
        clients = [Client(channel) for channel in channels]
        games = [await client.new_game(1, start=False) for client in clients]
        attack.notes["games"] = [game.game_id for game in games]
        first, second, third = games
        flags, numbers = itertools.cycle((True, False)), itertools.count(1)

        async def join(game_id: str) -> gs.JoinGameResponse | None:
            request = gs.JoinGameRequest(game_id=game_id, name=f"Eve {next(numbers)}", request_id=new_id())
            return await attack.count(clients[0].games.JoinGame(request))

        async def change() -> None:
            await attack.count(first.ready(1, is_ready=next(flags)))

        async def come_and_leave() -> None:
            if joined := await join(second.game_id):
                leaving = gs.LeaveGameRequest(game_id=second.game_id, request_id=new_id())
                await attack.count(clients[1].games.LeaveGame(leaving, metadata=bearer(joined.seat_token)))

        async def come_and_be_kicked() -> None:
            if joined := await join(third.game_id):
                await attack.count(third.kick(joined.seat))

        works: tuple[Callable[[], Awaitable[None]], ...] = (change, come_and_leave, come_and_be_kicked)
        await forever(9, lambda number: works[number % len(works)]())


async def renewals(attack: Attack) -> None:
    """Four seats of a game renew their tokens again and again, as fast as they are answered."""
    async with attack.channels(1) as [channel]:
        client = Client(channel)
        game = await client.new_game(4)
        attack.notes["games"] = [game.game_id]

        async def renew(number: int) -> None:
            seat = number + 1
            request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
            renewed = await attack.count(client.games.RenewSeatToken(request, metadata=game.as_seat(seat)))
            if renewed:
                game.tokens[seat] = renewed.seat_token

        await forever(4, renew)


async def store(attack: Attack) -> None:
    """40 callers fill the store with games: bots play, seats get ready, draw and save drafts."""
    async with attack.channels(10) as channels:
        clients = [Client(channel) for channel in channels]

        async def fill(number: int) -> None:
            client, with_bots = clients[number % len(clients)], number % 2 == 0
            request = gs.CreateGameRequest(**creation(LONG_ROUNDS), operator_labels=LABELS, request_id=new_id())
            created = await attack.count(client.games.CreateGame(request))
            if created is None:
                return
            game_id, host = created.game.game_id, bearer(created.host_token)
            if with_bots:
                for _ in range(4):
                    bot = gs.AddBotRequest(game_id=game_id, level=game_pb2.BOT_LEVEL_EASY, request_id=new_id())
                    await attack.count(client.games.AddBot(bot, metadata=host))
                starting = gs.StartGameRequest(game_id=game_id, request_id=new_id())
                await attack.count(client.games.StartGame(starting, metadata=host))
            else:
                await _play_alone(attack, client, game_id, host)

        await forever(4 * len(clients), fill)


async def _play_alone(attack: Attack, client: Client, game_id: str, host: tuple[tuple[str, str], ...]) -> None:
    """Takes two seats of a lobby, gets one ready again and again, saves a draft, and draws for both."""
    tokens = {}
    for name in ("Eve", "Eva"):
        joining = gs.JoinGameRequest(game_id=game_id, name=name, request_id=new_id())
        joined = await attack.count(client.games.JoinGame(joining))
        if joined is None:
            return
        tokens[joined.seat] = joined.seat_token
    for number in range(READINESS):
        change = gs.SetReadyRequest(game_id=game_id, is_ready=number % 2 == 0, request_id=new_id())
        if await attack.count(client.games.SetReady(change, metadata=bearer(tokens[1]))) is None:
            break
    starting = gs.StartGameRequest(game_id=game_id, request_id=new_id())
    started = await attack.count(client.games.StartGame(starting, metadata=host))
    if started is None:
        return
    table = Table(game_id, tokens, started.game)
    if rack := await attack.count(table.rack(client)):
        await attack.count(client.turns.SaveDraft(table.draft(rack), metadata=table.to_move))
    while table.game.pool_count and await attack.count(table.draw(client)):
        pass


async def revisions(attack: Attack) -> None:
    """20 connections read a game of 6,000 changes as it was at the last but one, without a token."""
    async with attack.channels(READERS) as channels:
        clients = [Client(channel) for channel in channels]
        table = await _long_game(clients[0])
        attack.begun.set()
        request = gs.GetGameRequest(game_id=table.game_id, revision=REVISIONS - 1)
        await forever(READERS, lambda number: attack.count(clients[number].games.GetGame(request)))


async def _long_game(client: Client) -> Table:
    """Returns a game of REVISIONS changes: its players draw, and pass when the pool is empty."""
    table = await new_table(sends_once(client), LONG_ROUNDS)
    while table.game.revision < REVISIONS:
        if table.game.state == game_pb2.GAME_STATE_ROUND_OVER:
            request = ts.StartNextRoundRequest(game_id=table.game_id, request_id=new_id())
            table.game = (await client.turns.StartNextRound(request, metadata=table.as_seat(1))).game
        elif table.game.pool_count:
            await table.draw(client)
        else:
            passing = table.drawing()
            passing.pass_turn.SetInParent()
            table.game = (await client.turns.PlayTurn(passing, metadata=table.to_move)).game
    return table


async def compressed(attack: Attack) -> None:
    """20 callers at each listener send 260 KB of empty messages, which gzip packs into 300 bytes."""
    turns, melds = [vs.ValidateTurnRequest()] * EMPTY, [meld_pb2.Meld()] * EMPTY
    validation: dict[str, Message] = {
        "ValidationService/BatchValidateTurns": vs.BatchValidateTurnsRequest(turns=turns),
        "ValidationService/ValidateMelds": vs.ValidateMeldsRequest(melds=melds),
        "ValidationService/ValidateTurn": vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=melds)),
    }
    table = meld_pb2.Table(melds=melds)
    record = record_pb2.GameRecord(moves=[record_pb2.RecordedMove()] * EMPTY)
    others: dict[str, Message] = {
        "AnalysisService/BatchSuggestTurns": an.BatchSuggestTurnsRequest(positions=[an.Position()] * EMPTY),
        "RecordService/ImportRecord": rs.ImportRecordRequest(record=record),
        "TurnService/PlayTurn": ts.PlayTurnRequest(game_id="0" * 32, play=ts.PlayTiles(table=table)),
    }
    async with attack.channels(1) as [main], attack.channels(1, attack.validation) as [own]:
        sent = [_sender(attack, main, {**validation, **others}), _sender(attack, own, validation)]
        await forever(2 * READERS, lambda number: sent[number % 2](number // 2))


def _sender(
    attack: Attack, channel: grpc.aio.Channel, requests: Mapping[str, Message]
) -> Callable[[int], Awaitable[object]]:
    """Returns a function that sends one of some requests, compressed."""
    calls = [(unary(channel, f"/rummikub.v1.{path}"), body.SerializeToString()) for path, body in requests.items()]

    def send(number: int) -> Awaitable[object]:
        method, body = calls[number % len(calls)]
        return attack.count(method(body, compression=grpc.Compression.Gzip))

    return send
