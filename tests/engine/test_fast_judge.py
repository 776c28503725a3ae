"""A FastJudge agrees with the plain rules on the same plays."""

import gc
import random
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.lazy import lazy_property, preset
from engine.melding.fast.fast_judge import QUICK_INITIAL_TABLE_MAX, RULESETS_MAX, FastJudge, FastJudges
from engine.melding.fast.fast_play import PlayerState
from engine.melding.fast.read_melds import CacheBudget, melds_by_identity, melds_by_key
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.play import Play
from engine.melding.presets import PRESETS
from engine.melding.rules import TURN_RULES, groups_of, judge
from engine.melding.ruleset import SABRA, InitialMeldSameTurnTablePlay, JokersDeclaration, MeldOrder, Preset, Ruleset
from engine.notation import parse_tiles
from engine.tiles import JOKER, Tile, in_order
from engine.violations import Reason
from support.plays import (
    before_as_sent,
    fast_judge_of,
    judged,
    judged_fast,
    play_of,
    player_of,
    to_tables,
    verdict_expected,
    verdict_of,
)

pytestmark = pytest.mark.slow

MANY_JOKERS = replace(SABRA, geometry_jokers=4, initial_meld_threshold=0)


def sent_otherwise(play: Play, rng: random.Random) -> Play:
    """Returns the same play with some kinds stated, its melds in another order, or a meld twice on the table before."""
    kinds = (None, None, MeldKind.RUN, MeldKind.GROUP)
    after = tuple(replace(meld, kind=rng.choice(kinds)) if rng.random() < 0.2 else meld for meld in play.table_after)
    if rng.random() < 0.3:
        after = tuple(rng.sample(after, len(after)))
    before = play.table_before
    if before and rng.random() < 0.2:
        before += (rng.choice(before),)
    return replace(play, table_before=before, table_after=after)


@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", Preset)
def test_a_fast_judge_agrees_with_the_plain_rules(preset: Preset) -> None:
    ruleset, legal = PRESETS[preset], Counter[bool]()
    for seed in range(6):
        rng = random.Random(seed)
        threshold = rng.choice((0, ruleset.initial_meld_threshold))
        for play in to_tables(rng, replace(ruleset, initial_meld_threshold=threshold)):
            for asked in (play, sent_otherwise(play, rng)):
                legal[not judged(asked).violations] += 1
    assert legal[True] > 10
    assert legal[False] > 10


FACES = [Tile(7), Tile(20), Tile(33), Tile(46), Tile(8), Tile(9), JOKER]


def joker_play(rng: random.Random) -> Play:
    """Returns a play of a few melds with many jokers; some are sent with a kind or joker faces."""
    ruleset = replace(
        MANY_JOKERS,
        meld_order=rng.choice(list(MeldOrder)),
        jokers_declaration=rng.choice(list(JokersDeclaration)),
    )
    proposals = [
        ProposedMeld(
            tuple(rng.choice(FACES) for _ in range(rng.choice((1, 1, 2)))) + (JOKER,) * rng.choice((1, 2)),
            rng.choice((None, MeldKind.RUN, MeldKind.GROUP)),
            tuple(rng.choice(FACES[:-1]) for _ in range(rng.choice((0, 0, 1, 2)))),
        )
        for _ in range(4)
    ]
    readings = [read_meld(proposed, ruleset) for proposed in proposals]
    before = tuple(reading for reading in readings if isinstance(reading, Meld))
    after = tuple(
        rng.choice((meld, ProposedMeld(meld.tiles), ProposedMeld(in_order(meld.tiles), meld.kind)))
        for meld in proposals
    )
    return Play(before, (*after, *rng.sample(after, 1)), (Tile(7), JOKER), has_melded=True, ruleset=ruleset)


@pytest.mark.unmeasured
def test_melds_keep_their_joker_faces() -> None:
    plays = [joker_play(random.Random(seed)) for seed in range(800)]
    for play in plays:
        assert judged_fast(play) == judge(play)
    kept = [play for play in plays if play.readings != tuple(read_meld(p, play.ruleset) for p in play.table_after)]
    assert len(kept) > 50


