"""The state of a reader, as checkpoints hold it. Source: docs/formats/puzzles.md#reader-state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from gristmill.contract import GristmillError
from gristmill.puzzles.format import names
from gristmill.puzzles.read.batches import generator_of
from gristmill.puzzles.read.split_files import MappedSplit
from gristmill.reading.generation import Generation
from gristmill.reading.reader import refuse_other_stream, stream_of

VERSION: Final = 1
BETWEEN: Final = -1
"""The number of the set between two passes."""
_SAME: Final = ("seed", "split", "global_batch_size", "test_set_mode", "epochs_per_iter")
_HASHED_AT_ONCE: Final = 1 << 20


class Position(NamedTuple):
    """Where a reader is.

    set: number of the set that is read; `BETWEEN` where no pass was begun, or it has ended.
    place: in training the next place in the group order, in testing the next example.
    """

    iteration: int = 0
    set: int = BETWEEN
    place: int = 0


class Progress:
    """The position of a reader, where its worker can change it.

    numbers: `NUMBERS` integers as an array, or as a tensor in memory that a worker shares.

    Every pass has a number. Only the one that was begun last moves the position: an iterator that
    is still in use beside it, or after a state was loaded, does not.
    """

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
        """Begin a pass, or continue the one of a loaded position.

        end: returns the iteration counter at the end of a pass that begins at a position.
        """
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
    """What tells the data of one dataset from that of another, the same in every copy of it.

    With a record it is the data version. Without one it is a digest of metadata, index arrays and
    types of the tokens.
    """
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
    """A state: an object of JSON.

    config: seed, split, global_batch_size, test_set_mode and epochs_per_iter.
    """
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
