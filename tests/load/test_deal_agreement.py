"""The comparison of both checks of deals: random games of all families are fair, and forged copies of them are not."""

import shutil

import pytest

from load.deal_agreement import agreement, fault_of, forged
from support.fair_games import FAMILIES, fair_record

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", FAMILIES)
def test_random_games_are_fair_and_forged_ones_are_not(family: str) -> None:
    record = fair_record(family, 3, longest=150)
    assert record.deal_commitment
    forgery = forged(record)
    assert forgery is not None, "the game has begun"
    assert (fault_of(record), fault_of(forgery)) == ("", "the deal does not follow from the seeds")


@pytest.mark.skipif(not shutil.which("npm"), reason="needs Node.js")
def test_the_engine_and_the_typescript_client_agree() -> None:
    found = agreement(deals=20, games=2, seed=3)
    assert found.differing == []
    assert (found.fair, found.refused) == (22, 22)
