"""Games over gRPC, for tests, drills and measurements: a client with all stubs, and a game with its tokens."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Protocol

import grpc.aio

from engine.discard.presets import GAME_OPTIONS as DISCARD_OPTIONS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.melding.presets import GAME_OPTIONS
from rummikub.v1 import game_pb2, meld_pb2, room_settings_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.challenge_service_pb2_grpc import ChallengeServiceStub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.puzzle_service_pb2_grpc import PuzzleServiceStub
from rummikub.v1.record_service_pb2_grpc import RecordServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub

if TYPE_CHECKING:
    from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceAsyncStub
    from rummikub.v1.challenge_service_pb2_grpc import ChallengeServiceAsyncStub
    from rummikub.v1.game_service_pb2_grpc import GameServiceAsyncStub
    from rummikub.v1.puzzle_service_pb2_grpc import PuzzleServiceAsyncStub
    from rummikub.v1.record_service_pb2_grpc import RecordServiceAsyncStub
    from rummikub.v1.turn_service_pb2_grpc import TurnServiceAsyncStub
    from rummikub.v1.validation_service_pb2_grpc import ValidationServiceAsyncStub

REDEAL: Final = ruleset_pb2.DEAL_THREE_PAIRS_RESHUFFLE_ON_REQUEST


def without_presence(game: game_pb2.Game) -> game_pb2.Game:
    """Returns a game after it is cleared of the presence of its players."""
    for player in game.players:
        player.ClearField("is_connected")
        player.ClearField("last_seen_time")
    return game


Options = Mapping[str, Any]
"""Options of ruleset and settings by name, as in docs/options.md; the contract's numbers of enums."""


def options(**chosen: Any) -> Options:  # noqa: ANN401 - each option has a type of its own
    """Returns options for `creation`."""
    return chosen


DISCARD_PRESETS: Final = frozenset(ruleset_pb2.Preset.Value(f"PRESET_{preset.name}") for preset in DiscardPreset)
"""The presets of games of discards."""


