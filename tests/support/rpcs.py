"""One usual request of each RPC, and who may call it: tests of errors, hostile calls, retries and fields derive theirs.

A request is in this table only if it has a field beside those that name the game; who may call is in the rows of
`service/grpc_api/rpcs`.
"""

from typing import Any, Final

import grpc.aio
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2, record_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.grpc_api.rpc import Rpc, Token
from service.grpc_api.services import SERVICES
from support.harness import CONTRACT, Client, GameAtHand
from support.join_tickets import signed
from tools.games import as_tiles

METHODS: Final[dict[str, MethodDescriptor]] = {rpc.name: rpc for service in CONTRACT for rpc in service.methods}
ROWS: Final[dict[str, Rpc]] = {rpc.name: rpc for rpcs in SERVICES.values() for rpc in rpcs}
"""The rows of all RPCs, apart from ValidationService's."""
MUTATING: Final = [name for name, rpc in ROWS.items() if rpc.mutates and name != "ChallengePlayer"]
"""RPCs with a request id that change a game, or create one."""
WITH_TICKET: Final = [rpc.name for rpc in SERVICES["rummikub.v1.ChallengeService"]]
"""RPCs of players who are known by a ticket alone."""
OF_A_SEAT: Final = [name for name, rpc in ROWS.items() if rpc.token is Token.REQUIRED]
"""RPCs that need a token."""

A_RECORD: Final = record_pb2.GameRecord(
    players=[record_pb2.RecordedPlayer(seat=seat, name=f"player {seat}") for seat in (1, 2)]
)
"""The shortest legal record."""
A_POSITION: Final = an.Position(has_melded=True)
A_TICKET: Final = signed("ada", name="Ada")
A_TURN: Final = vs.ValidateTurnRequest(has_melded=True)

USUAL: Final[dict[str, dict[str, Any]]] = {
    "JoinGame": {"name": "Eve"},
    "JoinOrCreateGame": {"name": "Eve"},
    "AddBot": {"level": game_pb2.BOT_LEVEL_EASY},
    "KickPlayer": {"seat": 2},
    "ReissueSeatToken": {"seat": 2},
    "SetReady": {"is_ready": True},
    "ListGames": {"states": [game_pb2.GAME_STATE_PLAYING]},
    "ListOwnGames": {"seats": [gs.OwnSeat(game_id="0" * 32, seat_token="A" * 43)]},
    "ExportOwnGames": {"seats": [gs.OwnSeat(game_id="0" * 32, seat_token="A" * 43)]},
    "WatchOwnGames": {"seats": [gs.OwnSeat(game_id="0" * 32, seat_token="A" * 43)]},
    "ChallengePlayer": {"join_ticket": A_TICKET, "player_ref": "ben"},
    "ListChallenges": {"join_ticket": A_TICKET},
    "AcceptChallenge": {"challenge_id": "0" * 32, "join_ticket": A_TICKET},
    "DeclineChallenge": {"challenge_id": "0" * 32, "join_ticket": A_TICKET},
    "CancelChallenge": {"challenge_id": "0" * 32, "join_ticket": A_TICKET},
    "PlayTurn": {"draw": ts.DrawTile()},
    "ClaimError": {"play_revision": 1},
    "ValidateMelds": {"melds": [meld_pb2.Meld()]},
    "ValidateTurn": {"has_melded": True},
    "ValidatePlacement": {"has_melded": True},
    "ValidateHand": {"indicator": tile_pb2.TILE_RED_1, "tiles": as_tiles(range(1, 15))},
    "ValidateDiscardTurn": {"indicator": tile_pb2.TILE_RED_1, "rack": as_tiles(range(1, 15)), "seat": 2},
    "BatchValidateTurns": {"turns": [A_TURN]},
    "StreamValidateTurns": {"turn": A_TURN, "correlation_id": "1"},
    "ScoreRound": {"racks": [vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=as_tiles([1]))]},
    "ListRulesets": {"page_size": 1},
    "ListMessages": {"language": "de"},
    "SuggestTurn": {"position": A_POSITION},
    "CoachTurn": {"position": A_POSITION},
    "HasLegalTurn": {"position": A_POSITION},
    "ArrangeTiles": {"tiles": as_tiles([1, 2, 3])},
    "BatchSuggestTurns": {"positions": [A_POSITION]},
    "ExplainTurn": {"table_after": meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1, 2, 3]))])},
    "GetPuzzle": {"number": 1},
    "CheckPuzzle": {"number": 1},
    "ImportRecord": {"record": record_pb2.GameRecord()},
    "ReviewGame": {"record": A_RECORD},
    "ParsePosition": {"text": ". + {}"},
    "FormatPosition": {"position": A_POSITION},
}
"""The fields of a usual request, beside game and etag."""
WITH_ETAG: Final = {"PlayTurn", "SaveDraft"}
"""RPCs on the state that their caller saw."""


def new_message(rpc: str, **fields: object) -> Message:
    """Returns a request of an RPC."""
    made: Message = message_factory.GetMessageClass(METHODS[rpc].input_type)(**fields)
    return made


def names_a_game(rpc: str) -> bool:
    """Returns whether every request of an RPC names a game by its id."""
    field = METHODS[rpc].input_type.fields_by_name.get("game_id")
    return field is not None and (field.containing_oneof is None or rpc == "JoinGame")


def usual_request(rpc: str, game_id: str, etag: str, **fields: object) -> Message:
    """Returns a valid request on a game whose state has an etag; `fields` replace others."""
    usual: dict[str, object] = dict(USUAL.get(rpc, {}))
    if names_a_game(rpc):
        usual["game_id"] = game_id
    if rpc in WITH_ETAG:
        usual["etag"] = etag
    return new_message(rpc, **(usual | fields))


def as_usual(rpc: str, game: GameAtHand) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a usual call: of seat 1, if the RPC needs a seat."""
    return game.as_seat(1) if rpc in OF_A_SEAT else ()


async def send_raw(
    client: Client, method: MethodDescriptor, data: bytes, metadata: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """Returns the first response to a request as bytes."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    if not method.server_streaming:
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(path)
        return await unary(data, metadata=metadata)
    answers: grpc.aio.UnaryStreamCall[bytes, bytes] | grpc.aio.StreamStreamCall[bytes, bytes]
    if method.client_streaming:
        streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = client.channel.stream_stream(path)
        answers = streams(iter([data]), metadata=metadata)
    else:
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = client.channel.unary_stream(path)
        answers = stream(data, metadata=metadata)
    async for answer in answers:
        answers.cancel()
        return answer
    return b""
