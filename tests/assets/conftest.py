"""Fixtures for tests of assets: a data root, and a Dagster instance in memory."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from resources import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "data").mkdir()
    return Lake(data_root=str(tmp_path / "data"))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral
