"""The dataset that training imports: batches as those of the original `PuzzleDataset`, a state.

Source: docs/formats/puzzles.md#reader, docs/formats/puzzles.md#reader-state
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.puzzles import format as names
from gristmill.puzzles.format.dataset import PuzzleDatasetMetadata
from gristmill.puzzles.read.rows import Integers, MappedSet, MappedSplit, compiled_rows, open_split
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import Generation, Opening
from gristmill.reading.reader import Reader, located, refuse_other_stream, stream_of

Numbers = npt.NDArray[np.int64]

IGNORED: Final = -100
"""The label without loss, in torch."""
_DRAWN_AT_ONCE: Final = 1 << 13


class Chosen(NamedTuple):
    """The rows and puzzles of one batch, int64 [n], and where the next one begins."""

    rows: Numbers
    owners: Numbers
    examples: int
    place: int


def generator_of(seed: int) -> np.random.Generator:
    """A new generator of the kind that draws the order in training."""
    return np.random.Generator(np.random.Philox(seed=seed))


class TrainBatches:
    """The batches of one iteration over a set, each of `size` examples."""

    def __init__(self, made: MappedSet, seed: int, iteration: int, epochs: int, size: int) -> None:
        from gristmill.puzzles.domains.randomness import source_key

        self._made, self._size = made, size
        self._key = np.array([source_key(seed + iteration, "reader", "examples")], np.uint64)
        self._random = generator_of(seed + iteration)
        kind = np.int32 if made.groups < 1 << 31 else np.int64
        self._order = np.empty(epochs * made.groups, kind)
        for epoch in range(epochs):
            part = self._order[epoch * made.groups : (epoch + 1) * made.groups]
            part[:] = self._random.permutation(made.groups)

    def __len__(self) -> int:
        """Groups that are visited."""
        return len(self._order)

    def chosen(self, place: int = 0) -> Iterator[Chosen]:
        """Yield the full batches that begin at a place in the group order; call it once."""
        from gristmill.puzzles.domains.randomness import fill

        made = self._made
        drawn, first = np.empty(0, np.int64), 0
        while first + len(drawn) < place:  # draws of batches that were read before
            first += len(drawn)
            drawn = self._drawn(first)
        at = place - first
        while True:
            rows, owners = np.empty(self._size, np.int64), np.empty(self._size, np.int64)
            filled = 0
            while filled < self._size:
                if at == len(drawn):
                    first, at = first + len(drawn), 0
                    drawn = self._drawn(first)
                    if not len(drawn):
                        return  # the last batch is not full
                at, filled = fill(
                    *(drawn, at, first, made.puzzle_indices, made.examples),
                    *(self._key, rows, owners, filled),
                )
                if at < 0:
                    raise _changed(made, "puzzle_indices")
            yield Chosen(rows, owners, self._size, first + at)

    def _drawn(self, first: int) -> Numbers:
        """The puzzles of the next groups in the order; `first` is the next."""
        groups = self._order[first : first + _DRAWN_AT_ONCE]
        low, high = self._made.group_indices[groups], self._made.group_indices[groups + 1]
        try:
            drawn: Numbers = self._random.integers(low, high, dtype=np.int64)
        except ValueError as error:
            raise _changed(self._made, "group_indices") from error
        return drawn


def batches_in_order(
    made: MappedSet, size: int, rank: int, ranks: int, place: int
) -> Iterator[Chosen]:
    """Yield one rank's part of each batch, examples in order; in the last it may be empty."""
    own = size // ranks
    for first in range(place, made.examples, size):
        end = min(made.examples, first + size)
        rows = np.arange(first + rank * own, min(end, first + (rank + 1) * own), dtype=np.int64)
        yield Chosen(rows, owners_of(made, rows), end - first, end)


def owners_of(made: MappedSet, rows: Numbers) -> Numbers:
    """The puzzles of examples, int64 [n]; of damaged indices also numbers that no puzzle has."""
    indices = made.puzzle_indices
    # Another type of the wanted values would have NumPy copy the whole array.
    return np.searchsorted(indices, rows.astype(indices.dtype), "right") - 1


def _changed(made: MappedSet, field: str) -> BadInput:
    return BadInput(made.paths[field], "was changed after it was opened: open the dataset again")


