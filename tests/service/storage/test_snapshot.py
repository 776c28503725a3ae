"""The storage format of games: lossless round trips, errors for unreadable data, stability, and no exposed secrets.

`golden/format_<number>.jsonl` is a stored game that every later version must read. The script therefore writes the file
only if it does not exist: `python tests/service/storage/test_snapshot.py --write`; `--force` overwrites it. The game is
artificial, because no played game has every event.
"""

import argparse
import itertools
import json
import random
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

from engine.melding.game import round_of
from engine.melding.ruleset import OPTIONS

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[3]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.actions import Action, Join, Leave, Resign, StartGame, StartNextRound, TimeOut
from engine.events import (
    AbortRequested,
    ClockStopped,
    CommonEvent,
    Event,
    GameAborted,
    GameCreated,
    GameEnded,
    PlayerAbsent,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerResigned,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    SeatTakenOver,
    SeatTokenRenewed,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import (
    Finished,
    Game,
    Lobby,
    Phase,
    Playing,
    RoundEnd,
    RoundOver,
    RoundResult,
    SeatResult,
)
from engine.melding.actions import DrawTile, Pass, PlayTiles
from engine.melding.drafts import Draft
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    LastChanceStarted,
    MeldingEvent,
    PlayerKnocked,
    RedealDemanded,
    RiverTileLaid,
    RoundStarted,
    StartDraw,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.melds import Meld, MeldKind, ProposedMeld
from engine.melding.round import Choosing, Drawing, Step
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    Contract,
    JokersMaxPerMeld,
    MatchEnd,
    PoolEmptyMode,
    Ruleset,
    ScoreNeverMelded,
    TurnDirection,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
)
from engine.melding.table import melds_of
from engine.replay import advance, replay
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS
from engine.seats import HOST, BotLevel, Rack, Turn
from engine.tiles import JOKER, Tile, in_order, tile_set
from engine.turns import Applied, apply, create
from engine.violations import Reason
from rummikub.v1 import game_service_pb2 as gs
from service.app.identity import new_shuffle
from service.app.views import change_view, snapshot_view
from service.errors import StoredFormatUnknown
from service.model.change import NO_ETAG, Entry, Memo, lineage
from service.model.record import Record, SeatToken
from service.storage import snapshot as snapshot_module
from service.storage.formats import FORMATS
from service.storage.snapshot import (
    FINGERPRINT_BYTES,
    decode_draft,
    decode_memo,
    decode_record,
    encode_draft,
    encode_memo,
    encode_record,
)
from service.storage.store import Store
from service.storage.stored_events import CHANGE_BYTES_MAX, compress, decode_entry, decompress, encode_change
from support.formats import process_with
from support.harness import HISTORY, START_MS, Client, SeededChance
from support.random_play import Change, random_changes, random_room, time_of
from support.rooms import room

pytestmark = pytest.mark.slow

GOLDEN = {
    number: Path(__file__).parent / "golden" / f"format_{number}.jsonl" for number in (*FORMATS.older, FORMATS.newest)
}
"""The golden file of each format that is read."""
GAME_ID = "0123456789abcdef0123456789abcdef"
EVENT_TYPES: frozenset[type] = frozenset(get_args(CommonEvent | MeldingEvent))
PHASES: frozenset[type] = frozenset(get_args(Phase))
STEPS: frozenset[type] = frozenset(get_args(Step))
PLAYERS = 4


@dataclass(frozen=True)
class Stored:
    """A stored change: the record after it, the change's bytes, and the values they encode."""

    record: Record
    change: bytes
    nonce: bytes
    events: tuple[Event, ...]


def stored_changes(changes: Iterator[Change], rng: random.Random, players: int = PLAYERS) -> Iterator[Stored]:
    """Yields a game's changes as they are stored, with seat tokens."""
    etag, created_ms = NO_ETAG, 0
    digests = {seat: rng.randbytes(32) for seat in range(1, players + 1)}
    for change in changes:
        game, events = change.applied.game, change.applied.events
        assert len(game.players) <= len(digests)
        created_ms = created_ms or change.now_ms
        nonce = rng.randbytes(16)
        data = encode_change(game.revision, change.now_ms, nonce, events)
        etag = lineage(etag, data)
        tokens = tuple(SeatToken(player.seat, digests[player.seat]) for player in game.players)
        yield Stored(Record(GAME_ID, game, etag, tokens, created_ms, change.now_ms), data, nonce, events)


def random_game(seed: int) -> tuple[Stored, ...]:
    """Returns a whole random game as it is stored."""
    rng = random.Random(seed)
    rules = random_room(rng, with_analysis=True)
    players = min(max(rules.ruleset.players_min, 2 + seed % 3), rules.ruleset.players_max)
    return tuple(stored_changes(random_changes(seed, players, rules), rng, 6))


# A game played by the engine


GOLDEN_RULES = room(
    geometry_jokers=4,
    turn_direction=TurnDirection.COUNTERCLOCKWISE,
    jokers_max_per_meld=JokersMaxPerMeld.TWO,
    initial_meld_threshold=0,
    turn_time_limit_seconds=45,
    match_end=MatchEnd.FIXED_ROUNDS,
    match_rounds=2,
)


