"""Fixtures that several families need."""

from pathlib import Path

import pytest

from gristmill.vocabularies.fetch import fetch
from tests.paths import CHECKOUT, REAL_DATA
from tests.requirements import missing_real_data


def pytest_configure() -> None:
    """End at once where real data is required and is not there: many tests would skip."""
    if missing := missing_real_data(REAL_DATA):
        raise pytest.UsageError(missing)


_KEPT = CHECKOUT / ".test-data"


@pytest.fixture(scope="session")
def vocabulary_root() -> Path:
    """A data root with both vocabularies in its drops; downloaded once, then kept."""
    fetch(_KEPT)
    return _KEPT
