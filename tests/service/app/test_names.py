"""Names of players: what is a name, and which names are alike."""

import pytest

from service.app.names import are_alike
from service.codec.fields import NAME_MAX, UNNORMALIZED_MAX, player_name
from service.errors import InvalidRequest
from support.harness import Client

COMPOSED, DECOMPOSED = "Jos\u00e9", "Jose\u0301"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"

NAMES = {
    "Latin": "Ann Lee",
    "Persian with ZWNJ": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Hindi with ZWJ": "क\u094d\u200dष",
    "a family": FAMILY,
    "an emoji with a variation selector": "\u2764\ufe0f",
    "Hebrew": "נועם",
    "40 characters": "x" * 40,
    "40 composed characters": "\u1f82" * 40,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_can_be_shown_is_kept(name: str) -> None:
    assert player_name(name) == name


def test_a_name_is_kept_in_nfc() -> None:
    assert player_name(DECOMPOSED) == COMPOSED
    assert player_name("\u03b1\u0313\u0300\u0345" * NAME_MAX) == "\u1f82" * NAME_MAX


@pytest.mark.parametrize("length", [NAME_MAX + 1, UNNORMALIZED_MAX, UNNORMALIZED_MAX + 1, 100_000])
def test_a_name_that_is_too_long_in_nfc_is_refused(length: int) -> None:
    with pytest.raises(InvalidRequest):
        player_name("e\u0301" * length)


ALIKE = [
    ("Ann", "ann"),
    ("ANN", "ann"),
    (COMPOSED, DECOMPOSED),
    ("JOS\u00c9", DECOMPOSED),
    ("Ann", "\u0410nn"),
    ("Bob", "\u0412ob"),
    ("Eve", "\u0415v\u0435"),
    ("Ian", "lan"),
    ("Ian", "ian"),
    ("Bob1", "Bobl"),
    ("Tom", "Torn"),
    ("Ann", "\uff21nn"),
    ("file", "\ufb01le"),
    ("Stra\u00dfe", "STRASSE"),
    ("Ann", "A\u200cn\u200dn"),
    ("Ann", "An\ufe0fn"),
    ("Ann Lee", "Ann  Lee"),
    ("\u041d\u0430\u0434\u044f", "\u043d\u0430\u0434\u044f"),
]
UNLIKE = [
    ("Ann", "Anna"),
    ("Jose", COMPOSED),
    ("Ada", "Eda"),
    ("player 1", "player 2"),
    ("Bot 1", "Bot 11"),
    (FAMILY, "\U0001f468\u200d\U0001f469\u200d\U0001f466"),
    ("\u041d\u0430\u0434\u044f", "\u0412\u0430\u0434\u044f"),
]


@pytest.mark.parametrize(("name", "other"), ALIKE)
def test_names_that_can_be_taken_for_one_another_are_alike(name: str, other: str) -> None:
    assert are_alike(name, other)
    assert are_alike(other, name)


@pytest.mark.parametrize(("name", "other"), UNLIKE)
def test_other_names_are_unlike(name: str, other: str) -> None:
    assert not are_alike(name, other)
    assert not are_alike(other, name)


async def test_a_game_shows_names_in_nfc_with_their_joiners(client: Client) -> None:
    game = await client.new_game(players=0, start=False)
    for name in (DECOMPOSED, FAMILY):
        await game.join(name)
    assert [player.name for player in (await game.see()).players] == [COMPOSED, FAMILY]