def a_group(rack: Rack) -> ProposedMeld | None:
    """Returns the first group of three on a rack, with a joker if there is one; None without a group."""
    for tiles in combinations(sorted(set(rack.tiles), reverse=True), 3):
        naturals = [tile for tile in tiles if tile != JOKER]
        if len({(tile - 1) % 13 for tile in naturals}) == 1:
            return ProposedMeld(tiles, MeldKind.GROUP)
    return None


def golden_changes() -> Iterator[Change]:
    """Yields a game made by the engine alone, in every phase: players lay groups, draw, or time out."""
    chance = SeededChance(7)
    applied, now_ms = create(GOLDEN_RULES.ruleset, GOLDEN_RULES.settings), START_MS
    yield Change(None, now_ms, applied)
    lobby = iter((Join("Ada"), Join("Ben"), Join("Zoë ✓"), Leave(2), Join("Cleo"), Join("Dan")))
    while not isinstance(applied.game.phase, Finished):
        action = next(lobby, None) or golden_action(applied.game, chance)
        now_ms = time_of(applied.game, action, now_ms)
        outcome = apply(applied.game, action, now_ms)
        assert isinstance(outcome, Applied), outcome
        applied = outcome
        yield Change(action, now_ms, applied)


def golden_action(game: Game, chance: SeededChance) -> Action:
    """Returns the next action: round one until all pass with an empty pool, round two until all but one resign."""
    match game.phase:
        case Lobby():
            return StartGame(HOST, new_shuffle(chance, GOLDEN_RULES.ruleset, PLAYERS))
        case RoundOver():
            return StartNextRound(2, new_shuffle(chance, GOLDEN_RULES.ruleset, PLAYERS))
        case Playing() if round_of(game).number == 1 or round_of(game).turn.seat == round_of(game).starter:
            return golden_turn(round_of(game), game.revision)
        case _:
            return Resign(game.active_seats[0])


def golden_turn(round_: Round, revision: int) -> Action:
    """Returns a group if there is one; otherwise sometimes a draw, else a time-out; passes with an empty pool."""
    rack = round_.rack(round_.turn.seat)
    meld = a_group(rack) if revision < 20 else None
    if meld:
        return PlayTiles(rack.seat, (*(ProposedMeld(laid.tiles, laid.kind) for laid in melds_of(round_.table)), meld))
    if revision % 5 == 0:
        return DrawTile(rack.seat) if round_.pool else TimeOut()
    return TimeOut() if round_.pool else Pass(rack.seat)


@cache
def golden_game() -> tuple[Stored, ...]:
    """Returns the game of `golden_changes` as it is stored."""
    return tuple(stored_changes(golden_changes(), random.Random(7)))


# An artificial game with every event


MADE_RULES = room(
    geometry_colors=6,
    geometry_jokers=4,
    turn_direction=TurnDirection.COUNTERCLOCKWISE,
    deal_hand_size=7,
    jokers_may_lead=False,
    initial_meld_threshold=0,
    turn_draw=TurnDraw.TWO_RIVER,
    turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES,
    turn_time_limit_seconds=45,
    turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
    pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE,
    contract=Contract.VALUES_BELOW_10,
    contract_points=25,
    match_end=MatchEnd.FIXED_ROUNDS,
    match_rounds=2,
)
PROPOSED = (
    ProposedMeld((Tile(7), Tile(20), JOKER), MeldKind.GROUP, (Tile(59),)),
    ProposedMeld((Tile(79),)),
    ProposedMeld(()),
)
MELD = Meld((Tile(7), Tile(20), JOKER, JOKER), MeldKind.GROUP, 28, ((Tile(60),), (Tile(33), Tile(46))))


