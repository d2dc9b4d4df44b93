"""Move keys of whole files: the counts do not depend on the number of passes."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.chess.format import folders
from gristmill.chess.format.folders import GAME

FIRST = [1, 2, 2, 1 << 63, (1 << 64) - 1]
SECOND = [2, 5, (1 << 63) + 1, (1 << 64) - 1]


def games_file(path: Path, keys: list[int]) -> Path:
    records = np.zeros(len(keys), GAME)
    records["move_key"] = np.array(keys, np.uint64)
    path.write_bytes(records.tobytes())
    return path


@pytest.mark.parametrize("keys_in_memory", [1, 2, 9, 1 << 20])
def test_duplicates_and_shared_keys_are_counted_in_any_passes(
    tmp_path, monkeypatch, keys_in_memory
):
    monkeypatch.setattr(folders, "_KEYS_IN_MEMORY", keys_in_memory)
    monkeypatch.setattr(folders, "_RECORDS_PER_READ", 2)
    files = [games_file(tmp_path / "a", FIRST), games_file(tmp_path / "b", SECOND)]
    assert folders.count_duplicates(files[:1]) == 1
    assert folders.count_duplicates(files) == 3
    assert folders.count_shared(files) == 2
    assert folders.count_shared([]) == 0


def test_the_documented_split():  # docs/formats/chess.md#split-by-moves
    keys = np.array([0xE72B54C42FF5CE1E], np.uint64)
    for train_ratio, val_ratio, split in ((0.8, 0.1, 0), (0.4572, 0.0001, 1), (0.4, 0.05, 2)):
        assert folders.split_of(keys, 7, train_ratio, val_ratio).tolist() == [split]
    assert folders.split_of(keys, 7, 0.4573, 0.0).tolist() == [0]
