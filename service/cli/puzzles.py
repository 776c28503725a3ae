"""The puzzles of `rummikub-analyze --puzzle` and `make puzzle`: hard positions, one a line of puzzles.txt.

They are positions of games between bots under the default rules, with the part of a rack that the best turn plays, so
that it wins the round. Each such turn changes four melds of the table at least.
"""

from pathlib import Path
from typing import Final

PUZZLES: Final = tuple(Path(__file__).with_name("puzzles.txt").read_text(encoding="ascii").splitlines())