class MadeGame:
    """A game made of given events, without any validation."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._chance = SeededChance(11)

    @property
    def game(self) -> Game:
        return self.changes[-1].applied.game

    @property
    def round(self) -> Round:
        return round_of(self.game)

    @property
    def pool(self) -> tuple[Tile, ...]:
        """Returns the tiles in the pool."""
        return self.round.pool

    @property
    def offered(self) -> tuple[Tile, Tile]:
        """Returns the tiles to choose from."""
        assert isinstance(self.round.step, Choosing)
        return self.round.step.tiles

    def happens(self, *events: Event) -> None:
        """Appends one change."""
        game = advance(self.game if self.changes else None, events)
        number = len(self.changes)
        self.changes.append(Change(None, START_MS + number * 1000, Applied(game, events)))

    def deal(self, number: int, order: tuple[int, ...]) -> tuple[Event, ...]:
        """Returns the events of a deal and the first turn."""
        tiles = self._chance.shuffle(tile_set(6, 2, 4))
        racks = tuple(Rack(seat, in_order(tiles[seat * 7 : seat * 7 + 7])) for seat in sorted(order))
        draws = tuple(StartDraw(seat, tiles[seat]) for seat in order)
        return RoundStarted(number, draws, order, racks, tiles[28:]), self.turn(order[0])

    def turn(self, seat: int) -> TurnStarted:
        """Returns a turn with a deadline."""
        return TurnStarted(Turn(seat, START_MS + len(self.changes) * 1000 + 45_000))


def result(number: int, end: RoundEnd) -> RoundResult:
    seats = (SeatResult(1, 40, 5, -15), SeatResult(2, 25, 3, 30), SeatResult(3, 40, 4, -15))
    return RoundResult(number, end, (2,), seats)


def with_racks(made: "MadeGame", ended: RoundResult) -> RoundResult:
    """Returns a result with the racks and the pool of the round."""
    return replace(ended, racks=made.round.racks, pool=made.round.pool)


def made_changes() -> Iterator[Change]:
    """Yields a game with every type of event, in every phase and every step of a turn."""
    made = MadeGame()
    made.happens(GameCreated(MADE_RULES.ruleset, MADE_RULES.settings))
    for seat, name in enumerate(("Ada", "Ben", "Zoë ✓"), 1):
        made.happens(PlayerJoined(seat, name, is_host=seat == 1))
    made.happens(PlayerReadied(3, is_ready=True))
    made.happens(PlayerLeft(1, new_host=2))
    made.happens(PlayerKicked(2, new_host=3))
    made.happens(PlayerJoined(1, "Ada"))
    made.happens(PlayerJoined(2, "Cleo"))
    made.happens(SeatTokenRenewed(HOST), PlayerReadied(2, is_ready=False))
    made.happens(*made.deal(1, (2, 1, 3)))
    made.happens(RedealDemanded(3), *made.deal(1, (2, 1, 3)))
    happen_in_turns(made)
    happen_at_the_end(made)
    second_round(made)
    yield from made.changes


def happen_in_turns(made: MadeGame) -> None:
    """Adds every event that needs tiles in the pool."""
    made.happens(TilesOffered(2, (made.pool[0], made.pool[1])))
    made.happens(RiverTileLaid(2, made.offered[0]), made.turn(1))
    made.happens(TilesOffered(1, (made.pool[0], made.pool[1])))
    made.happens(RiverTileLaid(1, made.offered[1]), made.turn(3))
    made.happens(TileDrawn(3, made.pool[0]))
    made.happens(TurnEnded(3), made.turn(2))
    made.happens(IllegalPlayShown(2, PROPOSED, (Reason.MELD_EMPTY, Reason.JOKER_DECLARATION_MISMATCH)))
    made.happens(ErrorClaimed(3, agrees=True))
    made.happens(ErrorClaimed(1, agrees=False))
    made.happens(IllegalPlayShown(2, PROPOSED, (Reason.MELD_EMPTY,)))
    made.happens(ErrorClaimed(3, agrees=True))
    made.happens(ErrorClaimed(1, agrees=True), TurnPenalised(2, made.pool[:3]), made.turn(1))
    made.happens(TilesDrawn(1, made.pool[:4]), made.turn(3))
    river = made.round.river
    played = in_order((*made.round.rack(3).tiles[:2], river[0]))
    made.happens(TilesPlayed(3, played, (MELD,), 28, river), made.turn(2))
    made.happens(TurnTimedOut(2, made.pool[:3]), made.turn(1))


def happen_at_the_end(made: MadeGame) -> None:
    """Adds the last turns."""
    made.happens(TurnTimedOut(1, made.pool), LastChanceStarted((1, 3, 2)), made.turn(1))
    made.happens(TurnPassed(1), made.turn(3))
    made.happens(TurnTimedOut(3, ()), made.turn(2))
    made.happens(TurnPassed(2), RoundEnded(with_racks(made, result(1, RoundEnd.BLOCKED))))
    made.happens(TurnTimedOut(3, ()), PlayerAbsent(3, BotLevel.MEDIUM), made.turn(2))
    made.happens(TurnPassed(2), RoundEnded(result(1, RoundEnd.BLOCKED), START_MS + 90_000))


def second_round(made: MadeGame) -> None:
    """A player returns, another resigns while choosing a tile, and the rest is absent."""
    made.happens(*made.deal(2, (1, 3, 2)))
    made.happens(PlayerReturned(3))
    made.happens(TilesOffered(1, (made.pool[0], made.pool[1])))
    made.happens(PlayerResigned(1), made.turn(3))
    ended = with_racks(made, result(2, RoundEnd.RESIGNED))
    opened = tuple(replace(one, is_open=True) for one in (*made.game.results, ended))
    made.happens(AbortRequested(2), SeatTokenRenewed(2))
    made.happens(PlayerResigned(3), RoundEnded(ended), GameEnded((2,), opened))
    made.happens(TurnTimedOut(3, ()), PlayerAbsent(3, BotLevel.HARD), ClockStopped(3, 90_500), made.turn(2))
    made.happens(TurnTimedOut(2, ()), PlayerAbsent(2, None), PlayerResigned(2))
    made.happens(RoundEnded(result(2, RoundEnd.RESIGNED)), GameEnded((3,), abandoned=True))
    made.happens(RematchCreated("a" * 32))
    made.happens(GameAborted(by_host=True))  # no game that has ended: the phase is stored like any other
    made.happens(RematchCreated("b" * 32))
    made.happens(PlayerKnocked(2))
    made.happens(SeatTakenOver(1, "Zoë", BotLevel.HARD, new_host=2))


@cache
def made_game() -> tuple[Stored, ...]:
    """Returns the game of `made_changes` as it is stored."""
    return tuple(stored_changes(made_changes(), random.Random(11)))


def golden_lines(game: Iterable[Stored]) -> Iterator[str]:
    """Yields a stored game as text: one line per change, with its compressed form and the snapshot after it."""
    for stored in game:
        line = {
            "etag": stored.record.etag,
            "change": stored.change.decode(),
            "compressed": compress(stored.change).hex(),
            "snapshot": encode_record(stored.record).decode(),
        }
        yield json.dumps(line, ensure_ascii=False)


# Round trips


@pytest.mark.parametrize("seed", range(12))
def test_every_state_and_change_of_a_random_game_round_trips(seed: int) -> None:
    game = random_game(seed)
    assert len(game) > 10
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        entry = Entry(stored.record.game.revision, "e7a9", stored.record.updated_ms, stored.nonce, stored.events)
        assert decode_entry(stored.change, "e7a9") == entry
    entries = [decode_entry(stored.change, stored.record.etag) for stored in game]
    assert replay(entry.events for entry in entries) == game[-1].record.game


SNAPSHOT = str(snapshot_module.__file__)


def test_stored_bytes_and_cached_parts_use_little_memory() -> None:
    """A server caches thousands of games, tables and melds. Allocations of other modules are not counted."""
    changes = list(random_changes(1, PLAYERS, Ruleset()))
    tracemalloc.start()
    try:
        kept = [stored.change for stored in stored_changes(iter(changes), random.Random(1))]
        kept += [encode_record(Record(GAME_ID, change.applied.game, "e7a9", (), 1, 2)) for change in changes]
        ours = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(inclusive=True, filename_pattern=SNAPSHOT)]
        )
    finally:
        tracemalloc.stop()
    taken = sum(trace.size for trace in ours.traces)
    assert taken < 3 * sum(map(len, kept))


def drawing_changes() -> Iterator[Change]:
    """Yields a game in which a player draws one tile after another."""
    made = MadeGame()
    rules = Ruleset(
        turn_draw=TurnDraw.ONE_TO_THREE,
        turn_play_after_draw=TurnPlayAfterDraw.ALLOWED,
        knock_limit=50,
        deal_hand_size=5,
    )
    made.happens(GameCreated(rules))
    for seat, name in enumerate(("Ada", "Ben", "Cleo"), 1):
        made.happens(PlayerJoined(seat, name))
    made.happens(*made.deal(1, (3, 2, 1)))
    for _ in range(2):
        made.happens(TileDrawn(3, made.pool[0]))
    rack = made.round.rack(3).tiles
    made.happens(TilesPlayed(3, rack[:-1], (), 1), PlayerKnocked(3))
    yield from made.changes


def test_draws_one_by_one_and_a_knock_round_trip() -> None:
    game = tuple(stored_changes(drawing_changes(), random.Random(11), 3))
    rounds = [round_of(stored.record.game) for stored in game if stored.record.game.round]
    drawn = [len(round_.step.tiles) for round_ in rounds if isinstance(round_.step, Drawing)]
    assert set(drawn) == {1, 2}
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        assert decode_entry(stored.change, stored.record.etag).events == stored.events


def declining_changes() -> Iterator[Change]:
    """Yields a game in which the initial meld is declined in every possible way."""
    made = MadeGame()
    made.happens(GameCreated(Ruleset(score_never_melded=ScoreNeverMelded.FLAT_100_OR_200)))
    for seat, name in enumerate(("Ada", "Ben", "Cleo"), 1):
        made.happens(PlayerJoined(seat, name))
    made.happens(*made.deal(1, (3, 2, 1)))
    made.happens(TilesOffered(3, (made.pool[0], made.pool[1]), declined=True))
    made.happens(RiverTileLaid(3, made.offered[0]), made.turn(2))
    made.happens(TurnEnded(2, declined=True), made.turn(1))
    made.happens(TilesDrawn(1, made.pool[:4], declined=True), made.turn(3))
    made.happens(*made.deal(2, (3, 2, 1)))
    made.happens(TileDrawn(3, made.pool[0], declined=True), made.turn(2))
    made.happens(TurnTimedOut(2, made.pool), made.turn(1))
    made.happens(TurnPassed(1, declined=True), made.turn(3))
    made.happens(TurnPassed(3), made.turn(2))
    yield from made.changes


def test_declined_initial_melds_round_trip() -> None:
    game = tuple(stored_changes(declining_changes(), random.Random(11), 3))
    rounds = [round_of(stored.record.game) for stored in game if stored.record.game.round]
    first, second = [(), (3,), (3,), (2, 3), (1, 2, 3)], [(), (3,), (3,), (1, 3), (1, 3)]
    assert [round_.declined for round_ in rounds] == [*first, *second]
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        assert decode_entry(stored.change, stored.record.etag).events == stored.events


@pytest.mark.parametrize("level", BotLevel)
def test_bots_round_trip_with_their_level_and_people_without_one(level: BotLevel) -> None:
    joined = (GameCreated(Ruleset()), PlayerJoined(1, "Ada"), PlayerJoined(2, "Bot 1", level))
    record = Record(GAME_ID, advance(None, joined), "e7a9", (), 1, 2)
    assert [player.bot for player in decode_record(encode_record(record)).game.players] == [None, level]
    assert decode_entry(encode_change(1, 2, b"", joined), "e7a9").events == joined


def test_a_level_of_a_newer_server_is_refused_as_a_newer_format() -> None:
    bot = PlayerJoined(1, "Bot 1", BotLevel.HARD)
    record = Record(GAME_ID, advance(None, (GameCreated(Ruleset()), bot)), "e7a9", (), 1, 2)
    for data, decode in (
        (encode_record(record), decode_record),
        (encode_change(1, 2, b"", (bot,)), lambda change: decode_entry(change, "e7a9")),
    ):
        with pytest.raises(StoredFormatUnknown):
            decode(data.replace(b"HARD", b"PERFECT"))


def test_every_event_type_phase_and_step_round_trips() -> None:
    game = made_game()
    rounds = [round_of(stored.record.game) for stored in game if stored.record.game.round]
    assert {type(event) for stored in game for event in stored.events} == EVENT_TYPES
    assert {type(stored.record.game.phase) for stored in game} == PHASES
    assert {type(round_.step) for round_ in rounds} == STEPS - {Drawing}, "the River excludes draws one by one"
    for state in ("shown_play", "last_chance", "river"):
        assert len({getattr(round_, state) for round_ in rounds}) > 1, state
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        assert decode_entry(stored.change, stored.record.etag).events == stored.events


def test_every_value_of_every_option_round_trips() -> None:
    seen = 0
    for option, row in {**OPTIONS, **SETTINGS}.items():
        for value in row.usual:
            chosen = room(**{option: value})
            created = GameCreated(chosen.ruleset, chosen.settings)
            record = Record(GAME_ID, Game(created.ruleset, created.settings, 1), "", (), 1, 2)
            change = encode_change(1, 2, b"", (created,))
            assert decode_record(encode_record(record)) == record
            assert decode_entry(change, "").events == (created,)
            seen += 1
    assert seen > 100


def test_decoding_returns_the_types_of_the_engine() -> None:
    """Equality with a number is not enough: callers check types and use enum names."""
    for stored in (*golden_game(), *made_game()):
        record = decode_record(encode_record(stored.record))
        assert repr(record) == repr(stored.record)
        assert repr(decode_entry(stored.change, "").events) == repr(stored.events)


DRAFT = Draft(3, 17, PROPOSED, is_legal=True, number=5)


def test_drafts_round_trip() -> None:
    for draft in (DRAFT, replace(DRAFT, table=(), is_legal=False)):
        assert decode_draft(encode_draft(draft), b"5") == draft


def test_a_damaged_draft_is_refused() -> None:
    good = json.loads(encode_draft(DRAFT))
    for place in parts(good):
        value = good
        for key in place:
            value = value[key]
        for odd in ODD_VALUES[type(value)]:
            if odd is None and "table" in place:
                continue
            with pytest.raises(StoredFormatUnknown):
                pytest.fail(f"{place} = {odd}: {decode_draft(replaced(good, place, odd), 1)}")
    for length in range(len(encode_draft(DRAFT))):
        with pytest.raises(StoredFormatUnknown):
            decode_draft(encode_draft(DRAFT)[:length], 1)
    for key in good:
        with pytest.raises(StoredFormatUnknown):
            decode_draft(json.dumps({name: part for name, part in good.items() if name != key}).encode(), 1)


def test_memos_with_any_bytes_round_trip() -> None:
    fingerprint = bytes(range(FINGERPRINT_BYTES))
    for salt in (b"", b"\0", b"\xff" * 32, bytes(255)):
        for answer in (b"", b"\0\xff", salt + fingerprint):
            memo = Memo(fingerprint, answer, salt)
            assert decode_memo(encode_memo(memo)) == memo


# Stored rulesets


def stored_ruleset(rules: Ruleset) -> dict[str, Any]:
    """Returns the options in a stored game, which are the same in the snapshot and in the change."""
    record = Record(GAME_ID, Game(rules, DEFAULT_SETTINGS, 1), "", (), 1, 2)
    in_snapshot = json.loads(json.loads(encode_record(record))["game"]["ruleset"])
    (created,) = json.loads(encode_change(1, 2, b"", (GameCreated(rules),)))["events"]
    assert json.loads(created["ruleset"]) == in_snapshot
    assert isinstance(in_snapshot, dict)
    return in_snapshot


def test_a_stored_ruleset_has_only_options_that_differ_from_the_defaults() -> None:
    assert stored_ruleset(Ruleset()) == {}
    chosen = Ruleset(geometry_jokers=4, match_end=MatchEnd.TARGET_SCORE, match_target_score=200)
    assert stored_ruleset(chosen) == {"geometry_jokers": 4, "match_end": "TARGET_SCORE"}


# Unreadable data


def a_snapshot() -> dict[str, Any]:
    """Returns the stored form of a game in the middle of a round, with a shown illegal play."""
    stored = next(
        stored
        for stored in made_game()
        if stored.record.game.round and round_of(stored.record.game).shown_play is not None
    )
    snapshot: dict[str, Any] = json.loads(encode_record(stored.record))
    assert decode_record(json.dumps(snapshot).encode()) == stored.record
    return snapshot


def refused(snapshot: bytes, change: bytes) -> None:
    """Asserts that neither the snapshot nor the change can be decoded."""
    with pytest.raises(StoredFormatUnknown):
        decode_record(snapshot)
    with pytest.raises(StoredFormatUnknown):
        decode_entry(change, "")


def test_the_key_of_a_game_round_trips_and_must_be_a_text() -> None:
    snapshot = a_snapshot()
    *listing, key = snapshot["listing"]
    assert key == ""
    record = decode_record(json.dumps(snapshot).encode())
    of_key = replace(record, listing=replace(record.listing, key="web"))
    assert decode_record(encode_record(of_key)) == of_key
    for other in ([], ["web", "more"], [1], [None]):
        with pytest.raises(StoredFormatUnknown):
            decode_record(json.dumps({**snapshot, "listing": [*listing, *other]}).encode())


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 99, "5", None])
def test_another_format_number_is_refused(number: object) -> None:
    snapshot = json.dumps({**a_snapshot(), "format": number}).encode()
    refused(snapshot, snapshot)
    for stored in golden_game()[:3]:
        change = {**json.loads(stored.change), "format": number}
        with pytest.raises(StoredFormatUnknown):
            decode_entry(json.dumps(change).encode(), "")


def test_a_missing_format_number_is_refused() -> None:
    snapshot = a_snapshot()
    del snapshot["format"]
    data = json.dumps(snapshot).encode()
    refused(data, data)


@pytest.mark.parametrize(
    "chosen",
    [
        {"no_such_option": 1},
        {"match_end": "BEST_OF_SEVEN"},
        {"match_end": 1},
        {"turn_direction": "clockwise"},
        {"geometry_jokers": 2, "run_wrap": "MOEBIUS"},
    ],
)
def test_an_unknown_option_or_value_is_refused(chosen: dict[str, object]) -> None:
    snapshot = a_snapshot()
    snapshot["game"]["ruleset"] = json.dumps(chosen)
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(snapshot).encode())
    created = json.loads(made_game()[0].change)
    created["events"][0]["ruleset"] = json.dumps(chosen)
    with pytest.raises(StoredFormatUnknown):
        decode_entry(json.dumps(created).encode(), "")


@pytest.mark.parametrize("name", ["TileStolen", "", "gamecreated", None])
def test_an_unknown_type_of_event_is_refused(name: str | None) -> None:
    change = json.loads(encode_change(3, 4, b"nonce", (PlayerJoined(1, "Ada"), TileDrawn(1, JOKER))))
    change["events"][1]["type"] = name
    with pytest.raises(StoredFormatUnknown):
        decode_entry(json.dumps(change).encode(), "")


@pytest.mark.parametrize("name", ["Paused", "", None])
def test_an_unknown_phase_is_refused(name: str | None) -> None:
    snapshot = a_snapshot()
    snapshot["game"]["phase"]["type"] = name
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(snapshot).encode())


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"type": "Choosing"},
        {"type": "Choosing", "tiles": "01"},
        {"type": "Drawn", "tile": "x"},
        {"type": "Waiting"},
    ],
)
def test_an_unknown_step_of_a_turn_is_refused(step: dict[str, object]) -> None:
    snapshot = a_snapshot()
    snapshot["game"]["phase"]["round"]["step"] = step
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(snapshot).encode())


def test_truncated_bytes_of_any_length_are_refused() -> None:
    stored = made_game()[20]
    snapshot = encode_record(stored.record)
    for length in range(len(snapshot)):
        with pytest.raises(StoredFormatUnknown):
            decode_record(snapshot[:length])
    for length in range(len(stored.change)):
        with pytest.raises(StoredFormatUnknown):
            decode_entry(stored.change[:length], "")
    for length in range(FINGERPRINT_BYTES + 1):
        with pytest.raises(StoredFormatUnknown):
            decode_memo(encode_memo(Memo(bytes(FINGERPRINT_BYTES), b"answer"))[:length])


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"null", b"[]", b"1", b'"text"', b"{}", b'{"format":3}', b'{"format":4}']
)
def test_bytes_that_are_not_a_game_are_refused(data: bytes) -> None:
    refused(data, data)


def paths(value: object, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the paths of the fields in a stored form."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*at, key)
            yield from paths(part, (*at, key))


def test_a_missing_field_is_refused() -> None:
    found = list(paths(a_snapshot()))
    assert ("game", "phase", "round", "pool") in found
    assert ("game", "phase", "round", "shown_play", "against") in found
    for path in found:
        snapshot = a_snapshot()
        within: Any = snapshot
        for key in path[:-1]:
            within = within[key]
        del within[path[-1]]
        with pytest.raises(StoredFormatUnknown):
            decode_record(json.dumps(snapshot).encode())


def parts(value: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields the paths of all parts of a stored form, at any depth."""
    if at:
        yield at
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in named:
        yield from parts(part, (*at, key))


