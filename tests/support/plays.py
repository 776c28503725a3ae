"""Plays for tests, from text or at random, and their judgement by the plain rules and by fast judges."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from engine.melding.fast.fast_judge import FastJudge, Verdict
from engine.melding.fast.fast_play import FastPlay, PlayerState
from engine.melding.fast.read_melds import CacheBudget, PlayMelds, melds_by_identity, melds_by_key
from engine.melding.fast.tile_counts import OVERFLOW, counts_of, exchange, tight_counts_of
from engine.melding.melds import Meld, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import parse_play
from engine.melding.play import BasePlay, Play
from engine.melding.rules import Judgement, groups_of, judge
from engine.melding.ruleset import SABRA, Ruleset
from engine.melding.table import melds_of
from engine.tiles import JOKER, NATURALS, SPECIAL_JOKERS, Tile
from engine.violations import Violation
from support.random_play import random_table


def play_of(text: str, ruleset: Ruleset = SABRA) -> Play:
    """Returns the play of `table + rack -> table ; rack left`. A player with `*rack` has melded."""
    has_melded = "+ *" in text
    parsed = parse_play(text.replace("+ *", "+ "))
    sent = melds_of(parsed.table_before)
    before = tuple(meld for meld in (read_meld(p, ruleset) for p in sent) if isinstance(meld, Meld))
    assert len(before) == len(sent), "the table before is not valid"
    return Play(before, melds_of(parsed.table_after), parsed.rack_before, has_melded, ruleset)


def judge_text(text: str, ruleset: Ruleset = SABRA) -> Judgement:
    """Returns the judgement of a play."""
    return judged(play_of(text, ruleset))


def judged(play: Play) -> Judgement:
    """Returns the judgement of a play by the plain rules, and asserts that fast judges agree."""
    plain = judge(play)
    assert judged_fast(play) == plain
    return plain


def judged_fast(play: Play) -> Judgement:
    """Returns the judgement of a FastPlay. Asserts that FastJudges with each kind of cache agree with it."""
    by_identity = FastJudge(play.ruleset, melds_by_identity(play.ruleset, CacheBudget()), play.subject)
    fast = fast_play(play, melds_by_identity(play.ruleset, CacheBudget()))
    judgement = judge(fast, groups_of(play.ruleset))
    expected = verdict_expected(play, judgement)
    for _ in range(2):
        assert verdict_of(by_identity.judge(play.table_before, play.table_after, player_of(play))) == expected
    if not judgement.violations:
        assert by_identity.new_table(play.table_before, play.table_after) == judgement.table
    sent = before_as_sent(play)
    if tuple(read_meld(meld, play.ruleset) for meld in sent) == play.table_before:
        by_key = fast_judge_of(play.ruleset)
        for _ in range(2):  # with empty and with filled caches
            assert verdict_of(by_key.judge(sent, play.table_after, player_of(play))) == expected
    return judgement


def fast_judge_of(
    ruleset: Ruleset, budget: CacheBudget | None = None, subject: str = Play.subject
) -> FastJudge[ProposedMeld, ProposedMeld]:
    """Returns a judge with a cache by value."""
    melds = melds_by_key(_unchanged)(ruleset, budget or CacheBudget())
    return FastJudge(ruleset, melds, subject)


def _unchanged(proposed: ProposedMeld) -> ProposedMeld:
    return proposed


def fast_play(play: Play, melds: PlayMelds[Meld, ProposedMeld]) -> BasePlay:
    """Returns a FastPlay, or the plain play if the tile counts overflow."""
    tables = melds.before.read(play.table_before), melds.after.read(play.table_after)
    before, after = (sum(meld.counts for meld in table) for table in tables)
    rack = counts_of(play.rack)
    if (before + rack | after) & OVERFLOW:
        return play
    counts = (before, after, *exchange(before, after, rack))
    return FastPlay(melds, (play.table_before, play.table_after), counts, player_of(play), play.subject)


Expected = tuple[tuple[Violation, ...], tuple[Tile, ...], int, tuple[Tile, ...]]


def verdict_of(verdict: Verdict | None) -> Expected | None:
    """Returns a verdict as a tuple."""
    if verdict is None:
        return None
    return verdict.violations, verdict.tiles_played, verdict.points, verdict.rack_left


def verdict_expected(play: Play, judgement: Judgement) -> Expected | None:
    """Returns a fast judge's verdict as a tuple: none if rack and table have more tiles than the game (R1)."""
    tiles = Counter(play.rack) + play.tiles_before
    if any(count > play.ruleset.copies_of(face) for face, count in tiles.items()):
        return None
    if sum(tight_counts_of(meld.tiles) for meld in play.table_after) & OVERFLOW:
        return None
    return judgement.violations, judgement.tiles_played, judgement.points, judgement.rack_left


def before_as_sent(play: Play) -> list[ProposedMeld]:
    """Returns the table before as a player may send it."""
    return [as_proposed(meld, play.ruleset) for meld in play.table_before]


def player_of(play: Play) -> PlayerState:
    """Returns the player's part of a play."""
    return PlayerState(
        play.rack,
        play.has_melded,
        river=play.river,
        river_index=play.river_index,
        drawn=play.drawn,
        calls_rummikub=play.calls_rummikub,
    )


def to_tables(rng: random.Random, ruleset: Ruleset) -> Iterator[Play]:
    """Yields legal and illegal plays of one player in positions that grow from an empty table."""
    tiles = list(ruleset.tiles(2))
    rng.shuffle(tiles)
    rack, pool = tiles[:30], tiles[30:]
    table: tuple[Meld, ...] = ()
    for _ in range(4):
        after = random_table(table, tuple(sorted(rack)), bool(table), ruleset, rng)
        if after is None:
            return
        play = Play(table, after, tuple(sorted(rack)), bool(table), ruleset)
        yield play
        yield spoiled(play, rng)
        judgement = judge(play)
        table = judgement.table
        rack = [*judgement.rack_left, *pool[:6]]
        del pool[:6]


def spoiled(play: Play, rng: random.Random) -> Play:
    """Returns a play with up to two tiles of its table changed, by a player who has melded or not."""
    melds = [list(meld.tiles) for meld in play.table_after]
    faces = (*NATURALS, JOKER, *sorted(t for t in SPECIAL_JOKERS if play.ruleset.copies_of(t)))
    for _ in range(rng.choice((0, 1, 1, 2))):
        meld = rng.choice(melds)
        if not meld:
            continue
        place = rng.randrange(len(meld))
        change = rng.randrange(3)
        if change == 0:
            meld[place] = rng.choice(faces)
        elif change == 1:
            del meld[place]
        else:
            rng.choice(melds).append(meld[place])
    after = tuple(ProposedMeld(tuple(meld)) for meld in melds)
    return replace(play, table_after=after, has_melded=rng.random() < 0.7)
