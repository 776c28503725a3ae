"""Tests for multisets of tiles."""

from engine.notation import parse_tiles
from engine.tiles import without


def test_tiles_are_taken_once_each_and_what_is_not_there_is_not_taken() -> None:
    assert without(parse_tiles("B7 R1 J R1"), parse_tiles("R1 J J O3")) == parse_tiles("R1 B7")