def replaced(stored: object, at: tuple[str | int, ...], value: object) -> bytes:
    """Returns a stored form with another value at one path."""
    copy = json.loads(json.dumps(stored))
    within = copy
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = value
    return json.dumps(copy).encode()


ODD_VALUES: dict[type, tuple[object, ...]] = {
    int: ("7", True, 6.0, None, -(2**40), 2**63, [7]),
    str: (7, None, ["x"], {"x": 1}),
    bool: (0, 1, "true", None),
    list: ({}, "", 7, [{}], [[[]]]),
    dict: ([], "", 7, {"x": 1}),
    type(None): (1.5, True, {"x": 1}),
}
"""Wrong values, by the type of the right value."""
MAY_BE_NONE = {"turn", "against", "last_chance", "table"}
"""Fields that may be None or contain None."""
LEVELS = (4, 6)
"""The places of a player's bot and stand-in, which may be None."""


def test_a_part_of_another_type_is_refused() -> None:
    good = a_snapshot()
    tried = 0
    for place in parts(good):
        value = good
        for key in place:
            value = value[key]  # type: ignore[index]
        for odd in ODD_VALUES[type(value)]:
            is_level = place[:2] == ("game", "players") and place[3:] in {(level,) for level in LEVELS}
            if odd is None and (is_level or MAY_BE_NONE & {*place}):
                continue
            with pytest.raises(StoredFormatUnknown):
                pytest.fail(f"{place} = {odd}: {decode_record(replaced(good, place, odd))}")
            tried += 1
    assert tried > 300


