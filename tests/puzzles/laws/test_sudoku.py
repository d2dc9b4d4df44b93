"""Laws of Sudoku datasets: each finds the damage that it is for, in the row where it is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.sudoku_symmetry import augmentation
from gristmill.puzzles.laws.contract import trace_laws
from gristmill.puzzles.laws.sudoku import sudoku_laws
from tests.puzzles import sudoku
from tests.puzzles.sudoku import applied, board_of

PAIRS = sudoku.pairs(0, 14)
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten groups of four in train, four puzzles in test."""
    folder = tmp_path_factory.mktemp("sudoku")
    drop = sudoku.write_drop(folder / "drop", PAIRS[:10], PAIRS[10:])
    build_sudoku(drop, folder / "out", SudokuConfig(num_aug=3))
    return folder / "out"


def _copy(built: Path, folder: Path, damage: Callable[[Arrays], None] = lambda _: None) -> Path:
    out = folder / "copy"
    shutil.copytree(built, out)
    names = {
        f"{split}/{field}": out / split / f"all__{field}.npy"
        for split in ("train", "test")
        for field in ("inputs", "labels")
    }
    names |= {f"{split}/origins": out / "trace" / split / "all.npy" for split in ("train", "test")}
    arrays = {name: np.load(path) for name, path in names.items()}
    damage(arrays)
    for name, path in names.items():
        np.save(path, arrays[name])
    return out


def _found(out: Path) -> set[tuple[str, str]]:
    return {(violation.law, violation.where) for violation in sudoku_laws(out)}


def _clue(name: str, row: int, blank: bool = False) -> Callable[[Arrays], int]:
    """The first cell of an example with a clue, or without one."""

    def cell(arrays: Arrays) -> int:
        return int(np.argmax((arrays[name][row] > 1) != blank))

    return cell


@pytest.mark.parametrize("token", [0, 11, -1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tokens_outside_of_the_vocabulary_are_found(built, tmp_path, token, dtype):
    def damage(arrays: Arrays) -> None:
        for name, row, cell in (("test/labels", 2, 40), ("train/inputs", 39, 80)):
            arrays[name] = arrays[name].astype(dtype)
            arrays[name][row, cell] = token

    found = _found(_copy(built, tmp_path, damage))
    assert ("label_out_of_vocab", "test/all row 2") in found
    assert ("input_out_of_vocab", "train/all row 39") in found


def _no_digit(arrays: Arrays) -> None:
    arrays["train/labels"][5, _clue("train/inputs", 5, blank=True)(arrays)] = 1


def _other_clue(arrays: Arrays) -> None:
    cell = _clue("train/inputs", 6)(arrays)
    arrays["train/inputs"][6, cell] = 2 + (arrays["train/inputs"][6, cell] - 1) % 9


def _no_clue(arrays: Arrays) -> None:
    arrays["train/inputs"][9, _clue("train/inputs", 9)(arrays)] = 1


def _repeated(arrays: Arrays) -> None:
    symmetry = augmentation(1, PAIRS[4][0], 1)
    for which, field in enumerate(("inputs", "labels")):
        arrays[f"test/{field}"][1] = arrays[f"test/{field}"][0]
        arrays[f"test/{field}"][3] = applied(symmetry, board_of(PAIRS[4][which])) + 1


def _shorter(arrays: Arrays) -> None:
    for name in ("test/inputs", "test/labels"):
        arrays[name] = arrays[name][:, :80]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_no_digit, {("label_digit_out_of_range", "train/all row 5")}),
        (_other_clue, {("clue_mismatch", "train/all row 6")}),
        (_no_clue, {("clues_differ", "train/all row 9")}),
        (_repeated, {("duplicate", "test/all row 1"), ("leak", "test/all row 3")}),
        (_shorter, {("seq_len_mismatch", "test/all")}),
    ],
)
def test_damage_is_found_by_its_law_alone(built, tmp_path, damage, expected):
    assert _found(_copy(built, tmp_path, damage)) == expected


