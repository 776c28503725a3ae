"""Presence as stores keep it: fields with the time of a sighting, and until when a server's watch counts as open."""

from collections.abc import Mapping

from service.storage.base import Seen


def read_presence(fields: Mapping[bytes, int]) -> Mapping[str, Seen]:
    """Returns when the owners of seats were seen, by tag.

    Args:
        fields: A tag, when it was seen last; `tag:server`, until when a watch counts as open.
    """
    open_until: dict[bytes, int] = {}
    for name, time_ms in fields.items():
        tag, colon, _ = name.partition(b":")
        if colon:
            open_until[tag] = max(time_ms, open_until.get(tag, 0))
    return {
        name.decode(): Seen(time_ms, open_until.get(name, 0)) for name, time_ms in fields.items() if b":" not in name
    }
