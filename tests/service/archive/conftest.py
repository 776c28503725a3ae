"""Servers of the archive, one of each kind for a worker of the tests."""

from collections.abc import Iterator

import pytest

from support.archives import Database, ObjectStorage, running_database, running_object_storage


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    with running_database() as running:
        yield running


@pytest.fixture(scope="session")
def object_storage() -> Iterator[ObjectStorage]:
    with running_object_storage() as running:
        yield running
