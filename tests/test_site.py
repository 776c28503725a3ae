"""The documentation site has every page and every part of the contract, and links that lead somewhere."""

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor_pb2 import MethodDescriptorProto

import contract
from build_site import (
    INCLUDED,
    MELDS,
    RULE_PAGES,
    SECTIONS,
    Pages,
    file_names_as_links,
    outside_resources,
    web_page,
    with_tiles,
)
from diagrams import PICTURES, mark
from engine.melding.melds import Meld, ProposedMeld, read_meld
from engine.melding.ruleset import SABRA
from engine.notation import parse_tiles
from reference import Reference, http_lines, parts_of_reason, relative
from rummikub.v1.error_reason_pb2 import ErrorReason
from support.cases import each_of
from support.harness import ROOT
from support.pages import PAGES

FILES = contract.described()
REFERENCE = Reference().pages()
REASONS = [name for name, number in ErrorReason.items() if number]


@pytest.fixture(scope="module")
def pages() -> Pages:
    collected = Pages(REFERENCE)
    collected.collect()
    return collected


def page_of(stem: str) -> str:
    return f"api/{stem.replace('_', '-')}.md"


def section(page: str, title: str) -> str:
    """Returns what is between a heading and the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", REFERENCE[page], re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def named() -> Iterator[tuple[str, str, str]]:
    """Yields the page, the heading and the name of every RPC, message, field, enum and value of the contract."""
    for stem, file in FILES.items():
        for service in file.service:
            yield from ((page_of(stem), rpc.name, f"/rummikub.v1.{service.name}/{rpc.name}") for rpc in service.method)
        for message in file.message_type:
            yield page_of(stem), message.name, ""
            yield from ((page_of(stem), message.name, member.name) for member in message.field)
        if stem != "error_reason":
            for kind in file.enum_type:
                yield from ((page_of(stem), kind.name, value.name) for value in kind.value)


@pytest.mark.parametrize("stem", sorted({*FILES} - {"error_reason"}))
def test_the_reference_has_everything_in_a_file_of_the_contract(stem: str) -> None:
    expected = [(page, title, name) for page, title, name in named() if page == page_of(stem)]
    assert expected
    for page, title, name in expected:
        assert not name or f"`{name}`" in section(page, title), name


@pytest.mark.parametrize("stem", sorted(FILES))
def test_everything_in_the_contract_has_a_comment(stem: str) -> None:
    said = contract.comments(FILES[stem])
    assert {name for name, text in said.items() if not text} == set()


@each_of("reason", REASONS)
def test_the_page_of_errors_has_every_reason_with_what_to_do(reason: str) -> None:
    text = section("errors.md", reason)
    codes = re.findall(r"\[(\w+)\]\(#(\w+)\)", text.strip().partition(", number ")[0])
    assert codes
    for code, anchor in codes:
        assert code.lower() == anchor
        assert section("errors.md", code).strip()
    assert f"number {ErrorReason.Value(reason)}\n" in text
    assert "Text for players" in text


def test_a_reason_has_its_code_meaning_and_metadata() -> None:
    assert parts_of_reason("NOT_FOUND. It is gone.") == ("NOT_FOUND", "It is gone.", "")
    assert parts_of_reason("ABORTED. Read it. Metadata: `revision`, the current one.") == (
        "ABORTED",
        "Read it.",
        "`revision`, the current one.",
    )


def test_a_field_of_a_request_shows_whether_it_is_required() -> None:
    request = section("api/turn-service.md", "PlayTurnRequest")
    assert "| `etag`<br>string | required | The etag of the game that the player saw." in request
    assert "| `play`<br>[PlayTiles](#playtiles) | optional, one of `action` | Plays tiles." in request
    assert "unset is not 0" in section("api/turn-service.md", "PlayTiles")


def test_the_errors_of_an_rpc_lead_to_the_page_of_errors() -> None:
    turn = section("api/turn-service.md", "PlayTurn")
    assert "* `ABORTED`: [STALE_STATE](../errors.md#stale_state), " in turn
    assert "[PlayTurn](api/turn-service.md#playturn)" in section("errors.md", "STALE_STATE")


def test_an_rpc_shows_its_urls() -> None:
    method = MethodDescriptorProto(name="GetGame")
    assert list(http_lines(method)) == []
    rule = method.options.Extensions[annotations_pb2.http]
    rule.get = "/v1/games/{game_id}"
    rule.additional_bindings.add(post="/v1/games:get", body="*")
    assert list(http_lines(method)) == ["* HTTP: `GET /v1/games/{game_id}`", "* HTTP: `POST /v1/games:get`, body `*`"]


def test_links_between_pages_are_relative() -> None:
    assert relative("errors.md#internal", "api/game.md") == "../errors.md#internal"
    assert relative("api/meld.md", "api/game.md") == "meld.md"
    assert relative("api/game.md#game", "api/game.md") == "#game"
    assert relative("rules.md", "index.md") == "rules.md"


def test_the_reference_is_the_same_each_time() -> None:
    assert Reference().pages() == REFERENCE


def test_the_site_has_every_page_of_the_repository(pages: Pages) -> None:
    command = ["git", "ls-files", "*.md", ":!.github"]  # templates of issues are no pages
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) - {*pages.sources} == set()
    assert set(pages.sources.values()) <= set(pages.written)


@pytest.mark.parametrize("page", [page for page in dict(SECTIONS)["Operation"] if page.startswith("docs/")])
def test_the_path_of_operators_and_the_architecture_name_every_page_for_operators(page: str) -> None:
    assert f"](../{page.removeprefix('docs/')}" in (ROOT / "docs" / "start" / "operators.md").read_text()
    house = (ROOT / "ARCHITECTURE.md").read_text().partition("\ndocs/ ")[2].partition("\ntests/ ")[0]
    assert Path(page).stem in re.findall(r"[\w-]+", house)


def test_no_link_to_a_page_or_file_of_the_repository_is_dead(pages: Pages) -> None:
    assert pages.faults == []


def test_links_between_pages_of_the_site_lead_to_pages(pages: Pages) -> None:
    for place, text in pages.written.items():
        prose = re.sub(r"^````.*?^````|```.*?```|`[^`\n]*`", "code", text, flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)", prose):
            file = (Path("/") / place).parent.joinpath(target).resolve().relative_to("/")
            assert str(file) in {*pages.written, *pages.copied}, f"{place}: {target}"


def test_links_of_a_page_become_those_of_the_site() -> None:
    pages = Pages(REFERENCE)
    text = "[a](../README.md#settings) ![b](pictures/turn.svg) `[c](nowhere)` [`d`](../tests/support/fold.py) [e](https://x.org)"
    changed = pages.with_links("docs/front-end.md", "front-end.md", text)
    assert changed == (
        "[a](readme.md#settings) ![b](pictures/turn.svg) `[c](nowhere)` [`d`](source/tests/support/fold.py.md) "
        "[e](https://x.org)"
    )
    assert pages.copied == {"pictures/turn.svg": ROOT / "docs/pictures/turn.svg"}
    assert "def " in pages.written["source/tests/support/fold.py.md"]
    assert pages.outside == {"https://x.org"}
    assert pages.faults == []


def test_a_dead_link_and_a_missing_file_are_found() -> None:
    pages = Pages(REFERENCE)
    pages.with_links("docs/rules.md", "rules.md", "[a](nowhere.md) [b](../engine/nothing.py)")
    pages.with_included("docs/rules.md", "<!-- include engine/nothing.py -->")
    assert pages.faults == [
        "docs/rules.md: dead link nowhere.md",
        "docs/rules.md: dead link ../engine/nothing.py",
        "docs/rules.md: no file engine/nothing.py to include",
    ]


@pytest.mark.parametrize("page", sorted((ROOT / "docs/tutorial").glob("*.md")), ids=lambda page: page.stem)
def test_a_tutorial_includes_the_program_that_it_explains(page: Path, pages: Pages) -> None:
    [program] = INCLUDED.findall(page.read_text())
    assert (ROOT / program).read_text() in pages.written[pages.sources[str(page.relative_to(ROOT))]]


@pytest.mark.parametrize("diagram", sorted(PICTURES.glob("*.mmd")), ids=lambda diagram: diagram.stem)
def test_a_picture_shows_its_diagram(diagram: Path) -> None:
    picture = diagram.with_suffix(".svg").read_text()
    assert picture.startswith(mark(diagram.read_text())), "run `.venv/bin/python docs/diagrams.py`"


def test_what_a_page_would_load_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text('<script src="a.js"></script><a href="https://x.org">x</a>')
    assert outside_resources(tmp_path) == []
    (tmp_path / "bad.html").write_text('<link rel="stylesheet" href="https://x.org/a.css"><img src="//x.org/a.png">')
    assert len(outside_resources(tmp_path)) == 2


def test_a_link_whose_text_is_a_file_name_is_found(tmp_path: Path) -> None:
    words = "the rules", "PlayTurn", "rummikub-tiles", "Next: 3/4", "127.0.0.1:8080"
    links = "".join(f'<a class="x" href="rules.html"><span>\n{text}</span></a>' for text in words)
    (tmp_path / "good.html").write_text(links + "<p>rules.md</p>")
    assert file_names_as_links(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        "<a href='x'><code>rules.md</code></a> <a href='x'>docs/messages</a> <a href='x'>deploy/a.yaml</a>"
    )
    assert file_names_as_links(tmp_path) == [f"bad.html: {n}" for n in ("rules.md", "docs/messages", "deploy/a.yaml")]


PX_PER_CHARACTER = 0.5
"""The height of a long page in Chromium, 1280 px wide; measured: 0.43 to 0.49 px a character, by its tables."""


@each_of("page", RULE_PAGES)
def test_no_page_of_the_rules_is_25_000_px_long(page: str) -> None:
    assert len((ROOT / page).read_text()) * PX_PER_CHARACTER < 25_000


def test_the_rules_begin_with_the_page_for_players(pages: Pages) -> None:
    rules = dict(pages.navigation)["Rules"]
    assert [place for _, place in rules[:2]] == ["how-to-play.md", "rules.md"]
    text = pages.written["how-to-play.md"]
    assert text.count("<rummikub-table ") >= 20
    assert re.search(r"\bR\d+\*\*|[A-Z]+_[A-Z]+|_\w+`", text) is None, "no numbered rule, constant or option"


def is_meld(text: str) -> bool:
    return isinstance(read_meld(ProposedMeld(parse_tiles(text)), SABRA), Meld)


def test_the_examples_for_players_are_right() -> None:
    text = (ROOT / RULE_PAGES[0]).read_text()
    sections = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    right, wrong = sections["Melds"].split("These are no melds")
    for part in (right, sections["Your first play"], sections["Rearranging the table"], sections["Jokers"]):
        for melds in MELDS.findall(part):
            assert all(is_meld(meld) for meld in melds.split(" | ")), melds
    assert [is_meld(tiles) for tiles in MELDS.findall(wrong)] == [False] * 4
    changes = re.findall(r"`([^`]*)` becomes `([^`]*)`", text)
    assert len(changes) >= 5
    for before, after in changes:
        old, new = (Counter(parse_tiles(table.replace(" |", ""))) for table in (before, after))
        assert old <= new, f"{before} loses a tile"


def test_melds_in_the_rules_are_drawn_and_no_other_code_is(pages: Pages) -> None:
    rules = pages.written["rules.md"]
    melds = re.findall(r'<rummikub-table melds="([^"]*)"><code>', rules)
    assert "[R7 B7 K7 O7]" in melds
    for tiles in melds:
        assert all(parse_tiles(meld.strip(" []")) for meld in tiles.split("&#124;"))
    for kept in ("`R7`", "`jokers_may_lead`", "`R7 x`", "```\nR2 R3 R4 R5\n```"):
        assert with_tiles(kept) == kept


def test_the_home_page_and_the_readme_begin_with_what_can_be_done_in_a_minute() -> None:
    for page, moving in ((ROOT / "docs/index.md", "pictures/play.gif"), (ROOT / "README.md", "docs/pictures/play.gif")):
        text = page.read_text()
        [picture, *_] = re.findall(r"!\[.*?\]\((.*?)\)", text)
        assert picture == moving
        assert "make web" in text
        assert "docker compose --profile web up" in text
    home = (ROOT / "docs/index.md").read_text()
    assert home.index("make web") < home.index("pictures/play.gif") < home.index("## Start here")


def test_the_home_page_and_the_readme_lead_each_kind_of_user_to_a_path() -> None:
    paths = dict(SECTIONS)["Start"]
    assert sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "start").iterdir()) == sorted(paths)
    for page, folder in ((ROOT / "docs/index.md", "docs/"), (ROOT / "README.md", "")):
        assert all(f"]({path.removeprefix(folder)})" in page.read_text() for path in paths)


def test_every_picture_is_shown_by_a_page() -> None:
    shown = "".join(page.read_text() for page in PAGES)
    assert {picture.name for picture in PICTURES.glob("*.[gps][ivn][gf]") if f"/{picture.name})" not in shown} == set()


def test_the_moving_picture_moves_and_is_small() -> None:
    gif = (PICTURES / "play.gif").read_bytes()
    frames = gif.count(b"\x21\xf9\x04")  # graphic control extensions
    assert gif.startswith(b"GIF89a")
    assert frames >= 20
    assert len(gif) < 1.5 * 1024 * 1024


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://git.example.org/tiles/rummikub.git", "https://git.example.org/tiles/rummikub"),
        ("https://ann:secret@git.example.org:8443/rummikub", "https://git.example.org/rummikub"),
        ("git@git.example.org:tiles/rummikub.git", "https://git.example.org/tiles/rummikub"),
        ("ssh://git@git.example.org:22/tiles/rummikub.git/", "https://git.example.org/tiles/rummikub"),
        ("/srv/rummikub", ""),
        ("../rummikub", ""),
        ("", ""),
    ],
)
def test_the_repository_is_the_web_page_of_the_remote(remote: str, page: str) -> None:
    assert web_page(remote) == page


def test_each_page_shows_the_version_and_links_to_the_repository(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPOSITORY", "https://git.example.org/tiles")
    config = tomllib.loads(pages.config())["project"]
    assert config["repo_url"] == "https://git.example.org/tiles"
    assert config["extra"]["version_name"] == version("rummikub-service")
    assert (ROOT / "docs" / config["theme"]["logo"]).is_file()
