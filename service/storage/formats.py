"""The stored formats that this version knows: it writes one, and reads all that its major version has released.

Stored games, changes, drafts and challenges are JSON objects with the number of their format. A new format is one
number more, and a row of `older` for the one before, whose functions convert a decoded object. The newest format costs
no conversion.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from service.errors import StoredFormatUnknown
from service.storage.stored_values import Json, dump


class FormatNotWritten(ValueError):  # noqa: N818 - the setting is wrong
    """This version does not write the format; the message says which ones it writes."""


@dataclass(frozen=True, slots=True)
class Older:
    """How a released format differs from the one after it. Objects are without their `format`.

    Attributes:
        up: Returns an object of this format in the one after it. May raise any error that `reading` knows.
        down: Returns the opposite; None if this format cannot hold all of it.
    """

    up: Callable[[Json], Json]
    down: Callable[[Json], Json | None]


@dataclass(slots=True)
class Formats:
    """The formats, and which of them this process writes.

    Attributes:
        newest: The newest format.
        written: The format that is written. A version with a new format begins with the one before, so that servers of
            the minor version before read what it writes; `python -m tools.release.frozen` checks that.
        older: The readable formats before it, by number, without a gap.
    """

    newest: int
    written: int
    older: Mapping[int, Older]

    @property
    def writable(self) -> tuple[int, ...]:
        """The formats that can be written: the newest, and the one before if it was released."""
        return tuple(
            number for number in (self.newest - 1, self.newest) if number == self.newest or number in self.older
        )

    def choose(self, number: int) -> None:
        """Makes this process write a format. Raises FormatNotWritten."""
        if number not in self.writable:
            raise FormatNotWritten(
                f"this version writes {' or '.join(map(str, self.writable))}: unset it, or run a version that writes "
                f"{number} (docs/upgrade.md)"
            )
        self.written = number

    def write(self, parts: Json) -> bytes:
        """Returns an object's stored bytes. One that the written format cannot hold is stored in the newest."""
        if self.written != self.newest:
            converted = self.older[self.written].down(orjson.loads(orjson.dumps(parts)))
            if converted is not None:
                return dump({"format": self.written, **converted})
        return dump({"format": self.newest, **parts})

    def read(self, data: bytes) -> Json:
        """Returns an object in the newest form, from its stored bytes. Raises StoredFormatUnknown."""
        stored: Json = orjson.loads(data)
        number = stored.pop("format", None)
        while number != self.newest:
            if number not in self.older:
                raise StoredFormatUnknown
            stored = self.older[number].up(stored)
            number += 1
        return stored


FORMATS: Final = Formats(newest=7, written=7, older={})
"""The formats of this version. `written` is chosen once, before it serves (RUMMIKUB_STORED_FORMAT)."""
