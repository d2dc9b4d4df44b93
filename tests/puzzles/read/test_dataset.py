"""The training reader: its face, passes, states, data loaders, damaged files."""

import json
import mmap
import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.puzzles.read import dataset
from gristmill.puzzles.read.dataset import (
    Position,
    Progress,
    PuzzleDataset,
    PuzzleDatasetConfig,
    TrainBatches,
)
from gristmill.puzzles.read.rows import MappedSet
from tests.later import later
from tests.paths import REAL_DATA
from tests.puzzles.format.test_dataset import METADATA
from tests.puzzles.read.folders import taken, write_set, write_split
from tests.puzzles.read.plain_reader import PlainReader

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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two sets whose puzzles have several examples."""
    return write_split(tmp_path / "data" / "train", sets=("all", "more"), most_examples=5)


def test_it_is_a_torch_dataset_of_tensors_with_the_fields_of_the_original(root):
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
    assert PuzzleDatasetConfig(5, root, 8, False, 1, 0, 1) == config(root)


def test_without_torch_the_batches_are_numpy_arrays(root, monkeypatch):
    expected = taken(PuzzleDataset(config(root)))
    monkeypatch.setattr(dataset, "find_spec", lambda name: None)
    data = PuzzleDataset(config(root))
    assert type(data) is PuzzleDataset
    batches = list(data)
    assert all(type(column) is np.ndarray for _, batch, _ in batches for column in batch.values())
    assert taken(batches) == expected
    other = pickle.loads(pickle.dumps(data))
    assert taken(other) == taken(data)


def test_neither_the_module_nor_a_reader_without_torch_imports_it(root):
    code = (
        "import sys, gristmill.puzzles.read.dataset as d\n"
        "print({'torch', 'numba'} & set(sys.modules))\n"
        "d.find_spec = lambda name: None\n"
        f"config = d.PuzzleDatasetConfig(5, {str(root)!r}, 8, False, 1, 0, 1)\n"
        "print(sum(int(b['inputs'].sum()) for _, b, _ in d.PuzzleDataset(config)))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    total = sum(int(batch["inputs"].sum()) for _, batch, _ in PuzzleDataset(config(root)))
    assert done.stdout == f"set()\n{total}\nFalse\n"


def test_a_pass_of_training_without_a_full_batch_is_a_warning(tmp_path):
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
def test_a_config_refuses_wrong_values(field, value, message):
    with pytest.raises(ValueError, match=message):
        config(Path("x"), **{field: value})


def test_another_split_level_or_several_workers_are_refused(root):
    with pytest.raises(ValueError, match="must be one of train, test"):
        PuzzleDataset(config(root), "val")
    with pytest.raises(ValueError, match="verify must be one of"):
        PuzzleDataset(config(root), verify="some")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"test/dataset.json: is missing"):
        PuzzleDataset(config(root), "test")
    with pytest.raises(BadInput, match="there is no such folder"):
        PuzzleDataset(config(root / "none"))
    loader = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None, num_workers=2)
    with pytest.raises(GristmillError, match="num_workers=1 or 0") as caught:
        next(iter(loader))
    # Torch waits 5 s for each worker of an iterator that is collected in a cycle.
    traceback.clear_frames(caught.tb)


def _memory(array: object) -> object:
    """What holds the numbers of an array, behind all views."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_arrays_are_mapped(root):
    data = PuzzleDataset(config(root))
    for made in data.held.sets:
        for array in (made.inputs, made.labels, made.puzzle_identifiers, made.puzzle_indices):
            assert isinstance(_memory(array), mmap.mmap) and not array.flags.writeable


# Data loaders


