"""What tests of reasoning share."""

from pathlib import Path

import pytest

from gristmill.vocabularies.pinned import GPT2, find


@pytest.fixture(scope="session")
def vocabulary(vocabulary_root: Path) -> Path:
    return find(GPT2, vocabulary_root)
