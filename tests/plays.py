"""Plays for tests, from their text."""

from engine.melds import Meld, read_meld
from engine.notation import parse_play
from engine.play import Play
from engine.rules import Judgement, judge
from engine.ruleset import SABRA, Ruleset


def play_of(text: str, ruleset: Ruleset = SABRA) -> Play:
    """The play of `table + rack -> table ; rack left`; `*rack` is one of a player who has melded."""
    has_melded = "+ *" in text
    parsed = parse_play(text.replace("+ *", "+ "))
    before = tuple(meld for meld in (read_meld(p, ruleset) for p in parsed.table_before) if isinstance(meld, Meld))
    assert len(before) == len(parsed.table_before), "the table before is not valid"
    return Play(before, parsed.table_after, parsed.rack_before, has_melded, ruleset)


def judge_text(text: str, ruleset: Ruleset = SABRA) -> Judgement:
    """What the rules say of a play."""
    return judge(play_of(text, ruleset))
