"""Fixtures that several families need."""

from pathlib import Path

import pytest

from gristmill import tokenizers

_KEPT = Path(__file__).resolve().parent.parent / ".test-data"


@pytest.fixture(scope="session")
def vocabulary_root() -> Path:
    """A data root with both vocabularies in its drops; downloaded once, then kept."""
    tokenizers.fetch(_KEPT)
    return _KEPT
