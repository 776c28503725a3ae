"""Pairs of games that differ only in hidden tiles, a store that holds one of them, and requests about it.

Tests and `make secrets` (load/hidden/) compare the answers to both games of a pair.
"""

import copy
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from engine.discard.events import HandsDealt
from engine.game import Game, Playing
from engine.melding.drafts import Draft
from engine.melding.events import RoundStarted
from engine.melding.grid.cells import Grid, without_faces
from engine.melding.melds import ProposedMeld
from engine.melding.round import MeldingRound
from engine.melding.turns import arrange
from engine.replay import replay
from engine.room_settings import DraftVisibility, FairDeal
from engine.seats import HOST
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import discard_pb2, game_pb2, meld_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.identity import digest
from service.model.change import NO_ETAG, Commit
from service.model.presence import PRESENCE_MS, Sighting
from service.model.record import Listing, OperatorData, PlayerRef, Record, SeatToken
from service.storage.memory import MemoryStore
from service.storage.snapshot import encode_draft
from service.storage.stored_events import encode_change
from support.delegating_store import DelegatingStore
from support.harness import HISTORY, FakeClock, as_tiles
from support.lookalikes import History, lookalike
from support.random_play import Change, players_of, random_changes
from support.rooms import Rules
from support.rpcs import METHODS, MUTATING, usual_request

GAME = f"{1:032x}"
"""The id of every game in the test, so that neither ids nor etags distinguish games."""
HOST_VIEWER = 9
"""The number by which the test names a host without a seat as a viewer; no game has nine players."""
DEAL_NONCE = bytes(range(16))
"""The nonce of the deals of games with fair deals, which are all on the same commitment."""


@dataclass(frozen=True)
class Course:
    """The events of a game with the time of each change."""

    history: History
    times: Sequence[int]

    def until(self, revision: int) -> "Course":
        """Returns the course of the game up to a revision."""
        return Course(self.history[:revision], self.times[:revision])

    def lookalike(self, viewer: int, rng: random.Random, kept: int = 0) -> "Course":
        """Returns another game that looks the same to a seat, or to a spectator for 0."""
        return Course(lookalike(self.history, viewer or None, rng, kept), self.times)


class Shelf(DelegatingStore):
    """A store of one game, which a test replaces together with its history.

    Args:
        clock: Set to the time of the game's last change.
        has_presence: Whether it has the presence of players, which is the same for each game that is put, and what
            the server reports of it. Only a server that reports at known times can be compared then.

    Attributes:
        game: The game that was put last.
        seed: The server's seed of its last deal; empty for none.
    """

    def __init__(self, clock: FakeClock, *, has_presence: bool = False) -> None:
        self._has_presence = has_presence
        self._shelf = MemoryStore(HISTORY, clock)
        super().__init__(self._shelf)
        self._clock_to_set = clock
        self._puts = 0
        """How many games were put. What only the operator sees is another one in each, and in no response."""
        self.game: Game | None = None
        self.seed = b""

    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        """Stores sightings, or drops them: presence changes by itself between two responses that are compared."""
        if self._has_presence:
            await self._shelf.presence.report(game_id, server, sightings)

    async def put(
        self,
        course: Course,
        *,
        kept: int | None = None,
        key: str = "",
        is_operators: bool = False,
        draft: Draft | None = None,
    ) -> Game:
        """Replaces the stored game.

        Args:
            course: The course of the game.
            kept: How many of its last changes are stored; None: all.
            key: The name of the key with which the game was created.
            is_operators: Whether what only the operator sees is the same in each game.
            draft: The draft of the player to move; None for none.
        """
        game = self.game = replay(course.history)
        dealt = [event for events in course.history for event in events if isinstance(event, RoundStarted | HandsDealt)]
        self.seed = dealt[-1].seed if dealt else b""
        last = list(enumerate(zip(course.history, course.times, strict=True), 1))[-kept if kept else 0 :]
        stream = [
            (revision, encode_change(revision, now_ms, bytes(16), events), _etag_of(revision))
            for revision, (events, now_ms) in last
        ]
        seats = tuple(SeatToken(player.seat, digest(token_of(player.seat))) for player in game.players)
        tokens = (*seats, SeatToken(HOST, digest(token_of(HOST_VIEWER))))
        _, change, etag = stream[-1]
        self._empty()
        self._clock_to_set.now_ms = course.times[-1]
        self._puts += 1
        puts = 0 if is_operators else self._puts
        refs = tuple(PlayerRef(1, player.seat, f"{puts} of {player.seat}") for player in game.players)
        operator = OperatorData((("table", f"{puts}"),), refs)
        nonce = DEAL_NONCE if game.settings.fair_deal is FairDeal.COMMITTED else b""
        record = Record(
            GAME,
            game,
            etag,
            tokens,
            course.times[0],
            course.times[-1],
            Listing(key=key),
            operator_data=operator,
            deal_nonce=nonce,
        )
        await self._shelf.games.commit(Commit(NO_ETAG, record, change))
        stored = self._shelf.memory.games[GAME]
        stored.stream = stream
        if draft:
            stored.draft, stored.drafts = encode_draft(draft), 1
        if self._has_presence:
            stored.presence = presence_of(game, course.times[-1])
        return game

    def presence_kept(self) -> list[tuple[bytes, int]]:
        """Returns what is stored of the presence of players."""
        return sorted(self._shelf.memory.stored(GAME).presence.items())

    def _empty(self) -> None:
        """Drops every game, list, name and deadline: also those that the responses before have made."""
        shelf = self._shelf
        for part in (shelf.lists, shelf.names, shelf.deadlines):
            for held in vars(part).values():
                if isinstance(held, dict):
                    held.clear()
        shelf.memory.games.clear()

    def taken(self) -> object:
        """Returns a copy of what is stored of the game, to be placed again."""
        return copy.deepcopy(self._shelf.memory.games[GAME])

    def place(self, taken: Any, now_ms: int) -> None:  # noqa: ANN401 - what `taken` returns
        """Replaces the stored game by one that was taken, and sets the clock."""
        self._shelf.memory.games[GAME] = copy.deepcopy(taken)
        self._clock_to_set.now_ms = now_ms

    def made_etags(self) -> list[str]:
        """Returns the etags of changes since `put`, and of those that were rewritten.

        They depend on all tiles, and on a random nonce that hides these.
        """
        stream = self._shelf.memory.stored(GAME).stream
        return [etag for revision, _, etag in stream if etag != _etag_of(revision)]