def batch_of(
    made: MappedSet, metadata: PuzzleDatasetMetadata, rows: Numbers, owners: Numbers, size: int
) -> dict[str, Any]:
    """The tokens of examples, padded to `size` rows: int32 arrays by name."""
    if len(owners) and not 0 <= owners.min() <= owners.max() < len(made.puzzle_identifiers):
        raise _changed(made, "puzzle_indices")
    inputs = _tokens(made.inputs, rows, size, None)
    labels = _tokens(made.labels, rows, size, metadata.ignore_label_id)
    identifiers = np.empty(size, np.int32)
    identifiers[: len(rows)] = made.puzzle_identifiers[owners]
    inputs[len(rows) :] = metadata.pad_id
    labels[len(rows) :] = IGNORED
    identifiers[len(rows) :] = metadata.blank_identifier_id
    return {"inputs": inputs, "labels": labels, "puzzle_identifiers": identifiers}


def _tokens(
    tokens: Integers, rows: Numbers, size: int, ignored: int | None
) -> npt.NDArray[np.int32]:
    from gristmill.puzzles.domains.randomness import copy_tokens

    out = np.empty((size, tokens.shape[1]), np.int32)
    source, places = compiled_rows(tokens, rows)
    value, replaced = (0, 0) if ignored is None else (ignored, IGNORED)
    copy_tokens(source, places, np.int32(value), np.int32(replaced), out)
    return out


VERSION: Final = 1
BETWEEN: Final = -1
"""The number of the set between two passes."""
_SAME: Final = ("seed", "split", "global_batch_size", "test_set_mode", "epochs_per_iter")
_HASHED_AT_ONCE: Final = 1 << 20


class Position(NamedTuple):
    """Where a reader is: the set, `BETWEEN` two passes, and the next group or example."""

    iteration: int = 0
    set: int = BETWEEN
    place: int = 0


