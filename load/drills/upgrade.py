"""Replaces the servers of a released version by the present ones, and back, while games go on.

Two servers of the other version share one store. Players and a validator call them through an Envoy with
deploy/envoy.yaml: some repeat calls by themselves, with the present client or with the other version's, others do not.
Then each server is stopped with SIGTERM and started again as the present version, one after the other, and then each as
the other version again: so both versions run on one store in between, in both directions. The present version writes
the stored format of the other one (RUMMIKUB_STORED_FORMAT). `make drill ARGS=upgrade`. The other version is the last
release, or without one the revision that stands for it; ARGS="upgrade --from REVISION" names another one. Needs
`make envoy`.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from load.drills.reports import finish
from load.drills.rolling import Run, Version, failures_of, needs_envoy, rolling, tables_of
from load.parts import run_parts
from tools.redis_cluster import RedisCluster, redis_cluster
from tools.redis_servers import RedisServer, running_redis
from tools.revisions import installed, last_release, stored_format_of, write_tree
from tools.servers import ROOT

LAME_DUCK_SECONDS: Final = 5.0
STORES: Final[Mapping[str, Callable[[], AbstractContextManager[RedisServer | RedisCluster]]]] = {
    "redis": running_redis,
    "cluster": redis_cluster,
}


def main(arguments: Sequence[str]) -> int:
    """Runs the drill and prints a table; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(
        prog="upgrade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="revision", default=last_release(), help="the other version (%(default)s)")
    parser.add_argument("--installed", type=Path, help="a folder in which it is installed already")
    parser.add_argument("--store", nargs="+", choices=STORES, default=[*STORES], help="the stores to try, one by one")
    parser.add_argument("--quick", action="store_true", help="only one Redis; nothing is written into a page")
    chosen = parser.parse_args(arguments)
    needs_envoy()
    began = time.monotonic()
    stores = ["redis"] if chosen.quick else chosen.store
    with tempfile.TemporaryDirectory(prefix="rummikub-upgrade-") as folder:
        place = chosen.installed or installed(
            write_tree(chosen.revision, Path(folder) / "tree"), Path(folder) / "installed"
        )
        other = Version(place)
        present = Version(ROOT, {"RUMMIKUB_STORED_FORMAT": f"{stored_format_of(chosen.revision)}"})
        print(f"{chosen.revision} is in {place}")

        def upgrade(store: str) -> Run:
            return asyncio.run(rolling(LAME_DUCK_SECONDS, [present, other], STORES[store], begin=other, name=store))

        finished, errors = run_parts(upgrade, {store: store for store in stores})
    runs = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "from": chosen.revision,
        "runs": [run.as_json() for run in runs],
        "requirements": [one for run in runs for one in run.requirements(2)],
    }
    is_complete = not chosen.quick and chosen.store == [*STORES]
    title = f"Servers of {chosen.revision} replaced by those of this version, and back, under load"
    return finish("upgrade", report, tables_of(runs, title), failures_of(runs), errors=errors, is_complete=is_complete)