def test_a_meld_keeps_a_joker_face_with_which_it_would_not_be_read_alone() -> None:
    ruleset = replace(SABRA, meld_order=MeldOrder.CANONICALISE)
    declared = read_meld(ProposedMeld((Tile(5), JOKER, Tile(4)), declared=(Tile(3),)), ruleset)
    assert isinstance(declared, Meld)
    after = (ProposedMeld((Tile(4), Tile(5), JOKER)), ProposedMeld((Tile(7), Tile(20), Tile(33))))
    assert not judged(
        Play((declared,), after, (Tile(7), Tile(20), Tile(33)), has_melded=True, ruleset=ruleset)
    ).violations


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[R1 B1 K1] | [B1 R1 K1] + {O1} -> group[B1 R1 K1] | [R1 B1 K1 O1] ; {}", "B1 R1 K1"),
        ("[B1 R1 J] | [R1 B1 J] | [O1 O2 O3] + {O4} -> group[R1 B1 J] | [O1 B1 R1 J] | [O2 O3 O4] ; {}", "R1 B1 J"),
    ],
)
def test_violations_name_the_same_one_of_two_groups_with_equal_tiles(text: str, named: str) -> None:
    assert judged(play_of(text)).violations[0].tiles == parse_tiles(named)


def judges(maxsize: int) -> FastJudges[Ruleset, ProposedMeld, ProposedMeld]:
    return FastJudges(lambda ruleset: ruleset, melds_by_key(lambda proposed: proposed), maxsize=maxsize)


def verdict(judge: FastJudge[ProposedMeld, ProposedMeld], play: Play) -> object:
    return verdict_of(judge.judge(before_as_sent(play), play.table_after, player_of(play)))


@pytest.mark.parametrize("maxsize", [0, 1, 3, 5])
def test_a_fast_judge_with_full_caches_still_judges(maxsize: int) -> None:
    play = play_of("[R1 R2 R3] | [B7 K7 O7] | [R4 J R6] + *{R7 B2} -> [O7 B7 K7] | [R1 R2 R3] | [R4 J R6 R7] ; {B2}")
    short = replace(play, table_after=play.table_after[1:])
    by_key = judges(maxsize)
    by_identity = FastJudges[Ruleset, Meld, ProposedMeld](lambda rules: rules, melds_by_identity, maxsize=maxsize)
    for asked in (play, short, play, short):
        expected = verdict_expected(asked, judge(asked))
        assert expected == verdict(by_key.of(SABRA), asked)
        assert expected == verdict_of(
            by_identity.of(SABRA).judge(asked.table_before, asked.table_after, player_of(asked))
        )


@pytest.mark.unmeasured
def test_threads_get_correct_verdicts_while_judges_are_replaced() -> None:
    asked = [
        (play, verdict_expected(play, judge(play)))
        for preset in (Preset.SABRA, Preset.WIKI_FR, Preset.WIKI_EN)
        for seed in range(6)
        for play in to_tables(random.Random(seed), replace(PRESETS[preset], initial_meld_threshold=0))
    ]
    cached = judges(60)
    wrong: list[Play] = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(3):
            for play, expected in rng.sample(asked, len(asked)):
                if verdict(cached.of(play.ruleset), play) != expected:
                    wrong.append(play)

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert wrong == []


def test_equal_melds_have_the_same_identity_even_if_one_is_not_cached() -> None:
    fast_judge = fast_judge_of(SABRA, CacheBudget(0))
    tiles = (Tile(1), Tile(2), Tile(3))
    one, other = fast_judge.read([ProposedMeld(tiles), ProposedMeld(tiles, MeldKind.RUN)])
    assert one is not other
    assert one.identity == other.identity


def test_judges_are_replaced_when_they_have_cached_too_many_melds_or_rulesets() -> None:
    cached = FastJudges[int, ProposedMeld, ProposedMeld](
        lambda threshold: replace(SABRA, initial_meld_threshold=threshold),
        melds_by_key(lambda proposed: proposed),
        maxsize=2,
    )
    assert cached.existing(30) is None
    first = cached.of(30)
    assert cached.of(30) is cached.existing(30) is first
    first.read([ProposedMeld((Tile(value),)) for value in (1, 2, 3)])
    assert cached.existing(30) is None
    assert cached.of(30) is not first
    second = cached.of(30)
    for threshold in range(31, RULESETS_MAX + 31):
        assert cached.of(threshold).ruleset.initial_meld_threshold == threshold
    assert cached.of(30) is not second


def test_violations_have_the_subject_of_the_caller() -> None:
    play = play_of(". + *{R1 R2 B9} -> [R1 R2] ; {B9}")
    found = fast_judge_of(SABRA, subject="play.table").judge((), play.table_after, player_of(play))
    assert found is not None
    plain = fast_judge_of(SABRA).judge_plainly(replace(play, subject="play.table"))
    for violations in (found.violations, plain.violations):
        assert "play.table[0]" in {violation.subject for violation in violations}


