import pytest

from engine.discard.melds import MeldKind, is_pair, meld_kind
from engine.notation import parse_tile, parse_tiles

OKEY = parse_tile("R6")


@pytest.mark.parametrize(
    ("tiles", "kind"),
    [
        ("R7 B7 K7", MeldKind.GROUP),
        ("R7 B7 K7 O7", MeldKind.GROUP),
        ("R7 R6 K7", MeldKind.GROUP),
        ("R6 R6 K7", MeldKind.GROUP),
        ("F B6 K6", MeldKind.GROUP),
        ("R7 B7 R7", None),
        ("R7 B7 K7 O7 R6", None),
        ("R7 B7 K8", None),
        ("R7 B7", None),
        ("", None),
        ("R7 R8 R9", MeldKind.RUN),
        ("R5 F R7", MeldKind.RUN),
        ("R5 R6 R7", MeldKind.RUN),
        ("K5 R6 R6 K8", MeldKind.RUN),
        ("R6 K12 K13", MeldKind.RUN),
        ("K12 K13 R6", MeldKind.RUN),
        ("K12 K13 K1", MeldKind.RUN),
        ("R6 K13 K1", MeldKind.RUN),
        ("K1 K2 K3", MeldKind.RUN),
        ("K13 K1 K2", None),
        ("K13 K1 R6", None),
        ("R9 R8 R7", None),
        ("R7 R9 R8", None),
        ("R7 B8 R9", None),
        ("K4 R6 K5", None),
        ("K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13 K1", MeldKind.RUN),
        ("K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13 K1 R6", None),
    ],
)
def test_groups_and_runs(tiles: str, kind: MeldKind | None) -> None:
    assert meld_kind(parse_tiles(tiles), OKEY, one_high=True) is kind


def test_a_1_after_13_is_an_option() -> None:
    for tiles in ("K12 K13 K1", "R6 K13 K1", "K12 K13 R6"):
        assert meld_kind(parse_tiles(tiles), OKEY, one_high=False) is None
    assert meld_kind(parse_tiles("K11 K12 K13"), OKEY, one_high=False) is MeldKind.RUN


@pytest.mark.parametrize(
    ("tiles", "expected"),
    [
        ("R7 R7", True),
        ("R7 R6", True),
        ("R6 R6", True),
        ("F F", True),
        ("F R6", True),
        ("F R7", False),
        ("R7 B7", False),
        ("R7", False),
        ("R7 R7 R7", False),
    ],
)
def test_pairs(tiles: str, expected: bool) -> None:
    assert is_pair(parse_tiles(tiles), OKEY) is expected


@pytest.mark.parametrize("tiles", ["J J J", "J R2 R3", "R7 J B7"])
def test_jokers_of_other_games_are_in_no_meld(tiles: str) -> None:
    assert meld_kind(parse_tiles(tiles), parse_tile("K8"), one_high=True) is None
