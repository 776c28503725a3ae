"""Whether fair deals are fair: counts faces by seat, jokers, first draws and places in the pool over many deals.

Usage: python -m load.deal_statistics [DEALS] [SEED]

DEALS are dealt of Sabra, and a tenth of them of each of MORE, which have other tiles or another way to deal. A run of a
million deals writes its results into docs/reliability.md. Each figure is a chi-squared test: z is its distance from the
expected value in standard deviations. Beyond 4 either way, chance explains it once in 15,000 times.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Final

from engine.discard import presets as discard
from engine.discard.events import HandsDealt
from engine.fair_deal import SEED_BYTES, shuffle_for
from engine.family import family_of
from engine.game import Game
from engine.melding import presets as melding
from engine.melding.ruleset import SABRA, Preset
from engine.seats import Player
from engine.tiles import FALSE_JOKER, JOKERS, Tile
from engine.unions import RoundStart, Ruleset
from load.bench.figures import are_met, print_report, printer, requirement, run_facts, told_of_run
from load.pages import text_of, write

PLAYERS: Final = 4
COMPLETE: Final = 1_000_000
MORE_SHARE: Final = 10
MORE: Final[tuple[Ruleset, ...]] = (
    *(melding.PRESETS[preset] for preset in (Preset.CROSS, Preset.TWIST, Preset.SIX_COLORS)),
    *(discard.PRESETS[preset] for preset in discard.PRESETS if "PARTNERS" not in preset.name),
)
LEAST_Z: Final = 4.0
PROGRESS_SECONDS: Final = 10.0


def counts(ruleset: Ruleset, deals: int, seed: int) -> dict[str, Counter[Tile]]:
    """Returns how often each face was at each place, over deals whose seeds follow from a number."""
    seeds = random.Random(f"{ruleset.preset.name} {seed}")
    game = Game(ruleset, players=tuple(Player(seat, f"player {seat}") for seat in range(1, PLAYERS + 1)))
    found: dict[str, Counter[Tile]] = {}
    said = time.monotonic()
    for number in range(deals):
        for place, tiles in _places(family_of(game).deal(game, shuffle_for(game, seeds.randbytes(SEED_BYTES)))):
            found.setdefault(place, Counter()).update(tiles)
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"{ruleset.preset.name}: {number + 1} of {deals} deals", file=sys.stderr)
    return found


def _places(dealt: RoundStart) -> Iterator[tuple[str, tuple[Tile, ...]]]:
    """Yields the places of a deal with their tiles. A rack with the starter's additional tile is a place of its own."""
    for rack in dealt.racks:
        yield f"rack of seat {rack.seat}, {len(rack.tiles)} tiles", rack.tiles
    if isinstance(dealt, HandsDealt):
        for name, tile in (("indicator", dealt.indicator), ("trump", dealt.trump)):
            if tile is not None:
                yield name, (tile,)
    elif dealt.draws:
        yield "first tile of the start draw", (dealt.draws[0].tile,)
    yield "first tile of the pool", dealt.pool[:1]
    yield "last tile of the pool", dealt.pool[-1:]


def lines(ruleset: Ruleset, found: dict[str, Counter[Tile]]) -> Iterator[tuple[str, float, float]]:
    """Yields each place with its z: of all faces, and of jokers alone.

    Tiles of a rack are drawn without being put back, which narrows the spread by the share of tiles that are elsewhere.
    An indicator is no false joker, so other places have a false joker a little more often.
    """
    copies = Counter(ruleset.tiles(PLAYERS))
    turned = {tile: 0 if tile == FALSE_JOKER else count for tile, count in copies.items()}
    turned_share = {tile: turned[tile] / sum(turned.values()) for tile in copies}
    left = {tile: copies[tile] - ("indicator" in found) * turned_share[tile] for tile in copies}
    for place, counted in sorted(found.items()):
        drawn = int(place.split()[-2]) if place.startswith("rack") else 1
        among = turned if place == "indicator" else left
        total = sum(among.values())
        share = {tile: count / total for tile, count in among.items() if count}
        spread = (total - drawn) / (total - 1)
        chi_squared = sum(
            (counted[tile] - counted.total() * p) ** 2 / (counted.total() * p) for tile, p in share.items()
        )
        freedom = len(share) - 1
        joker = sum(p for tile, p in share.items() if tile in JOKERS or tile == FALSE_JOKER)
        jokers = sum(count for tile, count in counted.items() if tile in JOKERS or tile == FALSE_JOKER)
        variance = counted.total() * joker * (1 - joker) * spread
        yield (
            place,
            (chi_squared / spread - freedom) / sqrt(2 * freedom),
            (jokers - counted.total() * joker) / sqrt(variance) if variance else 0.0,
        )


def main() -> int:
    """Prints the tests; the command line has the number of deals and the seed."""
    deals, seed = (*map(int, sys.argv[1:3]), *(COMPLETE, 1)[len(sys.argv) - 1 :])
    started = time.monotonic()
    tables, farthest, tests = {}, (0.0, ""), 0
    for ruleset, many in ((SABRA, deals), *((rules, deals // MORE_SHARE) for rules in MORE)):
        name = ruleset.preset.name
        rows = list(lines(ruleset, counts(ruleset, many, seed)))
        tables[f"{many:,} deals of {name} for {PLAYERS}"] = [
            ["place", "all faces, z", "jokers, z"],
            *([place, f"{faces:.2f}", f"{jokers:.2f}"] for place, faces, jokers in rows),
        ]
        farthest = max(farthest, *((max(abs(faces), abs(jokers)), f"{name}, {place}") for place, faces, jokers in rows))
        tests += 2 * len(rows)
    report = {
        **run_facts(),
        "seconds": time.monotonic() - started,
        "requirements": [
            requirement(
                f"each of {tests} counts within {LEAST_Z:.0f} standard deviations of what chance would give",
                met=farthest[0] <= LEAST_Z,
                measured=f"at most {farthest[0]:.1f} ({farthest[1]})",
            )
        ],
    }
    told = (*told_of_run(report), f"seed {seed}")
    print_report(report, tables, told, printer())
    if deals == COMPLETE:
        write("reliability.md", "python -m load.deal_statistics", text_of(report, told, tables))
    return 0 if are_met(report) else 1


if __name__ == "__main__":
    sys.exit(main())
