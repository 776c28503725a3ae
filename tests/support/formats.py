"""A process of a version with other stored formats."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.storage.formats import FORMATS, Formats


@contextmanager
def process_with(formats: Formats) -> Iterator[None]:
    """Makes this process one of a version for a while."""
    before = FORMATS.newest, FORMATS.written, FORMATS.older
    FORMATS.newest, FORMATS.written, FORMATS.older = formats.newest, formats.written, formats.older
    try:
        yield
    finally:
        FORMATS.newest, FORMATS.written, FORMATS.older = before
