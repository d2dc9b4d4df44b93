"""The laws of Sudoku, Domino, mazes and grids against small datasets, changed one by one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.grid import build_grid
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import DominoConfig, GridConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.domains.domino_game import findings
from gristmill.puzzles.domains.sudoku_symmetry import augmentation
from gristmill.puzzles.laws.contract import trace_laws
from gristmill.puzzles.laws.games import domino_laws, grid_laws, maze_laws, sudoku_laws
from tests.puzzles import grids, sudoku
from tests.puzzles.plain_mazes import maze, write_csv
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
    monkeypatch.setattr("gristmill.puzzles.laws.games._TOGETHER", together)
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


@pytest.fixture(scope="module")
def of_grids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grids")
    rows = [grids.row(k, 2 + k % 2, 3, group=f"g{k // 2}", puzzle=f"p{k}") for k in range(4)]
    source = grids.write(folder / "mine/train.jsonl", rows)
    grids.write(source / "test.jsonl", [grids.row(9, 3, 3, puzzle="q"), grids.row(8, puzzle="r")])
    build_grid(source, folder / "out", GridConfig(values=4, dihedral=True, identifiers=True))
    return folder / "out"


@pytest.fixture
def grid_copy(of_grids: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_grids, tmp_path / "copy"))


def _set(name: str, place: Any, value: int) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        array = np.load(folder / f"{name}.npy")
        array[place] = value
        np.save(folder / f"{name}.npy", array)

    return apply


def _copied(field: str, row: int, source: int) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        array = np.load(folder / f"train/all__{field}.npy")
        array[row] = array[source]
        np.save(folder / f"train/all__{field}.npy", array)

    return apply


def _json(name: str, **values: Any) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        read = json.loads((folder / name).read_text())
        read.get("config", read).update(values)
        (folder / name).write_text(json.dumps(read))

    return apply


def _leak(folder: Path) -> None:
    for field in ("inputs", "labels"):
        trained = np.load(folder / f"train/all__{field}.npy")
        tested = np.load(folder / f"test/all__{field}.npy")
        tested[0] = trained[3]  # a symmetry of the first puzzle
        np.save(folder / f"test/all__{field}.npy", tested)


def _renamed(folder: Path) -> None:
    listed = json.loads((folder / "identifiers.json").read_text())
    listed[2] = "other"
    (folder / "identifiers.json").write_text(json.dumps(listed))


@pytest.mark.parametrize(
    ("change", "law", "place"),
    [
        (_set("train/all__inputs", (0, 0), 0), "border", "train/all row 0"),
        (_set("test/all__labels", (1, 8), 2), "border", "test/all row 1"),
        (_set("test/all__labels", (0, slice(None)), 0), "border", "test/all row 0"),
        (_copied("inputs", 5, 4), "symmetry", "train/all row 5"),
        (_copied("labels", 7, 6), "symmetry", "train/all row 7"),
        (_set("trace/train/all", (3, 2), 4), "group", "train/all"),
        (_set("train/all__group_indices", 1, 15), "group", "train/all"),
        (_set("train/all__puzzle_identifiers", 1, 4), "identifier", "train/all puzzle 1"),
        (_set("train/all__puzzle_identifiers", 0, 0), "identifier", "train/all puzzle 0"),
        (_renamed, "identifier", "train/all puzzle 1"),
        (_leak, "leak", "test/all row 0"),
        (_json("train/dataset.json", vocab_size=6), "encoding", "vocab_size"),
        (_json("trace/sources.json", height=2), "encoding", "seq_len"),
        (_json("trace/sources.json", identifiers=False), "identifier", "must hold <blank> alone"),
    ],
)
def test_what_breaks_a_rule_is_found(grid_copy, change, law, place):
    assert list(grid_laws(grid_copy)) == []
    change(grid_copy)
    found = list(grid_laws(grid_copy))
    assert any(each.law == law and place in str(each) for each in found), list(map(str, found))


def test_padding_within_a_grid_is_no_finding_where_a_cell_may_be_padding(tmp_path):
    row = {"input": ["a.b", "..a"], "output": [".b"]}
    source = grids.write(tmp_path / "mine/train.jsonl", [row])
    grids.write(source / "test.jsonl", [{"input": ["ab"], "output": ["b"]}])
    build_grid(source, tmp_path / "out", GridConfig(alphabet="ab.", pad=".", dihedral=True))
    assert list(grid_laws(tmp_path / "out")) == []


def test_groups_have_several_sources_only_in_their_kind(grid_copy):
    assert list(trace_laws(grid_copy)) == []
    _set("trace/train/all", (9, 1), 7)(grid_copy)  # a symmetry of the second puzzle of its group
    assert "row 9" in str(next(iter(trace_laws(grid_copy))))
    path = grid_copy / "trace/sources.json"
    path.write_text(path.read_text().replace('"kind": "grid"', '"kind": "maze"'))
    assert "begins with draw 0" in " ".join(map(str, trace_laws(grid_copy)))


@pytest.fixture(scope="module")
def mazes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("maze"), Random(6)
    (folder / "drop").mkdir()
    for split, count in (("train", 12), ("test", 30)):
        write_csv(folder / "drop" / f"{split}.csv", [maze(random, 7) for _ in range(count)])
    build_maze(folder / "drop", folder / "out", MazeConfig(aug=True))
    return folder / "out"


@pytest.fixture
def maze_copy(mazes: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(mazes, tmp_path / "mazes"))


def wrong_in(folder: Path) -> list[tuple[str, str]]:
    return [(violation.law, violation.where) for violation in maze_laws(folder)]


def test_a_broken_grid_is_named_with_split_set_and_rule(maze_copy):
    def add_start(inputs: np.ndarray) -> None:
        inputs[4, np.flatnonzero(inputs[4] == 1)[0]] = 3

    change(maze_copy, "test/all__inputs.npy", add_start)
    assert wrong_in(maze_copy) == [
        ("one_start", "test/all row 4"),
        ("label_changes_cell", "test/all row 4"),
    ]


@pytest.mark.parametrize("field", ["inputs", "labels"])
@pytest.mark.parametrize("symmetry", [1, 7])
def test_a_symmetry_that_differs_in_one_token_is_named(maze_copy, field, symmetry):
    row = 3 * 8 + symmetry

    def differ(tokens: np.ndarray) -> None:
        tokens[row, 48] = 6 - tokens[row, 48] or 1

    change(maze_copy, f"train/all__{field}.npy", differ)
    assert wrong_in(maze_copy) == [("group", f"train/all row {row}")]


def test_symmetries_in_another_order_are_named(maze_copy):
    def exchange(values: np.ndarray) -> None:
        values[[1, 3]] = values[[3, 1]]

    for field in ("inputs", "labels"):
        change(maze_copy, f"train/all__{field}.npy", exchange)
    assert wrong_in(maze_copy) == [("group", "train/all row 1"), ("group", "train/all row 3")]


def test_a_maze_that_is_there_twice_or_in_both_splits_is_named(maze_copy):
    for field in ("inputs", "labels"):
        turned = np.load(maze_copy / f"train/all__{field}.npy")[8 + 5]

        def put(values: np.ndarray, turned: np.ndarray = turned) -> None:
            values[9] = values[2]
            values[20] = turned

        change(maze_copy, f"test/all__{field}.npy", put)
    assert wrong_in(maze_copy) == [("distinct", "test/all row 9"), ("leak", "test/all row 20")]


def test_groups_of_another_size_and_other_draws_are_named(maze_copy):
    change(maze_copy, "trace/train/all.npy", lambda origins: origins.__setitem__((9, 2), 0))
    assert wrong_in(maze_copy) == [("group", "trace/train/all.npy")]
    change(maze_copy, "train/all__group_indices.npy", lambda index: index.__setitem__(1, 7))
    assert wrong_in(maze_copy) == [("group", "train/all__group_indices.npy")]


def test_rows_of_no_square_and_missing_files_are_named(maze_copy):
    for field in ("inputs", "labels"):
        path = maze_copy / f"test/all__{field}.npy"
        np.save(path, np.load(path)[:, :48])
    assert wrong_in(maze_copy) == [("not_square", "test/all")]
    (maze_copy / "test/all__labels.npy").unlink()
    assert [law for law, _ in wrong_in(maze_copy)] == ["readable"]


def test_no_groups_of_eight_are_asked_for_without_augmentation(mazes, tmp_path):
    out = tmp_path / "out"
    build_maze(mazes.parent / "drop", out, MazeConfig(dtype="uint8"))
    assert wrong_in(out) == []
