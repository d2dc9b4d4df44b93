"""The training reader: its face, passes, states, data loaders, damaged files."""

from __future__ import annotations

import json
import mmap
import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.puzzles.read import dataset
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
from tests.later import later
from tests.puzzles.read.folders import write_split

torch = later("torch")
torch_data = later("torch.utils.data", "torch")


def config(root: Path, **fields: Any) -> PuzzleDatasetConfig:
    usual = {
        "seed": 5,
        "dataset_path": root,
        "global_batch_size": 8,
        "test_set_mode": False,
        "epochs_per_iter": 1,
        "rank": 0,
        "num_replicas": 1,
    }
    return PuzzleDatasetConfig(**{**usual, **fields})


def taken(batches: Any) -> list[tuple[Any, ...]]:
    """The items in a form that compares."""
    return [
        (name, size, *(np.asarray(column).tobytes() for column in batch.values()))
        for name, batch, size in batches
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two sets whose puzzles have several examples."""
    return write_split(tmp_path / "data" / "train", sets=("all", "more"), most_examples=5)


def test_it_is_a_torch_dataset_of_tensors(root: Path) -> None:
    data = PuzzleDataset(config(root))
    assert isinstance(data, torch_data.IterableDataset) and isinstance(data, PuzzleDataset)
    name, batch, size = next(iter(data))
    assert (name, size) == ("all", 8) and type(size) is int
    assert {field: (column.dtype, tuple(column.shape)) for field, column in batch.items()} == {
        "inputs": (torch.int32, (8, 6)),
        "labels": (torch.int32, (8, 6)),
        "puzzle_identifiers": (torch.int32, (8,)),
    }
    assert data.metadata.sets == ("all", "more")
    assert data.metadata.vocab_size == 8


def test_the_fields_of_the_config_have_the_order_of_the_original(root: Path) -> None:
    assert PuzzleDatasetConfig(5, root, 8, False, 1, 0, 1) == config(root)


def test_without_torch_the_batches_are_numpy_arrays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = taken(PuzzleDataset(config(root)))
    monkeypatch.setattr(dataset, "find_spec", lambda name: None)
    data = PuzzleDataset(config(root))
    assert type(data) is PuzzleDataset
    batches = list(data)
    assert all(type(column) is np.ndarray for _, batch, _ in batches for column in batch.values())
    assert taken(batches) == expected
    other = pickle.loads(pickle.dumps(data))
    assert taken(other) == taken(data)


@pytest.mark.slow
def test_it_reads_where_torch_cannot_be_imported(root: Path) -> None:
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "from gristmill.puzzles.read import dataset\n"
        "dataset.find_spec = lambda name: None\n"
        "sys.meta_path.insert(0, No())\n"
        f"config = dataset.PuzzleDatasetConfig(5, {str(root)!r}, 8, False, 1, 0, 1)\n"
        "print(sum(int(b['inputs'].sum()) for _, b, _ in dataset.PuzzleDataset(config)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    total = sum(int(batch["inputs"].sum()) for _, batch, _ in PuzzleDataset(config(root)))
    assert int(done.stdout) == total


def test_the_module_does_not_import_torch_or_numba() -> None:
    code = (
        "import sys, gristmill.puzzles.read.dataset as d\n"
        "print({'torch', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_pass_of_training_without_a_full_batch_is_a_warning(tmp_path: Path) -> None:
    root = write_split(tmp_path / "data" / "train", groups=20)
    data = PuzzleDataset(config(root, global_batch_size=48, epochs_per_iter=2))
    message = "a pass draws 40 puzzles of a set, .* do not fill a batch of 48 examples"
    with pytest.warns(UserWarning, match=message) as warned:
        assert list(data) == []
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = PuzzleDataset(config(root, global_batch_size=40, epochs_per_iter=2))
        assert len(list(whole)) == 1
        rest = PuzzleDataset(whole.config)
        rest.load_state_dict(whole.state_dict(1))
        assert list(rest) == []
        tested = PuzzleDataset(config(root, global_batch_size=999, test_set_mode=True))
        assert len(list(tested)) == 1


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seed", -1, "seed = -1: must be a whole number, 0 or more"),
        ("seed", 1.0, "seed = 1.0: must be a whole number"),
        ("global_batch_size", 0, "global_batch_size = 0: must be a whole number, 1 or more"),
        ("epochs_per_iter", 0, "epochs_per_iter = 0"),
        ("epochs_per_iter", True, "epochs_per_iter = True"),
        ("rank", 1, "rank 1 of 1: ranks count from 0"),
        ("rank", -1, "rank = -1"),
        ("num_replicas", 0, "num_replicas = 0"),
        ("num_replicas", 3, "global_batch_size 8 must be a multiple of num_replicas 3"),
        ("test_set_mode", 1, "test_set_mode = 1: must be True or False"),
    ],
)
def test_a_config_refuses_wrong_values(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(Path("x"), **{field: value})


def test_another_split_or_level_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="must be one of train, test"):
        PuzzleDataset(config(root), "val")
    with pytest.raises(ValueError, match="verify must be one of"):
        PuzzleDataset(config(root), verify="some")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"test/dataset.json: is missing"):
        PuzzleDataset(config(root), "test")
    with pytest.raises(BadInput, match="there is no such folder"):
        PuzzleDataset(config(root / "none"))


def _memory(array: object) -> object:
    """What holds the numbers of an array, behind all views."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_arrays_are_mapped(root: Path) -> None:
    data = PuzzleDataset(config(root))
    for made in data.held.sets:
        for array in (made.inputs, made.labels, made.puzzle_identifiers, made.puzzle_indices):
            assert isinstance(_memory(array), mmap.mmap) and not array.flags.writeable


# Data loaders


def test_a_data_loader_gives_the_batches_of_a_pass_with_no_worker_and_with_one(root: Path) -> None:
    expected = [taken(data) for data in [PuzzleDataset(config(root))] for _ in range(2)]
    alone = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None)
    assert [taken(alone) for _ in range(2)] == expected
    one = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None, num_workers=1)
    assert [taken(one) for _ in range(2)] == expected, "a worker that ends knows of the next pass"


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_worker_that_stays_reads_pass_after_pass(root: Path, context: str) -> None:
    data = PuzzleDataset(config(root))
    expected = [taken(data) for _ in range(3)]
    loader = torch_data.DataLoader(
        PuzzleDataset(config(root)),
        batch_size=None,
        num_workers=1,
        persistent_workers=True,
        prefetch_factor=8,
        multiprocessing_context=context,
    )
    assert [taken(loader) for _ in range(3)] == expected


