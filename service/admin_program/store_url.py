"""The stores that commands are given: a URL as of RUMMIKUB_REDIS_URL, or the folder of an embedded store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from service.admin_program.command import AdminError
from service.storage.embedded import EmbeddedStore, EmbeddedStoreError

HELP: Final = "a URL as of RUMMIKUB_REDIS_URL, or the folder of an embedded store (RUMMIKUB_DATA_DIR)"


def setting_of(given: str) -> str:
    """Returns the setting, and its value, with which a server uses a store that a command was given."""
    if "://" in given:
        return "RUMMIKUB_REDIS_URL"
    return f"RUMMIKUB_DATA_DIR={given} and no RUMMIKUB_REDIS_URL"


@asynccontextmanager
async def store_url(given: str) -> AsyncIterator[str]:
    """Yields the URL of a store. That in a folder is the one of the server that runs on it, or else runs meanwhile.

    Raises AdminError if the folder cannot be used.
    """
    if "://" in given:
        yield given
        return
    folder = Path(given)
    if not folder.is_dir():  # noqa: ASYNC240 - nothing else runs
        raise AdminError(f"{given} is neither a URL, as redis://host:port, nor a folder")
    if running := EmbeddedStore.running_url(folder):
        yield running
        return
    try:
        store = EmbeddedStore(folder)
        await store.start()
    except EmbeddedStoreError as error:
        raise AdminError(str(error)) from error
    try:
        yield store.url
    finally:
        await store.stop()
