"""A running service's answers to the questions of the conformance cases, in the terms of the cases."""

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2

from conformance.engine_answers import named, players_of, round_of
from engine.events import GameCreated
from engine.game import Game, Playing
from engine.notation import parse_tile
from engine.tiles import Tile, without
from engine.unions import Round
from rummikub.v1 import discard_pb2, error_reason_pb2, game_pb2, meld_pb2, score_pb2, tile_pb2, violation_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app.identity import digest
from service.codec.fields import encode_etag
from service.model.change import NO_ETAG, Commit, lineage
from service.model.record import Record, SeatToken
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.conformance_cases import (
    FACES,
    Act,
    Creation,
    DiscardTurnQuestion,
    Faces,
    GridText,
    HandQuestion,
    LittleGame,
    MeldText,
    OpeningText,
    Options,
    PlacementQuestion,
    Question,
    RoundQuestion,
    TurnQuestion,
    grid_text,
    openings_text,
    table_text,
    tile_name,
)
from support.conformance_messages import (
    OPTION_OF_FIELD,
    any_table_of,
    creation_of,
    decoded,
    discard_ruleset_of,
    hand_of,
    openings_of,
    ruleset_of,
    table_of,
    tile_of,
    tiles_of,
)
from support.harness import Client, FakeClock, GameAtHand, SeededChance, error_info, status_details
from support.rpcs import METHODS, new_message, send_raw

FACE_OF = {tile_pb2.Tile.Value(tile_name(face)): face for face in FACES}


class FixedChance(SeededChance):
    """A source of randomness with fixed beginnings of shuffles; the other tiles follow in ascending order."""

    def __init__(self) -> None:
        super().__init__(seed=1)
        self.coming: deque[Faces] = deque()

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        first = tuple(map(parse_tile, self.coming.popleft())) if self.coming else ()
        return (*first, *without(tiles, first))


@dataclass(frozen=True)
class Service:
    """A running service with a controlled clock and source of randomness."""

    client: Client
    store: Store
    clock: FakeClock
    chance: FixedChance


def faces_of(tiles: Iterable[int]) -> Faces:
    return tuple(FACE_OF[tile_pb2.Tile.ValueType(tile)] for tile in tiles)


def reason_name(reason: error_reason_pb2.ErrorReason.ValueType) -> str:
    return error_reason_pb2.ErrorReason.Name(reason)


def reasons_of(violations: Iterable[violation_pb2.Violation]) -> Faces:
    return tuple(reason_name(violation.reason) for violation in violations)


def end_of(end: score_pb2.RoundEnd.ValueType) -> str:
    return score_pb2.RoundEnd.Name(end).removeprefix("ROUND_END_")


async def put(service: Service, options: Options, round_: Round) -> GameAtHand:
    """Stores a running game with a given round."""
    at_hand = GameAtHand(service.client, uuid.uuid4().hex)
    ruleset, settings = decoded(options)
    players = players_of(round_, ruleset)
    at_hand.tokens |= {player.seat: str(player.seat) * 43 for player in players}
    tokens = tuple(SeatToken(player.seat, digest(at_hand.tokens[player.seat])) for player in players)
    game = Game(ruleset, settings, 1, players, Playing(round_))
    change = encode_change(1, service.clock(), bytes(16), (GameCreated(game.ruleset, game.settings),))
    record = Record(at_hand.game_id, game, lineage(NO_ETAG, change), tokens, service.clock(), service.clock())
    await service.store.games.commit(Commit(NO_ETAG, record, change))
    at_hand.etags[1] = encode_etag(1, record.etag)
    return at_hand


# Questions


async def answer(service: Service, question: Question, options: Options) -> "Faces | GameSeen | dict[str, object]":
    """Returns the answer to a contrast's question."""
    match question:
        case MeldText():
            request = vs.ValidateMeldsRequest(ruleset=ruleset_of(options), melds=table_of([question]))
            [reading] = (await service.client.validation.ValidateMelds(request)).melds
            return reasons_of(reading.violations)
        case TurnQuestion():
            judged = await service.client.validation.ValidateTurn(turn_request(question, options))
            return reasons_of(judged.violations)
        case PlacementQuestion():
            placed = await service.client.validation.ValidatePlacement(placement_request(question, options))
            return reasons_of(placed.violations)
        case HandQuestion():
            hand = await service.client.validation.ValidateHand(hand_request(question, options))
            return reasons_of(hand.violations)
        case DiscardTurnQuestion():
            turn = await service.client.validation.ValidateDiscardTurn(discard_turn_request(question, options))
            return reasons_of(turn.violations)
        case RoundQuestion():
            return await _score(service, question, options)
        case Creation():
            return await creation_problems(service, options)
        case LittleGame():
            return await play(service, question, options)


