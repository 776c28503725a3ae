"""Stores that several tests of storage run."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.storage.embedded import EmbeddedStore


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    """Runs an embedded store in the folder `data`."""
    store = EmbeddedStore(tmp_path / "data")
    await store.start()
    yield store
    await store.stop()