@pytest.mark.parametrize("seats", ["turn", "order", "passed", "racks", "players", "last_chance"])
def test_a_seat_without_a_player_is_refused(seats: str) -> None:
    good = a_snapshot()
    within = good["game"] if seats == "players" else good["game"]["phase"]["round"]
    within[seats] = {
        "turn": [6, None, 1],
        "order": [*within["order"][:-1], 6] if seats == "order" else None,
        "passed": [6],
        "racks": within.get("racks", [])[:-1],
        "players": within.get("players", [])[:-1],
        "last_chance": [],
    }[seats]
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(good).encode())


def test_an_event_with_a_part_of_another_type_is_refused() -> None:
    for stored in made_game():
        good = json.loads(stored.change)
        for place in parts(good):
            with pytest.raises(StoredFormatUnknown):
                pytest.fail(f"{place}: {decode_entry(replaced(good, place, 1.5), '')}")


# Golden files


def stored_lines(number: int = FORMATS.newest) -> list[dict[str, str]]:
    """Returns the lines of the golden file of a format."""
    return [json.loads(line) for line in GOLDEN[number].read_text(encoding="utf-8").splitlines()]


def golden_stored(number: int = FORMATS.newest) -> tuple[list[Entry], list[Record]]:
    """Returns the entries and the snapshots in the golden file of a format."""
    lines = stored_lines(number)
    records = [decode_record(line["snapshot"].encode()) for line in lines]
    return [decode_entry(line["change"].encode(), line["etag"]) for line in lines], records


