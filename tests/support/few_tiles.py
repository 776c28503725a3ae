"""The solver's search of few tiles, which tests compare with the search that does without it."""

import pytest

from engine.melding.solver import few_tiles


def search_few_tiles(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Makes the solver use its search of few tiles only up to a number of tiles; 0: never."""
    monkeypatch.setattr(few_tiles, "MOST_TILES", most)