class Named(PuzzleDataset):
    """A reader that a user derives."""


def test_a_derived_class_is_a_torch_dataset_and_can_be_pickled(root: Path) -> None:
    data = pickle.loads(pickle.dumps(Named(config(root))))
    assert isinstance(data, torch_data.IterableDataset) and isinstance(data, Named)
    assert taken(data) == taken(PuzzleDataset(config(root)))
    assert type(PuzzleDataset(config(root))).__name__ == "PuzzleDataset"


def test_several_workers_are_refused(root: Path) -> None:
    loader = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None, num_workers=2)
    with pytest.raises(GristmillError, match="num_workers=1 or 0") as caught:
        next(iter(loader))
    # Torch waits 5 s for each worker of an iterator that is collected in a cycle.
    traceback.clear_frames(caught.tb)


def test_a_worker_needs_the_number_of_batches_for_a_state(root: Path) -> None:
    plain = PuzzleDataset(config(root))
    whole = [*taken(plain), *taken(plain)]
    data = PuzzleDataset(config(root))
    loader = torch_data.DataLoader(data, batch_size=None, num_workers=1, prefetch_factor=2)
    batches = iter(loader)
    first = taken(next(batches) for _ in range(3))
    with pytest.raises(GristmillError, match="give state_dict the number of batches"):
        data.state_dict()
    state = data.state_dict(3)
    assert [*first, *taken(batches)] == whole[: len(whole) // 2]
    other = PuzzleDataset(config(root))
    other.load_state_dict(state)
    assert [*first, *taken(other), *taken(other)] == whole


# States


@pytest.mark.parametrize("test", [False, True])
def test_a_state_after_any_batch_continues_with_the_next(root: Path, test: bool) -> None:
    data = PuzzleDataset(config(root, test_set_mode=test, epochs_per_iter=2))
    whole, states = [], [data.state_dict()]
    for _ in range(2):
        for number, item in enumerate(data, 1):
            whole += taken([item])
            states.append(data.state_dict())
            assert data.state_dict(number) == data.state_dict()
        with pytest.raises(ValueError, match=f"the pass has {number}"):
            data.state_dict(number + 1)
        assert {len(state) for state in states} == {10 if test else 12}
    for used, state in enumerate(states):
        other = PuzzleDataset(config(root, test_set_mode=test, epochs_per_iter=2))
        other.load_state_dict(json.loads(json.dumps(state)))
        assert other.state_dict() == state == other.state_dict(0)
        rest = taken(other)
        while len(rest) < len(whole) - used:
            rest += taken(other)
        assert rest == whole[used:]


def test_batches_since_a_loaded_state_are_counted_from_it(root: Path) -> None:
    data = PuzzleDataset(config(root))
    batches = iter(data)
    for _ in range(2):
        next(batches)
    other = PuzzleDataset(config(root))
    other.load_state_dict(data.state_dict())
    next(batches)
    next(iter(other))
    assert other.state_dict(1) == other.state_dict() == data.state_dict() == data.state_dict(3)


def test_a_pass_that_is_left_early_is_followed_by_the_next(root: Path) -> None:
    data, other = PuzzleDataset(config(root)), PuzzleDataset(config(root))
    next(iter(data))
    list(other)
    # As in the original, only the sets that were begun count.
    assert data.state_dict()["iteration"] == 1
    assert other.state_dict()["iteration"] == 2
    assert taken(data) == taken(PuzzleDataset(config(root, seed=6)))


def test_a_state_continues_at_another_number_of_replicas(root: Path) -> None:
    data = PuzzleDataset(config(root))
    whole = [np.asarray(batch["inputs"]).tolist() for _, batch, _ in data]
    halves = [PuzzleDataset(config(root, rank=rank, num_replicas=2)) for rank in range(2)]
    data = PuzzleDataset(config(root))
    batches = iter(data)
    for _ in range(4):
        next(batches)
    for half in halves:
        half.load_state_dict(data.state_dict())
    parts = [[np.asarray(batch["inputs"]).tolist() for _, batch, _ in half] for half in halves]
    assert [one + other for one, other in zip(*parts, strict=True)] == whole[4:]


OTHER: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the state is of other data": lambda state: {**state, "data": "x"},
    "its seed is 6": lambda state: {**state, "seed": 6},
    "its seed is 5.0": lambda state: {**state, "seed": 5.0},
    "its global_batch_size is 16": lambda state: {**state, "global_batch_size": 16},
    "its split is 'test'": lambda state: {**state, "split": "test"},
    "its test_set_mode is True": lambda state: {**state, "test_set_mode": True},
    "its epochs_per_iter is 2": lambda state: {**state, "epochs_per_iter": 2},
    "its seed is None": lambda state: {k: v for k, v in state.items() if k != "seed"},
    "is not a state of version 1": lambda state: {**state, "version": 2},
    "is not a state of version 1 of": lambda state: [state],  # type: ignore[return-value]
    "another random stream: its digits are '7'": lambda state: {**state, "stream": "7"},
    "damaged: place is -1": lambda state: {**state, "place": -1},
    "damaged: place is None": lambda state: {**state, "place": None},
    "damaged: iteration is '1'": lambda state: {**state, "iteration": "1"},
    "damaged: set is -2": lambda state: {**state, "set": -2},
    "damaged: there is no Position": lambda state: {**state, "set": 2},
    "damaged: there is no Position.*place=10000": lambda state: {**state, "place": 10000},
    "damaged: there is no Position.*set=-1": lambda state: {**state, "set": -1},
}