def test_each_golden_file_is_of_a_format_that_is_read() -> None:
    assert set(GOLDEN.values()) == set(GOLDEN[FORMATS.newest].parent.iterdir())


def test_the_golden_game_has_every_event_and_phase() -> None:
    entries, records = golden_stored()
    assert {type(event) for entry in entries for event in entry.events} == EVENT_TYPES
    assert {type(record.game.phase) for record in records} == PHASES


@pytest.mark.parametrize("number", GOLDEN)
def test_a_golden_snapshot_equals_the_game_after_its_changes(number: int) -> None:
    entries, records = golden_stored(number)
    for record in records:
        before = entries[: record.game.revision]
        assert record.game == replay(entry.events for entry in before)
        assert (record.etag, record.updated_ms) == (before[-1].etag, before[-1].time_ms)
        assert record.created_ms == entries[0].time_ms


def test_a_golden_game_equals_the_same_game_generated_again() -> None:
    entries, records = golden_stored()
    game = {stored.record.game.revision: stored for stored in made_game()}
    assert [entry.revision for entry in entries] == list(game)
    for entry in entries:
        assert entry.events == game[entry.revision].events
        assert entry.nonce == game[entry.revision].nonce
    for record in records:
        again = game[record.game.revision].record
        assert replace(record, etag="") == replace(again, etag="")


