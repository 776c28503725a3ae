"""Deals that players can check: the method, its records, and every forgery that a record can have."""

import hashlib
import hmac
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest

from engine.actions import Action, Join, SetReady, StartGame, StartNextRound
from engine.discard.ruleset import OKEY
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.events import PlayerReadied
from engine.fair_deal import DEALS_MAX, SEED_BYTES, commitment_to, hashed, seed_of, shuffle_for, shuffled
from engine.game import Game, Playing, RoundOver
from engine.melding.actions import DrawTile, Pass
from engine.melding.ruleset import SABRA, MatchEnd
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.record import GameRecord, RecordError, record_of, replayed
from engine.record_text import RecordTextError, format_record, parse_record
from engine.room_settings import DEFAULT_SETTINGS, FairDeal
from engine.seats import HOST, Player
from engine.sight import see, see_event
from engine.tiles import in_order
from engine.turns import Applied, apply, create
from engine.views import GameView
from engine.violations import Reason, Refused

SECRET: Final = bytes(range(SEED_BYTES))
ROUNDS: Final = 2
RULES: Final = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=ROUNDS)
SETTINGS: Final = replace(DEFAULT_SETTINGS, fair_deal=FairDeal.COMMITTED, turn_time_limit_seconds=0)
SEEDS: Final = (b"of Ada", b"")


class Course:
    """A game with fair deals, and all its changes."""

    def __init__(self, rules: MeldingRuleset | DiscardRuleset = RULES, seeds: Sequence[bytes] = SEEDS) -> None:
        created = create(rules, SETTINGS, deal_commitment=commitment_to(SECRET))
        self.game = created.game
        self.changes = [(1, 1_000, created.events)]
        for number, seed in enumerate(seeds):
            self.do(Join(f"player {number}", deal_seed=seed))

    def do(self, action: Action) -> Applied:
        applied = apply(self.game, action, 2_000)
        assert isinstance(applied, Applied)
        self.game = applied.game
        if applied.events:
            self.changes.append((applied.game.revision, 2_000, applied.events))
        return applied

    def start(self) -> None:
        self.do(StartGame(HOST, shuffle_for(self.game, seed_of(SECRET, self.game.deals + 1))))

    def play_to_the_end(self) -> "Course":
        """Plays rounds in which all only draw."""
        self.start()
        while isinstance(self.game.phase, Playing | RoundOver):
            if isinstance(self.game.phase, RoundOver):
                self.do(StartNextRound(1, shuffle_for(self.game, seed_of(SECRET, self.game.deals + 1))))
                continue
            round_ = self.game.phase.round
            self.do(DrawTile(round_.turn.seat) if round_.pool else Pass(round_.turn.seat))
        return self

    @property
    def record(self) -> GameRecord:
        return record_of(self.changes)


@pytest.fixture(scope="module")
def record() -> GameRecord:
    """Returns the record of a whole game."""
    return Course().play_to_the_end().record


def plainly_shuffled(tiles: Sequence[int], seed: bytes, seeds: dict[int, bytes]) -> tuple[list[int], list[int]]:
    """Returns both shuffles by the method of docs/fair-deal.md, without the engine."""
    message = b"rummikub deal 1"
    for seat in sorted(seeds):
        if seeds[seat]:
            message += bytes([seat]) + bytes([len(seeds[seat])]) + seeds[seat]
    key = hmac.new(seed, message, hashlib.sha256).digest()
    stream = b"".join(hmac.new(key, n.to_bytes(4, "big"), hashlib.sha256).digest() for n in range(400))
    position = 0
    both = []
    for _ in range(2):
        order = sorted(tiles)
        i = len(order) - 1
        while i >= 1:
            word = int.from_bytes(stream[position : position + 4], "big")
            position += 4
            if word >= 2**32 // (i + 1) * (i + 1):
                continue
            j = word % (i + 1)
            order[i], order[j] = order[j], order[i]
            i -= 1
        both.append(order)
    return both[0], both[1]


