"""The contract, and what augmentation may not change: what breaks them is found, nothing else."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gristmill import laws
from gristmill.contract import Summary, Violation, counts_of
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.dataset import Plan, build_dataset
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, SudokuConfig
from gristmill.puzzles.format import SOURCES
from gristmill.puzzles.format.dataset import Batch, Encoding, Sets, SourceFile
from gristmill.puzzles.laws import contract
from gristmill.puzzles.laws.contract import (
    augmentation_law,
    contract_laws,
    puzzle_notes,
    rows_left_out,
    trace_laws,
)
from gristmill.puzzles.laws.games import domino_laws
from gristmill.puzzles.read import rows
from tests.paths import REAL_DATA
from tests.puzzles import arc_tasks
from tests.puzzles import sudoku as sudokus
from tests.puzzles.read.folders import write_split
from tests.puzzles.toy import ToyConfig, plan


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    build_dataset(plan(), tmp_path / "out")
    return tmp_path / "out"


def _array(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        array = np.load(folder / name)
        np.save(folder / name, change(array))

    return apply


def _set(name: str, place: Any, value: int) -> Callable[[Path], None]:
    def change(array: Any) -> Any:
        array[place] = value
        return array

    return _array(name, change)


def _metadata(split: str, **values: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / split / "dataset.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return apply


def _identifiers(*listed: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "identifiers.json").write_text(json.dumps(listed)) and None


NAMES = ["<blank>", *(f"p{k}" for k in range(12))]


@pytest.mark.parametrize(
    ("change", "law", "found"),
    [
        (_set("train/all__inputs.npy", (17, 4), 10), "tokens", "row 17"),
        (_set("train/all__labels.npy", (0, 0), -1), "tokens", "row 0"),
        (_set("test/all__labels.npy", (2, 4), 10), "tokens", "row 2"),
        (_set("train/all__labels.npy", (17, 4), 10), "tokens", "outside of 0 to 9"),
        (_set("train/all__labels.npy", (3, slice(None)), 0), "loss", "train/all__labels.npy row 3"),
        (_set("test/all__labels.npy", (2, slice(None)), 0), "loss", "ignore_label_id, 0"),
        (_set("train/all__puzzle_indices.npy", 0, 1), "indices", "goes from 1 to 18"),
        (
            _set("train/all__puzzle_indices.npy", -1, 17),
            "indices",
            "expected 0 to 18, the number of examples",
        ),
        (_set("train/all__puzzle_indices.npy", 1, 3), "indices", "entry 2"),
        (_set("train/all__group_indices.npy", 6, 11), "indices", "expected 0 to 12"),
        (_set("train/all__puzzle_identifiers.npy", 0, 13), "identifiers", "0 to 12"),
        (_set("train/all__puzzle_identifiers.npy", 0, -1), "identifiers", "0 to 12"),
        (_array("train/all__group_indices.npy", lambda a: a.astype(np.int64)), "dtype", "int64"),
        (_array("train/all__inputs.npy", lambda a: a.astype(np.int64)), "dtype", "int64"),
        (_array("train/all__inputs.npy", lambda a: a.astype(">i4")), "dtype", ">i4"),
        (_array("test/all__puzzle_indices.npy", lambda a: a.astype(">i4")), "dtype", ">i4"),
        (_array("train/all__inputs.npy", lambda a: a[:, :4]), "readable", "another shape"),
        (_array("train/all__inputs.npy", lambda a: a.astype(float)), "readable", "integers"),
        (_array("train/all__inputs.npy", lambda a: a.ravel()), "readable", "dimensions"),
        (_array("train/all__puzzle_indices.npy", lambda a: a[:-1]), "readable", "one entry more"),
        (_metadata("train", total_groups=5), "metadata", "total_groups 5, not 6"),
        (_metadata("train", total_puzzles=6), "metadata", "total_puzzles 6, not 12"),
        (_metadata("train", mean_puzzle_examples=1.0), "metadata", "mean_puzzle_examples 1.0"),
        (_metadata("test", seq_len=6), "splits_agree", "5 in train, 6 in test"),
        (_metadata("test", pad_id=1), "splits_agree", "0 in train, 1 in test"),
        (_metadata("test", ignore_label_id=None), "splits_agree", "None in test"),
        (_metadata("train", sets=["none"]), "readable", "missing"),
        (_identifiers("<blank>", "p0"), "identifiers", "2 names"),
        (_identifiers(*NAMES[1:], "x"), "identifiers", "begin with"),
        (_identifiers(*NAMES[:-1], "p0"), "identifiers", "twice"),
        (lambda folder: (folder / "test/dataset.json").unlink(), "readable", "missing"),
        (lambda folder: (folder / "identifiers.json").write_text("{"), "readable", "JSON"),
        (lambda folder: (folder / "train/all__inputs.npy").unlink(), "readable", "missing"),
    ],
)
def test_what_breaks_the_contract_is_found(change, law, found, dataset):
    assert list(contract_laws(dataset)) == []
    change(dataset)
    violations = list(contract_laws(dataset))
    assert law in {violation.law for violation in violations}
    assert any(found in str(violation) for violation in violations if violation.law == law)


def test_a_cut_or_damaged_file_is_found(dataset):
    path = dataset / "train/all__inputs.npy"
    whole = path.read_bytes()
    broken = (
        whole[:-1],
        whole[:40],
        b"",
        b"x" * 8000,
        whole.replace(b"i4", b"O4"),
        b"PK\x03\x04" + bytes(99),
        whole.replace(b"'<i4'", b"'<i4 "),
    )
    for text in broken:
        path.write_bytes(text)
        assert [violation.law for violation in contract_laws(dataset)] == ["readable"]


def _laws(dataset: Path) -> list[str]:
    return [violation.law for violation in contract_laws(dataset)]


def _ignore(dataset: Path, value: int | None) -> None:
    for split in ("train", "test"):
        _metadata(split, ignore_label_id=value)(dataset)


def test_the_first_rows_without_loss_of_each_set_are_named_and_the_others_counted(
    dataset, monkeypatch
):
    monkeypatch.setattr(rows, "_BATCH_BYTES", 2 * 5 * 4)  # two rows
    monkeypatch.setattr(laws, "MOST", 2)
    monkeypatch.setattr(contract, "MOST", 2)
    for row in (5, 6, 7, 17):
        _set("train/all__labels.npy", (row, slice(None)), 0)(dataset)
    _set("train/all__inputs.npy", (9, 0), 10)(dataset)
    _set("train/all__inputs.npy", (3, slice(None)), 0)(dataset)
    found = [str(violation) for violation in contract_laws(dataset)]
    assert found == [
        "train/all__labels.npy row 5: loss: has no loss: every label is ignore_label_id, 0",
        "train/all__labels.npy row 6: loss: has no loss: every label is ignore_label_id, 0",
        "train/all: loss: 2 more rows",
        "train/all__inputs.npy row 9: tokens: has a token outside of 0 to 9",
    ]


def test_one_label_with_loss_is_enough_and_without_an_ignored_one_all_have(dataset):
    _set("train/all__labels.npy", (3, slice(0, 4)), 0)(dataset)
    assert _laws(dataset) == []
    _set("train/all__labels.npy", (3, slice(None)), 0)(dataset)
    _ignore(dataset, None)
    assert _laws(dataset) == []
    _set("train/all__labels.npy", (3, slice(None)), 7)(dataset)
    _ignore(dataset, 7)
    assert _laws(dataset) == ["loss"]


@pytest.mark.parametrize("ignored", [-100, 200])
def test_a_label_outside_of_the_vocabulary_may_be_the_ignored_one_alone(dataset, ignored):
    _ignore(dataset, ignored)
    assert _laws(dataset) == []
    _set("train/all__labels.npy", (3, slice(0, 2)), ignored)(dataset)
    assert _laws(dataset) == []
    for near in (ignored - 1, ignored + 1, 10, -1):
        _set("train/all__labels.npy", (4, 0), near)(dataset)
        assert _laws(dataset) == ["tokens"]
    _set("train/all__labels.npy", (4, 0), 9)(dataset)
    _set("train/all__inputs.npy", (4, 0), ignored)(dataset)
    assert _laws(dataset) == ["tokens"], "an input is never ignored"


def test_a_set_without_an_example_is_found(dataset):
    for field in ("inputs", "labels"):
        _array(f"train/all__{field}.npy", lambda a: a[:0])(dataset)
    _array("trace/train/all.npy", lambda a: a[:0])(dataset)
    _array("train/all__puzzle_identifiers.npy", lambda a: a[:0])(dataset)
    for field in ("puzzle_indices", "group_indices"):
        _array(f"train/all__{field}.npy", lambda a: a[:1])(dataset)
    _metadata("train", total_groups=0, mean_puzzle_examples=0.0, total_puzzles=0)(dataset)
    assert [str(violation) for violation in contract_laws(dataset)] == [
        "train/all__inputs.npy: examples: has no example"
    ]
    assert not [violation for violation in trace_laws(dataset) if "train" in violation.where]


def test_what_trm_writes_is_accepted_without_a_trace(dataset):
    shutil.rmtree(dataset / "trace")
    _array("train/all__inputs.npy", lambda a: a.astype(np.int64))(dataset)
    _metadata("train", total_puzzles=6)(dataset)  # its groups
    for split in ("train", "test"):
        _metadata(split, num_puzzle_identifiers=15)(dataset)
    _identifiers("<blank>", *NAMES, "<blank>")(dataset)
    assert list(contract_laws(dataset)) == []
    _metadata("train", total_puzzles=7)(dataset)
    assert _laws(dataset) == ["metadata"]
    _array("train/all__inputs.npy", lambda a: a.astype(np.int16))(dataset)
    assert "int16, expected uint8 or int32 or int64" in str(list(contract_laws(dataset)))


def test_a_dataset_of_hrm_need_not_say_its_puzzles(dataset):
    path = dataset / "train/dataset.json"
    described = json.loads(path.read_text())
    assert list(described)[-1] == "total_puzzles" and described.pop("total_puzzles") == 12
    path.write_text(json.dumps(described))
    assert list(contract_laws(dataset)) == []


def test_the_name_of_the_original_domino_builder_is_accepted_without_a_trace(tmp_path):
    out = tmp_path / "games"
    build_domino(out, DominoConfig(num_games=20))
    _identifiers("<domino_game>")(out)
    assert [violation.law for violation in contract_laws(out)] == ["identifiers"]
    shutil.rmtree(out / "trace")
    assert list(contract_laws(out)) == []
    for listed in (["<other>"], ["<domino_game>", "<blank>"], []):
        _identifiers(*listed)(out)
        assert "identifiers" in {violation.law for violation in contract_laws(out)}


@pytest.fixture(scope="module")
def dominoes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dominoes") / "out"
    build_domino(out, DominoConfig(num_games=20))
    return out


@pytest.mark.parametrize(
    ("key", "value"),
    [("ignore_label_id", 3), ("ignore_label_id", None), ("pad_id", 1), ("vocab_size", 13)],
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_number_of_another_kind_is_found(split, key, value, dominoes):
    assert list(domino_laws(dominoes)) == []
    path = dominoes / split / "dataset.json"
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), key: value}))
    try:
        (found,) = domino_laws(dominoes)
    finally:
        path.write_text(whole)
    assert (found.law, found.where) == ("encoding", f"{split}/dataset.json")
    assert found.found.startswith(f"{key} is {value}, must be ")


@pytest.mark.parametrize("value", [1, -1])
def test_a_named_puzzle_is_found(value, dominoes):
    path = dominoes / "test/all__puzzle_identifiers.npy"
    whole = np.load(path)
    named = whole.copy()
    named[5] = value
    np.save(path, named)
    try:
        (found,) = domino_laws(dominoes)
    finally:
        np.save(path, whole)
    assert (found.law, found.where.rpartition("/")[2]) == (
        "identifier",
        "all__puzzle_identifiers.npy entry 5",
    )
    names = dominoes / "identifiers.json"
    names.write_text('["<blank>", "one"]')
    try:
        assert [each.law for each in domino_laws(dominoes)] == ["identifier"]
    finally:
        names.write_text('["<blank>"]')


def _make(split: str) -> dict[Sets, Batch]:
    """Two groups: three puzzles of two examples, and two puzzles of one."""
    tokens = np.ones((8, 2), np.uint8)
    origins = [
        [0, 4, 0],
        [0, 5, 0],
        [0, 4, 2],
        [0, 5, 2],
        [0, 4, 7],
        [0, 5, 7],
        [1, 0, 0],
        [1, 0, 1],
    ]
    return {
        (split, "all"): Batch(
            tokens,
            tokens,
            np.array(origins, np.int32),
            examples=np.array([2, 2, 2, 1, 1], np.int32),
            puzzles=np.array([3, 2], np.int32),
        )
    }


@pytest.fixture
def traced_dataset(tmp_path: Path) -> Path:
    files = [SourceFile(f"toy/{name}", "00" * 32) for name in "ab"]
    tasks = [(split, split) for split in ("train", "test")]
    plan = Plan("toy", Encoding(2, 2), ToyConfig(), tasks, _make, files)
    build_dataset(plan, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("row", "column", "value", "found"),
    [
        (7, 0, 2, "not one of 2"),
        (7, 0, -1, "not one of 2"),
        (7, 1, -1, "negative"),
        (6, 2, -1, "negative"),
        (3, 2, 3, "its puzzle has another draw"),
        (5, 0, 1, "its group has another file"),
        (5, 1, 4, "has another row"),
        (6, 2, 1, "begins with draw 0"),
        (7, 2, 0, "has a later one"),
    ],
)
def test_a_wrong_origin_is_found(row, column, value, found, traced_dataset):
    assert list(trace_laws(traced_dataset)) == []
    path = traced_dataset / "trace/train/all.npy"
    origins = np.load(path)
    origins[row, column] = value
    np.save(path, origins)
    violations = list(trace_laws(traced_dataset))
    assert any(found in violation.found for violation in violations)
    assert all(violation.where.startswith("trace/train/all.npy row ") for violation in violations)


def test_puzzles_of_other_sizes_in_a_group_are_found(traced_dataset):
    np.save(
        traced_dataset / "train/all__puzzle_indices.npy", np.array([0, 2, 3, 6, 7, 8], np.int32)
    )
    assert any("other sizes" in violation.found for violation in trace_laws(traced_dataset))


def test_a_missing_trace_is_found(traced_dataset):
    (traced_dataset / "trace/train/all.npy").unlink()
    assert [violation.found for violation in trace_laws(traced_dataset)] == ["is missing"]
    (traced_dataset / "trace/sources.json").unlink()
    (violation,) = trace_laws(traced_dataset)
    assert (violation.law, violation.found) == (
        "readable",
        f"{traced_dataset / 'trace/sources.json'}: is missing",
    )


def noted(out: Path, summary: Summary) -> list[Violation]:
    record = SimpleNamespace(counts=counts_of(summary))
    return [*puzzle_notes(out), *rows_left_out(cast(Any, record), out)]


def test_equal_tasks_are_counted_and_named(tmp_path):
    task = arc_tasks.task(3)
    turned = {"test": task["test"], "train": task["train"][::-1]}
    other = {"test": task["test"], "train": task["train"][:1]}
    tasks = {"training/a": task, "training/b": turned, "training/c": other}
    source = arc_tasks.write(tmp_path / "arc", {**tasks, "evaluation/d": arc_tasks.task(4)})
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=1))
    assert (summary.tasks, summary.equal_tasks) == (4, 1)
    found = "1 tasks have the pairs of an earlier one: arc/training/b.json = arc/training/a.json"
    assert noted(tmp_path / "out", summary) == [Violation("equal_tasks", SOURCES, found)]


def test_without_equal_tasks_nothing_is_noted(tmp_path):
    source = arc_tasks.source(tmp_path / "arc")
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=2))
    assert summary.equal_tasks == 0 and summary.duplicates_removed >= 0
    assert noted(tmp_path / "out", summary) == []
    (tmp_path / "out" / SOURCES).write_text("{}")
    assert [note.law for note in puzzle_notes(tmp_path / "out")] == ["sources"]


def test_the_one_equal_task_of_the_real_arc_is_named(tmp_path):
    source = tmp_path / "arc_agi"
    for name in ("training/40853293.json", "evaluation/070dd51e.json"):
        real = REAL_DATA / "puzzles" / "arc" / name
        if not real.exists():
            pytest.skip(f"no real data at {real} (GRISTMILL_REAL_DATA)")
        (source / name).parent.mkdir(parents=True)
        (source / name).write_bytes(real.read_bytes())
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=1))
    assert (summary.equal_tasks, summary.known_leaks) == (1, 1)
    (note,) = noted(tmp_path / "out", summary)
    assert "training/40853293.json = arc_agi/evaluation/070dd51e.json" in note.found


def test_repeated_rows_are_counted_and_the_first_of_each_file_is_named(tmp_path):
    pairs = sudokus.pairs(0, 6)
    train, test = pairs[:3], pairs[3:]
    source = sudokus.write_drop(
        tmp_path / "drop", [*train, train[2], train[0], train[0]], [*test, test[1]]
    )
    summary = build_sudoku(source, tmp_path / "out", SudokuConfig())
    assert summary.duplicates_removed == 4
    assert summary.first_repeats == {"drop/test.csv": 5, "drop/train.csv": 5}
    found = (
        "4 rows repeat an earlier one of their split, and are left out; the first of each file:"
        " drop/train.csv line 5, drop/test.csv line 5"
    )
    assert noted(tmp_path / "out", summary) == [Violation("repeated_puzzles", SOURCES, found)]


def test_ambiguous_rows_that_are_dropped_are_counted_and_named():
    counts = {"ambiguous_dropped": 1, "first_ambiguous/drop/train.csv": 5}
    (note,) = rows_left_out(cast(Any, SimpleNamespace(counts=counts)), Path())
    assert note.law == "ambiguous_puzzles" and note.where == SOURCES
    assert note.found == (
        "1 rows have another number of solutions than one, and are left out; the first of each"
        " file: drop/train.csv line 5"
    )


def test_the_first_repeat_of_a_bank_is_that_of_both_splits(tmp_path):
    lines = [question for question, _ in sudokus.pairs(0, 12)]
    (tmp_path / "bank").mkdir()
    for shift in range(6):  # the first repeat is one of either split
        again = [*lines[shift:], *lines[:shift]]
        (tmp_path / "bank" / "b.txt").write_text("\n".join([*lines, *again]))
        out = tmp_path / f"out{shift}"
        summary = build_sudoku(tmp_path / "bank", out, SudokuConfig(test_share=0.5))
        assert summary.duplicates_removed == 12
        assert summary.first_repeats == {"bank/b.txt": 13}
    assert min(summary.groups.values()) > 0


CONTROL, SEPARATOR = 0, 7


def write(folder: Path, groups: Sequence[int], ignored: int | None = 0) -> Path:
    """Groups of so many rows: a control field, a separator, two tokens, padding."""
    for seed, split in enumerate(("train", "test")):
        root = write_split(folder / split, groups=1, most_puzzles=1, ignore_label_id=ignored)
        chance = np.random.default_rng(seed)
        group = np.repeat(np.arange(len(groups)), groups)
        count = len(group)
        tokens = np.zeros((count, 6), np.uint8)
        tokens[:, 0] = group % 5 + 1
        tokens[:, 1] = SEPARATOR
        tokens[:, 2:4] = chance.integers(1, 6, (count, 2))
        arrays = {
            "inputs": tokens,
            "labels": tokens,
            "puzzle_identifiers": np.zeros(count, np.int32),
            "puzzle_indices": np.arange(count + 1, dtype=np.int32),
            "group_indices": np.append(0, np.cumsum(groups)).astype(np.int32),
        }
        for field, array in arrays.items():
            np.save(root / split / f"all__{field}.npy", array)
    return folder


def change(folder: Path, field: str, row: Any, column: int, token: int) -> None:
    path = folder / f"train/all__{field}.npy"
    array = np.load(path)
    array[row, column] = token
    np.save(path, array)


def found(folder: Path, **options: Any) -> list[str]:
    usual = {"fixed": [CONTROL], "separators": [SEPARATOR]}
    return [str(each) for each in augmentation_law(folder, **{**usual, **options})]


GROUPS = [3, 1, 4, 2]


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 5, 100])
def test_a_row_is_compared_with_the_first_of_its_group(tmp_path, monkeypatch, rows_at_once):
    monkeypatch.setattr(rows, "_BATCH_BYTES", rows_at_once * 6)
    folder = write(tmp_path, GROUPS)
    assert found(folder) == []
    change(folder, "inputs", 7, 0, 6)
    assert found(folder) == [
        "train/all__inputs.npy row 7: augmentation: a control field of the inputs differs from the"
        " group's first row"
    ]
    change(folder, "inputs", slice(4, 8), 0, 6)
    assert found(folder) == []


@pytest.mark.parametrize(
    ("field", "column", "token", "what"),
    [
        ("inputs", 0, 6, "a control field of the inputs"),
        ("labels", 0, 6, "a control field of the labels"),
        ("inputs", 1, 1, "a separator"),
        ("inputs", 2, SEPARATOR, "a separator"),
        ("inputs", 5, 1, "padding"),
        ("inputs", 3, 0, "padding"),
        ("labels", 3, 0, "a label without loss"),
        ("labels", 5, 1, "a label without loss"),
    ],
)
def test_each_rule_is_checked_in_every_row_of_a_group(tmp_path, field, column, token, what):
    folder = write(tmp_path, GROUPS)
    for row in (2, 6, 9):
        change(folder, field, row, column, token)
    listed = found(folder)
    assert [text.split(":")[0].split()[-1] for text in listed] == ["2", "6", "9"]
    assert all(what in text for text in listed)


def test_other_tokens_may_change(tmp_path):
    folder = write(tmp_path, GROUPS)
    change(folder, "labels", 2, 2, 5)
    change(folder, "inputs", 2, 2, 5)
    change(folder, "labels", 2, 1, 5)
    assert found(folder) == []
    assert found(folder, fixed=[0, 1])[0].count("a control field of the labels") == 1


def test_no_label_is_without_loss_where_none_is_ignored(tmp_path):
    folder = write(tmp_path, GROUPS, ignored=None)
    change(folder, "labels", 2, 3, 0)
    assert found(folder) == []


def test_the_test_split_is_checked_too(tmp_path):
    folder = write(tmp_path, GROUPS)
    (folder / "train/all__inputs.npy").replace(folder / "kept.npy")
    np.save(folder / "train/all__inputs.npy", np.load(folder / "kept.npy"))
    path = folder / "test/all__inputs.npy"
    tokens = np.load(path)
    tokens[1, 0] = 6
    np.save(path, tokens)
    assert found(folder)[0].startswith("test/all__inputs.npy row 1: augmentation")


def test_a_mask_is_the_same_as_its_positions(tmp_path):
    folder = write(tmp_path, GROUPS)
    change(folder, "inputs", 2, 0, 6)
    mask = np.array([True, False, False, False, False, False])
    assert found(folder, fixed=mask) == found(folder) != []
    for wrong in (mask[1:], [6], [-1]):
        with pytest.raises(ValueError, match=r"tokens$"):
            found(folder, fixed=wrong)


def test_twenty_rows_are_named_and_the_rest_is_counted(tmp_path):
    folder = write(tmp_path, [30])
    change(folder, "inputs", slice(3, 30), 0, 6)
    listed = found(folder)
    assert len(listed) == 21 and listed[-1].endswith("7 more rows like these")


def test_a_dataset_that_cannot_be_read_is_one_violation(tmp_path):
    folder = write(tmp_path, GROUPS)
    (folder / "train/all__inputs.npy").unlink()
    (listed,) = found(folder)
    assert "readable" in listed and "train/all__inputs.npy: is missing" in listed
