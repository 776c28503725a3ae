"""Likeness of players' names: names that a person may take for one another do not sit at one table.

Unicode's confusables (UTS #39) come with the package confusable-homoglyphs. It lists for each look-alike its prototype,
and for each prototype its look-alikes.
"""

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Final
from unicodedata import normalize

JOINERS: Final = "\u200c\u200d"
"""ZWNJ and ZWJ: Persian and Hindi words and emoji of several people need them. They are invisible."""

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point, and the empty Braille pattern."""


def is_visible(name: str) -> bool:
    """Returns whether a name has a character that can be seen."""
    return bool(_INVISIBLE.sub("", name).strip())


def are_alike(name: str, other: str) -> bool:
    """Returns whether two names differ only in case, compatibility forms, invisible characters or look-alikes."""
    return not _looks(name).isdisjoint(_looks(other))


@lru_cache(maxsize=4_096)
def _looks(name: str) -> frozenset[str]:
    """Returns what a name can be taken for.

    The skeleton of the lower case finds `ian` in `Ian`, and the lower case of the skeleton finds `lan` in it.
    """
    visible = " ".join(_INVISIBLE.sub("", normalize("NFKC", name)).split())
    return frozenset((_skeleton(visible.casefold()), _skeleton(visible).casefold()))


def _skeleton(text: str) -> str:
    """Returns the skeleton of a text (UTS #39): each look-alike is replaced by its prototype."""
    return normalize("NFD", normalize("NFD", text).translate(_PROTOTYPES))


def _read_prototypes() -> dict[int, str]:
    """Returns the prototype of each look-alike."""
    data = json.loads((files("confusable_homoglyphs") / "confusables.json").read_text(encoding="utf-8"))
    alike = {text: [other["c"] for other in others] for text, others in data.items()}
    return {ord(text): _prototype(text, alike) for text in alike if len(text) == 1}


def _prototype(text: str, alike: dict[str, list[str]]) -> str:
    """Returns the prototype of a text. Of two that are only alike each other, it is the longer or the lower one."""
    if len(alike[text]) > 1:
        return text
    other = alike[text][0]
    return other if len(alike[other]) > 1 else min(text, other, key=lambda each: (-len(each), each))


_PROTOTYPES: Final = _read_prototypes()