class Progress:
    """The position of a reader, shared with its worker; the pass begun last alone moves it."""

    NUMBERS: ClassVar = 9

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers
        self._view = np.asarray(numbers)
        self.now = self.begin = Position()

    @property
    def now(self) -> Position:
        """The position after the last batch that was given."""
        # A worker of the pass before may still write its position.
        return self.begin if self._is_loaded else Position(*self._view[:3].tolist())

    @now.setter
    def now(self, position: Position) -> None:
        self._view[:3] = position

    @property
    def begin(self) -> Position:
        """Where the pass began, or was continued."""
        return Position(*self._view[3:6].tolist())

    @begin.setter
    def begin(self, position: Position) -> None:
        self._view[3:6] = position

    @property
    def ahead(self) -> bool:
        """Whether a worker reads, which is ahead of the process that uses its batches."""
        return bool(self._view[6])

    @property
    def _is_loaded(self) -> bool:
        return bool(self._view[7])

    def begun(self, ahead: bool, end: Callable[[Position], int]) -> tuple[int, Position]:
        """Begin a pass, or continue a loaded one; `end` gives the counter at its end."""
        position = self.now
        if not self._is_loaded:
            # How far a worker was when its pass was left is chance, and differs by rank.
            position = Position(end(self.begin) if self.ahead else position.iteration)
        self._view[8] += 1
        self.now = self.begin = position
        self._view[6:8] = ahead, False
        return int(self._view[8]), position

    def move(self, number: int, position: Position) -> None:
        """Move to a position of a pass, unless a later one was begun or a state was loaded."""
        if self._view[8] == number:
            self.now = position

    def load(self, position: Position) -> None:
        """Have the next pass continue at a position."""
        self._view[8] += 1
        self.begin = position
        self._view[6:8] = False, True
        self.now = position

    def __getstate__(self) -> dict[str, Any]:
        return {"_numbers": self._numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._numbers = state["_numbers"]
        self._view = np.asarray(self._numbers)


def identity_of(generation: Generation, split: MappedSplit) -> str:
    """What tells the data from others: the data version, or a digest, the same in a copy."""
    if generation.data_version is not None:
        return generation.data_version
    digest = hashlib.sha256(split.metadata.text().encode())
    for made in split.sets:
        for field in names.FIELDS:
            array = getattr(made, field)
            digest.update(f"\0{made.name}\0{field}\0{array.dtype.str}\0{array.shape}\0".encode())
            if field in names.INDICES:
                for first in range(0, len(array), _HASHED_AT_ONCE):
                    part = array[first : first + _HASHED_AT_ONCE]
                    digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def state_of(data: str, config: Mapping[str, Any], position: Position) -> dict[str, Any]:
    """A state: an object of JSON, of the config that decides the order."""
    return {
        "version": VERSION,
        "data": data,
        **{name: config[name] for name in _SAME},
        **position._asdict(),
        **({} if config["test_set_mode"] else stream_of(generator_of(config["seed"]))),
    }


def position_of(state: Mapping[str, Any], data: str, config: Mapping[str, Any]) -> Position:
    """The position in a state."""
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        raise GristmillError(
            f"is not a state of version {VERSION} of a PuzzleDataset: {state!r:.100}"
        )
    expected = {"data": data, **{name: config[name] for name in _SAME}}
    for name, value in expected.items():
        found = state.get(name)
        if type(found) is not type(value) or found != value:
            what = "of other data" if name == "data" else "of another order of examples"
            raise GristmillError(
                f"the state is {what}: its {name} is {found!r:.80}, here it is {value!r:.80}: open"
                " the dataset that it was written for, in the same way, or begin a new pass"
            )
    if not config["test_set_mode"]:
        refuse_other_stream(state, generator_of(config["seed"]))
    for name, least in (("iteration", 0), ("set", BETWEEN), ("place", 0)):
        number = state.get(name)
        if type(number) is not int or not least <= number < 1 << 62:
            raise GristmillError(f"the state is damaged: {name} is {number!r:.50}")
    return Position(state["iteration"], state["set"], state["place"])


__all__ = ["PuzzleDataset", "PuzzleDatasetConfig", "StaleDataset"]

Item = tuple[str, dict[str, Any], int]
"""Name of the set, batch, and how many of its examples are no padding, over all ranks."""

_MOST_SEED = 1 << 62


@dataclass(frozen=True)
class PuzzleDatasetConfig:
    """How a dataset is read; the fields of the original reader, in its order.

    seed: of the order in training, at least 0.
    dataset_path: the folder with `train` and `test`.
    global_batch_size: examples of a batch, of all replicas.
    test_set_mode: every example once, in order, the last batch padded; False: as training reads.
    epochs_per_iter: how often one iteration over a set visits each of its groups, in training.
    rank, num_replicas: which part of each batch this process reads; global_batch_size must be a
        multiple of num_replicas.

    Raises ValueError for a value of another type or out of its range.
    """

    seed: int
    dataset_path: Path | str
    global_batch_size: int
    test_set_mode: bool
    epochs_per_iter: int
    rank: int
    num_replicas: int

    def __post_init__(self) -> None:
        least = {"seed": 0, "global_batch_size": 1, "epochs_per_iter": 1}
        for name, bound in {**least, "rank": 0, "num_replicas": 1}.items():
            value = getattr(self, name)
            if type(value) is not int or not bound <= value < _MOST_SEED:
                raise ValueError(f"{name} = {value!r:.80}: must be a whole number, {bound} or more")
        if type(self.test_set_mode) is not bool:
            raise ValueError(f"test_set_mode = {self.test_set_mode!r:.80}: must be True or False")
        if self.rank >= self.num_replicas:
            raise ValueError(f"rank {self.rank} of {self.num_replicas}: ranks count from 0")
        if self.global_batch_size % self.num_replicas:
            raise ValueError(
                f"global_batch_size {self.global_batch_size} must be a multiple of num_replicas"
                f" {self.num_replicas}: each replica reads the same number of examples"
            )


class NumpyForm:
    """What differs without torch: NumPy arrays, and no data loader."""

    def new_numbers(self, count: int) -> Any:
        """Integers that start at 0."""
        return np.zeros(count, np.int64)

    def given(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch as it is yielded."""
        return batch

    def is_worker(self) -> bool:
        """Whether this process is the worker of a data loader."""
        return False


@cache
def _with_torch(kind: Any) -> type[Any]:
    """A class of datasets, as datasets of torch: with tensors, and at most one worker."""
    import torch
    from torch.utils.data import IterableDataset, get_worker_info

    class TorchForm(NumpyForm):
        """Tensors, and numbers that the worker of a data loader shares."""

        def new_numbers(self, count: int) -> Any:
            return torch.zeros(count, dtype=torch.int64).share_memory_()

        def given(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {name: torch.from_numpy(column) for name, column in batch.items()}

        def is_worker(self) -> bool:
            """Whether this is the worker of a data loader. Raises for one of several."""
            worker = get_worker_info()
            if worker is not None and worker.num_workers > 1:
                raise GristmillError(
                    f"{worker.num_workers} workers would each give all batches of the puzzles: use"
                    " a data loader with num_workers=1 or 0"
                )
            return worker is not None

    own: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    own |= {"_form": TorchForm(), "_without_torch": kind}
    return type(kind.__name__, (kind, IterableDataset), own)


def _unread(kind: Any) -> Any:
    """A dataset without its state, for a pickle that is loaded."""
    return kind.__new__(kind)


class SplitReader(Reader[MappedSplit]):
    """What reads one split, which is opened by `start`."""

    def _place(self, folder: Path | str, split: str) -> None:
        """Note the folder and the split. Raises ValueError for another split."""
        if split not in names.SPLITS:
            raise ValueError(f"split {split!r}: must be one of {', '.join(names.SPLITS)}")
        self.folder, self.split = located(folder), split

    def open_files(self, opening: Opening) -> MappedSplit:
        """Map the arrays of the split."""
        return open_split(opening.folder(self.folder), self.split, opening.first)

    @property
    def metadata(self) -> PuzzleDatasetMetadata:
        """The metadata of the split."""
        return self.held.metadata


class PuzzleDataset(SplitReader):
    """The batches of one split, in the contract of the original reader.

    config: which examples are in which batch.
    split: "train" (default) or "test".
    verify: how much is compared with the record: "none", "sizes" (the default) or "hash".

        data = PuzzleDataset(PuzzleDatasetConfig(0, folder, 768, False, 10, rank, replicas))
        for set_name, batch, size in DataLoader(data, batch_size=None, num_workers=1):

    Each item is a tuple: the name of the set; `inputs` and `labels` [B, seq_len] and
    `puzzle_identifiers` [B], int32, where B is global_batch_size / num_replicas; and how many
    examples of the batch, of all replicas, are no padding. Labels equal to `ignore_label_id`, and
    those of padding, are -100. Where torch is installed the batches hold tensors and this is a
    torch IterableDataset, else they hold NumPy arrays.

    Token arrays and index arrays are mapped into memory. At most one worker of a data loader reads.
    A folder without a record, as the original builders make it, can be read too.

    Raises BadInput where a file is missing or damaged, StaleDataset where another version is
    published than was opened, ValueError for another split or level.
    """

    _form: ClassVar[Any] = NumpyForm()
    _without_torch: ClassVar[type[Any] | None] = None

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """An instance that is also an IterableDataset, where torch is installed."""
        if find_spec("torch") is None:
            return super().__new__(cls)
        kind: Any = cls
        made: Self = super().__new__(_with_torch(kind))
        return made

    def __init__(
        self, config: PuzzleDatasetConfig, split: str = "train", *, verify: Verify | bool = "sizes"
    ) -> None:
        self._place(config.dataset_path, split)
        self.config = config
        self._progress = Progress(self._form.new_numbers(Progress.NUMBERS))
        self.start(verify)

    def __iter__(self) -> Iterator[Item]:
        """Yield the batches of the next pass over all sets, or the rest of a continued one.

        In training each pass is in another order; one without any full batch has a UserWarning.
        Of several iterators in use, the state is that of the one that was begun last. Raises
        GristmillError in one of several workers, BadInput for a file that was damaged since it
        was opened.
        """
        worker = self._form.is_worker()
        size = self.config.global_batch_size // self.config.num_replicas
        own, begin = self._progress.begun(worker, self._end)
        is_empty = True
        for number, chosen, after in self._walk(begin):
            made = self.held.sets[number]
            batch = batch_of(made, self.metadata, chosen.rows, chosen.owners, size)
            self._progress.move(own, after)
            is_empty = False
            yield made.name, self._form.given(batch), chosen.examples
            del batch  # so that the next one can have its memory
        self._progress.move(own, Position(self._end(begin)))
        if is_empty and begin.set == BETWEEN and not self.config.test_set_mode:
            most = max((made.groups for made in self.held.sets), default=0) * self._epochs
            warnings.warn(
                f"no batch: a pass draws {most:,} puzzles of a set, one of each group in each "
                f"epoch, which do not fill a batch of {self.config.global_batch_size:,} examples; "
                "a batch that is not full is dropped: choose a smaller global_batch_size, or more "
                "epochs_per_iter",
                stacklevel=2,
            )

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The state of all ranks after a batch: an object of JSON, for a checkpoint.

        batches: how many batches of the pass were used, or since `load_state_dict`. It is needed
            where a worker of a data loader reads, because the worker is ahead. Default: those that
            this process was given.

        After the last batch of a pass its rest is empty: the pass that continues has no batch.
        Raises GristmillError where it is needed, ValueError for less than 0, and for more than the
        pass has.
        """
        position = self._progress.now
        if batches is not None:
            if batches < 0:
                raise ValueError(f"batches {batches}: must be 0 or more")
            begin = self._progress.begin
            used = [after for _, _, after in islice(self._walk(begin), batches)]
            if len(used) != batches:
                raise ValueError(f"batches {batches}: the pass has {len(used)}")
            position = used[-1] if used else begin
        elif self._progress.ahead and not self._form.is_worker():
            raise GristmillError(
                "a worker of a data loader reads ahead: give state_dict the number of batches of"
                " this pass that were used"
            )
        return state_of(self._data, self._order, position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state: the next pass is the rest of the one in it.

        state: of any rank, and of any number of replicas: the batches of all ranks together are
            the same.

        Raises GristmillError for a state of another dataset, seed, split, mode, batch size or
        number of epochs, and for one that is damaged.
        """
        position = position_of(state, self._data, self._order)
        sets = self.held.sets
        limits = [
            made.examples if self.config.test_set_mode else made.groups * self._epochs
            for made in sets
        ]
        limit = 0 if position.set == BETWEEN else dict(enumerate(limits)).get(position.set, -1)
        begun = 0 if self.config.test_set_mode else position.set + 1  # sets of this pass
        if position.place > limit or position.iteration < begun:
            raise GristmillError(f"the state is damaged: there is no {position}")
        self._progress.load(position)

    @property
    def _epochs(self) -> int:
        return self.config.epochs_per_iter

    @property
    def _order(self) -> dict[str, Any]:
        return {**asdict(self.config), "split": self.split}

    @cached_property
    def _data(self) -> str:
        return identity_of(self.generations[0], self.held)

    def _end(self, begin: Position) -> int:
        """The iteration counter at the end of a pass: every set counts, one without a batch too."""
        if self.config.test_set_mode:
            return begin.iteration
        return begin.iteration + len(self.held.sets) - 1 - begin.set

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle names the class without its base of torch, which the other process adds."""
        return _unread, (self._without_torch or type(self),), self.__getstate__()

    def _walk(self, begin: Position) -> Iterator[tuple[int, Chosen, Position]]:
        """Number of the set, examples of this rank, and position after each batch of a pass."""
        config, iteration = self.config, begin.iteration
        own = config.global_batch_size // config.num_replicas
        mine = slice(config.rank * own, (config.rank + 1) * own)
        for number, made in enumerate(self.held.sets):
            if number < begin.set:
                continue
            place = begin.place if number == begin.set else 0
            if config.test_set_mode:
                size, ranks = config.global_batch_size, config.num_replicas
                for chosen in batches_in_order(made, size, config.rank, ranks, place):
                    yield number, chosen, Position(iteration, number, chosen.place)
                continue
            iteration += number != begin.set
            batches = TrainBatches(
                *(made, config.seed, iteration, config.epochs_per_iter, config.global_batch_size)
            )
            for chosen in batches.chosen(place):
                own_part = chosen._replace(rows=chosen.rows[mine], owners=chosen.owners[mine])
                yield number, own_part, Position(iteration, number, chosen.place)