def turn_request(question: TurnQuestion, options: Options) -> vs.ValidateTurnRequest:
    return vs.ValidateTurnRequest(
        ruleset=ruleset_of(options),
        table_before=meld_pb2.Table(melds=table_of(question.table_before)),
        table_after=meld_pb2.Table(melds=table_of(question.table_after)),
        rack=tiles_of(question.rack),
        has_melded=question.has_melded,
        river=tiles_of(question.river),
        river_index=question.river_index,
        tile_drawn=tile_of(question.tile_drawn),
        calls_rummikub=question.calls_rummikub,
    )


def placement_request(question: PlacementQuestion, options: Options) -> vs.ValidatePlacementRequest:
    return vs.ValidatePlacementRequest(
        ruleset=ruleset_of({"preset": "CROSS", **options}),
        table_before=any_table_of(question.table_before),
        table_after=any_table_of(question.table_after),
        rack=tiles_of(question.rack),
        has_melded=question.has_melded,
        tile_drawn=tile_of(question.tile_drawn),
        calls_rummikub=question.calls_rummikub,
    )


def hand_request(question: HandQuestion, options: Options) -> vs.ValidateHandRequest:
    return vs.ValidateHandRequest(
        ruleset=discard_ruleset_of(options),
        indicator=tile_of(question.indicator),
        tiles=tiles_of(question.tiles),
        discard=tile_of(question.discard),
        hand=hand_of(question.hand),
    )


def discard_turn_request(question: DiscardTurnQuestion, options: Options) -> vs.ValidateDiscardTurnRequest:
    return vs.ValidateDiscardTurnRequest(
        ruleset=discard_ruleset_of(options, "OKEY_101"),
        indicator=tile_of(question.indicator),
        rack=tiles_of(question.rack),
        table_before=hand_of(question.table_before),
        openings=openings_of(question.openings),
        seat=question.seat,
        owed_tile=tile_of(question.owed_tile),
        tiles_laid=question.tiles_laid,
        table_after=hand_of(question.table_after),
        discard=tile_of(question.discard),
        is_foot=question.is_foot,
    )


def score_request(question: RoundQuestion, options: Options) -> vs.ScoreRoundRequest:
    racks = (
        vs.RackToScore(
            seat=seat,
            rack=tiles_of(rack),
            never_melded=seat in question.never_melded,
            declined_to_meld=seat in question.declined_to_meld,
        )
        for seat, rack in enumerate(question.racks, 1)
    )
    return vs.ScoreRoundRequest(ruleset=ruleset_of(options), racks=racks)


async def _score(service: Service, question: RoundQuestion, options: Options) -> dict[str, object]:
    scored = await service.client.validation.ScoreRound(score_request(question, options))
    return {"winners": list(scored.winner_seats), "points": [seat.points for seat in scored.seats]}


async def creation_problems(service: Service, options: Options) -> Faces:
    """Returns the reasons for which CreateGame refuses a ruleset: a text for each conflicting option."""
    try:
        await service.client.games.CreateGame(gs.CreateGameRequest(**creation_of(options)))
    except grpc.aio.AioRpcError as error:
        return _problems(error)
    return ()


def _problems(error: grpc.aio.AioRpcError) -> Faces:
    info = error_info(error)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    fields = bad_request(error).field_violations
    assert fields[0].reason == info.reason
    return tuple(f"{one.reason} {OPTION_OF_FIELD[one.field]}" for one in fields)


def option_by_option(problems: Faces) -> Faces:
    """Splits problems as a BadRequest does: one field for each option."""
    split = [problem.split() for problem in problems]
    return tuple(f"{reason} {option}" for reason, *options in split for option in options)


def bad_request(error: grpc.aio.AioRpcError) -> error_details_pb2.BadRequest:
    detail = error_details_pb2.BadRequest()
    assert any(one.Unpack(detail) for one in status_details(error).details)
    return detail


