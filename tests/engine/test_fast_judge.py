"""A referee says what the rules say: the same plays, judged plainly and by look-up."""

import random
import sys
import threading
from collections import Counter
from dataclasses import replace

import pytest

from engine.fast.fast_judge import FEW_BEFORE_INITIAL_MELD, REFEREES_MAX, AtTheTable, Memory, Referee, Referees
from engine.lazy import fact
from engine.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.notation import parse_tiles
from engine.play import Play
from engine.presets import PRESETS
from engine.rules import TURN_RULES, Judgement, groups_of, judge
from engine.ruleset import SABRA, InitialMeldSameTurnTablePlay, JokersDeclaration, Preset, Ruleset, SetOrder
from engine.tiles import JOKER, Tile, in_order
from engine.violations import Reason
from support.plays import by_referee, judged, play_of, said, to_tables, verdict_of

MANY_JOKERS = replace(SABRA, geometry_jokers=4, initial_meld_threshold=0)


def sent_otherwise(play: Play, rng: random.Random) -> Play:
    """The same play, with some kinds stated, its melds in another order, or a meld twice on the table before."""
    kinds = (None, None, MeldKind.RUN, MeldKind.GROUP)
    after = tuple(replace(meld, kind=rng.choice(kinds)) if rng.random() < 0.2 else meld for meld in play.table_after)
    if rng.random() < 0.3:
        after = tuple(rng.sample(after, len(after)))
    before = play.table_before
    if before and rng.random() < 0.2:
        before += (rng.choice(before),)
    return replace(play, table_before=before, table_after=after)


@pytest.mark.parametrize("preset", Preset)
def test_a_referee_judges_as_the_rules_do(preset: Preset) -> None:
    ruleset, legal = PRESETS[preset], Counter[bool]()
    for seed in range(12):
        rng = random.Random(seed)
        threshold = rng.choice((0, ruleset.initial_meld_threshold))
        for play in to_tables(rng, replace(ruleset, initial_meld_threshold=threshold)):
            for asked in (play, sent_otherwise(play, rng)):
                legal[not judged(asked).violations] += 1
    assert legal[True] > 10
    assert legal[False] > 10


FACES = [Tile(7), Tile(20), Tile(33), Tile(46), Tile(8), Tile(9), JOKER]


