"""A running installation for the documents, started when the first of them is run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.http_system import System


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Every process of the Procfile, on servers and a port of its own."""
    with System.started(tmp_path_factory.mktemp("documents")) as started:
        yield started
