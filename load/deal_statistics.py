"""Whether fair deals are fair: counts faces by seat, jokers, first draws and places in the pool over many deals.

Usage: python -m load.deal_statistics [DEALS] [SEED]

A run of a million deals writes its results into docs/reliability.md. Each figure is a chi-squared test: z is its
distance from the expected value in standard deviations. Beyond 4 either way, chance explains it once in 15,000 times.
"""

import random
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
from load.bench.figures import are_met, print_report, printer, requirement, run_facts, told_of_run
from load.pages import text_of, write

PLAYERS: Final = 4
COMPLETE: Final = 1_000_000
LEAST_Z: Final = 4.0
PROGRESS_SECONDS: Final = 10.0


def counts(deals: int, seed: int) -> dict[str, Counter[Tile]]:
    """Returns how often each face was at each place, over deals whose seeds follow from a number."""
    seeds = random.Random(seed)
    game = Game(SABRA, players=tuple(Player(seat, f"player {seat}") for seat in range(1, PLAYERS + 1)))
    found: dict[str, Counter[Tile]] = {}
    said = time.monotonic()
    for number in range(deals):
        dealt = deal_round(game, shuffle_for(game, seeds.randbytes(SEED_BYTES)))
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


def main() -> int:
    """Prints the tests; the command line has the number of deals and the seed."""
    deals, seed = (*map(int, sys.argv[1:3]), *(COMPLETE, 1)[len(sys.argv) - 1 :])
    started = time.monotonic()
    results = dict(lines(counts(deals, seed)))
    farthest = max(results, key=lambda place: abs(results[place]))
    report = {
        **run_facts(),
        "seconds": time.monotonic() - started,
        "requirements": [
            requirement(
                f"each of {len(results)} counts within {LEAST_Z:.0f} standard deviations of what chance would give",
                met=abs(results[farthest]) <= LEAST_Z,
                measured=f"at most {abs(results[farthest]):.1f} ({farthest})",
            )
        ],
    }
    told = (*told_of_run(report), f"seed {seed}")
    head = ["place", "all faces, z", "jokers, z"]
    rows = [
        [place, f"{z:.2f}", f"{results[f'{place}, jokers']:.2f}"] for place, z in results.items() if "," not in place
    ]
    tables = {f"{deals:,} deals of {SABRA.preset.name} for {PLAYERS}": [head, *rows]}
    print_report(report, tables, told, printer())
    if deals == COMPLETE:
        write("reliability.md", "python -m load.deal_statistics", text_of(report, told, tables))
    return 0 if are_met(report) else 1


if __name__ == "__main__":
    sys.exit(main())
