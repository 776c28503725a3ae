"""The usable memory is the machine's, or the lowest limit of the process's control groups."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.runtime.memory import usable_memory

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("", {}, MACHINE),
        ("0::/\n", {"memory.max": "max\n"}, MACHINE),
        ("0::/\n", {"memory.max": "1048576\n"}, 1_048_576),
        ("0::/a/b\n", {"a/memory.max": "4096\n", "a/b/memory.max": "8192\n"}, 4_096),
        ("0::/a/b\n", {"a/memory.max": "max\n", "a/b/memory.max": "8192\n"}, 8_192),
        ("0::/of/the/host\n", {"memory.max": "4096\n"}, 4_096),
        ("0::/../other\n", {"memory.max": "4096\n"}, 4_096),
        ("3:cpu:/a\n2:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096\n"}, 4_096),
        ("2:memory:/docker/a\n", {"memory/memory.limit_in_bytes": "4096\n"}, 4_096),
        ("2:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, MACHINE),
    ],
)
def test_usable_memory(own: str, files: Mapping[str, str], expected: int, tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text)
    (tmp_path / "own").write_text(own)
    assert usable_memory(groups, tmp_path / "own") == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert usable_memory(tmp_path, tmp_path / "none") == MACHINE
