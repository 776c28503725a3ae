"""What is asked of both games of a pair: every RPC of the contract, as a viewer can call it."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from engine.game import Aborted, Finished, Game, Playing
from engine.room_settings import RacksShown
from load.hidden.stage import OPERATOR_TOKEN, Ask, Viewer
from rummikub.admin.v1 import admin_service_pb2 as admin
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.app.identity import TICKET_MS, digest, watch_ticket
from support.harness import FakeClock
from support.hidden import GAME, HOST_VIEWER, happenings, questions, token_of
from support.join_tickets import signed
from support.rpcs import METHODS, WITH_TICKET, usual_request

ADMIN: Final = admin.DESCRIPTOR.services_by_name["AdminService"]
SEARCHES: Final = frozenset(
    {
        "SuggestTurn",
        "CoachTurn",
        "HasLegalTurn",
        "ArrangeTiles",
        "BatchSuggestTurns",
        "ReviewGame",
        "ExplainTurn",
        "CheckPuzzle",
    }
)
"""RPCs that may take long."""
SEARCH_LIMIT: Final = Duration(seconds=10)
"""The longest of most searches. Few are that long, and only answers in time are certain."""
OF_A_RECORD: Final = frozenset({"ExportGame", "ReviewGame", "ExportOwnGames"})
"""RPCs that show all tiles of a game that is over, if its racks are shown."""
SHOWS_RACKS: Final = frozenset(
    {"WatchGames", "GetGame", "ExportPlayer", "ForgetPlayer", "DeleteGame", "ReissueSeatToken"}
)
"""RPCs of AdminService that show all tiles to operators, or end the game."""
TICKET_SECONDS: Final = 300
PAGE: Final = 200


def ask_of(rpc: str, request: Message, updates: int = 1) -> Ask:
    """Returns a request to an RPC of players; of a stream, some responses are read."""
    method = METHODS[rpc]
    limit: Any = request
    if "time_limit" in method.input_type.fields_by_name:
        limit.time_limit.CopyFrom(SEARCH_LIMIT)
    path = f"/{method.containing_service.full_name}/{rpc}"
    count = updates if method.server_streaming else None
    return Ask(path, request.SerializeToString(), count, streams=method.client_streaming)


def all_asks(seen: game_pb2.Game, game: Game, viewer: Viewer, clock: FakeClock, rng: random.Random) -> list[Ask]:
    """Returns requests to every RPC; only those of games that are no round change a game.

    Args:
        seen: The game as the viewer sees it.
        game: The game, of which only public facts are used.
        viewer: The caller.
        clock: The store's clock.
        rng: The source of randomness.
    """
    found = [*reads(seen), *_beside(seen, viewer, clock, rng), *_of_operators(viewer)]
    is_played_by_bots = any(player.played_by for player in game.players)
    if isinstance(game.phase, Playing):
        asked = questions(seen, rng)
        found += [ask_of(method.rpartition("/")[2], request) for method, request in asked]
    elif not is_played_by_bots:  # a bot would play on, at a time of its own
        found += [ask_of(rpc, usual_request(rpc, GAME, seen.etag)) for rpc in ("CreateRematch", "StartNextRound")]
    is_open = isinstance(game.phase, Finished | Aborted) and game.settings.racks_shown is not RacksShown.HIDDEN
    return [ask for ask in found if not (is_open and ask.rpc in OF_A_RECORD)]


def reads(seen: game_pb2.Game) -> list[Ask]:
    """Returns the requests that show the game, its last changes, and the updates of a watch."""
    view = gs.GetGameRequest(game_id=GAME)
    first = gs.WatchGameRequest(game_id=GAME, content=gs.WATCH_CONTENT_BOTH)
    changes = gs.ListChangesRequest(game_id=GAME, page_size=PAGE, after_revision=max(0, seen.revision - LATEST))
    return [ask_of("GetGame", view), ask_of("ListChanges", changes), ask_of("WatchGame", first)]


LATEST: Final = 5
"""How many of a game's last changes are read."""


def watch_from(behind: int, etag: str) -> Ask:
    """Returns a watch that resumes some changes before the newest one."""
    request = gs.WatchGameRequest(game_id=GAME, etag=etag, content=gs.WATCH_CONTENT_BOTH)
    return ask_of("WatchGame", request, behind + 1)