def joker_play(rng: random.Random) -> Play:
    """A play of a few melds with many jokers, some of which were read or are sent as another kind or with faces."""
    ruleset = replace(
        MANY_JOKERS,
        set_order=rng.choice(list(SetOrder)),
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
def test_what_is_remembered_of_jokers_is_remembered_by_a_referee() -> None:
    plays = [joker_play(random.Random(seed)) for seed in range(1_500)]
    for play in plays:
        assert by_referee(play) == judge(play)
    remembered = [
        play for play in plays if play.readings != tuple(read_meld(p, play.ruleset) for p in play.table_after)
    ]
    assert len(remembered) > 50


def test_a_meld_that_a_game_remembers_is_the_same_though_it_would_be_read_otherwise() -> None:
    ruleset = replace(SABRA, set_order=SetOrder.CANONICALISE)
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
def test_of_two_groups_that_are_alike_a_referee_names_the_one_that_the_rules_name(text: str, named: str) -> None:
    assert judged(play_of(text)).violations[0].tiles == parse_tiles(named)


def read_by(referee: Referee[ProposedMeld], play: Play) -> Judgement:
    seat = AtTheTable(play.rack, play.has_melded)
    return referee.judge(referee.play(referee.lying(play.table_before), referee.read(play.table_after), seat))


@pytest.mark.parametrize("most", [0, 1, 3, 5])
def test_a_referee_that_remembers_no_more_still_judges(most: int) -> None:
    play = play_of("[R1 R2 R3] | [B7 K7 O7] | [R4 J R6] + *{R7 B2} -> [O7 B7 K7] | [R1 R2 R3] | [R4 J R6 R7] ; {B2}")
    short = replace(play, table_after=play.table_after[1:])
    referees = Referees[Ruleset, ProposedMeld](lambda ruleset: ruleset, lambda proposed: proposed, most=most)
    for asked in (play, short, play, short):
        assert read_by(referees.of(SABRA), asked) == judge(asked)


@pytest.mark.unmeasured
def test_threads_get_what_the_rules_say_though_referees_start_over_again_and_again() -> None:
    asked = [
        (play, said(play, judge(play)))
        for preset in (Preset.SABRA, Preset.WIKI_FR, Preset.WIKI_EN)
        for seed in range(6)
        for play in to_tables(random.Random(seed), replace(PRESETS[preset], initial_meld_threshold=0))
    ]
    referees = Referees[Ruleset, ProposedMeld](lambda ruleset: ruleset, lambda proposed: proposed, most=60)
    wrong: list[Play] = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(3):
            for play, expected in rng.sample(asked, len(asked)):
                if verdict_of(play, referees.of(play.ruleset)) != expected:
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


def test_melds_that_are_the_same_lie_as_the_same_though_one_was_read_when_there_was_no_more_room() -> None:
    referee = Referee[ProposedMeld](SABRA, lambda proposed: proposed, Memory(0))
    tiles = (Tile(1), Tile(2), Tile(3))
    one, other = referee.read([ProposedMeld(tiles), ProposedMeld(tiles, MeldKind.RUN)])
    assert one is not other
    assert one.lies_as == other.lies_as


def test_referees_start_over_when_they_remember_too_many_melds_or_rulesets() -> None:
    referees = Referees[int, ProposedMeld](
        lambda threshold: replace(SABRA, initial_meld_threshold=threshold), lambda proposed: proposed, most=2
    )
    assert referees.known(30) is None
    first = referees.of(30)
    assert referees.of(30) is referees.known(30) is first
    first.read(ProposedMeld((Tile(value),)) for value in (1, 2, 3))
    assert referees.known(30) is None
    assert referees.of(30) is not first
    second = referees.of(30)
    for threshold in range(31, REFEREES_MAX + 31):
        assert referees.of(threshold).ruleset.initial_meld_threshold == threshold
    assert referees.of(30) is not second


def test_violations_name_what_the_caller_calls_the_table() -> None:
    referee = Referee[ProposedMeld](SABRA, lambda proposed: proposed, subject="play.table")
    play = play_of(". + *{R1 R2 B9} -> [R1 R2] ; {B9}")
    more_than_can_be_counted = replace(play, table_after=play.table_after * 200)
    for asked in (play, more_than_can_be_counted):
        assert "play.table[0]" in {violation.subject for violation in read_by(referee, asked).violations}


def test_a_referee_reads_what_was_sent_once() -> None:
    asked: list[bytes] = []

    def proposed(sent: bytes) -> ProposedMeld:
        asked.append(sent)
        return ProposedMeld(tuple(map(Tile, sent)))

    referee = Referee[bytes](SABRA, proposed)
    run = bytes((1, 2, 3))
    first, second = referee.read([run, run])
    assert first is second
    assert first.meld == Meld((Tile(1), Tile(2), Tile(3)), MeldKind.RUN, 6)
    assert asked == [run]


def by_tiles(ruleset: Ruleset) -> Referee[tuple[int, ...]]:
    return Referee(ruleset, lambda sent: ProposedMeld(tuple(map(Tile, sent))))


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
def test_a_position_has_the_tiles_of_a_game_and_melds_alone(
    before: list[tuple[int, ...]], rack: tuple[Tile, ...], can_be: bool
) -> None:
    verdict = by_tiles(SABRA).verdict(before, [], AtTheTable(rack, has_melded=True))
    assert (verdict is not None) is can_be


@pytest.mark.parametrize("count", [1, 2, 63, 64, 126, 127, 128, 300])
@pytest.mark.parametrize(
    ("tiles", "most"), [((1, 2, 3), 1), ((1, 14, 27), 1), ((1, 2, 4), 1), ((7, 7), 2), ((53, 2, 53), 2), ((53,), 1)]
)
def test_tables_with_more_tiles_than_can_be_counted_are_judged_as_the_rules_do(
    tiles: tuple[Tile, ...], most: int, count: int
) -> None:
    play = play_of("[R1 R2 R3] + *{R4 B1} -> [R1 R2 R3 R4] ; {B1}")
    many = replace(play, table_after=(*play.table_after, *[ProposedMeld(tiles)] * count))
    referee, judgement = Referee[ProposedMeld](SABRA, lambda proposed: proposed), judge(many)
    assert read_by(referee, many) == judgement
    is_told = 1 + most * count < 128
    assert verdict_of(many, referee) == (said(many, judgement) if is_told else None)


@pytest.mark.parametrize("count", [1, 2, 124, 125, 126, 127, 200])
def test_a_table_that_lay_there_with_more_tiles_than_can_be_counted_is_judged_as_the_rules_do(count: int) -> None:
    play = play_of("[R1 R2 R3] + *{R4 B1} -> [R1 R2 R3 R4] ; {B1}")
    run, longer = ProposedMeld(play.table_before[0].tiles), play.table_after[0]
    for after in ((longer, *[run] * (count - 1)), (longer,), (longer,) * count):
        many = replace(play, table_before=play.table_before * count, table_after=after)
        referee = Referee[ProposedMeld](SABRA, lambda proposed: proposed)
        assert read_by(referee, many) == judge(many)
        assert verdict_of(many, referee) == said(many, judge(many))


def test_melds_that_are_none_do_not_hide_each_other_however_many_there_are() -> None:
    sent = [(first, first + 1, first + 3) for first in (1, 14, 27, 40)] * 30
    verdict = by_tiles(SABRA).verdict([], sent, AtTheTable((Tile(1),), has_melded=True))
    assert verdict is not None
    found = [violation.subject for violation in verdict[0] if violation.reason is Reason.RUN_GAP]
    assert found == [f"table_after[{place}]" for place in range(120)]


@pytest.mark.parametrize("preset", Preset)
def test_no_play_breaks_a_rule_that_its_ruleset_leaves_out(preset: Preset) -> None:
    ruleset: Ruleset = PRESETS[preset]
    left_out = [group for group in TURN_RULES if group not in groups_of(ruleset)]
    assert left_out
    for seed in range(6):
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
def test_a_verdict_is_told_at_once_if_few_melds_are_to_be_read(after: list[tuple[int, ...]], is_quick: bool) -> None:
    referee = by_tiles(SABRA)
    referee.read([*FOUR_RUNS, (1, 2, 53)])
    melded = AtTheTable((), has_melded=True)
    at_once = referee.verdict_at_once(FOUR_RUNS, after, melded)
    assert at_once == (referee.verdict(FOUR_RUNS, after, melded) if is_quick else None)


@pytest.mark.parametrize(
    ("ruleset", "melds", "is_quick"),
    [
        (SABRA, FEW_BEFORE_INITIAL_MELD, True),
        (SABRA, FEW_BEFORE_INITIAL_MELD + 1, False),
        (
            replace(SABRA, initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED),
            FEW_BEFORE_INITIAL_MELD,
            False,
        ),
    ],
)
def test_an_initial_meld_is_judged_at_once_on_a_small_table(ruleset: Ruleset, melds: int, is_quick: bool) -> None:
    referee, not_melded = by_tiles(ruleset), AtTheTable((), has_melded=False)
    before, after = [(1, 2, 3)] * (melds - 1), [(1, 2, 3)] * melds
    referee.read(after)
    at_once = referee.verdict_at_once(before, after, not_melded)
    assert at_once == (referee.verdict(before, after, not_melded) if is_quick else None)


def test_no_verdict_is_told_at_once_by_rules_that_search() -> None:
    assert by_tiles(PRESETS[Preset.WIKI_FR]).verdict_at_once([], [], AtTheTable((), has_melded=True)) is None


@pytest.mark.parametrize("preset", Preset)
def test_no_play_breaks_a_rule_that_is_told_cheaply_to_be_kept(preset: Preset) -> None:
    for seed in range(6):
        for play in to_tables(random.Random(seed), replace(PRESETS[preset], initial_meld_threshold=0)):
            kept = [group for group in TURN_RULES if group.is_kept and group.is_kept(play)]
            assert not [found for group in kept for rule in group.rules for found in rule(play)]


class Thing:
    """Something with a fact that takes some finding."""

    def __init__(self) -> None:
        self.asked = 0

    @fact
    def answer(self) -> int:
        """What there is to know."""
        self.asked += 1
        return 42


def test_a_fact_is_found_once_unless_it_is_put_there_and_has_the_words_of_its_property() -> None:
    thing, told = Thing(), Thing()
    vars(told)["answer"] = 7
    assert (thing.answer, thing.answer, told.answer) == (42, 42, 7)
    assert (thing.asked, told.asked) == (1, 0)
    assert Thing.answer.__doc__ == "What there is to know."
