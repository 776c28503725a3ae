"""Paces the refusals of an address that is refused again and again.

A refusal costs nearly as much as a short call. A client that sends the next call as soon as one is refused would keep
the server busy with refusals; here they leave at a steady rate, and the client waits for them.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.runtime.origins import Origin

PER_SECOND: Final = 20
"""Refusals of an address in a second."""
AT_ONCE: Final = 100
"""Refusals that may leave at once after a pause."""
WAIT_MAX_SECONDS: Final = 60.0
"""The longest wait. Refusals that would wait longer leave spread over the second half of it."""
LATE_PER_SECOND: Final = 200
"""Calls without a request of an address that time out in a second."""
SPREAD: Final = (5**0.5 - 1) / 2
"""The golden section, whose multiples are spread evenly."""
WAITING_MAX: Final = 10_000
"""Most refusals that wait at a listener, at about 15 KB each. More leave at once."""
ADDRESSES_MAX: Final = 4_096
"""Most addresses whose refusals are paced. The one refused longest ago is forgotten."""


class RefusalPace:
    """Decides when a refusal leaves. For one thread.

    Args:
        is_bounded: Returns whether limits apply to an address. The refusals of a proxy do not wait: they are for
            many clients.
        per_second: How many leave in a second for one address.
    """

    def __init__(self, is_bounded: Callable[[Origin], bool], per_second: float) -> None:
        self._is_bounded = is_bounded
        self._per_second = per_second
        self._spread = 0.0
        self._last: OrderedDict[str, float] = OrderedDict()
        """When the last refusal of each address leaves."""

    def delay(self, origin: Origin, now: float) -> float:
        """Returns how many seconds the next refusal of a caller waits.

        Args:
            origin: Who is refused.
            now: Seconds, by a monotonic clock.
        """
        if not self._is_bounded(origin):
            return 0.0
        address = origin.address
        leaves = max(now - AT_ONCE / self._per_second, self._last.get(address, 0.0)) + 1 / self._per_second
        if leaves - now > WAIT_MAX_SECONDS:
            self._spread = (self._spread + SPREAD) % 1
            return WAIT_MAX_SECONDS * (1 + self._spread) / 2
        self._last[address] = leaves
        self._last.move_to_end(address)
        if len(self._last) > ADDRESSES_MAX:
            self._last.popitem(last=False)
        return max(0.0, leaves - now)
