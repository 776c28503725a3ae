"""Coverage-guided fuzzing with Atheris (libFuzzer): `python -m load.fuzz.guided build/fuzz/guided --seconds 60`.

It runs the corpus, then mutates inputs, and keeps those that reach lines and branches that no other one reached. An
exception that is not documented, or an input that takes too long, ends it; the input is then in the folder: `crash-*`.

With --merge it mutates nothing. It adds to the folder's `seeds`, which it makes anew, as few and as short inputs of its
`corpus` as reach what all of these reach.
"""

import argparse
import json
import os
import random
import shlex
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["engine", "service"], enable_loader_override=False):
    from load.fuzz import targets

MOST_SECONDS: Final = 2.0
"""The most CPU time of an input, several times that without the instruments of Atheris."""
MOST_BYTES: Final = 16_384
MOST_MEGABYTES: Final = 1_024
MOST_KEPT_BYTES: Final = 2_048
"""Longer inputs are not merged: few of them reach more, and a change of the stored corpus is to be read."""
HANG_SECONDS: Final = 60
"""After this time libFuzzer ends an input that does not return."""
WRITE_SECONDS: Final = 1.0


class SlowInputError(Exception):
    """An input took too long."""


class _Fuzzer:
    """Runs inputs, and writes what it counted, because libFuzzer ends the process.

    Args:
        counts: The file for the counts.
        chosen: The targets; others are passed over.
    """

    def __init__(self, counts: Path, chosen: list[str]) -> None:
        self._counts_file = counts
        self._chosen = set(chosen)
        self._counts: Counter[str] = Counter()
        self._slowest: dict[str, float] = {}
        self._written = 0.0

    def one(self, data: bytes) -> None:
        """Runs an input. Raises SlowInputError, and what is not documented."""
        name, _ = targets.split(data)
        if name not in self._chosen:
            return
        before = time.process_time()
        try:
            self._counts[targets.run(data)] += 1
        finally:
            seconds = time.process_time() - before
            self._slowest[name] = max(self._slowest.get(name, 0.0), seconds)
        if seconds > MOST_SECONDS:
            raise SlowInputError(f"{name}: {seconds:.1f} s of CPU for {len(data)} bytes")
        if time.monotonic() - self._written > WRITE_SECONDS:
            self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        found = {"counts": self._counts, "slowest": self._slowest}
        self._counts_file.write_text(json.dumps(found))

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """Mutates an input."""
        rng = random.Random(seed)

        def by_bytes(rest: bytes) -> bytes:
            changed: bytes = atheris.Mutate(rest or b"\0", max_size)
            return changed

        made = targets.mutated(data, rng, by_bytes)
        name, _ = targets.split(made)
        if name not in self._chosen:
            made = rng.choice(sorted(self._chosen)).encode() + b"\n" + made.partition(b"\n")[2]
        return made[:max_size]


def write_seeds(folder: Path, names: list[str]) -> None:
    """Writes the seeds of targets as files, beside the stored corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(targets.seeds(iter(names))):
        (folder / f"seed-{number:04}").write_bytes(seed)


def corpora_to_merge(folder: Path, names: list[str]) -> tuple[Path, Path]:
    """Returns the folder of the seeds of targets, made anew, and that of inputs of a run that are short enough."""
    seeds, found = folder / "seeds", folder / "to-merge"
    for old in (seeds, found):
        shutil.rmtree(old, ignore_errors=True)
    write_seeds(seeds, names)
    found.mkdir()
    for path in (folder / "corpus").iterdir():
        if path.stat().st_size <= MOST_KEPT_BYTES:
            shutil.copy(path, found)
    return seeds, found


def write_launcher(path: Path) -> None:
    """Writes a program that runs this one: libFuzzer merges in processes that it starts by the name of its own."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join((sys.executable, "-m", "load.fuzz.guided"))} "$@"\n')
    path.chmod(0o755)


def main() -> None:
    """Fuzzes until the time is over, or an input fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for failed inputs, new ones, and counts")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=targets.TARGETS)
    parser.add_argument("--merge", action="store_true", help="only add to the seeds what reaches more, minimised")
    chosen = parser.parse_args()
    names = chosen.target or list(targets.TARGETS)
    options = [
        f"-seed={chosen.seed}",
        f"-max_len={MOST_BYTES}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-artifact_prefix={chosen.folder}/",
        "-print_final_stats=1",
    ]
    program = sys.argv[0]
    (chosen.folder / "corpus").mkdir(parents=True, exist_ok=True)
    if chosen.merge:
        corpora = corpora_to_merge(chosen.folder, names)
        options.append("-merge=1")
        program = str((chosen.folder / "merge").resolve())
        write_launcher(Path(program))
    else:
        corpora = chosen.folder / "corpus", chosen.folder / "seeds"
        write_seeds(corpora[1], names)
        options.append(f"-max_total_time={chosen.seconds}")
    fuzz([program, *options, *map(str, corpora)], chosen.folder / "counts.json", names)


def fuzz(arguments: list[Any], counts: Path, names: list[str]) -> None:
    """Runs libFuzzer, which ends the process."""
    fuzzer = _Fuzzer(counts, names)
    atheris.Setup(arguments, fuzzer.one, custom_mutator=fuzzer.mutate, internal_libfuzzer=True)
    os.environ.setdefault("PYTHONHASHSEED", "0")
    atheris.Fuzz()


if __name__ == "__main__":
    if any(argument.startswith("-merge_inner=") for argument in sys.argv):  # started by libFuzzer
        fuzz(sys.argv, Path(os.devnull), list(targets.TARGETS))
    else:
        main()
