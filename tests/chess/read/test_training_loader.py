"""A loader written from docs/formats/chess.md#reading-contract reads the files.

It imports nothing of the library: the files are all that it knows.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.chess import GameConfig, GameSpliceDataset, build_game_dataset, build_splice_cache
from tests.chess import reference_rules

ARRAYS = {
    "path_ids.u32.bin": "<u4",
    "offsets.u64.bin": "<u8",
    "splice_indices.u32.bin": "<u4",
    "sample_phase_ids.u8.bin": "|u1",
}
PHASES = {"unknown": 0, "opening": 1, "middlegame": 2, "endgame": 3}
WINNERS = {"W": 0, "B": 1, "D": 2}


def alias(path: str) -> str:
    """What ties a cache's path to an input elsewhere: the folder ending in `_game`, the file."""
    folder = next(part for part in Path(path).parts if part.endswith("_game"))
    return f"{folder}/{Path(path).name}"


def load_cache(
    inputs: list[Path], split: str, config: dict[str, int]
) -> tuple[list[tuple[Path, int, int, int]], int] | str:
    """(path, offset, splice index, phase) of all samples and the games there are, or a miss."""
    samples: list[tuple[Path, int, int, int]] = []
    games = 0
    for given in inputs:
        cache = given.parent / "runtime_splice_cache"
        if not (cache / "manifest.json").exists():
            return "cache_manifest_missing"
        manifest = json.loads((cache / "manifest.json").read_text())
        if manifest.get("kind") != "runtime_splice_cache":
            return "cache_manifest_kind_invalid"
        if {name: int(manifest["config"][name]) for name in config} != config:
            return "cache_config_mismatch"
        if not all((cache / split / name).exists() for name in (*ARRAYS, "paths.json")):
            return "cache_file_missing"
        paths = json.loads((cache / split / "paths.json").read_text())
        if not isinstance(paths, list) or not paths:
            return "cache_paths_empty"
        arrays = [np.fromfile(cache / split / name, dtype) for name, dtype in ARRAYS.items()]
        if len({len(array) for array in arrays}) != 1:
            return "cache_row_count_mismatch"
        known = {str(path.resolve()): path for path in inputs}
        known |= {alias(str(path)): path for path in inputs}
        found = [known.get(os.path.realpath(path)) or known.get(alias(path)) for path in paths]
        if None in found:
            return "cache_path_not_in_input"
        if len(arrays[0]) and int(arrays[0].max()) >= len(paths):
            return "cache_path_id_out_of_range"
        columns = (array.tolist() for array in arrays)
        for number, offset, index, phase in zip(*columns, strict=True):
            place = found[number]
            assert place is not None
            samples.append((place, offset, index, phase))
        games += manifest["splits"][split]["game_rows_total"]
    return samples, games


def read_sample(path: Path, offset: int, index: int, horizon: int) -> dict[str, Any]:
    """Seek, read a line, cut it: context, label, rollout with its mask, winner, side to move."""
    with path.open("rb") as file:
        file.seek(offset)
        row = json.loads(file.readline())
    moves = row.get("moves") or row.get("moves_uci")
    rollout = moves[index + 1 : index + 1 + horizon]
    return {
        "context": moves[: index + 1],
        "label": moves[index + 1],
        "rollout": rollout + [""] * (horizon - len(rollout)),
        "mask": [True] * len(rollout) + [False] * (horizon - len(rollout)),
        "winner": WINNERS.get(row["winner_side"], 3),
        "side_to_move": (index + 1) % 2,
    }


def spliced(path: Path, min_context: int, min_target: int) -> Iterator[tuple[int, int, int]]:
    """(offset, splice index, phase) as training finds them itself where there is no cache."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            moves = json.loads(line)["moves"]
            expected = reference_rules.phases(moves)
            for index in range(min_context - 1, len(moves) - min_target):
                yield offset, index, PHASES[expected[index][0]]
            offset += len(line)


@pytest.fixture(scope="module")
def months(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two datasets with caches, one with draws and headers."""
    root = tmp_path_factory.mktemp("training")
    homes = [root / "elite_2024-01_game", root / "elite_2024-02_game"]
    for home, config in zip(
        homes, (GameConfig(), GameConfig(games="all", keep_headers=True)), strict=True
    ):
        build_game_dataset(valid, home, config)
        build_splice_cache(home, home / "runtime_splice_cache")
    return homes


CONFIG = {"min_context": 8, "min_target": 1, "max_samples_per_game": 0, "seed": 7}


@pytest.mark.parametrize("split", ["train", "val"])
def test_caches_of_two_months_load_and_say_what_splicing_says(months, split):
    inputs = [month / f"{split}.jsonl" for month in months]
    loaded = load_cache(inputs, split, CONFIG)
    assert not isinstance(loaded, str), loaded
    samples, games = loaded
    assert samples == [(path, *found) for path in inputs for found in spliced(path, 8, 1)]
    assert games == sum(len(path.read_bytes().splitlines()) for path in inputs)
    ours = GameSpliceDataset(months, split, horizon=5)
    assert len(ours) == len(samples)
    for number in range(0, len(samples), 37):
        path, offset, index, phase = samples[number]
        expected, mine = read_sample(path, offset, index, 5), ours[number]
        assert expected["context"] == mine.context
        assert expected["label"] == mine.next_move == expected["rollout"][0]
        assert [
            move for move, real in zip(expected["rollout"], expected["mask"], strict=True) if real
        ] == (mine.target)
        assert (expected["winner"], expected["side_to_move"]) == (mine.winner, mine.side_to_move)
        assert phase == mine.phase


def test_a_dataset_that_was_moved_is_found_by_its_alias(months, tmp_path):
    home = tmp_path / "elsewhere" / months[0].name
    home.parent.mkdir()
    months[0].rename(home)
    try:
        inputs = [home / "train.jsonl"]
        loaded = load_cache(inputs, "train", CONFIG)
    finally:
        home.rename(months[0])
    assert not isinstance(loaded, str), loaded
    assert {sample[0] for sample in loaded[0]} == set(inputs)


def test_the_vocabulary_sidecars_merge(months):
    """In key order over the train files; every move of train has a number."""
    vocabulary: dict[str, int] = {}
    for month in months:
        meta = json.loads((month / "runtime_splice_cache" / "vocab_rows_meta.json").read_text())
        assert meta["kind"] == "runtime_splice_vocab_rows_meta_v1"
        assert meta["config"] == CONFIG
        assert meta["vocab_size"] == len(meta["vocab"])
        for split in ("train", "val"):
            rows = len((month / f"{split}.jsonl").read_bytes().splitlines())
            assert meta["splits"][split]["path"] == f"{split}.jsonl"
            assert meta["splits"][split]["game_rows"] == rows
        for word in meta["vocab"]:
            vocabulary.setdefault(word, len(vocabulary))
    assert list(vocabulary)[:2] == ["<PAD>", "<UNK>"]
    used = {
        move
        for month in months
        for line in (month / "train.jsonl").open()
        for move in json.loads(line)["moves"]
    }
    assert set(vocabulary) == {"<PAD>", "<UNK>"} | used
