"""Plays for tests, from their text."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from engine.fast.fast_judge import AtTheTable, Referee, Verdict
from engine.melds import Meld, ProposedMeld, as_proposed, read_meld
from engine.notation import parse_play
from engine.play import Play
from engine.rules import Judgement, judge
from engine.ruleset import SABRA, Ruleset
from engine.tiles import JOKER, NATURALS, tile_set
from support.random_play import random_table


def play_of(text: str, ruleset: Ruleset = SABRA) -> Play:
    """The play of `table + rack -> table ; rack left`; `*rack` is one of a player who has melded."""
    has_melded = "+ *" in text
    parsed = parse_play(text.replace("+ *", "+ "))
    before = tuple(meld for meld in (read_meld(p, ruleset) for p in parsed.table_before) if isinstance(meld, Meld))
    assert len(before) == len(parsed.table_before), "the table before is not valid"
    return Play(before, parsed.table_after, parsed.rack_before, has_melded, ruleset)


def judge_text(text: str, ruleset: Ruleset = SABRA) -> Judgement:
    """What the rules say of a play."""
    return judged(play_of(text, ruleset))


def judged(play: Play) -> Judgement:
    """What the rules say of a play, asked plainly and by a referee, who must agree."""
    plain = judge(play)
    assert by_referee(play) == plain
    return plain


def by_referee(play: Play) -> Judgement:
    """What a referee says of a play, of melds that lie and of melds that are sent."""
    referee = Referee[ProposedMeld](play.ruleset, lambda proposed: proposed)
    lying, sent = referee.lying(play.table_before), referee.read(before_as_sent(play))
    after = referee.read_same(play.table_after)
    judgement = referee.judge(referee.play(lying, after, seat_of(play)))
    assert referee.plainly_legal(lying, after, seat_of(play)) in {None, judgement}
    if [reading.meld for reading in sent] == list(play.table_before):
        new = Referee[ProposedMeld](play.ruleset, lambda proposed: proposed)
        for asked in (new, new, referee):  # of melds that are read, that are known, that were read otherwise too
            assert verdict_of(play, asked) == said(play, judgement), "a verdict is the judgement"
    return judgement


def verdict_of(play: Play, referee: Referee[ProposedMeld]) -> Verdict | None:
    """What a referee says of a turn, both tables of which are sent."""
    return referee.verdict(before_as_sent(play), play.table_after, seat_of(play))


def said(play: Play, judgement: Judgement) -> Verdict | None:
    """What there is to say of a turn: nothing where rack and table have more tiles than the game (R1)."""
    tiles = Counter(play.rack) + play.tiles_before
    if any(count > play.ruleset.copies_of(face) for face, count in tiles.items()):
        return None
    return judgement.violations, judgement.tiles_played, judgement.points, judgement.rack_left


def before_as_sent(play: Play) -> list[ProposedMeld]:
    """The table before as a player may send it."""
    return [as_proposed(meld, play.ruleset) for meld in play.table_before]


def seat_of(play: Play) -> AtTheTable:
    """Who plays."""
    return AtTheTable(
        play.rack,
        play.has_melded,
        river=play.river,
        river_index=play.river_index,
        drawn=play.drawn,
        calls_rummikub=play.calls_rummikub,
    )


def to_tables(rng: random.Random, ruleset: Ruleset) -> Iterator[Play]:
    """Plays of one player, legal and not, in positions that grow from an empty table."""
    tiles = list(tile_set(ruleset.geometry_colors, ruleset.geometry_copies, ruleset.jokers(2)))
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
    """A play with a few tiles of its table changed, left out or doubled, of a player who has melded or not."""
    melds = [list(meld.tiles) for meld in play.table_after]
    for _ in range(rng.choice((0, 1, 1, 2))):
        meld = rng.choice(melds)
        if not meld:
            continue
        place = rng.randrange(len(meld))
        change = rng.randrange(3)
        if change == 0:
            meld[place] = rng.choice((*NATURALS, JOKER))
        elif change == 1:
            del meld[place]
        else:
            rng.choice(melds).append(meld[place])
    after = tuple(ProposedMeld(tuple(meld)) for meld in melds)
    return replace(play, table_after=after, has_melded=rng.random() < 0.7)