@pytest.mark.parametrize("message", OTHER)
def test_a_state_of_something_else_is_refused(root: Path, message: str) -> None:
    data = PuzzleDataset(config(root))
    next(iter(data))
    before = data.state_dict()
    with pytest.raises(GristmillError, match=message):
        data.load_state_dict(OTHER[message](before))
    assert data.state_dict() == before


def test_an_order_that_is_drawn_has_digits_and_a_state_without_them_is_taken(root: Path) -> None:
    data = PuzzleDataset(config(root))
    state = data.state_dict()
    assert len(state.pop("stream")) == 8
    assert state.pop("numpy") == np.__version__
    data.load_state_dict(state)
    in_order = PuzzleDataset(config(root, test_set_mode=True))
    assert "stream" not in in_order.state_dict()
    in_order.load_state_dict(in_order.state_dict() | {"stream": "of no use here"})


def test_a_state_of_another_folder_is_refused_and_one_of_a_copy_is_not(
    root: Path, tmp_path: Path
) -> None:
    import shutil

    data = PuzzleDataset(config(root))
    next(iter(data))
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    PuzzleDataset(config(copy)).load_state_dict(data.state_dict())
    indices = copy / "train/more__group_indices.npy"
    changed = np.load(indices)
    if changed[2] - changed[1] > 1:
        changed[1] += 1
    else:
        changed = np.delete(changed, 1)
    np.save(indices, changed)
    with pytest.raises(GristmillError, match="the state is of other data"):
        PuzzleDataset(config(copy)).load_state_dict(data.state_dict())


