"""Without kustomize and promtool the tests of the deployment are skipped; in CI they fail."""

import os

import pytest

from support.deployment import missing_tools, write_plain_rules


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    missing = missing_tools()
    if missing:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    write_plain_rules()
