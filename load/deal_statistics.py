"""Whether fair deals are fair: counts faces by seat, jokers, first draws and places in the pool over many deals.

Usage: python -m load.deal_statistics [DEALS]

Each line is a chi-squared test. z is its distance from the expected value in standard deviations: beyond 4 either way,
chance explains it once in 15,000 times.
"""

import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Final

from engine.fair_deal import SEED_BYTES, shuffle_for
from engine.game import Game
from engine.melding.deal import deal_round
from engine.melding.ruleset import SABRA
from engine.seats import Player
from engine.tiles import JOKER, Tile

PLAYERS: Final = 4
LEAST_Z: Final = 4.0
PROGRESS_SECONDS: Final = 10.0


def counts(deals: int) -> dict[str, Counter[Tile]]:
    """Returns how often each face was at each place, over deals with random seeds."""
    game = Game(SABRA, players=tuple(Player(seat, f"player {seat}") for seat in range(1, PLAYERS + 1)))
    found: dict[str, Counter[Tile]] = {}
    said = time.monotonic()
    for number in range(deals):
        dealt = deal_round(game, shuffle_for(game, secrets.token_bytes(SEED_BYTES)))
        places = {f"rack of seat {rack.seat}": rack.tiles for rack in dealt.racks}
        places |= {"first tile of the start draw": (dealt.draws[0].tile,)}
        places |= {"first tile of the pool": dealt.pool[:1], "last tile of the pool": dealt.pool[-1:]}
        for place, tiles in places.items():
            found.setdefault(place, Counter()).update(tiles)
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"{number + 1} of {deals} deals", file=sys.stderr)
    return found


def lines(found: dict[str, Counter[Tile]]) -> Iterator[tuple[str, float]]:
    """Yields each place with its z: of all faces, and of jokers alone.

    Tiles of a rack are drawn without being put back, which narrows the spread by the share of tiles that are elsewhere.
    """
    copies = Counter(SABRA.tiles(PLAYERS))
    for place, counted in found.items():
        drawn = SABRA.deal_hand_size if place.startswith("rack") else 1
        deals, all_tiles = counted.total() / drawn, copies.total()
        spread = (all_tiles - drawn) / (all_tiles - 1)
        expected = {tile: counted.total() * copies[tile] / all_tiles for tile in copies}
        chi_squared = sum((counted[tile] - expected[tile]) ** 2 / expected[tile] for tile in copies) / spread
        freedom = len(copies) - 1
        yield place, (chi_squared - freedom) / sqrt(2 * freedom)
        share = copies[JOKER] / all_tiles
        variance = deals * drawn * share * (1 - share) * spread
        yield f"{place}, jokers", (counted[JOKER] - expected[JOKER]) / sqrt(variance)


def main() -> None:
    """Prints the tests; the command line has the number of deals."""
    deals = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    results = list(lines(counts(deals)))
    print(f"{deals} deals of {SABRA.preset.name} for {PLAYERS}")
    for place, z in results:
        print(f"{place:44} z {z:6.2f}")
    if any(abs(z) > LEAST_Z for _, z in results):
        sys.exit(f"beyond {LEAST_Z}: run it again, and look for a bias if it stays")


if __name__ == "__main__":
    main()
