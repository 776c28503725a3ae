"""ListMessages: texts for players, complete in every language."""

import json
import re
import unicodedata
from typing import Any

import pytest

from rummikub.v1 import error_reason_pb2, tile_pb2, violation_pb2
from rummikub.v1 import validation_service_pb2 as vs
from service.codec.messages import list_messages
from service.errors import InvalidRequest
from support.harness import ROOT, Client

LANGUAGES = ("de", "en", "es", "fr", "he", "ja", "nl", "pl", "pt", "tr")
REASONS = error_reason_pb2.ErrorReason.keys()[1:]
ADVICE = [name.removeprefix("ADVICE_KIND_") for name in violation_pb2.AdviceKind.keys()[1:]]
COLORS = [name.removeprefix("TILE_COLOR_") for name in tile_pb2.TileColor.keys()[1:]]
CATALOGS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "docs" / "messages").glob("*.json"))
}
PLACEHOLDER = re.compile(r"\{(\w*)\}")


def metadata_keys() -> dict[str, set[str]]:
    """Returns the keys of the metadata of each reason and kind of advice, as the contract documents them."""
    found: dict[str, set[str]] = {}
    for file in ("error_reason.proto", "violation.proto"):
        text = (ROOT / "proto" / "rummikub" / "v1" / file).read_text()
        for comment, name in re.findall(r"((?:^ *//.*\n)+) *([A-Z]\w+) =", text, re.MULTILINE):
            plain = re.sub(r"\n? *// ?", " ", comment)
            found[name.removeprefix("ADVICE_KIND_")] = set(re.findall(r"`(\w+)`", plain.partition("Metadata:")[2]))
    return found


def test_there_are_ten_languages() -> None:
    assert tuple(CATALOGS) == LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalog_is_complete_and_has_nothing_else(language: str) -> None:
    catalog = CATALOGS[language]
    assert list(catalog) == ["language", "name", "direction", "colors", "reasons", "advice"]
    assert catalog["language"] == language
    assert list(catalog["reasons"]) == REASONS
    assert list(catalog["advice"]) == ADVICE
    assert list(catalog["colors"]) == COLORS
    assert all(list(color) == ["name", "symbol"] for color in catalog["colors"].values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_a_sentence_with_known_placeholders(language: str) -> None:
    keys = metadata_keys()
    english = CATALOGS["en"]["reasons"] | CATALOGS["en"]["advice"]
    for reason, text in (CATALOGS[language]["reasons"] | CATALOGS[language]["advice"]).items():
        assert text == text.strip(), reason
        assert text == unicodedata.normalize("NFC", text), reason
        assert len(text) >= 5, reason
        assert text[-1] in ".。)" or text.endswith("}"), reason
        placeholders = set(PLACEHOLDER.findall(text))
        assert placeholders <= keys[reason], reason
        assert placeholders == set(PLACEHOLDER.findall(english[reason])), reason
        assert not set(PLACEHOLDER.sub("", text)) & set("{}"), reason


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_no_text_is_left_in_english(language: str) -> None:
    for texts in ("reasons", "advice"):
        english = CATALOGS["en"][texts]
        assert [name for name, text in CATALOGS[language][texts].items() if text == english[name]] == []
    assert CATALOGS[language]["name"] != CATALOGS["en"]["name"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_colors_have_different_names_and_the_symbols_of_every_language(language: str) -> None:
    colors = CATALOGS[language]["colors"]
    assert len({color["name"] for color in colors.values()}) == len(COLORS)
    assert all(color["name"] for color in colors.values())
    symbols = {name: color["symbol"] for name, color in colors.items()}
    assert len(set(symbols.values())) == len(COLORS)
    assert all(len(symbol) == 1 for symbol in symbols.values())
    assert symbols == {name: color["symbol"] for name, color in CATALOGS["en"]["colors"].items()}


def test_only_hebrew_runs_from_right_to_left() -> None:
    assert [name for name, catalog in CATALOGS.items() if catalog["direction"] != "ltr"] == ["he"]
    assert CATALOGS["he"]["direction"] == "rtl"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_service_lists_a_catalog(client: Client, language: str) -> None:
    listed = await client.validation.ListMessages(vs.ListMessagesRequest(language=language))
    catalog = CATALOGS[language]
    assert (listed.language, listed.name) == (language, catalog["name"])
    is_rtl = listed.direction == vs.TEXT_DIRECTION_RIGHT_TO_LEFT
    assert is_rtl is (catalog["direction"] == "rtl")
    texts = {error_reason_pb2.ErrorReason.Name(text.reason): text.text for text in listed.reasons}
    assert texts == catalog["reasons"]
    advice = {violation_pb2.AdviceKind.Name(text.kind).removeprefix("ADVICE_KIND_"): text for text in listed.advice}
    assert {kind: text.text for kind, text in advice.items()} == catalog["advice"]
    names = {tile_pb2.TileColor.Name(color.color).removeprefix("TILE_COLOR_"): color for color in listed.colors}
    assert {name: {"name": color.name, "symbol": color.symbol} for name, color in names.items()} == catalog["colors"]
    known = await client.validation.ListMessages(vs.ListMessagesRequest(language=language, etag=listed.etag))
    assert known == vs.ListMessagesResponse(language=language, etag=listed.etag)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", "en"),
        ("pt-BR", "pt"),
        ("DE", "de"),
        ("de-Latn-CH-1996", "de"),
        ("sv", "en"),
        ("en-GB", "en"),
        ("zh-Hant-TW", "en"),
    ],
)
def test_another_language_falls_back_on_its_base_and_then_on_english(asked: str, found: str) -> None:
    assert list_messages(vs.ListMessagesRequest(language=asked)).language == found


def test_etags_differ_between_languages() -> None:
    etags = {list_messages(vs.ListMessagesRequest(language=language)).etag for language in LANGUAGES}
    assert len(etags) == len(LANGUAGES)
    assert len(list_messages(vs.ListMessagesRequest(language="de", etag="0" * 32)).reasons) == len(REASONS)


@pytest.mark.parametrize(
    "language", ["d", "../de", "de/../en", "de\n", " de", "de_AT", "x" * 9, "de-" + "a" * 9, "\u0434\u0435"]
)
def test_a_malformed_language_is_refused(language: str) -> None:
    with pytest.raises(InvalidRequest):
        list_messages(vs.ListMessagesRequest(language=language))
