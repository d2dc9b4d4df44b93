"""The base of the readers: a dataset that belongs to one generation, in every process."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from gristmill.reading.generation import Generation
from gristmill.reading.opening import Generations, Opening, opened
from gristmill.reading.verify_level import Verify, verify_level

Held = TypeVar("Held")


class Reader(Generic[Held]):
    """Opens files of published artifacts, and opens the same generation again after a pickle.

    A subclass implements `open_files` and calls `start`. What `open_files` returns is not pickled:
    a worker of a data loader opens the folders again by path at its first read. StaleDataset is
    raised there, and not while the pickle is loaded, because torch reports only the first of
    these to the training process.

    verify: how much is compared with the records.
    """

    verify: Verify
    _held: Held | None
    _generations: Generations

    def open_files(self, opening: Opening) -> Held:
        """Open all files and return what is kept of them, such as maps.

        opening: opens folders. If it is the first, contents are checked too.
        """
        raise NotImplementedError

    def start(self, verify: Verify | bool) -> None:
        """Open the files for the first time.

        verify: how much is compared with the records.

        Raises ValueError for another level, else as `opened`.
        """
        self.verify = verify_level(verify)
        self._held, self._generations = opened(self.open_files, self.verify)

    @property
    def held(self) -> Held:
        """What `open_files` returned in this process.

        Raises StaleDataset where another generation is published now.
        """
        if self._held is None:
            held, _ = opened(self.open_files, self.verify, self._generations)
            self._held = held
            return held
        return self._held

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The generation of each artifact that is read, in the order of opening."""
        return tuple(self._generations.values())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}