def _etag_of(revision: int) -> str:
    return f"{revision:032x}"


def presence_of(game: Game, now_ms: int) -> dict[bytes, int]:
    """Returns the stored presence of a game's players: each was seen at a time of its own, one still watches."""
    found = {f"{player.seat}".encode(): now_ms - 1000 * player.seat for player in game.players}
    return {**found, f"{game.players[0].seat}:elsewhere".encode(): now_ms + PRESENCE_MS}


def draft_of(game: Game, viewer: int, now_ms: int) -> Draft | None:
    """Returns a draft of the player to move; None if the game has no turn with drafts.

    It has tiles of the rack, unless the viewer, who is another one, may see it: it would show these tiles.
    """
    if not isinstance(game.phase, Playing) or not isinstance(game.round, MeldingRound):
        return None
    seat, table = game.round.turn.seat, game.round.table
    if isinstance(table, Grid):
        drafted = arrange(game, seat, without_faces(table), now_ms)
    else:
        is_shown = game.settings.draft_visibility is DraftVisibility.EVERYONE and viewer != seat
        own = () if is_shown else (ProposedMeld(game.round.rack(seat).tiles[:3], None),)
        drafted = arrange(game, seat, (*(ProposedMeld(meld.tiles, meld.kind) for meld in table), *own), now_ms)
    return drafted if isinstance(drafted, Draft) else None


def token_of(seat: int) -> str:
    """Returns the token of a viewer; an empty string for 0, a spectator."""
    return f"{seat}" * 43 if seat else ""


def course_under(ruleset: Rules, seed: int) -> tuple[Course, list[Game]]:
    """Returns a whole random melding game, and the game after each change."""
    return course_of(random_changes(seed, players_of(ruleset, seed), ruleset))


def course_of(played: Iterable[Change]) -> tuple[Course, list[Game]]:
    changes = list(played)
    course = Course([change.applied.events for change in changes], [change.now_ms for change in changes])
    return course, [change.applied.game for change in changes]


MAY_CHANGE_A_ROUND = {
    "CreateGame",
    "JoinOrCreateGame",
    "PlayTurn",
    "ClaimError",
    "ResignGame",
    "AbortGame",
    "RenewSeatToken",
    "ReissueSeatToken",
    "RequestRedeal",
}
"""RPCs that a round does not refuse. Turns and claims are asked in forms of their own."""


