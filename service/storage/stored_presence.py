"""Presence as stores keep it: fields with the time of a sighting, and until when a server's watch counts as open."""

from collections.abc import Mapping

from service.model.presence import Seen


def read_presence(fields: Mapping[bytes, int]) -> Mapping[int, Seen]:
    """Returns when the owners of seats were seen, by seat.

    Args:
        fields: A seat, when its owner was seen last; `seat:server`, until when a watch counts as open.
    """
    open_until: dict[bytes, int] = {}
    for name, time_ms in fields.items():
        seat, colon, _ = name.partition(b":")
        if colon:
            open_until[seat] = max(time_ms, open_until.get(seat, 0))
    return {int(name): Seen(time_ms, open_until.get(name, 0)) for name, time_ms in fields.items() if name.isdigit()}