def test_a_pickle_continues_where_its_reader_was(root: Path) -> None:
    data = PuzzleDataset(config(root))
    list(data)
    other = pickle.loads(pickle.dumps(data))
    assert taken(other) == taken(data)


# Damaged files

Change = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def _saved(change: Change) -> Callable[[Path], object]:
    return lambda path: np.save(path, change(np.load(path)))


def _at(place: int, value: int) -> Callable[[Path], object]:
    def change(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        array[place] = value
        return array

    return _saved(change)


DAMAGED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "is missing": ("inputs", Path.unlink),
    "has no npy header that can be read": ("inputs", lambda path: path.write_bytes(b"x" * 99)),
    r"has the shape \(\d+, 5\), expected \(\d+, 6\)": ("labels", _saved(lambda a: a[:, 1:])),
    r"has the shape \(\d+, 6\), expected \(\d+, 6\)": ("labels", _saved(lambda a: a[1:])),
    "holds float32": ("inputs", _saved(lambda a: a.astype(np.float32))),
    "holds uint8 .* in Fortran order": ("inputs", _saved(np.asfortranarray)),
    "expected integers in 2 dimensions in C order": ("inputs", _saved(lambda a: a[:, 0])),
    r"has \d+ bytes, its header says": (
        "labels",
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
    ),
    r"goes from 1 to \d+, expected 0": ("puzzle_indices", _at(0, 1)),
    r"goes from 0 to 99, expected 0 to \d+, the number of examples": (
        "puzzle_indices",
        _at(-1, 99),
    ),
    r"has \d+ entries for \d+ puzzles, expected one more": (
        "puzzle_indices",
        _saved(lambda a: a[1:]),
    ),
    "entry 3 is not greater than entry 2, counted from 0": ("puzzle_indices", _at(3, 0)),
    "entry 2 is not greater than entry 1": (
        "group_indices",
        _saved(lambda a: np.concatenate([a[:2], a[1:2], a[2:]])),
    ),
    "the number of puzzles": ("group_indices", _saved(lambda a: a[:-1])),
    "has no entries": ("group_indices", _saved(lambda a: a[:0])),
    "puzzle 4 has the identifier 5, expected 0 to 4": ("puzzle_identifiers", _at(4, 5)),
    "puzzle 2 has the identifier -1": ("puzzle_identifiers", _at(2, -1)),
}


@pytest.mark.parametrize("message", DAMAGED)
def test_a_damaged_array_is_refused_by_name_and_rule(root: Path, message: str) -> None:
    field, change = DAMAGED[message]
    path = root / "train" / f"more__{field}.npy"
    change(path)
    for level in ("none", "sizes"):
        with pytest.raises(BadInput, match=message) as caught:
            PuzzleDataset(config(root), verify=level)
        assert caught.value.file.startswith(str(root / "train" / "more__"))
        assert "build the" in caught.value.rule


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_len": 7}, r"all__inputs.npy: has the shape \(\d+, 6\), expected \(\d+, 7\)"),
        ({"sets": ["none"]}, r"none__inputs.npy: is missing"),
        ({"sets": ["../train/all"]}, r"dataset.json: sets must be"),
        ({"pad_id": 10**30}, r"dataset.json: pad_id must be"),
        ({"seq_len": None}, r"dataset.json: seq_len must be"),
        ({"num_puzzle_identifiers": 1}, r"all__puzzle_identifiers.npy: puzzle \d+ has"),
    ],
)
def test_damaged_metadata_is_refused(root: Path, change: dict[str, Any], message: str) -> None:
    path = root / "train/dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadInput, match=message):
        PuzzleDataset(config(root))


def test_an_empty_set_gives_no_batch(root: Path) -> None:
    for field in ("inputs", "labels"):
        np.save(root / f"train/all__{field}.npy", np.zeros((0, 6), np.uint8))
    np.save(root / "train/all__puzzle_identifiers.npy", np.zeros(0, np.int32))
    for field in ("puzzle_indices", "group_indices"):
        np.save(root / f"train/all__{field}.npy", np.zeros(1, np.int32))
    for test in (False, True):
        data = PuzzleDataset(config(root, test_set_mode=test))
        assert {name for name, _, _ in data} == {"more"}
