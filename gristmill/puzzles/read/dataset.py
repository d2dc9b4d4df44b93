"""The dataset that training imports: batches as those of the original `PuzzleDataset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from gristmill.contract import GristmillError
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.read.batches import (
    Chosen,
    TrainBatches,
    batch_of,
    batches_in_order,
    warn_of_no_batch,
)
from gristmill.puzzles.read.split_files import MappedSplit, open_split
from gristmill.puzzles.read.state import (
    BETWEEN,
    Position,
    Progress,
    identity_of,
    position_of,
    state_of,
)
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import Opening
from gristmill.reading.reader import Reader, located

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
    """What differs without torch: NumPy arrays, and no data loader. See also `torch_form.py`."""

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
    """A class of datasets, as datasets of torch."""
    from gristmill.puzzles.read.torch_form import IterableDataset, TorchForm

    own: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    own |= {"_form": TorchForm(), "_without_torch": kind}
    return type(kind.__name__, (kind, IterableDataset), own)


def _unread(kind: Any) -> Any:
    """A dataset without its state, for a pickle that is loaded."""
    return kind.__new__(kind)


class PuzzleDataset(Reader[MappedSplit]):
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
        self,
        config: PuzzleDatasetConfig,
        split: str = "train",
        *,
        verify: Verify | bool = "sizes",
    ) -> None:
        if split not in names.SPLITS:
            raise ValueError(f"split {split!r}: must be one of {', '.join(names.SPLITS)}")
        self.config, self.split = config, split
        self.folder = located(config.dataset_path)
        self._progress = Progress(self._form.new_numbers(Progress.NUMBERS))
        self.start(verify)

    def open_files(self, opening: Opening) -> MappedSplit:
        """Map the arrays of the split."""
        return open_split(opening.folder(self.folder), self.split, opening.first)

    @property
    def metadata(self) -> PuzzleDatasetMetadata:
        """The metadata of the split."""
        return self.held.metadata

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
            warn_of_no_batch(self.held.sets, self._epochs, self.config.global_batch_size)

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
