"""Fixtures that several families need."""

from pathlib import Path

import pytest

from gristmill.vocabularies.fetch import fetch
from tests.paths import CHECKOUT

_KEPT = CHECKOUT / ".test-data"


@pytest.fixture(scope="session")
def vocabulary_root() -> Path:
    """A data root with both vocabularies in its drops; downloaded once, then kept."""
    fetch(_KEPT)
    return _KEPT