def test_a_fast_judge_parses_a_meld_once() -> None:
    parsed: list[bytes] = []

    def parse(sent: bytes) -> ProposedMeld:
        parsed.append(sent)
        return ProposedMeld(tuple(map(Tile, sent)))

    fast_judge = FastJudge(SABRA, melds_by_key(parse)(SABRA, CacheBudget()))
    run = bytes((1, 2, 3))
    first, second = fast_judge.read([run, run])
    assert first is second
    assert first.meld == Meld((Tile(1), Tile(2), Tile(3)), MeldKind.RUN, 6)
    assert parsed == [run]


def by_tiles(ruleset: Ruleset) -> FastJudge[tuple[int, ...], tuple[int, ...]]:
    def parse(sent: tuple[int, ...]) -> ProposedMeld:
        return ProposedMeld(tuple(map(Tile, sent)))

    return FastJudge(ruleset, melds_by_key(parse)(ruleset, CacheBudget()))


@pytest.mark.parametrize("make", [by_tiles, fast_judge_of])
def test_a_judge_that_is_dropped_leaves_no_garbage(make: Callable[[Ruleset], FastJudge[Any, Any]]) -> None:
    """A server collects garbage of all generations rarely, and a client may make it replace its judges often."""
    gc.disable()
    try:
        fast_judge = make(SABRA)
        fast_judge.judge((), (), PlayerState((), has_melded=True))
        reader = weakref.ref(fast_judge._melds.reader)  # noqa: SLF001 - the caches of melds refer to it
        del fast_judge
        assert reader() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("before", "rack", "can_be"),
    [
        ([(1, 2, 3), (1, 2, 3)], (4,), True),
        ([(1, 2, 3), (1, 2, 3)], (1,), False),
        ([(1, 2, 3)], (53, 53), True),
        ([(1, 2, 3)], (53, 53, 53), False),
        ([(1, 2, 3)], (54,), False),
        ([(1, 2, 4)], (5,), False),
    ],
)
def test_impossible_positions_have_no_verdict(
    before: list[tuple[int, ...]], rack: tuple[Tile, ...], can_be: bool
) -> None:
    found = by_tiles(SABRA).judge(before, [], PlayerState(rack, has_melded=True))
    assert (found is not None) is can_be


@pytest.mark.unmeasured
@pytest.mark.parametrize("count", [1, 2, 63, 64, 126, 127, 128, 300])
@pytest.mark.parametrize(
    ("tiles", "most"), [((1, 2, 3), 1), ((1, 14, 27), 1), ((1, 2, 4), 1), ((7, 7), 2), ((53, 2, 53), 2), ((53,), 1)]
)
def test_verdicts_agree_on_proposed_tables_around_the_count_limit(
    tiles: tuple[Tile, ...], most: int, count: int
) -> None:
    play = play_of("[R1 R2 R3] + *{R4 B1} -> [R1 R2 R3 R4] ; {B1}")
    many = replace(play, table_after=(*play.table_after, *[ProposedMeld(tiles)] * count))
    judgement = judge(many)
    assert judged_fast(many) == judgement
    expected = (judgement.violations, judgement.tiles_played, judgement.points, judgement.rack_left)
    is_counted = 1 + most * count < 128
    assert verdict(fast_judge_of(SABRA), many) == (expected if is_counted else None)


@pytest.mark.parametrize("count", [1, 2, 124, 125, 126, 127, 200])
def test_verdicts_agree_on_old_tables_around_the_count_limit(count: int) -> None:
    play = play_of("[R1 R2 R3] + *{R4 B1} -> [R1 R2 R3 R4] ; {B1}")
    run, longer = ProposedMeld(play.table_before[0].tiles), play.table_after[0]
    for after in ((longer, *[run] * (count - 1)), (longer,), (longer,) * count):
        many = replace(play, table_before=play.table_before * count, table_after=after)
        assert judged_fast(many) == judge(many)
        assert verdict(fast_judge_of(SABRA), many) == verdict_expected(many, judge(many))


