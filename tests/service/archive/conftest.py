"""Archives of each kind, with a server of each for a worker of the tests."""

from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def storage(object_storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """An empty bucket, whose credentials are in the environment."""
    for name, value in object_storage.environment.items():
        monkeypatch.setenv(name, value)
    object_storage.clear()
    return object_storage


@pytest.fixture
def empty_database(database: Database) -> Database:
    """A database without the table of the archive."""
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    return database


@pytest.fixture(params=["storage", "empty_database"])
def archive_server(request: pytest.FixtureRequest) -> ObjectStorage | Database:
    """Each server that can have an archive, which is empty."""
    server: ObjectStorage | Database = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["sqlite", "storage", "empty_database"])
def archive_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an archive of each kind, which is empty."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/archive/games.sqlite3"
    server: ObjectStorage | Database = request.getfixturevalue(request.param)
    return server.url