def test_a_repeated_digit_is_found_in_row_column_and_box(built, tmp_path):
    def damage(arrays: Arrays) -> None:
        labels, inputs = arrays["train/labels"][6], arrays["train/inputs"][6]
        cell = next(k for k in range(27, 81) if inputs[k] == 1)
        labels[cell] = 2 + (labels[cell] - 1) % 9
        damaged.append(cell)

    damaged: list[int] = []
    found = _found(_copy(built, tmp_path, damage))
    i, j = divmod(damaged[0], 9)
    assert found == {
        (f"row_dup_{i}", "train/all row 6"),
        (f"col_dup_{j}", "train/all row 6"),
        (f"box_dup_{i // 3}_{j // 3}", "train/all row 6"),
    }


def test_exchanged_rows_are_found_in_columns_and_boxes_alone(built, tmp_path):
    def damage(arrays: Arrays) -> None:
        grid = arrays["test/labels"][1].reshape(9, 9)
        grid[[2, 3]] = grid[[3, 2]]
        arrays["test/inputs"][1] = np.where(arrays["test/inputs"][1] > 1, grid.reshape(81), 1)

    laws = {law for law, _ in _found(_copy(built, tmp_path, damage))}
    assert {name for name in laws if "dup" in name} == {
        f"box_dup_{band}_{stack}" for band in (0, 1) for stack in range(3)
    }


def test_a_source_with_two_solutions_is_found(built, tmp_path):
    def damage(arrays: Arrays) -> None:
        arrays["test/inputs"][3] = 1

    out = _copy(built, tmp_path, damage)
    assert _found(out) == {("not_unique", "test/all row 3")}
    sources = json.loads((out / "trace/sources.json").read_text())
    sources["config"]["unique"] = "off"
    (out / "trace/sources.json").write_text(json.dumps(sources))
    assert _found(out) == set()


def test_the_origins_are_left_to_the_law_of_the_trace(built, tmp_path):
    def damage(arrays: Arrays) -> None:
        arrays["train/origins"][4, 2] = 1
        arrays["train/origins"][5, 1] += 1
        arrays["test/origins"][2, 0] = 2

    out = _copy(built, tmp_path, damage)
    assert _found(out) == set()
    assert [violation.where for violation in trace_laws(out)] == [
        "trace/train/all.npy row 4",
        "trace/train/all.npy row 5",
        "trace/test/all.npy row 2",
    ]


@pytest.mark.parametrize("together", [1, 4, 4096])
def test_rows_are_compared_with_a_source_in_an_earlier_batch(tmp_path, monkeypatch, together):
    drop = sudoku.write_drop(tmp_path / "drop", PAIRS[:3], PAIRS[10:])
    build_sudoku(drop, tmp_path / "out", SudokuConfig(num_aug=9))
    monkeypatch.setattr("gristmill.puzzles.laws.sudoku._TOGETHER", together)
    assert _found(tmp_path / "out") == set()
    assert _found(_copy(tmp_path / "out", tmp_path, _no_clue)) == {
        ("clues_differ", "train/all row 9")
    }


def test_another_encoding_and_names_are_found(built, tmp_path):
    out = _copy(built, tmp_path)
    metadata = json.loads((out / "train/dataset.json").read_text())
    metadata |= {"ignore_label_id": 3, "vocab_size": 16}
    (out / "train/dataset.json").write_text(json.dumps(metadata))
    identifiers = np.load(out / "test/all__puzzle_identifiers.npy")
    identifiers[1] = 1
    np.save(out / "test/all__puzzle_identifiers.npy", identifiers)
    found = [*sudoku_laws(out)]
    assert [violation.found for violation in found[:2]] == [
        "vocab_size is 16, must be 11",
        "ignore_label_id is 3, must be 0",
    ]
    assert {(each.law, each.where) for each in found[2:]} == {
        ("identifier", "test/all__puzzle_identifiers.npy entry 1")
    }


def test_a_damaged_file_is_found(built, tmp_path):
    out = _copy(built, tmp_path)
    (out / "trace/sources.json").write_text("x")
    assert {law for law, _ in _found(out)} == {"readable"}
