"""Paces the refusals of an address that is refused again and again.

A refusal costs nearly as much as a short call. A client that sends the next call as soon as one is refused would keep
the server busy with refusals; here they are sent at a steady rate, and the client waits for them. A waiting refusal
holds nothing but the open call.
"""

import math
import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.runtime.origins import Origin

PER_SECOND: Final = 20
"""Refusals of an address in a second."""
DRAFT_REFUSALS_PER_SECOND: Final = 100
"""Refused drafts of an address in a second: more than those of a client that saves one at each of 60 frames."""
AT_ONCE: Final = 100
"""Refusals that may be sent at once after a pause."""
WAIT_MAX_SECONDS: Final = 60.0
"""The longest wait. Refusals that would wait longer are sent at random times in the second half of it."""
EARLY_SECONDS: Final = 0.2
"""How long before the deadline of its call a refusal is sent at the latest, so that it arrives in time."""
LATE_PER_SECOND: Final = 200
"""Calls without a request of an address that time out in a second."""
WAITING_MAX: Final = 10_000
"""Most refusals that wait at a listener, at about 15 KB each; addresses share them. More are sent at once."""
ADDRESSES_MAX: Final = 4_096
"""Most addresses whose refusals are paced. The one refused longest ago is forgotten."""


class RefusalPace:
    """Decides when a refusal is sent. For one thread.

    Args:
        is_bounded: Returns whether limits apply to an address. The refusals of a proxy do not wait: they are for
            many clients.
        per_second: How many are sent in a second for one address.
    """

    def __init__(self, is_bounded: Callable[[Origin], bool], per_second: float) -> None:
        self._is_bounded = is_bounded
        self._per_second = per_second
        self._last: OrderedDict[str, float] = OrderedDict()
        """When the last refusal of each address is sent."""

    def delay(self, origin: Origin, now: float, left: float = math.inf) -> float:
        """Returns how many seconds the next refusal of a caller waits.

        Args:
            origin: Who is refused.
            now: Seconds, by a monotonic clock.
            left: Seconds until the deadline of the call.
        """
        return max(0.0, min(self._delay(origin, now), left - EARLY_SECONDS))

    def _delay(self, origin: Origin, now: float) -> float:
        """Returns the same without a deadline."""
        if not self._is_bounded(origin):
            return 0.0
        address = origin.address
        sent = max(now - AT_ONCE / self._per_second, self._last.get(address, -math.inf)) + 1 / self._per_second
        if sent - now > WAIT_MAX_SECONDS:
            return random.uniform(WAIT_MAX_SECONDS / 2, WAIT_MAX_SECONDS)  # noqa: S311 - it is no secret
        self._last[address] = sent
        self._last.move_to_end(address)
        if len(self._last) > ADDRESSES_MAX:
            self._last.popitem(last=False)
        return sent - now
