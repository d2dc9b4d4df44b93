"""A batch: shapes that do not fit together are refused."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.domains.arc_grid import parse_id
from gristmill.puzzles.format.dataset import Batch, PuzzleDatasetMetadata, read_metadata
from gristmill.puzzles.read.rows import Dataset
from gristmill.untrusted.npy_header import npy_header
from tests.puzzles import viewer
from tests.puzzles.kinds import built

WHOLE: dict[str, Any] = {
    "inputs": np.ones((3, 4), np.uint8),
    "labels": np.ones((3, 4), np.uint8),
    "origins": np.zeros((3, 3), np.int32),
    "examples": np.array([1, 2], np.int32),
    "puzzles": np.array([2], np.int32),
    "names": ("a", "b"),
}


def test_the_text_is_that_of_the_original_and_a_batch_may_be_empty():
    Batch(**{**WHOLE, "names": None})
    none = {name: array[:0] for name, array in WHOLE.items()}
    assert len(Batch(**none).inputs) == 0
    assert METADATA.text() == TEXT


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"labels": np.ones((3, 5), np.uint8)}, "differ"),
        ({"labels": np.ones((3, 4), np.int32)}, "both be uint8"),
        ({"inputs": np.ones((3, 4)), "labels": np.ones((3, 4))}, "both be uint8"),
        ({"origins": np.zeros((2, 3), np.int32)}, "origins"),
        ({"origins": np.zeros((3, 3), np.int64)}, r"origins int64 \(3, 3\), expected int32"),
        ({"examples": np.array([0, 3], np.int32)}, "needs an example"),
        ({"puzzles": np.array([0, 2], np.int32)}, "needs an example"),
        ({"examples": np.array([1, 1], np.int32)}, "add up"),
        ({"puzzles": np.array([1], np.int32)}, "add up"),
        ({"names": ("a",)}, "one entry for each puzzle"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change, rule):
    with pytest.raises(ValueError, match=rule):
        Batch(**{**WHOLE, **change})


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize(("kind", "side"), [("arc", 30), ("sudoku", 9), ("maze", 10)])
def test_the_viewer_of_the_original_shows_every_puzzle_of_a_folder(kind, side, dtype, tmp_path):
    dataset = Dataset(built(kind, tmp_path, dtype=dtype))
    for split in ("train", "test"):
        arrays = dataset.arrays(split, "all")
        groups = viewer.shown(dataset.folder, split)
        puzzles = [puzzle for group in groups for puzzle in group]
        pairs = [pair for _, held in puzzles for pair in held]
        assert len(groups) == len(arrays.group_indices) - 1 == dataset.metadata(split).total_groups
        assert len(puzzles) == len(arrays.puzzle_identifiers)
        for field in ("inputs", "labels"):
            drawn = np.array([getattr(pair, field).reshape(-1) for pair in pairs])
            assert np.array_equal(drawn, getattr(arrays, field))
        assert pairs[0].inputs.shape == (side, side)
        names = [name for name, _ in puzzles]
        if kind == "arc":
            assert all(len({parse_id(name)[0] for name, _ in group}) == 1 for group in groups)
        else:
            assert set(names) == {"<blank>"}


def test_the_viewer_reads_domino_and_cannot_draw_it(tmp_path):
    built("domino", tmp_path)
    tokens = viewer.read_npy((tmp_path / "out/train/all__inputs.npy").read_bytes())
    assert tokens.shape[1] == 72
    with pytest.raises(AssertionError, match="only squares"):
        viewer.shown(tmp_path / "out", "train")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_the_largest_header_has_a_length_of_one_byte(dtype):
    for shape in ((2**31 - 1, 2**31 - 1), (2**31,), (0, 900), (1,)):
        header = npy_header(dtype, shape)
        assert viewer.header_fits(header)
        assert len(header) % 64 == 0, "numbers begin at a multiple of their size"
        assert header[:8] == b"\x93NUMPY\x01\x00"


METADATA = PuzzleDatasetMetadata(0, 0, 0, 6, 900, 1, 1000, 1, ("all",))
TEXT = (
    '{"pad_id": 0, "ignore_label_id": 0, "blank_identifier_id": 0, "vocab_size": 6, '
    '"seq_len": 900, "num_puzzle_identifiers": 1, "total_groups": 1000, '
    '"mean_puzzle_examples": 1.0, "sets": ["all"]}'
)


def test_the_files_are_those_of_the_original_and_are_read_again(tmp_path):
    path = tmp_path / "dataset.json"
    path.write_text(replace(METADATA, total_puzzles=4000).text())
    assert path.read_text() == TEXT[:-1] + ', "total_puzzles": 4000}'
    assert read_metadata(path).total_puzzles == 4000
    path.write_text(json.dumps({**json.loads(TEXT), "ignore_label_id": None, "extra": 1}))
    assert read_metadata(path) == PuzzleDatasetMetadata(0, None, 0, 6, 900, 1, 1000, 1.0, ("all",))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"seq_len": 0}, "at least 1"),
        ({"vocab_size": 0}, "at least 1"),
        ({"pad_id": -1}, "pad_id"),
        ({"pad_id": True}, "pad_id"),
        ({"total_groups": 2**31}, "total_groups"),
        ({"total_puzzles": None}, "total_puzzles"),
        ({"ignore_label_id": "0"}, "ignore_label_id"),
        ({"ignore_label_id": 2**31}, "ignore_label_id"),
        ({"mean_puzzle_examples": float("nan")}, "mean_puzzle_examples"),
        ({"mean_puzzle_examples": -1}, "mean_puzzle_examples"),
        ({"mean_puzzle_examples": 10**400}, "mean_puzzle_examples"),
        ({"sets": []}, "at least one"),
        ({"sets": ["a", "a"]}, "none twice"),
        ({"sets": ["../a"]}, "sets"),
        ({"sets": "all"}, "sets"),
        ({"sets": [["a"]]}, "sets"),
    ],
)
def test_a_value_that_cannot_be_is_refused(change, rule, tmp_path):
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({**json.loads(TEXT), **change}))
    with pytest.raises(BadInput, match=rule):
        read_metadata(path)


def test_a_missing_key_and_text_that_is_no_object_are_refused(tmp_path):
    path = tmp_path / "dataset.json"
    for text, rule in (("{}", "lacks the keys pad_id"), ("[]", "object"), ("{", "not JSON")):
        path.write_text(text)
        with pytest.raises(BadInput, match=rule):
            read_metadata(path)
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="larger than"):
        read_metadata(path)
