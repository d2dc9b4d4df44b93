"""Where the chess tests find PGN: the real drops, and generated games."""

import shutil
from pathlib import Path

import pytest

from gristmill.chess.samples import write_month
from tests.paths import REAL_DATA


def real_chess() -> Path:
    return REAL_DATA / "chess"


@pytest.fixture(scope="session")
def real() -> Path:
    path = real_chess()
    if not path.exists():
        pytest.skip(f"no real data at {path}; set GRISTMILL_REAL_DATA")
    return path


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("month") / "lichess_elite_2024-01.pgn"
    write_month(path, "2024-01", 100, 11)
    return path


@pytest.fixture(scope="session")
def valid(month: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gristmill.chess import validate

    out = tmp_path_factory.mktemp("validated") / "elite_2024-01"
    validate([month], out)
    return out


@pytest.fixture(scope="session")
def dataset(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample month as a game dataset without a cache. Not to be changed."""
    from gristmill.chess import build_game_dataset

    out = tmp_path_factory.mktemp("dataset") / "elite_2024-01_game"
    build_game_dataset(valid, out)
    return out


@pytest.fixture
def cached(dataset: Path, tmp_path: Path) -> Path:
    """A copy of the game dataset, with a cache."""
    from gristmill.chess import build_splice_cache

    home = Path(shutil.copytree(dataset, tmp_path / dataset.name))
    build_splice_cache(home, home / "runtime_splice_cache")
    return home
