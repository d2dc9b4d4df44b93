"""Every law of ARC datasets finds what breaks it, and nothing in what the builder writes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.puzzles.builders import arc
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.domains.arc_grid import encode
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.laws.contract import contract_laws, trace_laws
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_tasks import write

Change = Callable[[np.ndarray], object]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arc")
    build_arc(arc_tasks.source(folder / "arc"), folder / "out", ArcConfig(8, 3, "uint8"))
    return folder / "out"


@pytest.fixture
def dataset(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "out"))


def edit(path: Path, change: Change) -> None:
    array = np.load(path)
    change(array)
    np.save(path, array)


def laws(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for violation in arc_laws(folder):
        found.setdefault(violation.law, []).append(violation.where)
    return found


@pytest.mark.parametrize("num_aug", [0, 8])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_a_dataset_of_the_builder_breaks_no_law(tmp_path, dtype, num_aug):
    config = ArcConfig(num_aug=num_aug, dtype=dtype)
    build_arc(arc_tasks.source(tmp_path / "arc"), tmp_path / "out", config)
    assert [*arc_laws(tmp_path / "out"), *contract_laws(tmp_path / "out")] == []


def test_a_test_pair_that_is_a_demonstration_of_its_task_is_found(tmp_path, monkeypatch):
    source = arc_tasks.source(tmp_path / "arc")
    task = json.loads((source / "evaluation" / "bb.json").read_text())
    task["test"][1] = task["train"][0]
    arc_tasks.write(source, {"evaluation/bb": task})
    with monkeypatch.context() as patch:
        patch.setattr(arc, "_leaks", lambda _: [])
        build_arc(source, tmp_path / "out", ArcConfig(8, 3, "uint8"))
    found = [(each.law, each.where, each.found) for each in arc_laws(tmp_path / "out")]
    assert found == [("leak", "arc/evaluation/bb.json", "test pair 3 is training pair 0")]


@pytest.mark.parametrize("field", ["inputs", "labels"])
@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 1), (1, 4), (0, 5), (2, 0), (3, 1)])
def test_a_row_that_is_no_grid_with_its_border_is_found(dataset, field, before, after):
    row = -1

    def change(array: np.ndarray) -> None:
        nonlocal row
        row = int(np.flatnonzero((array == before).any(axis=1))[0])
        array[row, np.flatnonzero(array[row] == before)[-1]] = after

    edit(dataset / "train" / f"all__{field}.npy", change)
    found = laws(dataset)
    assert f"train all {field} row {row}" in found["border"]


def moved(tokens: np.ndarray) -> np.ndarray:
    cells = tokens.reshape(30, 30)
    assert not cells[:, 20:].any()
    return np.roll(cells, 2, axis=1).reshape(-1)


def _put(name: str, row: int, value: Any) -> Callable[[Path], None]:
    """Give a row of an array another value, or what a function makes of the one that it has."""

    def change(array: np.ndarray) -> None:
        array[row] = value(array[row]) if callable(value) else value

    return lambda dataset: edit(dataset / f"{name}.npy", change)


def _all(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def apply(dataset: Path) -> None:
        for change in changes:
            change(dataset)

    return apply


def _other_colour(place: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(row: np.ndarray) -> np.ndarray:
        cell = np.flatnonzero(row >= 2)[place]
        row[cell] = 2 + (row[cell] - 1) % 10
        return row

    return change


def _away_from_the_corner(dataset: Path) -> None:
    first, end = np.load(dataset / "train/all__puzzle_indices.npy")[2:4].tolist()
    for field in ("inputs", "labels"):
        for row in range(first, end):
            change = _put(f"train/all__{field}", row, lambda old: moved(old) if old[0] else old)
            change(dataset)


def identifiers(dataset: Path, change: Callable[[list[str]], object]) -> None:
    path = dataset / "identifiers.json"
    listed = json.loads(path.read_text())
    change(listed)
    path.write_text(json.dumps(listed))


def _named(number: int, name: str) -> Callable[[Path], None]:
    return lambda dataset: identifiers(dataset, lambda names: names.__setitem__(number, name))


def _untrained(dataset: Path) -> None:
    fresh = len(json.loads((dataset / "identifiers.json").read_text()))
    identifiers(dataset, lambda names: names.append("aa_t0_0987654321"))
    _put("test/all__puzzle_identifiers", 1, fresh)(dataset)


def _exchanged(dataset: Path) -> None:
    first, second = np.load(dataset / "train/all__puzzle_identifiers.npy")[:2].tolist()
    _put("train/all__puzzle_identifiers", 0, second)(dataset)
    _put("train/all__puzzle_identifiers", 1, first)(dataset)


OTHER_SHAPE = encode(np.ones((11, 3), np.uint8))
ONLY: list[tuple[Callable[[Path], None], str, list[str]]] = [
    (_put("test/all__labels", 4, 0), "border", ["test all labels row 4"]),
    (_put("train/all__labels", 7, _other_colour(-1)), "inverse", ["train all labels row 7"]),
    (_put("test/all__labels", 5, moved), "place", ["test all row 5"]),
    (
        _all(_put("test/all__inputs", 3, moved), _put("test/all__labels", 3, moved)),
        "translation",
        ["test all row 3"],
    ),
    (_away_from_the_corner, "translation", ["train all puzzle 2"]),
]
AMONG_OTHERS: list[tuple[Callable[[Path], None], str, list[str]]] = [
    (_put("train/all__inputs", 0, _other_colour(0)), "source", ["arc/training/aa.json"]),
    (_put("train/all__inputs", 0, _other_colour(0)), "inverse", []),
    (_put("train/all__inputs", 9, OTHER_SHAPE), "inverse", ["train all inputs row 9"]),
    (_put("train/all__labels", 9, OTHER_SHAPE), "inverse", ["train all labels row 9"]),
    (_named(3, "aa_t2_0987654321"), "inverse", []),
    (_exchanged, "group", ["train all puzzle 0", "train all puzzle 1"]),
    (
        _put("train/all__puzzle_identifiers", 12, 3),
        "group",
        ["train all puzzle 12", "train all identifier 2"],
    ),
    (
        _put("train/all__puzzle_indices", 3, lambda end: end - 1),
        "group",
        ["train all puzzle 2", "train all puzzle 3"],
    ),
    (_untrained, "identifier", ["identifiers.json "]),
    *(
        (_put(f"train/all__{field}", 1, -1), "groups", ["train all 0"])
        for field in ("puzzle_indices", "group_indices", "puzzle_identifiers")
    ),
]


@pytest.mark.parametrize(("change", "law", "places"), ONLY)
def test_what_breaks_one_law_is_found_by_it_alone(dataset, change, law, places):
    change(dataset)
    assert laws(dataset) == {law: places}


@pytest.mark.parametrize(("change", "law", "places"), AMONG_OTHERS)
def test_what_breaks_several_laws_is_found_by_each(dataset, change, law, places):
    change(dataset)
    found = laws(dataset)
    assert found[law] and all(any(place in each for each in found[law]) for place in places), found


def test_a_changed_original_breaks_each_row_of_its_group(dataset):
    _put("train/all__inputs", 0, _other_colour(0))(dataset)
    found = laws(dataset)
    assert {law: len(places) for law, places in found.items()} == {"inverse": 8, "source": 1}
    _named(3, "aa_t2_0987654321")(dataset)
    assert set(laws(dataset)) == {"inverse", "source"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "_t1_0234567891", "aa_t8_0234567891", "aa_t1_1234567890", "aa_t1_0234567899"),
        *("aa_t1_023456789", "aa_t1_02345678911", "aa_x1_0234567891", "aa_t1-0234567891"),
        *("aa_t1_023456789\u00df", "aa_t/_0123456789", "<aa>", "a\na", "x" * 256),
    ],
)
def test_an_identifier_that_is_no_id_is_found(dataset, text):
    identifiers(dataset, lambda listed: listed.__setitem__(3, text))
    found = laws(dataset)
    assert found["identifier"] == ["identifiers.json 3"]
    assert "train all puzzle 2" in found["group"]


@pytest.mark.parametrize("column", [0, 1, 2])
def test_an_origin_that_is_not_that_of_its_puzzle_is_found(dataset, column):
    def change(array: np.ndarray) -> None:
        array[8, column] += 1

    edit(dataset / "trace" / "train" / "all.npy", change)
    assert "trace/train/all.npy row 8" in {each.where for each in trace_laws(dataset)}


def test_a_source_with_another_hash_or_without_a_file_is_found(dataset):
    path = dataset / "trace" / "sources.json"
    held = json.loads(path.read_text())
    held["files"][1]["task_hash"] = "0" * 64
    del held["files"][4]
    path.write_text(json.dumps(held))
    assert laws(dataset) == {"source": ["arc/evaluation/bb.json", "file 4"]}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trm")
    source = write(folder / "k", "training", {"tr_1": arc_tasks.task(1)})
    write(source, "evaluation", {"ev_2": arc_tasks.task(2), "c": arc_tasks.task(3, test=2)})
    build_arc([source, arc_tasks.source(folder / "a")], folder / "out", ArcConfig(num_aug=2))
    return folder / "out"


def test_the_built_folder_is_a_dataset_of_trm(traced):
    trm = traced / "trm"
    assert list(contract_laws(trm)) == [] and list(arc_laws(trm)) == []
