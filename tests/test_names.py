"""The version and the names of a release are in release.toml; every manifest and page follows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.harness import ROOT
from tools import names

NEW = {
    "version": "7.65.4",
    "repository": "https://forge.example/tiles/rules",
    "maven_group": "org.tiles.rules",
    "go_module": "forge.example/tiles/rules/clients/go",
    "image": "images.example/tiles/rules",
}
GENERATED = re.compile(
    r"clients/(go/rummikubv1|python/src/rummikub/(v1|admin)|rust/src/gen|typescript/src/gen)/|deploy/(contract\.binpb|openapi\.json)"
)
"""What `make proto clients openapi` writes."""
OTHER_USES = {
    "version": re.compile(r"CHANGELOG\.md|\.lock$|.*package-lock\.json|requirements/|tests/|web/.*examples/.*lock")
}
"""Files with the old value for another reason: versions of other packages, tests of versions."""
GIT = shutil.which("git") or "git"
TRACKED = [
    Path(name)
    for name in subprocess.run([GIT, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    if (ROOT / name).is_file()
]


IMAGE_LINE = re.compile(rb"docker (build|run|push|tag) |\bimage: |\bnewName: |- \{?name: ")
"""A line that names an image. Elsewhere, its name is that of the distribution."""


def uses_of(name: str, text: bytes) -> list[bytes]:
    """Returns the lines that a value may be in."""
    return [line for line in text.splitlines() if name != "image" or IMAGE_LINE.search(line)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of all tracked files, with other names."""
    folder = tmp_path_factory.mktemp("tree")
    for name in TRACKED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    values = names.values() | NEW
    (folder / names.FILE).write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))
    return folder


def test_no_file_has_another_value_than_release_toml() -> None:
    assert names.main(["--check"]) == 0
    values = names.values()
    for name, place in names.PLACES.items():
        for pattern in place.files:
            assert any(values[name] in path.read_text() for path in ROOT.glob(pattern)), (name, pattern)


def test_new_names_leave_no_old_one(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert names.main(["--check"], tree) == 1
    assert "version is 7.65.4 in release.toml and" in capsys.readouterr().err
    assert names.main([], tree) == 0
    assert names.main(["--check"], tree) == 0
    old = names.values()
    for name in NEW:
        whole = re.compile(rf"(?<![\w.]){re.escape(old[name])}(?![\w.]*\w)".encode())
        left = [
            str(path)
            for path in TRACKED
            if not GENERATED.match(str(path))
            and not (name in OTHER_USES and OTHER_USES[name].match(str(path)))
            and path != Path(names.FILE)
            and any(map(whole.search, uses_of(name, (tree / path).read_bytes())))
        ]
        assert not left, name
