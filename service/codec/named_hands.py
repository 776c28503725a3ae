"""Named hands of a game of discards on the wire (concealed_wins)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from engine.discard.named_hands import HANDS_MAX, NamedHand
from rummikub.v1 import ruleset_pb2
from service.codec.fields import invalid

_LIMITS: Final = ("runs_min", "runs_max", "groups_min", "groups_max", "colors_min", "colors_max", "lowest", "highest")
_FLAGS: Final = ("one_high", "all_even", "all_odd", "run_colors_differ")
_SCORES: Final = 3


def named_hands(messages: Sequence[ruleset_pb2.NamedHand], field: str) -> tuple[NamedHand, ...]:
    """Returns the named hands of a request. Raises InvalidRequest."""
    if len(messages) > HANDS_MAX:
        raise invalid(field, f"expected at most {HANDS_MAX} hands", "OPTION_VALUE_INVALID")
    hands = tuple(_named_hand(message, f"{field}[{place}]") for place, message in enumerate(messages))
    names = [hand.name for hand in hands]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise invalid(f"{field}[{place}].name", f"{name} is the name of two hands", "OPTION_VALUE_INVALID")
    return hands


def _named_hand(message: ruleset_pb2.NamedHand, field: str) -> NamedHand:
    if len(message.scores) != _SCORES:
        raise invalid(f"{field}.scores", f"expected {_SCORES} numbers", "OPTION_VALUE_INVALID")
    none, one, two = message.scores
    limits = {name: getattr(message, name) for name in _LIMITS if message.HasField(name)}
    flags = {name: getattr(message, name) for name in _FLAGS}
    hand = NamedHand(message.name, (none, one, two), **limits, **flags)
    if not hand.is_possible:
        raise invalid(field, "a name, a limit or a score is out of range", "OPTION_VALUE_INVALID")
    return hand


def encode_named_hands(hands: Sequence[NamedHand]) -> list[ruleset_pb2.NamedHand]:
    """Returns named hands with every field set."""
    return [ruleset_pb2.NamedHand(**asdict(hand)) for hand in hands]