def test_golden_etags_are_the_lineage_of_the_golden_bytes() -> None:
    etag = NO_ETAG
    lines = stored_lines()
    assert len(lines) > 30
    for line in lines:
        etag = lineage(etag, line["change"].encode())
        assert line["etag"] == etag


@pytest.mark.parametrize("number", FORMATS.writable)
def test_encoding_today_reproduces_the_golden_file(number: int) -> None:
    with process_with(replace(FORMATS, written=number)):
        game = tuple(stored_changes(made_changes(), random.Random(11)))
        assert GOLDEN[number].read_text(encoding="utf-8").splitlines() == list(golden_lines(game))


# Compression


def test_compressed_golden_changes_are_readable() -> None:
    for line in stored_lines():
        assert decompress(bytes.fromhex(line["compressed"])) == line["change"].encode()


def test_a_compressed_history_takes_a_third_of_its_bytes_and_round_trips() -> None:
    games = filter(lambda game: len(game) >= 40, map(random_game, itertools.count()))  # a first deal hardly shrinks
    for game in itertools.islice(games, 4):
        changes = [stored.change for stored in game]
        small = [compress(change) for change in changes]
        assert [decompress(stored) for stored in small] == changes
        assert sum(map(len, small)) < 0.45 * sum(map(len, changes))