@pytest.mark.parametrize("number", range(40))
def test_the_shuffles_are_those_of_another_program(number: int) -> None:
    rng = random.Random(number)
    seeds = {seat: rng.randbytes(rng.choice((0, 1, 16, 64))) for seat in range(1, rng.randint(2, 4) + 1)}
    players = tuple(Player(seat, f"player {seat}", deal_seed=seed) for seat, seed in seeds.items())
    rules, seed = rng.choice((SABRA, OKEY)), rng.randbytes(SEED_BYTES)
    made = shuffle_for(Game(rules, players=players), seed)
    start, deal = plainly_shuffled(rules.tiles(len(players)), seed, seeds)
    assert (list(made.start_draw), list(made.deal), made.seed) == (start, deal, seed)
    assert in_order(made.deal) == rules.tiles(len(players))


def test_a_word_of_an_incomplete_cycle_is_skipped() -> None:
    words = [2**32 - 1, *range(1, 1_000)]  # 2**32 - 1 is above the last complete cycle of 106 numbers
    tiles = SABRA.tiles(2)
    assert shuffled(tiles, iter(words)) == shuffled(tiles, iter(words[1:]))


@pytest.mark.unmeasured
def test_places_are_equally_likely() -> None:
    game = Game(SABRA, players=(Player(1, "Ada"), Player(2, "Ben")))
    first = Counter(shuffle_for(game, number.to_bytes(SEED_BYTES)).deal[0] for number in range(5_300))
    expected = Counter(SABRA.tiles(2))
    chi_squared = sum((first[tile] - 50 * count) ** 2 / (50 * count) for tile, count in expected.items())
    assert chi_squared < 100  # 52 degrees of freedom: the seeds are fixed, so this never varies


def test_each_seed_leads_to_the_one_before_and_to_the_commitment() -> None:
    commitment = commitment_to(SECRET)
    assert hashed(seed_of(SECRET, 1), 1) == commitment
    assert hashed(seed_of(SECRET, 2), 1) == seed_of(SECRET, 1)
    assert seed_of(SECRET, DEALS_MAX) == SECRET
    assert seed_of(SECRET, DEALS_MAX + 1) == b""


@pytest.mark.parametrize("rules", [RULES, OKEY])
def test_a_deal_follows_from_all_seeds(rules: MeldingRuleset | DiscardRuleset) -> None:
    seats = (b"a", b"b", b"c", b"d")[: rules.players_max]
    first, other = Course(rules, seats), Course(rules, (*seats[:-1], b"another"))
    for course in (first, other):
        course.start()
    dealt = [course.changes[-1][2][0] for course in (first, other)]
    assert dealt[0].seed == dealt[1].seed == seed_of(SECRET, 1)  # type: ignore[union-attr]
    assert dealt[0] != dealt[1]
    assert first.game.deals == 1


def test_ready_players_may_change_their_seeds() -> None:
    course = Course()
    assert course.do(SetReady(1, is_ready=True)).events == (PlayerReadied(1, is_ready=True),)
    assert course.game.player(1).deal_seed == b"of Ada"
    assert course.do(SetReady(1, is_ready=True, deal_seed=b"new")).events == (
        PlayerReadied(1, is_ready=True, deal_seed=b"new"),
    )
    assert course.game.player(1).deal_seed == b"new"
    assert course.do(SetReady(1, is_ready=True, deal_seed=b"new")).events == ()


def test_a_seed_can_follow_the_commitment_without_being_ready_until_the_game_starts() -> None:
    course = Course(seeds=(b"", b""))
    course.do(SetReady(1, is_ready=False, deal_seed=b"of Ada"))
    assert [(player.deal_seed, player.is_ready) for player in course.game.players] == [(b"of Ada", False), (b"", False)]
    course.start()
    refusal = apply(course.game, SetReady(2, is_ready=False, deal_seed=b"of Ben"), 2_000)
    assert isinstance(refusal, Refused)
    assert refusal.violations[0].reason is Reason.GAME_ALREADY_STARTED
    assert course.record.players[1].deal_seed == b""