def _beside(seen: game_pb2.Game, viewer: Viewer, clock: FakeClock, rng: random.Random) -> Iterator[Ask]:
    """Yields requests that name no game, as often as not with the viewer's own rack."""
    position = an.Position(rack=seen.rack[:14], has_melded=True, table=seen.table)
    for rpc in METHODS:
        usual: Any = usual_request(rpc, GAME, seen.etag)
        fields = METHODS[rpc].input_type.fields_by_name
        if rpc in WITH_TICKET or rpc in {"ListOwnGames", "JoinOrCreateGame", "WatchOwnGames", "CreateGame"}:
            if "join_ticket" in fields:
                ref = rng.choice(("ada", "ben", "zoe"))
                if rpc == "ChallengePlayer":  # one player makes, and gets, only some in a minute
                    ref, usual.player_ref = (f"{name} {rng.getrandbits(64)}" for name in (ref, "ben"))
                usual.join_ticket = _ticket(ref, clock)
            if "seats" in fields:
                usual.ClearField("seats")
                if rng.random() < 0.5:
                    usual.ClearField("join_ticket")
                    usual.seats.add(game_id=GAME, seat_token=viewer.token or token_of(1))
        elif "game_id" in fields and fields["game_id"].containing_oneof is None:
            continue  # a question of a game
        if "position" in fields and fields["position"].message_type is an.Position.DESCRIPTOR:
            usual.ClearField("position")
            usual.position.CopyFrom(position)
        if rpc not in {"PlayTurn", "SaveDraft"}:
            yield ask_of(rpc, usual)


def _ticket(ref: str, clock: FakeClock) -> str:
    expires = datetime.fromtimestamp(clock.now_ms / 1000, UTC) + timedelta(seconds=TICKET_SECONDS)
    return signed(ref, exp=expires, name=ref.title())


def _of_operators(viewer: Viewer) -> Iterator[Ask]:
    """Yields requests to AdminService: of an operator without the ones that show tiles."""
    if not viewer.is_operator:
        return
    for method in ADMIN.methods:
        if viewer.token == OPERATOR_TOKEN and method.name in SHOWS_RACKS:
            continue
        request: Any = message_factory.GetMessageClass(method.input_type)()
        if "game_id" in method.input_type.fields_by_name:
            request.game_id = GAME
        if "seat" in method.input_type.fields_by_name:
            request.seat = 1
        if method.name in {"AbortGame", "KickPlayer"} and viewer.token == OPERATOR_TOKEN:
            continue  # a change of the game: its end may show racks
        path = f"/{ADMIN.full_name}/{method.name}"
        yield Ask(path, request.SerializeToString(), 1 if method.server_streaming else None, is_admin=True)


def changes_by(game: Game, viewer: Viewer, seen: game_pb2.Game, rng: random.Random) -> list[Ask]:
    """Returns a change that is no turn, by the viewer; none whose end would show racks or count them.

    A caller that may replace the token of a seat sees the game as that seat does, so it is the viewer's own.
    """
    rpcs = ["RenewSeatToken", "ForgetSeat", "RequestRedeal"]
    if seen.seat or viewer.key != "web":
        rpcs.append("ReissueSeatToken")
    if game.settings.racks_shown is RacksShown.HIDDEN:
        rpcs.append("AbortGame")
    if len(game.active_seats) > 2:
        rpcs.append("ResignGame")
    rpc = rng.choice(rpcs)
    fields = {"seat": seen.seat or 1} if rpc == "ReissueSeatToken" else {}
    return [ask_of(rpc, usual_request(rpc, GAME, seen.etag, **fields))]


def turns_of(seen_by_mover: game_pb2.Game, viewer: Viewer) -> list[Ask]:
    """Returns the next turns of the seat to move, which that seat plays."""
    return [ask_of(method.rpartition("/")[2], request) for method, request in happenings(seen_by_mover, viewer.number)]


def ticket_of(seat: int, now_ms: int) -> str:
    """Returns a ticket with which a seat's owner watches the game."""
    ticket = watch_ticket(GAME, digest(token_of(seat)), now_ms + TICKET_MS)
    return f"{ticket.until_ms}-{ticket.code}"


def viewers(game: Game, rng: random.Random, key: str, now_ms: int) -> Sequence[Viewer]:
    """Returns callers of every kind, each once."""
    seats = [player.seat for player in game.players]
    seat, other = rng.choice(seats), rng.choice(seats)
    return (
        Viewer("seat", seat, token_of(seat), key),
        Viewer("another seat", other, token_of(other), key),
        Viewer("holder of a seat's watch ticket", seat, "", key, ticket=ticket_of(seat, now_ms)),
        Viewer("spectator", 0, "", key),
        Viewer("host without a seat", HOST_VIEWER, token_of(HOST_VIEWER), key),
        Viewer("stranger with a token", 0, "s" * 43, key),
        Viewer("seat with another key", seat, token_of(seat), "partner"),
        Viewer("seat with a wrong key", seat, token_of(seat), "wrong"),
        Viewer("seat without a key", seat, token_of(seat), ""),
        Viewer("caller of the operator's listener", 0, "", key, is_operator=True),
        Viewer("operator with a wrong token", 0, "o" * 43, key, is_operator=True),
        Viewer("operator, RPCs without racks", 0, OPERATOR_TOKEN, key, is_operator=True),
    )
