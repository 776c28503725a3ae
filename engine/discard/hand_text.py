"""Named hands as text, as records and stored games have them: one word without spaces.

```
HIGH_RUNS:300/250/200:runs_min=3,runs_max=3,groups_max=0,lowest=10,one_high=1,run_colors_differ=1;LOW_RUNS:...
```

Conditions that have their default are left out.
"""

import re
from dataclasses import fields
from typing import Any, Final

from engine.discard.named_hands import NamedHand

_FORM: Final = re.compile("([A-Z0-9_]+):([0-9]{1,4})/([0-9]{1,4})/([0-9]{1,4}):([a-z0-9_=,]*)")
_CONDITION: Final = re.compile("([a-z_]+)=([0-9]{1,2})")
_CONDITIONS: Final[dict[str, Any]] = {
    one.name: one.default for one in fields(NamedHand) if one.name not in {"name", "scores"}
}


def format_hands(hands: tuple[NamedHand, ...]) -> str:
    """Returns named hands as text."""
    return ";".join(map(_format_hand, hands))


def _format_hand(hand: NamedHand) -> str:
    values = ((name, getattr(hand, name)) for name in _CONDITIONS)
    stated = (f"{name}={int(value)}" for name, value in values if value != _CONDITIONS[name])
    return f"{hand.name}:{'/'.join(map(str, hand.scores))}:{','.join(stated)}"


def parse_hands(text: str) -> tuple[NamedHand, ...]:
    """Parses what `format_hands` returns. Raises ValueError."""
    return tuple(map(_parse_hand, text.split(";")))


def _parse_hand(text: str) -> NamedHand:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a named hand")
    name, none, one, two, conditions = match.groups()
    values = dict(map(_parse_condition, conditions.split(","))) if conditions else {}
    return NamedHand(name, (int(none), int(one), int(two)), **values)


def _parse_condition(text: str) -> tuple[str, Any]:
    match = _CONDITION.fullmatch(text)
    if match is None or match[1] not in _CONDITIONS:
        raise ValueError(f"{text!r} is not a condition of a named hand")
    return match[1], type(_CONDITIONS[match[1]])(int(match[2]))