# Games


@dataclass(frozen=True)
class GameSeen:
    """A finished short game: the refusal or the result of its last action."""

    game: game_pb2.Game
    racks: dict[str, str]
    draws: str
    refused: Faces
    violations: Faces
    open_game: game_pb2.Game | None
    rematch_game_id: str

    def see(self, key: str) -> object:
        """Returns the observation for a key of an outcome."""
        return _SEEN[key](self)


def _seconds_left(game: game_pb2.Game) -> float | None:
    if not game.turn.HasField("deadline"):
        return None
    return (_milliseconds(game.turn.deadline) - _milliseconds(game.server_time)) / 1000


def _next_round_seconds(game: game_pb2.Game) -> float | None:
    if not game.HasField("next_round_time"):
        return None
    return (_milliseconds(game.next_round_time) - _milliseconds(game.server_time)) / 1000


def _absent(game: game_pb2.Game) -> str:
    levels = {player.seat: game_pb2.BotLevel.Name(player.bot_level) for player in game.players if player.is_absent}
    return " ".join(f"{seat}:{level.removeprefix('BOT_LEVEL_')}" for seat, level in levels.items())


def _milliseconds(time: Timestamp) -> int:
    return time.seconds * 1000 + time.nanos // 1_000_000


def _table(table: meld_pb2.Table) -> str:
    """Formats a table without kinds."""
    if table.placements:
        return grid_text(GridText(tuple((FACE_OF[one.tile], one.x, one.y) for one in table.placements)))
    return table_text(tuple(MeldText(faces_of(meld.tiles)) for meld in table.melds))


def _shown_play(game: game_pb2.Game) -> str | None:
    return _table(game.turn.shown_play.table) if game.turn.HasField("shown_play") else None


def _of_last_round(game: game_pb2.Game, default: object, read: Callable[[game_pb2.RoundResult], object]) -> object:
    return read(game.rounds[-1]) if game.rounds else default


def _finished_pairs(seen: "GameSeen") -> bool | None:
    board = seen.game.discard_board
    if board.HasField("rack_finish"):
        return board.rack_finish.is_pairs
    return board.finish.is_pairs if board.HasField("finish") else None


def opening_text(opening: discard_pb2.DiscardOpening) -> OpeningText:
    """Returns an opening in the terms of the cases."""
    return OpeningText(opening.seat, opening.amount, opening.is_pairs)


def _laid(board: discard_pb2.DiscardBoard) -> str:
    return table_text(tuple(MeldText(faces_of(part.tiles)) for part in board.table))


def _open_draft(game: game_pb2.Game | None) -> str | None:
    return _table(game.turn.draft.table) if game and game.turn.HasField("draft") else None


def _open_racks(result: game_pb2.RoundResult) -> dict[str, str]:
    shown = any(seat.rack for seat in result.seats)
    return {str(seat.seat): " ".join(faces_of(seat.rack)) for seat in result.seats if shown}


