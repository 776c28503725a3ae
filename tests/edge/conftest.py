"""Without Envoy the tests of the web edge are skipped; in CI they fail."""

import os

import pytest

from support.edge import envoy_is_installed


@pytest.fixture(scope="session", autouse=True)
def _envoy() -> None:
    if not envoy_is_installed():
        missing = "Envoy is not installed; run: make envoy"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
