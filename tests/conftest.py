"""Fixtures that several families need."""

from pathlib import Path

import pytest

from gristmill.vocabularies.fetch import fetch
from tests import budget
from tests.paths import CHECKOUT, REAL_DATA
from tests.requirements import missing_real_data
from tests.sample_root import SampleRoot


def pytest_configure() -> None:
    """End at once where real data is required and is not there: many tests would skip."""
    if missing := missing_real_data(REAL_DATA):
        raise pytest.UsageError(missing)


def pytest_report_header() -> str:
    """The budget of long suites, and the seed that a replay of their samples needs."""
    each = budget.seconds()
    length = "all" if each is None else f"{each:g} seconds each"
    return f"long suites: {length}, {budget.SEED}={budget.seed()}"


_KEPT = CHECKOUT / ".test-data"


@pytest.fixture(scope="session")
def vocabulary_root() -> Path:
    """A data root with both vocabularies in its drops; downloaded once, then kept."""
    fetch(_KEPT)
    return _KEPT


@pytest.fixture(scope="session")
def sample_root(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> SampleRoot:
    """A data root in which every asset is built; tests that change it make a copy."""
    return SampleRoot.build(tmp_path_factory.mktemp("sample_root"), vocabulary_root)