_SEEN: dict[str, Callable[[GameSeen], object]] = {
    "refused": lambda seen: list(seen.refused),
    "violations": lambda seen: list(seen.violations),
    "state": lambda seen: game_pb2.GameState.Name(seen.game.state).removeprefix("GAME_STATE_"),
    "host_seat": lambda seen: next((player.seat for player in seen.game.players if player.is_host), None),
    "ready_seats": lambda seen: [player.seat for player in seen.game.players if player.is_ready],
    "abort_seats": lambda seen: [player.seat for player in seen.game.players if player.wants_abort],
    "has_rematch": lambda seen: bool(seen.rematch_game_id),
    "turn_seat": lambda seen: seen.game.turn.seat or None,
    "turn_order": lambda seen: list(seen.game.turn_order),
    "table": lambda seen: _table(seen.game.table),
    "racks": lambda seen: seen.racks,
    "pool_count": lambda seen: seen.game.pool_count,
    "river": lambda seen: " ".join(faces_of(seen.game.river)),
    "step": lambda seen: game_pb2.TurnStep.Name(seen.game.turn.step).removeprefix("TURN_STEP_"),
    "okey": lambda seen: FACE_OF[seen.game.discard_board.okey],
    "discards": lambda seen: {
        str(pile.seat): FACE_OF[pile.newest] if pile.newest else "" for pile in seen.game.discard_board.piles
    },
    "discarded_seats": lambda seen: list(seen.game.discard_board.discarded_seats),
    "shown_by_seat": lambda seen: seen.game.discard_board.shown_by_seat or None,
    "finished_pairs": _finished_pairs,
    "hand_name": lambda seen: seen.game.discard_board.finish.name,
    "is_foot": lambda seen: seen.game.discard_board.rack_finish.is_foot,
    "trump": lambda seen: FACE_OF[seen.game.discard_board.trump] if seen.game.discard_board.trump else "",
    "laid": lambda seen: _laid(seen.game.discard_board),
    "openings": lambda seen: openings_text(map(opening_text, seen.game.discard_board.openings)),
    "penalties": lambda seen: " ".join(f"{one.seat}:{one.points}" for one in seen.game.discard_board.penalties),
    "passed_seats": lambda seen: list(seen.game.passed_seats),
    "last_chance_seats": lambda seen: list(seen.game.last_chance_seats),
    "shown_play": lambda seen: _shown_play(seen.game),
    "claim_seats": lambda seen: list(seen.game.turn.shown_play.claim_seats),
    "seconds_left": lambda seen: _seconds_left(seen.game),
    "draws": lambda seen: seen.draws,
    "end": lambda seen: _of_last_round(seen.game, None, lambda result: end_of(result.round_end)),
    "round_winner_seats": lambda seen: _of_last_round(seen.game, [], lambda result: list(result.winner_seats)),
    "points": lambda seen: _of_last_round(seen.game, [], lambda result: [seat.points for seat in result.seats]),
    "open_racks": lambda seen: _of_last_round(seen.game, {}, _open_racks),
    "open_pool": lambda seen: _of_last_round(seen.game, "", lambda result: " ".join(faces_of(result.pool))),
    "totals": lambda seen: [player.total_points for player in seen.game.players],
    "winner_seats": lambda seen: list(seen.game.winner_seats),
    "abandoned": lambda seen: seen.game.abandoned,
    "absent": lambda seen: _absent(seen.game),
    "time_left": lambda seen: [
        player.time_left.ToMilliseconds() / 1000 if player.HasField("time_left") else None
        for player in seen.game.players
    ],
    "timeouts": lambda seen: [player.timeouts_in_a_row for player in seen.game.players],
    "next_round_seconds": lambda seen: _next_round_seconds(seen.game),
    "open_draft": lambda seen: _open_draft(seen.open_game),
    "is_open": lambda seen: seen.open_game is not None,
}


TURN_ACTIONS = frozenset(
    {
        "play",
        "draw",
        "pass",
        "knock",
        "lay_on_river",
        "take_from_pool",
        "take_discard",
        "take_trump",
        "pass_empty_pool",
        "foot",
        "discard",
        "finish",
        "lay",
        "return_discard",
        "show_indicator",
    }
)
"""What PlayTurn takes."""


