"""The laws of Domino name what was changed in a dataset."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.config import DominoConfig
from gristmill.puzzles.domains.domino_game import findings
from gristmill.puzzles.laws.domino import domino_laws


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("domino") / "out"
    build_domino(out, DominoConfig(num_games=60, num_aug=2))
    return out


def change(folder: Path, array: str, how: Callable[[np.ndarray], None]) -> None:
    values = np.load(folder / array)
    how(values)
    np.save(folder / array, values)


def found(folder: Path) -> list[tuple[str, str]]:
    return [(violation.law, violation.where) for violation in domino_laws(folder)]


@pytest.mark.parametrize("augmentation", ["modular", "reversal"])
@pytest.mark.parametrize("num_aug", [0, 2])
def test_a_dataset_without_a_trace_may_have_modular_augmentations(tmp_path, augmentation, num_aug):
    config = DominoConfig(num_games=60, num_aug=num_aug, augmentation=augmentation)
    build_domino(tmp_path / "out", config)
    shutil.rmtree(tmp_path / "out/trace")
    assert found(tmp_path / "out") == []
    for field in ("inputs", "labels"):
        change(
            tmp_path / "out", f"train/all__{field}.npy", lambda rows: rows.__setitem__(1, rows[7])
        )
    # Row 1 is a game of its own, or an augmentation of the first one.
    expected = ("distinct", "train/all row 7") if num_aug == 0 else ("group", "train/all row 1")
    assert found(tmp_path / "out") == [expected]


def test_without_a_trace_a_source_may_be_another_one_but_for_an_offset(tmp_path):
    out = tmp_path / "out"
    build_domino(out, DominoConfig(num_games=60, num_aug=2, augmentation="modular"))
    shutil.rmtree(out / "trace")
    inputs, labels = (np.load(out / f"train/all__{field}.npy") for field in ("inputs", "labels"))
    starts = np.load(out / "train/all__group_indices.npy")
    drawn = np.setdiff1d(np.arange(len(inputs)), starts)
    good = drawn[findings(inputs[drawn], labels[drawn]) == 0]
    change(out, "test/all__inputs.npy", lambda rows: rows.__setitem__(4, inputs[good[0]]))
    change(out, "test/all__labels.npy", lambda rows: rows.__setitem__(4, labels[good[0]]))
    assert {law for law, _ in found(out)} <= {"left_before_right"}


def test_a_broken_row_is_named_with_split_set_and_rule(copy):
    change(copy, "test/all__labels.npy", lambda labels: labels.__setitem__((7, 30), 1))
    assert found(copy) == [("label_tail_not_zero", "test/all row 7")]


def test_a_scenario_that_is_there_twice_is_named(copy):
    def double(values: np.ndarray) -> None:
        values[5] = values[3]

    change(copy, "test/all__inputs.npy", double)
    change(copy, "test/all__labels.npy", double)
    assert found(copy) == [("distinct", "test/all row 5")]


def test_a_test_scenario_that_training_has_is_named(copy):
    for field in ("inputs", "labels"):
        train = np.load(copy / f"train/all__{field}.npy")

        def leak(values: np.ndarray, train: np.ndarray = train) -> None:
            values[4] = train[1]  # an augmentation of the first game

        change(copy, f"test/all__{field}.npy", leak)
    listed = found(copy)
    assert ("leak", "test/all row 4") in listed
    assert {law for law, _ in listed} <= {"leak", "left_before_right"}


def test_an_augmentation_of_another_scenario_is_named(copy):
    for field in ("inputs", "labels"):
        test = np.load(copy / f"test/all__{field}.npy")

        def swap(values: np.ndarray, test: np.ndarray = test) -> None:
            values[1] = test[4]

        change(copy, f"train/all__{field}.npy", swap)
    assert found(copy) == [("group", "train/all row 1")]


def test_a_source_that_plays_on_the_right_what_fits_on_the_left_is_named(copy):
    """Ends 1 and 2, and the heaviest tile of the hand has both."""

    def write_inputs(values: np.ndarray) -> None:
        table = [(1, 3), (2, 3)]
        hand = [(1, 2), (0, 0), (4, 4), (5, 5), (6, 6)]
        values[2] = 0
        values[2, :4] = np.array(table).reshape(-1) + 1
        values[2, 56:66] = np.array(hand).reshape(-1) + 1
        values[2, 70:] = (2, 3)

    def write_labels(values: np.ndarray) -> None:
        values[2] = 0
        values[2, :3] = (2, 3, 2)

    change(copy, "test/all__inputs.npy", write_inputs)
    change(copy, "test/all__labels.npy", write_labels)
    assert found(copy) == [("left_before_right", "test/all row 2")]
    change(copy, "test/all__labels.npy", lambda labels: labels.__setitem__((2, 2), 1))
    assert found(copy) == []


def test_a_double_alone_has_its_label_on_the_left_in_augmentations_too(tmp_path):
    out = tmp_path / "out"
    build_domino(out, DominoConfig(num_games=400, num_aug=3))
    assert found(out) == []
    inputs = np.load(out / "train/all__inputs.npy")
    is_added = np.load(out / "trace/train/all.npy")[:, 2] > 0
    is_one = (inputs[:, 0] > 0) & (inputs[:, 2] == 0) & is_added
    double = int(np.flatnonzero(is_one & (inputs[:, 0] == inputs[:, 1]))[0])
    change(out, "train/all__labels.npy", lambda labels: labels.__setitem__((double, 2), 2))
    assert found(out) == [("left_before_right", f"train/all row {double}")]


def test_a_tile_that_fits_both_ends_may_be_on_the_right_after_a_turn(tmp_path):
    out = tmp_path / "out"
    build_domino(out, DominoConfig(num_games=2000, num_aug=3))
    assert found(out) == []
    inputs, labels = (np.load(out / f"train/all__{field}.npy") for field in ("inputs", "labels"))
    fits_left = (labels[:, :2] == inputs[:, 70, None]).any(axis=1)
    is_added = np.load(out / "trace/train/all.npy")[:, 2] > 0
    turned = fits_left & (labels[:, 2] == 2)
    assert turned.any() and not (turned & ~is_added).any()


def test_rules_that_an_offset_breaks_hold_for_the_sources_of_a_modular_dataset(tmp_path):
    out = tmp_path / "out"
    build_domino(out, DominoConfig(num_games=60, num_aug=3, augmentation="modular"))
    assert found(out) == []
    sources = json.loads((out / "trace/sources.json").read_text())
    sources["config"]["augmentation"] = "reversal"
    (out / "trace/sources.json").write_text(json.dumps(sources))
    assert {law for law, _ in found(out)} >= {"tile_not_low_high", "label_not_heaviest"}
    sources["config"]["augmentation"] = "modular"
    (out / "trace/sources.json").write_text(json.dumps(sources))
    change(out, "trace/train/all.npy", lambda origins: origins.__setitem__((..., 2), 0))
    assert {law for law, _ in found(out)} >= {"tile_not_low_high", "label_not_heaviest"}


def test_rows_of_another_length_and_missing_files_are_named(copy):
    for field in ("inputs", "labels"):
        path = copy / f"test/all__{field}.npy"
        np.save(path, np.load(path)[:2, :70])
    np.save(copy / "trace/test/all.npy", np.load(copy / "trace/test/all.npy")[:2])
    assert found(copy) == [
        ("seq_len_mismatch", "test/all row 0"),
        ("seq_len_mismatch", "test/all row 1"),
    ]
    (copy / "test/all__labels.npy").unlink()
    assert [law for law, _ in found(copy)] == ["readable"]


@pytest.mark.parametrize("value", [-5, 10**6])
def test_damaged_indices_are_left_to_the_contract(copy, value):
    change(copy, "train/all__group_indices.npy", lambda index: index.__setitem__(3, value))
    change(copy, "train/all__puzzle_indices.npy", lambda index: index.__setitem__(5, value))
    assert found(copy) == []
