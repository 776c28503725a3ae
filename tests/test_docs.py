"""Pages agree with the contract and the engine, options have sources, and everything that a page names exists."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple
from enum import Enum
from pathlib import Path

import pytest

import generate as generator
from build_site import RULE_PAGES
from engine.discard.named_hands import KNOWN_HANDS
from engine.discard.presets import GAME_OPTIONS as OKEY_OPTIONS
from engine.discard.ruleset import Preset as OkeyPreset
from engine.melding.presets import GAME_OPTIONS, PRESET_TEXTS
from engine.melding.ruleset import Preset
from engine.options import text_of
from load.bench.__main__ import PARTS
from rummikub.v1.error_reason_pb2 import ErrorReason
from service.metrics.metrics import Metrics
from service.settings import PREFIX, Settings
from support.cases import each_of
from support.pages import PAGES

ROOT = Path(__file__).parents[1]
RULES = ROOT / "docs" / "rules.md"
REFERENCE = "\n".join((ROOT / page).read_text() for page in RULE_PAGES)
"""Everything about the rules: those for players, by number, of variants, and our decisions."""
OPERATION = ROOT / "docs" / "operation.md"
SETTINGS = ROOT / "docs" / "settings.md"
COPIED = [
    *sorted((ROOT / "clients/python/examples").glob("*.py")),
    *sorted((ROOT / "load/users").glob("*.py")),
    ROOT / "tests/support/harness.py",
    ROOT / "tools/games.py",
    ROOT / "tests/support/grpc_play.py",
]
"""Programs that front ends take as examples."""


said = generator.comments()
page_of_options = generator.page()
ENUMS = [option for option in GAME_OPTIONS if isinstance(GAME_OPTIONS[option].default, Enum)]
NUMBERS = [option for option in GAME_OPTIONS if option not in ENUMS]


def named() -> Iterator[tuple[str, Enum | None]]:
    """Yields every numeric option, and every value of the others."""
    yield from ((option, None) for option in NUMBERS)
    yield from ((option, value) for option in ENUMS for value in type(GAME_OPTIONS[option].default))


def name_of(option: str, value: Enum | None) -> str:
    return f"{option} {value.name}" if value else option


def test_the_page_of_options_is_what_the_contract_and_the_engine_say() -> None:
    assert generator.PAGE.read_text() == page_of_options, "run `make docs`"


def test_every_option_has_one_place_on_the_page() -> None:
    assert sorted(generator.options()) == sorted(GAME_OPTIONS)


@each_of("option", GAME_OPTIONS)
def test_an_option_has_a_comment_with_its_default(option: str) -> None:
    assert f"Default {text_of(GAME_OPTIONS[option].default)}" in said[option].meaning


@each_of("option", ENUMS)
def test_the_type_of_an_option_has_a_comment_that_names_it(option: str) -> None:
    assert re.search(rf"\(option {option}\b", said[type(GAME_OPTIONS[option].default).__name__].meaning)


@each_of("option, value", named())
def test_an_option_or_value_has_a_meaning_and_evidence(option: str, value: Enum | None) -> None:
    comment = said[generator.contract_name(value) if value else option]
    assert comment.meaning.endswith(".")
    assert generator.evidence(option, value, said).endswith("."), "who says so? Nobody: 'Evidence: none; a decision.'"


def test_who_says_so_is_written_down_of_every_option_and_value() -> None:
    assert {name_of(*both) for both in named() if not said[_comment_of(*both)].evidence} == set()


def _comment_of(option: str, value: Enum | None) -> str:
    return generator.contract_name(value) if value else option


@each_of("option", NUMBERS)
def test_the_comment_of_a_number_has_its_range(option: str) -> None:
    values = generator.values(option)
    if isinstance(values[0], bool):
        return
    numbers = re.findall(r"\d+", said[option].meaning)
    assert {str(values[0]), str(values[-1])} <= set(numbers)


@pytest.mark.parametrize("preset", Preset)
def test_a_preset_has_a_comment_a_source_and_its_differences(preset: Preset) -> None:
    assert said[generator.contract_name(preset)].meaning
    section = page_of_options.split(f"\n### {preset.name}\n")[1].split("\n#", maxsplit=1)[0]
    for text in astuple(PRESET_TEXTS[preset]):
        assert text in section
    for option in GAME_OPTIONS:
        value, default = (text_of(generator.values_of(one)[option]) for one in (preset, Preset.SABRA))
        assert (f"| `{option}` | {value} | {default} |" in section) == (value != default)


def test_every_conflict_is_shown() -> None:
    section = page_of_options.split("\n## Conflicts\n")[1].split("\n## ", maxsplit=1)[0]
    shown = set(re.findall(r"^\| `(\w+)` .* \| `(\w+)` \|$", section, re.MULTILINE))
    assert shown == {(row.name, need.option) for row in GAME_OPTIONS.values() for need in row.needs}


def test_values_are_told_in_few_words() -> None:
    assert generator.span((0, 2, 4)) == "0, 2, 4"
    assert generator.span((1, 2)) == "1, 2"
    assert generator.span((1, 2, 3, 5, *range(7, 10))) == "1 to 3, 5, 7 to 9"
    assert generator.span((False, True)) == "false, true"


@each_of("page", PAGES, lambda page: page.relative_to(ROOT))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


@each_of("page", PAGES, lambda page: page.relative_to(ROOT))
def test_settings_and_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    settings = {PREFIX + field.upper() for field in Settings.model_fields}
    reasons = set(ErrorReason.keys())
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b", text)) <= settings | reasons
    commands = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= set(commands)


def test_each_point_of_the_list_before_the_internet_names_what_to_look_at() -> None:
    points = re.findall(r"^\* \[ \] (.*(?:\n  .*)*)", (ROOT / "docs" / "internet.md").read_text(), re.MULTILINE)
    assert len(points) > 10
    for point in points:
        assert "`" in point, point


def test_the_page_of_operation_has_every_metric() -> None:
    rows = re.findall(r"^\| `((?:rummikub|process)_\w+)` \| (\w+) \|(.*?)\|", OPERATION.read_text(), re.MULTILINE)
    metrics = Metrics()
    metrics.call("/rummikub.v1.GameService/GetGame", "OK", 0.1)
    metrics.refused("OVERLOADED", "calls")
    metrics.store("load", "ok", 0.1)
    metrics.games({"lobby": 1})
    metrics.archived_game("archived")
    served = {}
    for metric in metrics.registry.collect():
        labels = metric.samples[0].labels if metric.samples else {}
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        served[name] = metric.type, ", ".join(f"`{label}`" for label in labels if label != "le")
    assert {name: (kind, labels.strip()) for name, kind, labels in rows} == served


def test_the_page_of_settings_has_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| (`RUMMIKUB_.*?) \| (.*) \|$", SETTINGS.read_text(), re.MULTILINE)
    listed = {name: meaning for names, meaning in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(listed) == {PREFIX + field.upper() for field in Settings.model_fields}
    value = r"(\d[\d.]*|`[^`]+`)"
    for names, meaning in rows:
        if shown := re.search(rf"default {value}(?: and {value})?", meaning):
            own = [Settings.model_fields[name.removeprefix(PREFIX).lower()].default for name in names.split("`")[1::2]]
            written = [f"{default:g}" if isinstance(default, int | float) else f"`{default}`" for default in own]
            assert [text for text in shown.groups() if text] == written, names


@pytest.mark.parametrize("package", ["engine", "engine/discard", "engine/melding", "service"])
def test_every_module_has_its_place_in_the_house(package: str) -> None:
    blocks = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1::2]
    house = next(block for block in blocks if "\nengine/" in block)
    part = re.split(r"^\S+/ +", house.split(f"\n{package}/")[1], maxsplit=1, flags=re.MULTILINE)[0]
    rooms = [entry for entry in (ROOT / package).iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()]
    assert {room.stem for room in rooms} - {"__init__"} <= set(re.findall(r"\w+", part))


GENERATED = ("build/", "./data")
"""Beginnings of paths that exist only after some commands."""


def paths_named(page: Path) -> set[str]:
    """Returns the paths in a page's backticks, and those at the start of a line of its code blocks.

    A path has a slash. Placeholders such as `<name>` and `...` are not paths.
    """
    parts = page.read_text().split("```")
    tokens = re.findall(r"`([^`\n]+)`", "".join(parts[::2]))
    tokens += re.findall(r"^([^\s/]+/\S*)", "".join(parts[1::2]), re.MULTILINE)
    paths = {token for token in tokens if re.fullmatch(r"[\w.*-]+(/[\w.*-]*)+", token)}
    return {path for path in paths if "..." not in path and not path.startswith(GENERATED)}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_a_page_names_exist(page: str) -> None:
    named = paths_named(ROOT / page)
    assert named
    assert {path for path in named if not any(ROOT.glob(path))} == set()


def test_the_help_of_the_benchmarks_names_every_part() -> None:
    [help_text] = re.findall(r"^bench:.*PART=(.+?) \(", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert re.split(r", | or ", help_text) == sorted(PARTS)


def test_the_page_of_puzzles_has_their_numbers() -> None:
    assert generator.PUZZLES.read_text() == generator.page_of_puzzles(), "run `make docs`"
    sabra = re.search(r"(?m)^\| SABRA \| (.*) \|$", generator.PUZZLES.read_text())
    assert sabra
    *by_difficulty, together = (int(count.replace(",", "")) for count in sabra[1].split(" | "))
    assert sum(by_difficulty) == together == 1_000


def test_every_folder_of_generated_python_is_in_the_table() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("These files are generated")[2].partition("\n## ")[0]
    named = [path for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE) for path in re.findall(r"`(.+?)`", row)]
    generated = {file.parent.relative_to(ROOT) for file in (ROOT / "clients" / "python" / "src").rglob("*_pb2.py")}
    assert {folder for folder in generated if not any(f"{folder}/".startswith(path) for path in named)} == set()


def test_files_are_marked_as_generated_in_one_place_which_the_table_agrees_with() -> None:
    marked = re.findall(r"^(\S+) linguist-generated$", (ROOT / ".gitattributes").read_text(), re.MULTILINE)
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("These files are generated")[2].partition("\n## ")[0]
    assert marked
    assert [path for path in marked if f"`{path.removesuffix('**')}`" not in table] == []
    assert [path for path in marked if not any(ROOT.glob(path.replace("**", "**/*")))] == []


def test_the_table_of_generated_files_has_every_page_with_generated_figures() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("These files are generated")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    for page in (ROOT / "docs").glob("*.md"):
        for command in set(re.findall(r"<!-- made by make (\w+)[^>]*: begin -->", page.read_text())):
            used = {"bench": "figures"}.get(command, command)
            assert any(f"`docs/{page.name}`" in made and f"`make {used}`" in how for made, _, how in rows), page.name


def test_the_walks_name_functions_that_exist() -> None:
    hops = re.findall(r"^\d+\. `(\S+)`: `(\S+)`", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert hops
    for file, function in hops:
        defined = re.findall(r"^ *(?:async )?(?:def|class) (\w+)", (ROOT / file).read_text(), re.MULTILINE)
        assert set(function.split(".")) <= set(defined), function


def test_the_index_of_tests_has_every_file() -> None:
    tests = ROOT / "tests"
    index = re.findall(r"`([\w./*]+)`", (tests / "README.md").read_text())
    folder, listed = tests, set[Path]()
    for name in index:
        folder = tests / name if name in {"engine/", "service/"} else folder
        listed |= {*folder.glob(name), *tests.glob(name)}
    files = {file for folder in ("", "engine", "service") for file in (tests / folder).glob("test_*.py")}
    folders = {file.parent for file in tests.rglob("test_*.py")} - {tests}
    assert files | folders <= listed


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_functions_of_an_app_are_counted() -> None:
    page = (ROOT / "docs/functions.md").read_text()
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| (works|partly|yours) \|", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 44))
    counted = Counter(state for _, state in rows)
    assert f"{counted['works']} work, {counted['partly']} partly, and {counted['yours']} are yours" in page


def test_the_rules_are_numbered_without_gaps() -> None:
    numbers = re.findall(r"^\* \*\*R(\d+)\*\* ", RULES.read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 65)]


def test_the_page_of_rules_names_options_that_exist() -> None:
    prefixes = "|".join(sorted({option.split("_")[0] for option in GAME_OPTIONS}))
    assert set(re.findall(rf"`((?:{prefixes})_\w+)`", REFERENCE)) <= set(GAME_OPTIONS) | set(OKEY_OPTIONS)


def test_the_page_of_rules_names_reasons_and_values_that_exist() -> None:
    rules, absent = REFERENCE.split("\n## Codes that do not occur\n")
    reasons = set(ErrorReason.keys())
    values = {value.name for option in ENUMS for value in type(GAME_OPTIONS[option].default)} | {p.name for p in Preset}
    chosen = (value for row in OKEY_OPTIONS.values() for value in row.values if isinstance(value, Enum))
    values |= {*OkeyPreset.__members__, *(value.name for value in chosen), *(hand.name for hand in KNOWN_HANDS)}
    constant = re.compile(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b")
    assert set(constant.findall(rules)) <= reasons | values
    assert set(re.findall(r"^\| ([A-Z_]+) \|", absent, re.MULTILINE)).isdisjoint(reasons)