@dataclass
class Table:
    """A game in progress over gRPC, and the seat that looks at it; 0 stands for a spectator."""

    service: Service
    game: GameAtHand
    seen: game_pb2.Game
    viewer: int
    violations: Faces = ()

    async def act(self, act: Act) -> None:
        """Performs an action. Raises AioRpcError if it is refused."""
        self.violations = ()
        if act.do == "wait":
            self.service.clock.advance(act.seconds)
            return
        match act.do:
            case do if do in TURN_ACTIONS:
                await self._take_turn(act)
            case "time_out" | "pause_end":
                left = _seconds_left(self.seen) if act.do == "time_out" else _next_round_seconds(self.seen)
                assert left is not None
                self.service.clock.advance(left + 0.001)
            case "join":
                await self.game.join(act.name, act.seat or None)
            case _:
                await self._call(act)
        self.seen = await self.game.see(self.viewer)

    async def _take_turn(self, act: Act) -> None:
        request = ts.PlayTurnRequest(game_id=self.game.game_id, etag=self.seen.etag)
        match act.do:
            case "play":
                play = ts.PlayTiles(
                    table=any_table_of(act.table),
                    river_index=act.river_index,
                    calls_rummikub=act.calls_rummikub,
                    knocks=act.knocks,
                )
                request.play.CopyFrom(play)
            case "draw":
                request.draw.SetInParent()
            case "pass":
                request.pass_turn.SetInParent()
            case "knock":
                request.knock.SetInParent()
            case "lay_on_river":
                request.lay_on_river.tile = tile_of(act.tile)
            case "discard":
                request.discard.tile = tile_of(act.tile)
            case "finish":
                request.finish.CopyFrom(ts.FinishHand(tile=tile_of(act.tile), hand=hand_of(act.hand)))
            case "foot":
                assert not isinstance(act.table, GridText)
                table = hand_of(meld.tiles for meld in act.table)
                request.finish.CopyFrom(ts.FinishHand(tile=tile_of(act.tile), table=table))
            case "lay":
                assert not isinstance(act.table, GridText)
                request.lay.CopyFrom(ts.LayTiles(table=hand_of(meld.tiles for meld in act.table)))
            case _:
                getattr(request, act.do).SetInParent()
        answer = await self.service.client.turns.PlayTurn(request, metadata=self.game.as_seat(act.seat))
        self.violations = reasons_of(answer.violations)

    async def _call(self, act: Act) -> None:
        rpc = named(act.do, METHODS)
        values: dict[str, object] = {
            "game_id": self.game.game_id,
            "etag": self.seen.etag,
            "seat": act.kicked,
            "is_ready": act.is_ready,
            "agrees": act.agrees,
            "play_revision": self.seen.turn.shown_play.revision or self.seen.revision,
            "draft": game_pb2.Draft(table=any_table_of(act.table)),
        }
        request = new_message(
            rpc.name, **{name: values[name] for name in rpc.input_type.fields_by_name if name in values}
        )
        metadata = self.game.as_seat(act.seat) if act.seat else self.game.as_host()
        answer = await send_raw(self.service.client, rpc, request.SerializeToString(), metadata)
        if act.do == "renew_seat_token":
            self.game.tokens[act.seat] = gs.RenewSeatTokenResponse.FromString(answer).seat_token

    async def see(self, refused: Faces) -> GameSeen:
        game = await self.game.see(self.viewer)
        seen = {player.seat: await self.game.see(player.seat) for player in game.players}
        racks = {str(seat): " ".join(faces_of(game.rack)) for seat, game in seen.items()}
        rematch = next((game.rematch_game_id for game in seen.values()), "")
        return GameSeen(game, racks, await self._draws(), refused, self.violations, await self._open_game(), rematch)

    async def _open_game(self) -> game_pb2.Game | None:
        """Returns the game as a caller without a token sees it; None if it shows them nothing."""
        try:
            return (await self.service.client.games.GetGame(gs.GetGameRequest(game_id=self.game.game_id))).game
        except grpc.aio.AioRpcError as error:
            if _reasons(error) != ("SPECTATORS_NOT_ALLOWED",):
                raise
            return None

    async def _draws(self) -> str:
        request = gs.ListChangesRequest(game_id=self.game.game_id)
        history = await self.service.client.games.ListChanges(request, metadata=self.game.as_seat(self.viewer))
        events = [event for change in history.changes for event in change.events]
        dealt = [event.round_started for event in events if event.HasField("round_started")]
        return " ".join(f"{draw.seat}:{FACE_OF[draw.tile]}" for draw in dealt[-1].draws) if dealt else ""


async def play(service: Service, question: LittleGame, options: Options) -> GameSeen:
    """Plays a short game with options that CreateGame accepts."""
    assert not await creation_problems(service, options)
    service.chance.coming = deque(question.shuffles)
    game = await _first(service, question, options)
    viewer = 1 if options.get("spectators") == "OFF" else 0
    table = Table(service, game, await game.see(viewer), viewer)
    refused: Faces = ()
    for act in question.actions:
        assert not refused, f"before {act}: refused for {refused}"
        try:
            await table.act(act)
        except grpc.aio.AioRpcError as error:
            refused = () if act.attempt else _reasons(error)
    return await table.see(refused)


async def _first(service: Service, question: LittleGame, options: Options) -> GameAtHand:
    if question.position is None:
        return await service.client.new_game(question.players, start=False, **creation_of(options))
    return await put(service, options, round_of(question, *decoded(options), service.clock()))


def _reasons(error: grpc.aio.AioRpcError) -> Faces:
    """Returns every reason of an error."""
    refused = violation_pb2.Refusal()
    assert any(detail.Unpack(refused) for detail in status_details(error).details)
    return reasons_of(refused.violations) or (reason_name(refused.reason),)