def creation(chosen: Options) -> dict[str, Any]:
    """Returns the fields `ruleset` and `settings` of a request to create a game, whose preset says which game it is."""
    ruleset, settings = ruleset_pb2.Ruleset(), room_settings_pb2.RoomSettings()
    is_discard = chosen.get("preset") in DISCARD_PRESETS
    rules: Any = ruleset.discard if is_discard else ruleset.melding
    rows = DISCARD_OPTIONS if is_discard else GAME_OPTIONS
    for name, value in chosen.items():
        if name == "preset":
            rules.preset = value
            continue
        row = rows[name]
        part: Any = reduce(getattr, row.path[:-1], rules if row.stage else settings)
        if row.per_second:
            getattr(part, row.path[-1]).FromMilliseconds(value * 1_000 // row.per_second)
        else:
            setattr(part, row.path[-1], value)
    return {"ruleset": ruleset, "settings": settings}


def game_rules(**chosen: Any) -> ruleset_pb2.Ruleset:  # noqa: ANN401 - each option has a type of its own
    """Returns the ruleset of a game with some options."""
    ruleset: ruleset_pb2.Ruleset = creation(chosen)["ruleset"]
    return ruleset


def melding_rules(**chosen: Any) -> ruleset_pb2.MeldingRuleset:  # noqa: ANN401 - each option has a type of its own
    """Returns the ruleset of a position or a turn with some options."""
    return game_rules(**chosen).melding


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a seat's owner; of a spectator for an empty token."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def as_tiles(numbers: Iterable[int]) -> list[tile_pb2.Tile.ValueType]:
    """Casts numbers to tiles without a check."""
    return [tile_pb2.Tile.ValueType(number) for number in numbers]


def new_id() -> str:
    """Returns a request id."""
    return str(uuid.uuid4())


class Stubs(Protocol):
    """Stubs of the services: a Client, or the client library's `rummikub.aio.Rummikub`."""

    @property
    def games(self) -> "GameServiceAsyncStub":
        """GameService."""
        ...

    @property
    def turns(self) -> "TurnServiceAsyncStub":
        """TurnService."""
        ...

    @property
    def validation(self) -> "ValidationServiceAsyncStub":
        """ValidationService."""
        ...


@dataclass(frozen=True)
class Client:
    """Stubs of all services on a channel."""

    channel: grpc.aio.Channel

    @property
    def games(self) -> "GameServiceAsyncStub":
        """GameService."""
        return GameServiceStub(self.channel)

    @property
    def turns(self) -> "TurnServiceAsyncStub":
        """TurnService."""
        return TurnServiceStub(self.channel)

    @property
    def validation(self) -> "ValidationServiceAsyncStub":
        """ValidationService."""
        return ValidationServiceStub(self.channel)

    @property
    def analysis(self) -> "AnalysisServiceAsyncStub":
        """AnalysisService."""
        return AnalysisServiceStub(self.channel)

    @property
    def puzzles(self) -> "PuzzleServiceAsyncStub":
        """PuzzleService."""
        return PuzzleServiceStub(self.channel)

    @property
    def records(self) -> "RecordServiceAsyncStub":
        """RecordService."""
        return RecordServiceStub(self.channel)

    @property
    def challenges(self) -> "ChallengeServiceAsyncStub":
        """ChallengeService."""
        return ChallengeServiceStub(self.channel)

    async def new_game(
        self,
        players: int = 2,
        *,
        start: bool = True,
        ruleset: ruleset_pb2.Ruleset | Options | None = None,
        settings: room_settings_pb2.RoomSettings | None = None,
    ) -> "GameAtHand":
        """Creates a public game with players, the first of whom is the host; starts it unless told otherwise.

        Its shuffles are the server's own, unless the settings have a fair_deal: a seeded server always deals the same.
        """
        rules = {"ruleset": ruleset} if isinstance(ruleset, ruleset_pb2.Ruleset | None) else creation(ruleset)
        request = gs.CreateGameRequest(**rules, request_id=new_id(), visibility=game_pb2.VISIBILITY_PUBLIC)
        request.settings.fair_deal = request.settings.fair_deal or room_settings_pb2.FAIR_DEAL_OFF
        request.settings.MergeFrom(settings or room_settings_pb2.RoomSettings())
        created = await self.games.CreateGame(request)
        game = GameAtHand(self, created.game.game_id, host_token=created.host_token)
        game.note(created.game)
        for number in range(players):
            await game.join(f"player {number + 1}")
        if start:
            await game.start()
        return game

    async def new_game_to_redeal(self, ruleset: Options | None = None) -> tuple["GameAtHand", int]:
        """Returns a started game of three, and a seat that may demand a new deal."""
        rules = {"deal_hand_size": 21, "deal_three_pairs_reshuffle": REDEAL, **(ruleset or {})}
        while True:  # in most deals some player has three pairs
            game = await self.new_game(players=3, ruleset=rules)
            for seat in (1, 2, 3):
                rack = list((await game.see(seat)).rack)
                if sum(rack.count(tile) // 2 for tile in set(rack)) >= 3:
                    return game, seat


@dataclass
class GameAtHand:
    """A game with the tokens of its seats; seat 0 is a spectator. The first player who joins is the host."""

    client: Client
    game_id: str
    tokens: dict[int, str] = field(default_factory=lambda: {0: ""})
    host_token: str = ""
    etags: dict[int, str] = field(default_factory=dict)
    """The etags that were seen, by revision; the last one seen is the last."""

    @property
    def etag(self) -> str:
        """The etag that was seen last."""
        return next(reversed(self.etags.values()), "")

    def note(self, game: game_pb2.Game) -> game_pb2.Game:
        """Notes the etag of a game that was seen; returns the game."""
        self.etags.pop(game.revision, None)
        self.etags[game.revision] = game.etag
        return game

    async def join(self, name: str, seat: int | None = None) -> int:
        """Takes a seat, the first free one for None; returns its number."""
        request = gs.JoinGameRequest(game_id=self.game_id, name=name, seat=seat, request_id=new_id())
        metadata = self.as_host() if len(self.tokens) == 1 else ()
        answer = await self.client.games.JoinGame(request, metadata=metadata)
        self.tokens[answer.seat] = answer.seat_token
        self.note(answer.game)
        return answer.seat

    async def start(self) -> game_pb2.Game:
        """Starts the game as its first player."""
        request = gs.StartGameRequest(game_id=self.game_id, request_id=new_id())
        return self.note((await self.client.games.StartGame(request, metadata=self.as_seat(1))).game)

    async def ready(self, seat: int, *, is_ready: bool = True) -> game_pb2.Game:
        """Says whether a seat is ready to start."""
        request = gs.SetReadyRequest(game_id=self.game_id, is_ready=is_ready, request_id=new_id())
        return (await self.client.games.SetReady(request, metadata=self.as_seat(seat))).game

    async def kick(self, kicked: int, by: int = 0) -> game_pb2.Game:
        """Removes a player from the lobby, for a seat or for the owner of the host token."""
        request = gs.KickPlayerRequest(game_id=self.game_id, seat=kicked, request_id=new_id())
        metadata = self.as_seat(by) if by else self.as_host()
        return (await self.client.games.KickPlayer(request, metadata=metadata)).game

    async def rematch(self, seat: int) -> "GameAtHand":
        """Creates the rematch for a seat, or finds it; returns it without tokens."""
        request = gs.CreateRematchRequest(game_id=self.game_id, request_id=new_id())
        over = (await self.client.games.CreateRematch(request, metadata=self.as_seat(seat))).game
        return GameAtHand(self.client, over.rematch_game_id)

    def as_seat(self, seat: int) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a seat's owner."""
        return bearer(self.tokens[seat])

    def as_host(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of the owner of the host token."""
        return bearer(self.host_token)

    async def see(self, seat: int = 0) -> game_pb2.Game:
        """Returns the game as a seat sees it, without presence, which changes by itself."""
        request = gs.GetGameRequest(game_id=self.game_id)
        return without_presence(self.note((await self.client.games.GetGame(request, metadata=self.as_seat(seat))).game))

    async def etag_at(self, revision: int) -> str:
        """Returns the etag of a revision."""
        request = gs.GetGameRequest(game_id=self.game_id, revision=revision)
        return (await self.client.games.GetGame(request)).game.etag

    async def take(self, turn: ts.PlayTurnRequest, seat: int = 0) -> ts.PlayTurnResponse:
        """Takes a turn at the current revision, for a seat or for the seat to move."""
        game = await self.see()
        request = ts.PlayTurnRequest(game_id=self.game_id, etag=game.etag, request_id=new_id())
        request.MergeFrom(turn)
        answer = await self.client.turns.PlayTurn(request, metadata=self.as_seat(seat or game.turn.seat))
        self.note(answer.game)
        return answer

    async def draw(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Draws a tile for a seat, or for the seat to move."""
        return await self.take(ts.PlayTurnRequest(draw=ts.DrawTile()), seat)

    async def pass_on(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Passes for a seat, or for the seat to move."""
        turn = ts.PlayTurnRequest()
        turn.pass_turn.SetInParent()
        return await self.take(turn, seat)

    async def knock(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Knocks for a seat, or for the seat to move."""
        turn = ts.PlayTurnRequest()
        turn.knock.SetInParent()
        return await self.take(turn, seat)

    async def lay_on_river(self, tile: int, seat: int = 0) -> ts.PlayTurnResponse:
        """Lays one of two tiles drawn from the River for a seat, or for the seat to move."""
        laid = ts.LayOnRiver(tile=as_tiles([tile])[0])
        return await self.take(ts.PlayTurnRequest(lay_on_river=laid), seat)

    async def play_illegally(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Submits an illegal table: one with an unfinished meld from the rack."""
        player = seat or (await self.see()).turn.seat
        own = await self.see(player)
        unfinished = meld_pb2.Meld(tiles=own.rack[:2])
        table = [*(meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in own.table.melds), unfinished]
        return await self.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=table))), player)

    async def save_draft(self, draft: game_pb2.Draft | None = None, seat: int = 0) -> ts.SaveDraftResponse:
        """Saves a draft at the current revision, for a seat or for the seat to move."""
        game = await self.see()
        request = ts.SaveDraftRequest(game_id=self.game_id, etag=game.etag, draft=draft)
        return await self.client.turns.SaveDraft(request, metadata=self.as_seat(seat or game.turn.seat))

    async def claim(self, seat: int, *, agrees: bool = True, play_revision: int = 0) -> game_pb2.Game:
        """Votes on the displayed illegal play."""
        revision = play_revision or (await self.see()).turn.shown_play.revision
        request = ts.ClaimErrorRequest(game_id=self.game_id, play_revision=revision, agrees=agrees, request_id=new_id())
        return (await self.client.turns.ClaimError(request, metadata=self.as_seat(seat))).game

    async def redeal(self, seat: int) -> game_pb2.Game:
        """Demands a new deal."""
        request = ts.RequestRedealRequest(game_id=self.game_id, request_id=new_id())
        return (await self.client.turns.RequestRedeal(request, metadata=self.as_seat(seat))).game


async def changes_of(stubs: Stubs, game_id: str) -> list[game_pb2.GameChange]:
    """Returns all changes of a game, as a spectator sees them."""
    changes: list[game_pb2.GameChange] = []
    token = ""
    while True:
        request = gs.ListChangesRequest(game_id=game_id, page_size=200, page_token=token)
        answer = await stubs.games.ListChanges(request)
        changes.extend(answer.changes)
        token = answer.next_page_token
        if not token:
            return changes