def test_a_data_loader_gives_the_batches_and_a_derived_class_can_be_pickled(root):
    expected = [taken(data) for data in [PuzzleDataset(config(root))] for _ in range(2)]
    alone = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None)
    assert [taken(alone) for _ in range(2)] == expected
    one = torch_data.DataLoader(PuzzleDataset(config(root)), batch_size=None, num_workers=1)
    assert [taken(one) for _ in range(2)] == expected, "a worker that ends knows of the next pass"
    data = pickle.loads(pickle.dumps(Named(config(root))))
    assert isinstance(data, torch_data.IterableDataset) and isinstance(data, Named)
    assert taken(data) == taken(PuzzleDataset(config(root)))
    assert type(PuzzleDataset(config(root))).__name__ == "PuzzleDataset"
    data = PuzzleDataset(config(root))
    list(data)
    other = pickle.loads(pickle.dumps(data))
    assert taken(other) == taken(data)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_worker_that_stays_reads_pass_after_pass(root, context):
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


def test_a_worker_needs_the_number_of_batches_for_a_state(root):
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


@pytest.mark.parametrize(("folder", "test"), [("root", False), ("root", True), ("sets", False)])
def test_a_state_after_any_batch_continues_with_the_next(request, folder, test):
    root = request.getfixturevalue(folder)
    data = PuzzleDataset(config(root, test_set_mode=test, epochs_per_iter=2))
    count = len(data.metadata.sets)
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
        # The counter of the original: each set of a pass that was begun counts.
        passes = max(1, -(-state["iteration"] // count))
        assert other.state_dict()["iteration"] == (0 if test else count * passes)
        while len(rest) < len(whole) - used:
            rest += taken(other)
        assert rest == whole[used:]


def test_batches_since_a_loaded_state_are_counted_from_it(root):
    data = PuzzleDataset(config(root))
    batches = iter(data)
    for _ in range(2):
        next(batches)
    other = PuzzleDataset(config(root))
    other.load_state_dict(data.state_dict())
    next(batches)
    next(iter(other))
    assert other.state_dict(1) == other.state_dict() == data.state_dict() == data.state_dict(3)


def test_a_pass_that_is_left_early_is_followed_by_the_next(root):
    data, other = PuzzleDataset(config(root)), PuzzleDataset(config(root))
    next(iter(data))
    list(other)
    # As in the original, only the sets that were begun count.
    assert data.state_dict()["iteration"] == 1
    assert other.state_dict()["iteration"] == 2
    assert taken(data) == taken(PuzzleDataset(config(root, seed=6)))


def test_a_state_continues_at_another_number_of_replicas(root):
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
def test_a_state_of_something_else_is_refused(root, message):
    data = PuzzleDataset(config(root))
    next(iter(data))
    before = data.state_dict()
    with pytest.raises(GristmillError, match=message):
        data.load_state_dict(OTHER[message](before))
    assert data.state_dict() == before


def test_an_order_that_is_drawn_has_digits_and_a_state_without_them_is_taken(root):
    data = PuzzleDataset(config(root))
    state = data.state_dict()
    assert len(state.pop("stream")) == 8
    assert state.pop("numpy") == np.__version__
    data.load_state_dict(state)
    in_order = PuzzleDataset(config(root, test_set_mode=True))
    assert "stream" not in in_order.state_dict()
    in_order.load_state_dict(in_order.state_dict() | {"stream": "of no use here"})


def test_a_state_of_another_folder_is_refused_and_one_of_a_copy_is_not(root, tmp_path):
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
def test_a_damaged_array_is_refused_by_name_and_rule(root, message):
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
def test_damaged_metadata_is_refused(root, change, message):
    path = root / "train/dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadInput, match=message):
        PuzzleDataset(config(root))


def test_an_empty_set_gives_no_batch(root):
    for field in ("inputs", "labels"):
        np.save(root / f"train/all__{field}.npy", np.zeros((0, 6), np.uint8))
    np.save(root / "train/all__puzzle_identifiers.npy", np.zeros(0, np.int32))
    for field in ("puzzle_indices", "group_indices"):
        np.save(root / f"train/all__{field}.npy", np.zeros(1, np.int32))
    for test in (False, True):
        data = PuzzleDataset(config(root, test_set_mode=test))
        assert {name for name, _, _ in data} == {"more"}


def reader(root: Path, size: int = 8, test: bool = False, rank: int = 0, ranks: int = 1) -> Any:
    return PuzzleDataset(PuzzleDatasetConfig(5, root, size, test, 1, rank, ranks))


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Three sets: the second and the last have no full batch of 8 examples."""
    sets = write_split(tmp_path / "train", sets=("a", "b", "c", "d"), groups=20)
    for name in ("b", "d"):
        write_set(sets / "train", name, seed=1, puzzles=[2, 1, 3], examples=[1] * 6)
    return sets


def test_an_iteration_is_counted_for_training_alone_also_without_a_full_batch(sets):
    data = reader(sets)
    plain = PlainReader(sets, "train", seed=5, size=8, test=False)
    for number in range(1, 4):
        expected = list(plain)
        assert taken(data) == taken(expected) and {item[0] for item in expected} == {"a", "c"}
        assert data.state_dict()["iteration"] == plain.iterations == 4 * number
    data = reader(sets, test=True)
    for _ in range(2):
        assert {name for name, _, _ in data} == {"a", "b", "c", "d"}
        assert data.state_dict()["iteration"] == 0


@pytest.mark.filterwarnings("ignore:no batch")
def test_a_pass_without_any_batch_is_followed_by_another_order(tmp_path):
    sets = write_split(tmp_path / "train", groups=3, most_puzzles=2)
    # Puzzles of one and of seven examples: whether a batch of 8 is full, the draws decide.
    write_set(sets / "train", "all", seed=0, puzzles=[2, 2], examples=[1, 7, 1, 7])
    data, plain = reader(sets), PlainReader(sets, "train", seed=5, size=8, test=False)
    counts = [(len(taken(data)), len(list(plain))) for _ in range(12)]
    assert {ours for ours, _ in counts} == {0, 1}
    assert all(ours == theirs for ours, theirs in counts)
    assert data.state_dict()["iteration"] == 12


def test_after_the_last_batch_the_rest_of_the_pass_is_empty(sets):
    data = reader(sets)
    batches = iter(data)
    for _ in range(len(taken(reader(sets)))):
        next(batches)
    other = reader(sets)
    other.load_state_dict(data.state_dict())
    assert taken(other) == []
    assert taken(batches) == []
    assert taken(other) == taken(data) != []


def test_an_older_iterator_does_not_move_the_state_of_the_newest_pass(sets):
    data, plain = reader(sets), reader(sets)
    first, second, third = ([*taken(plain)] for _ in range(3))
    # A pass of four sets that was begun alone counts one iteration until its second set.
    older = iter(data)
    begun = [next(older)]
    newer = iter(data)
    held = [next(newer)]
    state = data.state_dict()
    assert state["iteration"] == 2
    begun.append(next(older))
    assert data.state_dict() == state, "the older iterator is not what the state describes"
    held += list(newer)
    assert data.state_dict()["iteration"] == 5
    begun += list(older)
    assert data.state_dict()["iteration"] == 5, "the counter never goes back"
    assert taken(begun) == first
    following = taken(data)
    assert following != taken(held) and following not in (first, second, third)


def test_an_iterator_that_is_in_use_does_not_move_a_loaded_state(sets):
    data = reader(sets)
    batches = iter(data)
    next(batches)
    state = data.state_dict()
    rest = taken(batches)
    list(data)
    other = iter(data)
    next(other)
    data.load_state_dict(state)
    next(other)
    assert data.state_dict() == state
    list(other)
    assert data.state_dict() == state
    assert taken(data) == rest


@pytest.mark.parametrize("change", [{"iteration": 0}, {"set": 2, "iteration": 2}])
def test_a_counter_below_the_sets_of_the_pass_is_refused(sets, change):
    data = reader(sets)
    next(iter(data))
    with pytest.raises(GristmillError, match="damaged: there is no Position"):
        data.load_state_dict({**data.state_dict(), **change})
    data.load_state_dict({**data.state_dict(), "set": 2, "iteration": 3})


def test_states_of_all_ranks_are_equal_and_less_than_no_batch_is_refused(sets):
    ranks = [reader(sets, rank=rank, ranks=4) for rank in range(4)]
    for _ in range(2):
        for _ in zip(*ranks, strict=True):
            states = [data.state_dict() for data in ranks]
            assert states == states[:1] * 4
    assert ranks[0].state_dict() == ranks[3].state_dict()
    with pytest.raises(ValueError, match="batches -1: must be 0 or more"):
        reader(sets).state_dict(-1)


# The position, as a worker and the process that uses its batches share it


def ends_at(begin: Position) -> int:
    return begin.iteration + 3


def progress() -> Progress:
    return Progress(np.zeros(Progress.NUMBERS, np.int64))


@pytest.mark.parametrize("read", [0, 1, 2])
def test_a_pass_of_a_worker_that_is_left_counts_whole_however_far_it_read(read):
    shared = progress()
    number, begin = shared.begun(True, ends_at)
    assert begin == Position()
    for iteration in range(1, read + 1):
        shared.move(number, Position(iteration, iteration - 1, 7))
    assert shared.begun(True, ends_at) == (2, Position(3))
    assert shared.now == shared.begin == Position(3) and shared.ahead


def test_a_pass_that_ended_or_was_read_without_a_worker_counts_what_it_began():
    shared = progress()
    number, _ = shared.begun(True, ends_at)
    shared.move(number, Position(1, 0, 7))
    shared.move(number, Position(3))
    assert shared.now == Position(3)
    number, begin = shared.begun(False, ends_at)
    assert begin == Position(3) and not shared.ahead
    shared.move(number, Position(4, 0, 7))
    assert shared.begun(False, ends_at)[1] == Position(4)


def test_a_loaded_position_stays_whatever_a_worker_still_writes():
    shared = progress()
    number, _ = shared.begun(True, ends_at)
    shared.load(Position(5, 1, 2))
    assert not shared.ahead and shared.begin == Position(5, 1, 2)
    shared.move(number, Position(6, 0, 1))
    shared.move(number, Position(6))
    shared.now = Position(7, 0, 1)  # written after the worker had seen its own pass as the last one
    assert shared.now == Position(5, 1, 2)
    assert shared.begun(False, ends_at)[1] == Position(5, 1, 2) == shared.now
    assert shared.begun(False, ends_at)[1] == Position(5), "a position is loaded for one pass"


REAL = REAL_DATA / "puzzles/maze_hrm_built"


def same(ours: Any, plain: Any) -> None:
    """Both yield the same items."""
    count = 0
    for (name, batch, size), (expected_name, expected, expected_size) in zip(
        ours, plain, strict=True
    ):
        assert (name, size) == (expected_name, expected_size)
        assert list(batch) == ["inputs", "labels", "puzzle_identifiers"]
        for field, column in batch.items():
            found = np.asarray(column)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected[field], field)
        count += 1
    assert count


def both(
    root: Path, split: str, size: int, test: bool, epochs: int = 1, rank: int = 0, ranks: int = 1
) -> tuple[PuzzleDataset, PlainReader]:
    config = PuzzleDatasetConfig(11, root, size, test, epochs, rank, ranks)
    plain = PlainReader(
        root, split, seed=11, size=size, test=test, epochs=epochs, rank=rank, ranks=ranks
    )
    return PuzzleDataset(config, split), plain


@pytest.mark.parametrize("ignored", [0, 3, None])
def test_training_batches_are_those_of_the_plain_reader(tmp_path, ignored):
    root = write_split(
        tmp_path / "train", groups=50, most_puzzles=7, sets=("a", "b"), ignore_label_id=ignored
    )
    ours, plain = both(root, "train", 12, False, epochs=3)
    for _ in range(3):  # passes
        same(ours, plain)


def test_draws_beyond_one_window_are_those_of_the_plain_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "_DRAWN_AT_ONCE", 7)
    root = write_split(tmp_path / "train", groups=40, most_puzzles=300)
    same(*both(root, "train", 16, False, epochs=2))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", ">i4", "int16"])
@pytest.mark.parametrize("test", [False, True])
def test_tokens_of_any_integer_type_are_read_as_int32(tmp_path, dtype, test):
    index = {"uint8": "int32", ">i4": ">i4"}.get(dtype, "int64")
    root = write_split(tmp_path / "train", dtype=dtype, index_dtype=index)
    same(*both(root, "train", 8, test))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_rank_reads_its_part_of_every_batch(tmp_path, ranks):
    root = write_split(tmp_path / "train", sets=("all", "more"))
    for rank in range(ranks):
        same(*both(root, "train", 8, False, rank=rank, ranks=ranks))


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("size", [10, 20, 1000])
def test_testing_gives_every_example_once_and_pads_the_last_batch(tmp_path, ranks, size):
    root = write_split(
        tmp_path / "test",
        sets=("all", "more"),
        most_examples=5,
        pad_id=7,
        blank_identifier_id=4,
        ignore_label_id=2,
    )
    for rank in range(ranks):
        ours, plain = both(root, "test", size, True, rank=rank, ranks=ranks)
        same(ours, plain)
        same(ours, plain)


def _numbered(tmp_path: Path, puzzles: int, examples: int) -> Path:
    """One puzzle a group; the tokens of an example are its number."""
    root = write_split(tmp_path / "train", groups=puzzles, most_puzzles=1)
    count = puzzles * examples
    numbers = np.repeat(np.arange(count, dtype=np.int32)[:, None], 6, 1)
    for field in ("inputs", "labels"):
        np.save(root / f"train/all__{field}.npy", numbers)
    np.save(
        root / "train/all__puzzle_indices.npy", np.arange(0, count + 1, examples, dtype=np.int32)
    )
    np.save(root / "train/all__puzzle_identifiers.npy", np.arange(puzzles, dtype=np.int32) % 5)
    np.save(root / "train/all__group_indices.npy", np.arange(puzzles + 1, dtype=np.int32))
    return root


def _examples(root: Path, size: int, seed: int = 11, epochs: int = 1) -> Iterator[list[int]]:
    data = PuzzleDataset(PuzzleDatasetConfig(seed, root, size, False, epochs, 0, 1))
    for _, batch, _ in data:
        yield np.asarray(batch["inputs"])[:, 0].tolist()


def test_all_examples_of_a_puzzle_that_fits_are_taken_together(tmp_path):
    root = _numbered(tmp_path, puzzles=30, examples=4)
    shuffled = 0
    for rows in _examples(root, 12):
        for first in range(0, 12, 4):
            puzzle = rows[first : first + 4]
            assert {row // 4 for row in puzzle} == {puzzle[0] // 4}
            assert len(set(puzzle)) == 4
            shuffled += puzzle != sorted(puzzle)
    assert shuffled > 15


def test_a_puzzle_is_cut_at_the_end_of_a_batch_and_its_rest_is_dropped(tmp_path):
    root = _numbered(tmp_path, puzzles=40, examples=4)
    cut = [0] * 4
    seen: set[int] = set()
    for rows in _examples(root, 10):
        puzzles = [row // 4 for row in rows]
        assert [puzzles.count(puzzle) for puzzle in dict.fromkeys(puzzles)] == [4, 4, 2]
        assert len(set(rows)) == 10
        assert not seen & set(puzzles)
        seen |= set(puzzles)
        for row in rows[8:]:
            cut[row % 4] += 1
    assert min(cut) >= 2, "the examples of a cut puzzle are drawn from all of its examples"


def test_every_order_of_the_examples_of_a_puzzle_is_equally_likely(tmp_path):
    root = _numbered(tmp_path, puzzles=60, examples=3)
    counts: dict[tuple[int, ...], int] = {}
    for rows in _examples(root, 3, epochs=100):
        order = tuple(row % 3 for row in rows)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and sum(counts.values()) == 6000
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_examples_are_in_another_order_in_every_pass_and_the_same_for_every_reader(tmp_path):
    root = _numbered(tmp_path, puzzles=9, examples=5)
    data, other = (
        PuzzleDataset(PuzzleDatasetConfig(0, root, 15, False, 1, 0, 1)) for _ in range(2)
    )
    np.random.seed(1)
    first = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in data]
    np.random.seed(2)
    again = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in other]
    second = [np.asarray(batch["inputs"])[:, 0].tolist() for _, batch, _ in data]
    assert first == again != second


def test_ranks_read_the_same_examples_of_puzzles_with_several(tmp_path):
    root = _numbered(tmp_path, puzzles=20, examples=5)
    whole = list(_examples(root, 12))
    ranks = [
        [
            np.asarray(batch["inputs"])[:, 0].tolist()
            for _, batch, _ in PuzzleDataset(PuzzleDatasetConfig(11, root, 12, False, 1, rank, 3))
        ]
        for rank in range(3)
    ]
    assert [[*one, *two, *three] for one, two, three in zip(*ranks, strict=True)] == whole


def _set(tmp_path: Path, **indices: list[int]) -> MappedSet:
    arrays = {name: np.array(values, np.int32) for name, values in indices.items()}
    tokens = np.zeros((3, 2), np.uint8)
    for array in (*arrays.values(), tokens):
        array.setflags(write=False)  # as mapped arrays, which kernels are compiled for
    paths = {name: tmp_path / f"{name}.npy" for name in arrays}
    return MappedSet(tokens, tokens, np.zeros(3, np.int32), **arrays, name="all", paths=paths)


@pytest.mark.parametrize("values", [[0, 0, 0, 0], [1, 2, 3, 3], [9, 9, 9, 9]])
def test_indices_that_are_overwritten_while_rows_are_read_in_order_are_no_crash(tmp_path, values):
    made = _set(tmp_path, puzzle_indices=values, group_indices=[0, 1, 2, 3])
    (chosen,) = dataset.batches_in_order(made, 3, 0, 1, 0)
    with pytest.raises(BadInput, match=r"puzzle_indices.npy: was changed after it was opened"):
        dataset.batch_of(made, METADATA, chosen.rows, chosen.owners, 3)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("puzzle_indices", [0, 5, 9, 12]),
        ("puzzle_indices", [0, -4, 2, 3]),
        ("puzzle_indices", [0, 0, 0, 0]),
        ("puzzle_indices", [3, 2, 1, 0]),
        ("group_indices", [0, 9, 10, 11]),
        ("group_indices", [0, 0, 0, 0]),
        ("group_indices", [-9, -8, -7, -6]),
    ],
)
def test_indices_that_are_overwritten_while_training_reads_are_no_crash(tmp_path, field, values):
    right = {"puzzle_indices": [0, 1, 2, 3], "group_indices": [0, 1, 2, 3]}
    made = _set(tmp_path, **{**right, field: values})
    with pytest.raises(BadInput, match=r"_indices.npy: was changed after it was opened"):
        list(TrainBatches(made, 0, 1, 50, 3).chosen())


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data at {REAL}")
def test_a_dataset_of_the_original_builder_is_read_as_the_original_reads_it():
    same(*both(REAL, "train", 96, False, epochs=2))
    same(*both(REAL, "test", 96, True, rank=1, ranks=2))
