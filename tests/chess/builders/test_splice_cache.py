"""Splice caches: empty splits, changed datasets, published paths."""

import json
from pathlib import Path

import numpy as np
import pytest

from gristmill.chess import (
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
)
from gristmill.chess.config import SPLITS
from gristmill.chess.format.folders import LAYOUT
from gristmill.contract import BadInput
from tests.chess.builders.chain import live_row


def test_empty_input_and_empty_splits_give_empty_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "valid_games.jsonl"
    for name, text in (("none", ""), ("one", json.dumps(live_row()) + "\n")):
        path.write_text(text)
        build_game_dataset(path, tmp_path / name)
        summary = build_splice_cache(tmp_path / name, tmp_path / name / "runtime_splice_cache")
        assert sum(summary.samples.values()) == (2 if text else 0)
        assert sum(summary.phases.values()) == (2 if text else 0)
        for split in SPLITS:
            for array in LAYOUT:
                size = (tmp_path / name / "runtime_splice_cache" / split / array).stat().st_size
                assert size == summary.samples[split] * np.dtype(LAYOUT[array]).itemsize
        build_splice_dataset(path, tmp_path / f"{name}_splice")


def test_a_dataset_that_changed_under_its_sidecar_is_refused(valid: Path, tmp_path: Path) -> None:
    build_game_dataset(valid, tmp_path / "d")
    path = tmp_path / "d" / "train.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1-0", b"0-1", 1))
    with pytest.raises(BadInput, match="has changed since its sidecar"):
        build_splice_cache(tmp_path / "d", tmp_path / "c")


def test_files_name_the_folder_where_they_are_published(valid: Path, tmp_path: Path) -> None:
    home = tmp_path / "lake" / "elite_2024-01_game"
    build_game_dataset(valid, tmp_path / "staged", published=home)
    assert json.loads((tmp_path / "staged" / "stats.json").read_text())["output_dir"] == str(home)
    place = home / "runtime_splice_cache"
    build_splice_cache(tmp_path / "staged", tmp_path / "cache", published=place)
    for split in SPLITS:
        paths = json.loads((tmp_path / "cache" / split / "paths.json").read_text())
        assert paths == [str(home / f"{split}.jsonl")]
    manifest = json.loads((tmp_path / "cache" / "manifest.json").read_text())
    assert manifest["dataset_dir"] == str(home)