@pytest.mark.parametrize("damage", ["cut", "changed", "more", "empty", "plain", "huge"])
def test_a_damaged_change_is_refused(damage: str) -> None:
    change = golden_game()[3].change
    stored = compress(change)
    data = {
        "cut": stored[:-3],
        "changed": bytes([stored[0] ^ 0xFF, *stored[1:]]),
        "more": stored + b"x",
        "empty": b"",
        "plain": change,
        "huge": compress(bytes(CHANGE_BYTES_MAX + 1)),
    }[damage]
    with pytest.raises(StoredFormatUnknown):
        decode_entry(decompress(data), "")


# Etags


async def test_the_etags_of_a_played_game_verify_over_its_whole_stream(client: Client, store: Store) -> None:
    game = await client.new_game(players=3)
    for _ in range(20):
        await game.draw()
    seen = await game.see()
    entries = await store.streams.entries(game.game_id, 1, HISTORY)
    assert [entry.revision for entry in entries] == list(range(1, seen.revision + 1))
    etag = NO_ETAG
    for entry in entries:
        etag = lineage(etag, encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events, entry.cause))
        assert entry.etag == etag
    assert seen.etag == f"{seen.revision}-{etag}"
    listed = await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=200))
    assert [change.etag for change in listed.changes] == [f"{entry.revision}-{entry.etag}" for entry in entries]
    assert len({entry.nonce for entry in entries}) == len(entries)


def test_a_changed_event_changes_every_later_etag() -> None:
    game = golden_game()
    forged = [stored.change for stored in game]
    forged[5] = forged[5].replace(b'"Cleo"', b'"Cloe"')
    assert forged[5] != game[5].change
    etag, etags = NO_ETAG, []
    for change in forged:
        etag = lineage(etag, change)
        etags.append(etag)
    assert etags[:5] == [stored.record.etag for stored in game[:5]]
    assert not set(etags[5:]) & {stored.record.etag for stored in game}


async def test_two_games_with_equal_events_have_different_etags(client: Client, store: Store) -> None:
    """Without the nonce, anyone could find a drawn tile by hashing all 53 candidates."""
    games = [await client.new_game(players=2, start=False) for _ in range(2)]
    one, other = [await store.streams.entries(game.game_id, 1, 10) for game in games]
    assert len(one) == 3
    for entry, twin in zip(one, other, strict=True):
        assert (entry.revision, entry.time_ms, entry.events) == (twin.revision, twin.time_ms, twin.events)
        assert entry.etag != twin.etag
        assert entry.nonce != twin.nonce
    shown = [await game.see() for game in games]
    assert shown[0].etag != shown[1].etag


# Secrets


LEAVES = (int, str, bool, type(None), Enum, type)
PUBLIC_BYTES = {"deal_commitment", "deal_seed"}
"""Fields of views with bytes that everyone may see."""


def leaves(value: object) -> Iterator[object]:
    """Yields every value reachable through dataclasses and tuples; other containers fail."""
    if is_dataclass(value) and not isinstance(value, type):
        assert not isinstance(value, (SeatToken, Record, Entry)), "a stored object is reachable from a view"
        for part in fields(value):
            found = getattr(value, part.name)
            yield from leaves(found.hex() if part.name in PUBLIC_BYTES else found)
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        assert isinstance(value, LEAVES), f"a {type(value).__name__} may contain anything"
        yield value


def test_views_reach_no_nonce_and_no_token_digest() -> None:
    game = golden_game()
    secrets = {stored.nonce.hex() for stored in game}
    secrets |= {token.digest.hex() for stored in game for token in stored.record.tokens}
    assert len(secrets) == len(game) + 4
    assert {text for text in secrets if text in encode_record(game[-1].record).decode() + game[-1].change.decode()}
    reached = 0
    for stored in game[::4]:
        entry = decode_entry(stored.change, stored.record.etag)
        assert entry.nonce.hex() in secrets
        for seat in (None, 1, 2, 3, 4):
            for sight in (snapshot_view(stored.record, seat, START_MS), change_view(entry, seat)):
                found = set(leaves(sight))
                assert stored.record.etag in found
                assert not secrets & found
                assert not any(secret in repr(sight) for secret in secrets)
                reached += len(found)
    assert reached > 1000


def test_the_secret_search_detects_secrets() -> None:
    """The test above depends on `leaves` finding them."""
    stored = golden_game()[-1]
    sight = snapshot_view(stored.record, 1, START_MS)
    mistakes: list[tuple[Any, str]] = [(stored.record.tokens[0], "stored object"), (stored.nonce, "bytes")]
    for mistake, told in mistakes:
        view = replace(sight.view, players=(*sight.view.players, mistake))
        with pytest.raises(AssertionError, match=told):
            list(leaves(replace(sight, view=view)))
    assert Tile(1) in set(leaves((Tile(1),)))


def write(*, force: bool) -> None:
    """Writes the golden file of the newest format."""
    FORMATS.choose(FORMATS.newest)
    path = GOLDEN[FORMATS.newest]
    if path.exists() and not force:
        sys.exit(f"{path.name} is there: games are stored so by now. A change of the format needs a new number.")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(golden_lines(made_game())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A golden stored game: write it anew.")
    parser.add_argument("--write", action="store_true", required=True, help="write the file of the newest format")
    parser.add_argument("--force", action="store_true", help="overwrite it: only as long as no game is stored anywhere")
    write(force=parser.parse_args().force)
