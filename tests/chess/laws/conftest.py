"""All artifacts of the sample month, and a copy of them for a test to damage."""

import shutil
from pathlib import Path

import pytest

from gristmill.chess import (
    SpliceConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
)


@pytest.fixture(scope="session")
def built(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `valid`, `game` with its cache, and `splice`. Not to be changed."""
    root = tmp_path_factory.mktemp("laws")
    shutil.copytree(valid, root / "valid")
    build_game_dataset(valid, root / "game")
    build_splice_cache(root / "game", root / "game" / "runtime_splice_cache")
    build_splice_dataset(valid, root / "splice", SpliceConfig(max_samples_per_game=8))
    return root


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"
