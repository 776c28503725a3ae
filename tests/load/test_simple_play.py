"""The simple player makes legal plays only."""

import random

import pytest

from engine.melding.melds import ProposedMeld
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.ruleset import SABRA
from engine.notation import format_tiles, parse_tiles
from engine.tiles import tile_set
from load.corpus.simple_play import melds_to_lay


@pytest.mark.parametrize(
    ("rack", "expected"),
    [
        pytest.param("R3 R4 R5 K9 O1", ["R3 R4 R5"], id="a run"),
        pytest.param("R3 B3 O3 O3 K9", ["R3 B3 O3"], id="a group has a color once"),
        pytest.param("R3 R4 R4 R5 R6 R8", ["R3 R4 R5 R6"], id="a run has a value once"),
        pytest.param("R3 R4 R5 R7 R8 R9", ["R3 R4 R5", "R7 R8 R9"], id="two runs of a color"),
        pytest.param("R5 B5 K5 R6 R7 R8", ["R5 B5 K5", "R6 R7 R8"], id="a tile is laid once"),
        pytest.param("R3 R4 J J B7 B8", [], id="jokers are kept"),
        pytest.param("R12 R13 R1", [], id="1 does not follow 13"),
        pytest.param("", [], id="an empty rack"),
    ],
)
def test_a_player_who_has_melded_lays_every_meld(rack: str, expected: list[str]) -> None:
    assert [format_tiles(meld) for meld in melds_to_lay(parse_tiles(rack), has_melded=True)] == expected


def test_an_initial_meld_reaches_the_threshold_or_is_not_laid() -> None:
    assert melds_to_lay(parse_tiles("R9 B9 K9 O1"), has_melded=False) == []
    assert melds_to_lay(parse_tiles("R10 B10 K10 O1"), has_melded=False) == [parse_tiles("R10 B10 K10")]


def test_what_is_laid_is_legal() -> None:
    rng = random.Random(1)
    tiles = tile_set(SABRA.geometry_colors, SABRA.geometry_copies, SABRA.geometry_jokers)
    laid = 0
    for _ in range(500):
        rack, has_melded = tuple(sorted(rng.sample(tiles, rng.randint(5, 40)))), rng.random() < 0.5
        melds = melds_to_lay(rack, has_melded=has_melded)
        if melds:
            table = tuple(ProposedMeld(meld) for meld in melds)
            assert judge(Play((), table, rack, has_melded, SABRA)).violations == (), format_tiles(rack)
            laid += 1
    assert laid > 100
