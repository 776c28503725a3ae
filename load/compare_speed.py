"""Compares the speed of the engine's validation with that of another revision, side by side.

Both revisions judge the same positions in alternating processes, so that other load on the machine affects both alike.
The positions come from random games of this revision under the default ruleset.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from engine.actions import Join, StartGame
from engine.game import Playing
from engine.melding.actions import DrawTile, Pass, PlayTiles
from engine.melding.game import round_of
from engine.melding.melds import ProposedMeld
from engine.melding.notation import format_table
from engine.melding.ruleset import SABRA
from engine.melding.table import melds_of
from engine.notation import format_rack
from engine.seats import HOST
from engine.turns import apply, create
from engine.violations import Refused
from support.random_play import random_shuffle, random_table
from tools.servers import ROOT

GIT = shutil.which("git") or "git"

JUDGE = """
import importlib, json, sys, time
try:
    import engine.melding as home
except ImportError:  # before the families of games
    import engine as home
rules, melds_of, notation, ruleset = (
    importlib.import_module(f"{home.__name__}.{name}") for name in ("rules", "melds", "notation", "ruleset")
)
read_meld, ProposedMeld, judge, SABRA = melds_of.read_meld, melds_of.ProposedMeld, rules.judge, ruleset.SABRA
parse_melds = notation.parse_melds
try:
    from engine.notation import parse_rack
except ImportError:  # before tiles and racks had a notation of their own
    parse_rack = notation.parse_rack
Play = importlib.import_module(f"{home.__name__}.play").Play

plays = []
for case in json.load(open(sys.argv[1])):
    before = tuple(read_meld(meld, SABRA) for meld in parse_melds(case["before"]))
    after, rack = parse_melds(case["after"]), parse_rack(case["rack"])
    plays.append((before, after, rack, case["melded"], case["legal"]))
for kept in (True, False):
    chosen = [play for play in plays if play[4] is kept]
    start = time.process_time()
    for _ in range(int(sys.argv[2])):
        for before, after, rack, melded, _ in chosen:
            judge(Play(before, after, rack, melded, SABRA))
    print((time.process_time() - start) / len(chosen) / int(sys.argv[2]) * 1e6)
melds = [ProposedMeld(meld.tiles) for before, *_ in plays for meld in before]
start = time.process_time()
for meld in melds:
    read_meld(meld, SABRA)
print((time.process_time() - start) / len(melds) * 1e6)
"""

WHAT = ("a legal turn", "an illegal turn", "a meld")


def positions(count: int) -> Iterator[dict[str, object]]:
    """Yields turns of random games: legal ones, and the same with one tile of the table left out."""
    rng = random.Random(1)
    found = 0
    while found < count:
        game = create(SABRA).game
        for name in ("Ann", "Bob", "Cleo"):
            joined = apply(game, Join(name), 0)
            assert not isinstance(joined, Refused)
            game = joined.game
        started = apply(game, StartGame(HOST, random_shuffle(SABRA, rng)), 0)
        assert not isinstance(started, Refused)
        game = started.game
        while isinstance(game.phase, Playing) and found < count:
            round_ = round_of(game)
            seat, rack = round_.turn.seat, round_.rack(round_.turn.seat)
            before = melds_of(round_.table)
            table = random_table(before, rack.tiles, rack.has_melded, SABRA, rng)
            if table and len(before) > 5:
                common = {
                    "before": format_table(before),
                    "rack": format_rack(rack.tiles),
                    "melded": rack.has_melded,
                }
                plain = tuple(ProposedMeld(meld.tiles, meld.kind) for meld in table)
                yield {**common, "after": format_table(plain), "legal": True}
                short = (ProposedMeld(plain[0].tiles[1:]), *plain[1:])
                yield {**common, "after": format_table(short), "legal": False}
                found += 1
            action = PlayTiles(seat, table) if table else DrawTile(seat) if round_.pool else Pass(seat)
            answer = apply(game, action, 0)
            assert not isinstance(answer, Refused)
            game = answer.game


def measure(tree: Path, corpus: Path, repeats: int) -> list[float]:
    """Returns the microseconds of CPU per legal turn, illegal turn and meld."""
    run = [sys.executable, "-c", JUDGE, str(corpus), str(repeats)]
    answer = subprocess.run(run, cwd=tree, env={"PYTHONPATH": str(tree)}, check=True, capture_output=True, text=True)
    return [float(line) for line in answer.stdout.split()]


def main() -> None:
    """Measures both revisions alternately and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the commit, tag or branch to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each revision (7)")
    parser.add_argument("--turns", type=int, default=150, help="positions (150)")
    parser.add_argument("--repeats", type=int, default=10, help="validations of each position in a measurement (10)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other, corpus = Path(folder, "other"), Path(folder, "positions.json")
        add = [GIT, "-C", str(ROOT), "worktree", "add", "--detach", str(other), chosen.revision]
        if subprocess.run(add, check=False).returncode:
            parser.error(f"git has no revision {chosen.revision!r}; name a commit, tag or branch, as in BASE=main~10")
        try:
            corpus.write_text(json.dumps(list(positions(chosen.turns))))
            results: dict[str, list[list[float]]] = {"before": [], "now": []}
            for number in range(chosen.rounds):
                print(f"round {number + 1} of {chosen.rounds}, {time.strftime('%H:%M:%S')}", file=sys.stderr)
                for name, tree in (("before", other), ("now", ROOT)):
                    results[name].append(measure(tree, corpus, chosen.repeats))
        finally:
            subprocess.run([GIT, "-C", str(ROOT), "worktree", "remove", "--force", str(other)], check=True)
    print(f"microseconds of CPU, median of {chosen.rounds} (least, most)")
    for place, what in enumerate(WHAT):
        middles = []
        for name in ("before", "now"):
            values = [measured[place] for measured in results[name]]
            middles.append(statistics.median(values))
            print(f"{what:16} {name:7} {middles[-1]:8.1f}  ({min(values):.1f}, {max(values):.1f})")
        print(f"{what:16} ratio   {middles[1] / middles[0]:8.2f}")


if __name__ == "__main__":
    main()