def test_views_have_the_commitment_and_the_seeds_of_players_but_none_of_the_server() -> None:
    course = Course()
    course.start()
    view: GameView = see(course.game, 2)
    assert view.deal_commitment == commitment_to(SECRET)
    assert [player.deal_seed for player in view.players] == [*SEEDS]
    secret = seed_of(SECRET, 1)
    for viewer in (None, HOST, 1, 2):
        shown = [see_event(event, viewer) for event in course.changes[-1][2]]
        assert not any(hasattr(event, "seed") for event in shown)
        assert repr(secret) not in repr((see(course.game, viewer), shown))


def test_the_record_of_a_game_has_the_seeds(record: GameRecord) -> None:
    assert record.deal_commitment == commitment_to(SECRET)
    assert record.deal_seed == seed_of(SECRET, ROUNDS)
    assert [player.deal_seed for player in record.players] == [*SEEDS]
    assert parse_record(format_record(record)) == record
    assert [step.after for step in replayed(record)][-1].deal_commitment == record.deal_commitment


def test_a_record_before_the_first_deal_needs_no_seed() -> None:
    assert list(replayed(Course().record)) == []


def test_a_record_without_a_commitment_needs_no_seeds(record: GameRecord) -> None:
    plain = replace(record, deal_commitment=b"", deal_seed=b"")
    assert len(list(replayed(plain))) == len(record.moves)


FORGERIES: dict[str, tuple[dict[str, object], str]] = {
    "another commitment": ({"deal_commitment": bytes(SEED_BYTES)}, "does not lead to the commitment"),
    "another seed": ({"deal_seed": bytes(SEED_BYTES)}, "does not lead to the commitment"),
    "the seed of an earlier deal": ({"deal_seed": seed_of(SECRET, 1)}, "does not lead to the commitment"),
    "no seed": ({"deal_seed": b""}, "does not lead to the commitment"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_record_is_refused(record: GameRecord, name: str) -> None:
    changes, problem = FORGERIES[name]
    with pytest.raises(RecordError, match=problem):
        list(replayed(replace(record, **changes)))  # type: ignore[arg-type]


def test_a_forged_deal_is_refused(record: GameRecord) -> None:
    dealt = record.moves[0].dealt
    assert dealt
    swapped = replace(dealt, pool=(*dealt.pool[1:], dealt.pool[0]))
    moves = (replace(record.moves[0], dealt=swapped), *record.moves[1:])
    with pytest.raises(RecordError, match="the deal does not follow from the seeds") as error:
        list(replayed(replace(record, moves=moves)))
    assert error.value.move == 0


def test_a_forged_seed_of_a_player_is_refused(record: GameRecord) -> None:
    players = (replace(record.players[0], deal_seed=b"of Eve"), record.players[1])
    with pytest.raises(RecordError, match="the deal does not follow from the seeds"):
        list(replayed(replace(record, players=players)))


BAD_LINES: dict[str, tuple[str, str]] = {
    "a short commitment": ("commitment 00", "is not a seed"),
    "two commitments": ("commitment {hex}\ncommitment {hex}", "does not follow commitment"),
    "no hexadecimal digits": ("seed 1 xy", "is not a seed"),
    "half a byte": ("seed 1 0", "is not a seed"),
    "a long seed": ("seed 1 " + "00" * 65, "is not a seed"),
    "a short seed of the server": ("seed 0 00", "is not a seed"),
    "a seat that is not there": ("seed 9 00", "is not a seat of the record"),
    "a seat twice": ("seed 1 00\nseed 1 01", "has a seed already"),
    "too many words": ("seed 1 00 00", "expected seed SEAT HEX"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named(name: str) -> None:
    lines, problem = BAD_LINES[name]
    text = "rummikub-record 1\ncreated 1.000\nplayer 1 person Ada\nplayer 2 person Ben\n"
    with pytest.raises(RecordTextError, match=problem):
        parse_record(text + lines.format(hex="00" * SEED_BYTES) + "\n")


def test_other_families_check_their_deals_too() -> None:
    course = Course(OKEY, (b"a", b"b", b"c", b"d"))
    course.start()
    record = course.record
    assert len(list(replayed(record))) == 1
    with pytest.raises(RecordError, match="follow from the seeds"):
        list(replayed(replace(record, players=(replace(record.players[0], deal_seed=b"x"), *record.players[1:]))))
