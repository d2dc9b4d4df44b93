"""A copy of the dataset of a test module, to be damaged."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copy"))
