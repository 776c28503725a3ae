"""Paces the refusals of an address that is refused again and again.

A refusal costs nearly as much as a short call. A client that sends the next call as soon as one is refused would keep
the server busy with refusals; here they are sent at a steady rate, and the client waits for them. A waiting refusal
holds nothing but the open call.
"""

import math
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from service.runtime.origins import Origin


@dataclass(frozen=True, slots=True)
class Pacing:
    """How refusals are paced.

    Attributes:
        per_second: Refusals of an address in a second.
        drafts_per_second: Refused drafts of an address in a second: more than those of a client that saves one at each
            of 60 frames.
        late_per_second: Calls without a request of an address that time out in a second.
        at_once: Refusals that may be sent at once after a pause.
        wait_max_seconds: The longest wait. Refusals that would wait longer are sent at random times in the second half
            of it.
        early_seconds: How long before the deadline of its call a refusal is sent at the latest, so that it arrives in
            time.
        waiting_max: Most refusals that wait at a listener, at about 15 KB each; addresses share them. More are sent at
            once.
        addresses_max: Most addresses whose refusals are paced. The one refused longest ago is forgotten.
    """

    per_second: float = 20
    drafts_per_second: float = 100
    late_per_second: float = 200
    at_once: int = 100
    wait_max_seconds: float = 60.0
    early_seconds: float = 0.2
    waiting_max: int = 10_000
    addresses_max: int = 4_096


class RefusalPace:
    """Decides when a refusal is sent. For one thread.

    Args:
        is_bounded: Returns whether limits apply to an address. The refusals of a proxy do not wait: they are for
            many clients.
        per_second: How many are sent in a second for one address.
        pacing: The other bounds.
    """

    def __init__(self, is_bounded: Callable[[Origin], bool], per_second: float, pacing: Pacing = Pacing()) -> None:
        self._is_bounded = is_bounded
        self._per_second = per_second
        self._pacing = pacing
        self._last: OrderedDict[str, float] = OrderedDict()
        """When the last refusal of each address is sent."""

    def delay(self, origin: Origin, now: float, left: float = math.inf) -> float:
        """Returns how many seconds the next refusal of a caller waits.

        Args:
            origin: Who is refused.
            now: Seconds, by a monotonic clock.
            left: Seconds until the deadline of the call.
        """
        return max(0.0, min(self._delay(origin, now), left - self._pacing.early_seconds))

    def _delay(self, origin: Origin, now: float) -> float:
        """Returns the same without a deadline."""
        if not self._is_bounded(origin):
            return 0.0
        address, longest = origin.address, self._pacing.wait_max_seconds
        earliest = now - self._pacing.at_once / self._per_second
        sent = max(earliest, self._last.get(address, -math.inf)) + 1 / self._per_second
        if sent - now > longest:
            return random.uniform(longest / 2, longest)  # noqa: S311 - it is no secret
        self._last[address] = sent
        self._last.move_to_end(address)
        if len(self._last) > self._pacing.addresses_max:
            self._last.popitem(last=False)
        return sent - now
