"""`make release` refuses what must not be released, and its packages have pages that work outside of the repository."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.storage.formats import FORMATS
from support.formats import process_with
from support.harness import ROOT
from tools import names
from tools.release import conformance, frozen
from tools.release.__main__ import main as release_main
from tools.release.bill import LicenseError, check_license
from tools.release.checks import problems
from tools.release.frozen import BASELINE, BUF
from tools.release.packages import PAGES, Release, require, sums, with_whole_links, write_archive
from tools.release.provenance import FILE, LOCKS, statement
from tools.revisions import GIT, GOLDEN, last_tag, write_tree

pytestmark = pytest.mark.slow

VERSION = "1.2.3"
GAME = GOLDEN / f"format_{FORMATS.written}.jsonl"


def git(folder: Path, *arguments: str) -> None:
    """Runs git as an author."""
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run([GIT, *author, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Returns a small repository that can be released as VERSION; 1.2.2 was released before."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    arguments = ("build", "--exclude-source-info", "-o", "-#format=binpb")
    contract = subprocess.run([str(BUF), *arguments], cwd=tmp_path, capture_output=True, check=True).stdout
    (tmp_path / BASELINE).write_bytes(gzip.compress(contract))
    values = names.values() | {
        "version": VERSION,
        "repository": "https://forge.org/tiles",
        "maven_group": "org.forge",
        "go_module": "forge.org/tiles/clients/go",
    }
    (tmp_path / names.FILE).write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n## {VERSION} (2027-01-31)\n")
    (tmp_path / GAME).parent.mkdir(parents=True)
    (tmp_path / GAME).write_text("{}\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All")
    git(tmp_path, "tag", "v1.2.2")
    return tmp_path


def test_a_tree_that_is_as_it_should_be_can_be_released(tree: Path) -> None:
    assert list(problems(tree, VERSION)) == []


def _removed(tree: Path, path: Path) -> None:
    (tree / path).unlink()
    git(tree, "commit", "--all", "--quiet", "--message", "Remove")


def _replaced(path: str, old: str, new: str) -> Callable[[Path], None]:
    def replace(tree: Path) -> None:
        (tree / path).write_text((tree / path).read_text().replace(old, new))
        git(tree, "commit", "--all", "--quiet", "--message", "Replace")

    return replace


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        pytest.param(lambda tree: (tree / "new").write_text(""), "1 files are not as committed (new)", id="dirty"),
        pytest.param(lambda tree: git(tree, "tag", f"v{VERSION}"), "exists already", id="exists"),
        pytest.param(_replaced(names.FILE, VERSION, "1.2.4"), "has version 1.2.4", id="other version"),
        pytest.param(_replaced(names.FILE, "forge.org/tiles/c", "one.example/c"), "a placeholder", id="placeholder"),
        pytest.param(_replaced("CHANGELOG.md", f"## {VERSION}", "## 9"), "no section 1.2.3", id="no changes"),
        pytest.param(
            _replaced("proto/rummikub/v1/tile.proto", "enum Tile {", "message New {}\nenum Tile {"),
            "not the present contract",
            id="baseline",
        ),
        pytest.param(
            _replaced(f"{GAME}", "{}", "[]"), f"{GAME} does not begin with what v1.2.2 has", id="rewritten format"
        ),
        pytest.param(
            lambda tree: _removed(tree, GAME), f"{GAME} does not begin with what v1.2.2 has", id="removed format"
        ),
    ],
)
def test_what_is_not_ready_is_refused(tree: Path, break_it: Callable[[Path], object], expected: str) -> None:
    break_it(tree)
    [found] = problems(tree, VERSION)
    assert expected in found
    assert re.search(r": (commit|choose|change|give|rename|run|restore)", found)


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0.0", "01.0.0", ""])
def test_only_a_semantic_version_is_released(tree: Path, version: str) -> None:
    [found] = problems(tree, version)
    assert "no semantic version" in found


def test_a_new_golden_file_and_more_lines_are_no_change_of_a_released_format(tree: Path) -> None:
    (tree / GOLDEN / "format_99.jsonl").write_text("{}")
    (tree / GAME).write_text("{}\n{}\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "Add a format and an event")
    assert list(problems(tree, VERSION)) == []


def test_a_format_that_the_last_release_cannot_read_is_not_written(tree: Path) -> None:
    with process_with(replace(FORMATS, written=FORMATS.newest + 1)):
        [found] = problems(tree, VERSION)
    assert found.startswith(
        f"servers would write the stored format {FORMATS.newest + 1}, which v1.2.2 cannot read: leave"
    )


def test_every_commit_is_compared_with_the_last_release(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert frozen.main(tree) == 0
    proto = tree / "proto" / "rummikub" / "v1" / "tile.proto"
    proto.write_text(proto.read_text().replace("TILE_RED_1 =", "TILE_CRIMSON_1 ="))
    baseline = subprocess.run([BUF, "build", "-o", "-#format=binpb"], cwd=tree, capture_output=True, check=True).stdout
    (tree / BASELINE).write_bytes(gzip.compress(baseline))  # the tag has another one
    (tree / GAME).write_text("")
    assert frozen.main(tree) == 1
    contract, stored = capsys.readouterr().out.splitlines()
    assert "TILE_RED_1" in contract
    assert contract.endswith("[not compatible with v1.2.2: undo it, and add something beside it]")
    assert stored.startswith(f"{GAME} does not begin with what v1.2.2 has: restore it (git checkout v1.2.2 -- {GAME})")


def test_without_a_release_of_the_major_version_only_the_contract_is_compared(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tree, "tag", "--delete", "v1.2.2")
    git(tree, "tag", "v1.3.0-rc.1")
    git(tree, "tag", "v2.0.0")
    (tree / GAME).write_text("")
    assert frozen.main(tree) == 0
    assert "No version is released yet" in capsys.readouterr().out


def test_the_last_release_is_one_that_this_revision_comes_from(tree: Path) -> None:
    git(tree, "tag", "v1.2.10")
    git(tree, "tag", "v1.2.11-rc.1")
    git(tree, "checkout", "--quiet", "-b", "other")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "Next")
    git(tree, "tag", "v1.3.0")
    assert last_tag(tree) == "v1.3.0"
    git(tree, "checkout", "--quiet", "v1.2.10")
    assert last_tag(tree) == "v1.2.10"
    assert not last_tag(tree / "proto" / ".." / "..")


def test_a_revision_that_a_shallow_clone_lacks_is_named_with_the_remedy(tree: Path, tmp_path: Path) -> None:
    assert (write_tree("v1.2.2", tmp_path / "tree", tree) / GAME).is_file()
    with pytest.raises(SystemExit, match=r"revision v1\.2\.1 is not in this clone; run: git fetch --tags"):
        write_tree("v1.2.1", tmp_path / "other", tree)


@pytest.mark.parametrize("folder", PAGES)
def test_the_page_of_a_package_has_whole_links_that_lead_to_files(folder: str) -> None:
    values = names.values()
    page = with_whole_links((ROOT / folder / "README.md").read_text(), folder, values)
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    base = re.compile(rf"{re.escape(values['repository'])}/(?:blob|raw)/v{re.escape(values['version'])}/([^#]*)")
    assert links
    for link in links:
        assert link.startswith(("https://", "http://", "#")), link
        if inside := base.match(link):
            assert (ROOT / inside[1]).exists(), link


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "MPL-2.0 AND (Apache-2.0 OR MIT)",
        "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
        "Apache-2.0 WITH LLVM-exception",
    ],
)
def test_a_license_that_can_be_met_is_accepted(expression: str) -> None:
    check_license({"name": "a", "licenses": [{"expression": expression}]})


@pytest.mark.parametrize(
    "expression", ["AGPL-3.0-only", "MIT AND AGPL-3.0-only", "MIT AND (GPL-3.0-only OR AGPL-3.0-only)", "unknown"]
)
def test_a_license_that_is_not_accepted_stops_a_release(expression: str) -> None:
    with pytest.raises(LicenseError, match="b has the license") as raised:
        check_license({"name": "b", "licenses": [{"expression": expression}]})
    assert expression in str(raised.value)


def test_the_provenance_names_every_file_the_commit_and_what_pins_the_build(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    (dist / "npm").mkdir(parents=True)
    (dist / "npm" / "one.tgz").write_bytes(b"one")
    (dist / FILE).write_text("an older one")
    values = names.values() | {"repository": "https://forge.org/tiles"}
    found = statement(Release(ROOT, dist, VERSION, values), "c0ffee", "make release", {"npm": "v20"})
    digest = hashlib.sha256(b"one").hexdigest()
    assert (found["_type"], found["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert found["subject"] == [{"name": "npm/one.tgz", "digest": {"sha256": digest}}]
    assert f"{digest}  npm/one.tgz\n" in sums(dist)
    source, *locks = found["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source == {
        "uri": f"git+https://forge.org/tiles.git@refs/tags/v{VERSION}",
        "digest": {"gitCommit": "c0ffee"},
    }
    assert [lock["name"] for lock in locks] == [*LOCKS]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--only", "pyton", "--dry-run"], "--only pyton: expected some of python, npm"),
        (["--only", "python"], "a release builds and plays all packages"),
        (["--skip-play"], "a release builds and plays all packages"),
    ],
)
def test_nothing_is_tagged_that_was_not_built_and_played(
    tree: Path, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        release_main([VERSION, *arguments], tree)
    assert expected in capsys.readouterr().err
    tags = subprocess.run([GIT, "tag"], cwd=tree, capture_output=True, text=True, check=True)
    assert tags.stdout == "v1.2.2\n"


def test_the_service_depends_on_the_other_distributions_of_its_version(tmp_path: Path) -> None:
    manifest = tmp_path / "pyproject.toml"
    shutil.copy(ROOT / "pyproject.toml", manifest)
    before = tomllib.loads(manifest.read_text())["project"]["dependencies"]
    require(manifest, ["rummikub-engine", "rummikub-client"], VERSION)
    after = tomllib.loads(manifest.read_text())["project"]["dependencies"]
    assert after == [f"rummikub-engine=={VERSION}", f"rummikub-client=={VERSION}", *before]


def test_an_archive_of_the_same_files_has_the_same_bytes_at_another_time(tmp_path: Path) -> None:
    source, written = tmp_path / "source", tmp_path / "client.tar.gz"
    (source / "src").mkdir(parents=True)
    (source / "src" / "client.cpp").write_text("int main() {}\n")
    found = set()
    for time in (1_000_000_000, 2_000_000_000):
        os.utime(source / "src" / "client.cpp", (time, time))
        write_archive(written, source, "client-1.2.3")
        found.add(written.read_bytes())
    [data] = found
    assert int.from_bytes(data[4:8], "little") == 0, "the header of gzip has the time of the build"
    with tarfile.open(written) as archive:
        assert archive.getnames() == ["client-1.2.3/src/client.cpp"]


def dist_with(folder: Path, *ecosystems: str) -> Release:
    """Returns a release whose packages of some ecosystems are there, as empty files."""
    release = conformance.release_in(folder)
    for name in ecosystems:
        package = conformance.ECOSYSTEMS[name].path(release)
        package.parent.mkdir(parents=True)
        package.touch()
    return release


def test_a_package_that_is_absent_is_named_with_the_command_that_builds_it_and_keeps_the_others(tmp_path: Path) -> None:
    release = dist_with(tmp_path, "python", "npm")
    assert conformance.absent(release, {"python (aio)", "typescript"}) == ""
    found = conformance.absent(release, {"python", "kotlin", "rust"})
    assert str(tmp_path / "rust" / f"rummikub-client-{release.version}.crate") in found
    assert found.endswith('build it: make release ARGS="--dry-run --only python,npm,rust,maven"')


def test_the_conformance_programs_take_the_client_from_its_package_alone(tmp_path: Path) -> None:
    release = dist_with(tmp_path / "dist", "python", "npm", "rust", "cpp")
    found = conformance.programs(release, tmp_path / "programs")
    assert [*found] == [
        *("python", "python (aio)", "python (oldest packages)"),
        *("typescript", "typescript (grpc-js)"),
        *("rust", "cpp"),
    ]
    assert str(ROOT / "clients") not in "".join(
        program.build + program.run + program.game for program in found.values()
    )
    assert all(str(release.dist) in found[name].build for name in ("python", "python (oldest packages)", "rust", "cpp"))
    needed = json.loads((found["typescript"].folder / "package.json").read_text())["dependencies"]
    assert needed["rummikub-client"] == f"file:{release.dist}/npm/rummikub-client-{release.version}.tgz"
    crate = tomllib.loads((found["rust"].folder / "Cargo.toml").read_text())["dependencies"]["rummikub-client"]
    assert crate["path"] == f"rummikub-client-{release.version}"
