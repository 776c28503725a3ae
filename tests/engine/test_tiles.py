"""Tests for multisets of tiles."""

from engine.notation import parse_tiles
from engine.tiles import without


def test_without_takes_each_tile_once_and_ignores_missing_ones() -> None:
    assert without(parse_tiles("B7 R1 J R1"), parse_tiles("R1 J J O3")) == parse_tiles("R1 B7")
