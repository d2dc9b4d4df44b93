"""Small datasets on disk, by kind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.puzzles.small_datasets import SMALL, write


@pytest.fixture
def small(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the small dataset of a kind, returns its folder."""
    return lambda kind: write(tmp_path / kind, SMALL[kind]())