def questions(seen: game_pb2.Game, rng: random.Random) -> Iterator[tuple[str, Message]]:
    """Yields requests that are only validated or are refused, each with its method."""
    game_id, revision = GAME, seen.revision
    some_is_absent = any(player.is_absent for player in seen.players)
    for rpc in MUTATING:
        if rpc not in MAY_CHANGE_A_ROUND and not (rpc == "ReturnToSeat" and some_is_absent):
            yield f"{METHODS[rpc].containing_service.name}/{rpc}", usual_request(rpc, game_id, seen.etag)
    yield "RecordService/ExportGame", rs.ExportGameRequest(game_id=game_id)
    yield "GameService/GetGame", gs.GetGameRequest(game_id=game_id, revision=rng.randint(1, revision))
    own = gs.OwnSeat(game_id=game_id, seat_token=token_of(seen.seat or HOST_VIEWER))
    yield "GameService/ListOwnGames", gs.ListOwnGamesRequest(seats=[own])
    yield "GameService/ExportOwnGames", gs.ExportOwnGamesRequest(seats=[own])
    yield "GameService/CreateWatchTicket", gs.CreateWatchTicketRequest(game_id=game_id)
    yield "RecordService/ReviewGame", rs.ReviewGameRequest(game_id=game_id)
    yield "TurnService/SaveDraft", ts.SaveDraftRequest(game_id=game_id, etag=f"{revision + 1}-{'0' * 32}")
    for tile in rng.sample(range(1, 54), 3):
        draft = game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([*seen.rack, tile] * 3))]))
        yield "TurnService/SaveDraft", ts.SaveDraftRequest(game_id=game_id, etag=seen.etag, draft=draft)
    yield "TurnService/ClaimError", ts.ClaimErrorRequest(game_id=game_id, play_revision=revision + 1, agrees=True)
    for turn in turns(seen, rng):
        turn.game_id, turn.etag, turn.validate_only = game_id, seen.etag, True
        yield "TurnService/PlayTurn", turn
        if seen.turn.seat != seen.seat:
            real = ts.PlayTurnRequest()
            real.CopyFrom(turn)
            real.validate_only = False
            yield "TurnService/PlayTurn", real
    for tier in (an.HINT_TIER_PLAY_EXISTS, an.HINT_TIER_TURN):
        hint = an.SuggestTurnRequest(game_id=game_id, tier=tier, time_limit=Duration(seconds=10))
        yield "AnalysisService/SuggestTurn", hint
    coached_turn = an.CoachedTurn(table=seen.table)
    coached_turn.table.melds.add(tiles=seen.rack[:3])
    smaller = rng.choice((an.COACH_STAGE_COUNT, an.COACH_STAGE_MELDS, an.COACH_STAGE_STEP))
    for stage in (smaller, an.COACH_STAGE_TURN):
        coached = an.CoachTurnRequest(game_id=game_id, turn=coached_turn, stage=stage, time_limit=Duration(seconds=10))
        yield "AnalysisService/CoachTurn", coached


def turns(seen: game_pb2.Game, rng: random.Random) -> Iterator[ts.PlayTurnRequest]:
    """Yields turns of every kind, with tiles of the seat and with other tiles."""
    yield ts.PlayTurnRequest(draw=ts.DrawTile())
    yield from discard_turns(seen, rng)
    passing = ts.PlayTurnRequest()
    passing.pass_turn.SetInParent()
    yield passing
    knocking = ts.PlayTurnRequest()
    knocking.knock.SetInParent()
    yield knocking
    own, table = list(seen.rack), [meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in seen.table.melds]
    for tile in (1, 53, *own[:2]):
        yield ts.PlayTurnRequest(lay_on_river=ts.LayOnRiver(tile=as_tiles([tile])[0]))
    first = rng.randint(1, 50)
    for tiles in (own[:3], own[-1:], (first, first + 1, first + 2), (53, 53, 53), rng.choices(range(1, 54), k=4)):
        played = ts.PlayTiles(
            table=meld_pb2.Table(melds=[*table, meld_pb2.Meld(tiles=as_tiles(tiles))]), calls_rummikub=True
        )
        if rng.random() < 0.3:
            played.river_index = 0
        played.knocks = seen.ruleset.melding.turn.knock_limit > 0 and rng.random() < 0.3
        yield ts.PlayTurnRequest(play=played)


def discard_turns(seen: game_pb2.Game, rng: random.Random) -> Iterator[ts.PlayTurnRequest]:
    """Yields turns of games of discards of every kind."""
    for member in ("take_from_pool", "take_discard", "show_indicator", "return_discard", "lay"):
        turn = ts.PlayTurnRequest()
        getattr(turn, member).SetInParent()
        yield turn
    for tile in (1, 53, 80, *rng.sample(range(1, 53), 2), *list(seen.rack)[:2]):
        [sent] = as_tiles([tile])
        yield ts.PlayTurnRequest(discard=ts.DiscardTile(tile=sent))
        yield ts.PlayTurnRequest(finish=ts.FinishHand(tile=sent))
        part = discard_pb2.HandPart(tiles=[*list(seen.rack)[:2], sent])
        yield ts.PlayTurnRequest(finish=ts.FinishHand(tile=sent, hand=[part]))
        yield ts.PlayTurnRequest(lay=ts.LayTiles(table=[*seen.discard_board.table, part]))


def happenings(seen: game_pb2.Game, viewer: int) -> Iterator[tuple[str, Message]]:
    """Yields the next moves of the seat to play: an illegal play if that seat is the viewer, and a draw."""
    if seen.seat == viewer:
        illegal = ts.PlayTurnRequest(game_id=GAME, etag=seen.etag)
        illegal.play.table.melds.add(tiles=seen.rack[:2])
        yield "TurnService/PlayTurn", illegal
    draw = ts.PlayTurnRequest(game_id=GAME, etag=seen.etag)
    (draw.take_from_pool if seen.HasField("discard_board") else draw.draw).SetInParent()
    yield "TurnService/PlayTurn", draw


def unnamed(told: bytes, names: Sequence[str]) -> bytes:
    """Returns a response with each name replaced by its index."""
    for place, name in enumerate(names):
        told = told.replace(name.encode(), b"%032d" % place)
    return told