def test_each_of_many_invalid_melds_has_its_violation() -> None:
    sent = [(first, first + 1, first + 3) for first in (1, 14, 27, 40)] * 30
    found = by_tiles(SABRA).judge([], sent, PlayerState((Tile(1),), has_melded=True))
    assert found is not None
    subjects = [violation.subject for violation in found.violations if violation.reason is Reason.RUN_GAP]
    assert subjects == [f"table_after[{place}]" for place in range(120)]


@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", Preset)
def test_no_play_breaks_a_rule_that_its_ruleset_leaves_out(preset: Preset) -> None:
    ruleset: Ruleset = PRESETS[preset]
    left_out = [group for group in TURN_RULES if group not in groups_of(ruleset)]
    assert left_out
    for seed in range(3):
        for play in to_tables(random.Random(seed), replace(ruleset, initial_meld_threshold=0)):
            assert not [found for group in left_out for rule in group.rules for found in rule(play)]


FOUR_RUNS = [(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)]


@pytest.mark.parametrize(
    ("after", "is_quick"),
    [
        (FOUR_RUNS, True),
        ([*FOUR_RUNS, *[(14, 15, end) for end in range(16, 24)]], True),
        ([*FOUR_RUNS, *[(14, 15, end) for end in range(16, 25)]], False),
        ([(1, 2, 53)] * 8, True),
        ([(1, 2, 53)] * 9, False),
    ],
)
def test_a_verdict_is_quick_if_few_melds_are_new(after: list[tuple[int, ...]], is_quick: bool) -> None:
    fast_judge = by_tiles(SABRA)
    fast_judge.read([*FOUR_RUNS, (1, 2, 53)])
    melded = PlayerState((), has_melded=True)
    quick = verdict_of(fast_judge.judge(FOUR_RUNS, after, melded, quick_only=True))
    assert quick == (verdict_of(fast_judge.judge(FOUR_RUNS, after, melded)) if is_quick else None)


@pytest.mark.parametrize(("new", "has_read_most"), [(8, True), (9, False)])
def test_a_judge_of_objects_knows_whether_it_has_read_most_melds(new: int, has_read_most: bool) -> None:
    fast_judge = FastJudge(SABRA, melds_by_identity(SABRA, CacheBudget()))
    melds = [ProposedMeld((Tile(14), Tile(15), Tile(end))) for end in range(16, 16 + new)]
    assert fast_judge.has_read_most(melds) is has_read_most


@pytest.mark.parametrize(
    ("ruleset", "melds", "is_quick"),
    [
        (SABRA, QUICK_INITIAL_TABLE_MAX, True),
        (SABRA, QUICK_INITIAL_TABLE_MAX + 1, False),
        (
            replace(SABRA, initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED),
            QUICK_INITIAL_TABLE_MAX,
            False,
        ),
    ],
)
def test_an_initial_meld_is_judged_quickly_on_a_small_table(ruleset: Ruleset, melds: int, is_quick: bool) -> None:
    fast_judge, not_melded = by_tiles(ruleset), PlayerState((), has_melded=False)
    before, after = [(1, 2, 3)] * (melds - 1), [(1, 2, 3)] * melds
    fast_judge.read(after)
    quick = verdict_of(fast_judge.judge(before, after, not_melded, quick_only=True))
    assert quick == (verdict_of(fast_judge.judge(before, after, not_melded)) if is_quick else None)


def test_rules_that_search_are_never_quick() -> None:
    melded = PlayerState((), has_melded=True)
    assert by_tiles(PRESETS[Preset.WIKI_FR]).judge([], [], melded, quick_only=True) is None


@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", Preset)
def test_no_play_breaks_a_rule_that_is_clearly_kept(preset: Preset) -> None:
    for seed in range(3):
        for play in to_tables(random.Random(seed), replace(PRESETS[preset], initial_meld_threshold=0)):
            kept = [group for group in TURN_RULES if group.is_clearly_kept and group.is_clearly_kept(play)]
            assert not [found for group in kept for rule in group.rules for found in rule(play)]


class Example:
    """Has a lazy property, and counts how often it is computed."""

    def __init__(self) -> None:
        self.computed = 0

    @lazy_property
    def answer(self) -> int:
        """Returns the answer."""
        self.computed += 1
        return 42


def test_a_lazy_property_is_computed_once_unless_it_is_preset_and_has_a_docstring() -> None:
    lazy, known = Example(), Example()
    preset(known, answer=7)
    assert (lazy.answer, lazy.answer, known.answer) == (42, 42, 7)
    assert (lazy.computed, known.computed) == (1, 0)
    assert Example.answer.__doc__ == "Returns the answer."
