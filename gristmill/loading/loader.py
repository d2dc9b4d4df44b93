"""Loader: the steps of one rank of a run, which resumes anywhere and replays any step.

No torch is imported without workers and with `form="numpy"`. Source: docs/formats/loading.md#steps.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.plan import (
    ENDS,
    Change,
    Ends,
    Plan,
    Step,
    count_of,
    refuse_uneven,
    share,
    step_after,
    step_at,
    steps_from,
)
from gristmill.loading.reads import FORMS, Read, Reads
from gristmill.loading.source import whole
from gristmill.loading.state import resumed, state_of

Batch = dict[str, Any]
_AHEAD: Final = 8192
"""Positions of this rank whose samples are found at once: small arrays cost more than work."""


class Loader:
    """Batches of one rank, in the order of a plan.

    plan: what the run is made of.
    batch: samples of a step over all ranks.
    rank, world: of data parallelism alone; default one rank.
    micro: samples of a micro-batch of this rank: a step is given in several; default None, whole.
    workers: processes that read ahead, by torch's DataLoader; default 0.
    start_method: of the workers: "fork", "spawn" or "forkserver"; default torch's.
    ends: of the last step where samples are too few: "short" (default), "drop", or "pad", which
        continues with the plan and marks in `real` what is beyond the end.
    uneven: whether ranks that do not divide the batch may have shares that differ by one.
    form: of the columns: "torch" (default) tensors, "numpy" arrays.
    collate: takes the columns, returns what is given instead; default None.
    ledger: a file that gets a line of JSON at each start; default None.

    A batch has the columns of the source, and `source`, `number` int64 [B]: which sample; `key`
    [B]: 64 random bits of the draw for augmentations; `position`, `step`: ints; `real` bool [B].

    `for batch in loader` gives the steps from the position on. A state is of what was given, not
    of what workers have read ahead. `loader[step]` reads any step again.

    Raises ValueError for an argument outside its range, GristmillError for ranks that do not divide
    the batch and for a mixture of sources with different columns.
    """

    def __init__(
        self,
        plan: Plan,
        batch: int,
        *,
        rank: int = 0,
        world: int = 1,
        micro: int | None = None,
        workers: int = 0,
        start_method: str | None = None,
        ends: Ends = "short",
        uneven: bool = False,
        form: Literal["torch", "numpy"] = "torch",
        collate: Callable[[Batch], Any] | None = None,
        ledger: Path | str | None = None,
    ) -> None:
        rules = (
            ("rank", rank, 0 <= rank < world, f"from 0 to world - 1, which is {world - 1}"),
            ("batch", batch, batch >= 1, "a number of samples, from 1"),
            ("micro", micro, micro is None or micro >= 1, "None or a number of samples, from 1"),
            ("workers", workers, workers >= 0, "a number of processes, from 0"),
            ("ends", ends, ends in ENDS, f"one of {', '.join(map(repr, ENDS))}"),
            ("form", form, form in FORMS, f"one of {', '.join(map(repr, FORMS))}"),
        )
        for name, value, is_right, rule in rules:
            if not is_right:
                raise ValueError(f"{name}={value!r}: must be {rule}")
        if not uneven:
            refuse_uneven(batch, world)
        self.plan, self.rank, self.world, self.micro = plan, rank, world, micro
        self.workers, self.start_method, self.ends = workers, start_method, ends
        self._uneven, self._form, self._collate = uneven, form, collate
        self._ledger = None if ledger is None else Path(ledger)
        self._changes = [Change(0, 0, batch)]
        self._batch, self._position = batch, 0

    @property
    def position(self) -> int:
        """Samples that the run has given, over all ranks."""
        return self._position

    @property
    def changes(self) -> tuple[Change, ...]:
        """The batch sizes of the run, each from a step and a position on."""
        return tuple(self._changes)

    @property
    def step(self) -> int:
        """The number of the next step."""
        return step_after(self._changes, self._position)

    def __len__(self) -> int:
        """Steps from the position on; the same on all ranks."""
        return count_of(self._changes, self._position, self.plan.length, self.ends)

    def __iter__(self) -> Iterator[Any]:
        self._write_ledger()
        steps = steps_from(self._changes, self._position, self.plan.length, self.ends)
        reader, reads = self._reader, self._reads(steps)
        given_each: Iterable[list[Any]] = ([read, reader[read]] for read in reads)
        if self.workers:
            from gristmill.loading.workers import read_ahead

            given_each = read_ahead(reader, reads, self.workers, self.start_method)
        for given in given_each:
            read = given[0]
            if read.is_last:
                self._position = min(read.step.position + read.step.size, self.plan.length)
            yield given.pop()  # no batch is kept, so that the next one can have its memory

    def __getitem__(self, step: int) -> Any:
        """A step by number, as it was or will be given; with `micro` the step as one batch.

        Raises IndexError for a step outside the run.
        """
        found = step_at(self._changes, step, self.plan.length, self.ends)
        (read,) = self._reads(iter([found]), whole=True)
        return self._reader[read]

    def numbers(self, step: int) -> list[tuple[int, int]]:
        """Source and sample number of each sample of a step over this rank; reads nothing."""
        found = step_at(self._changes, step, self.plan.length, self.ends)
        sources, numbers = self.plan.at(share(found, self.rank, self.world))
        return list(zip(sources.tolist(), numbers.tolist(), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """The state after the last step that was given: an object of JSON, equal on all ranks."""
        return state_of(self.plan, self._changes, self._position)

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: Literal["refuse", "continue"] = "refuse"
    ) -> None:
        """Go on where a state was written, at any number of ranks, workers and any batch size.

        changed: "refuse" (default) other data; "continue" with it, from the state's position on.

        Raises OtherData for other data, another seed, window, order or version, and GristmillError
        for a damaged state.
        """
        self.plan, self._changes, self._position = resumed(self.plan, state, changed)
        self._begin()

    def mix(self, mixture: Any) -> None:
        """Go on with another mixture from the position on; see `Plan.changed`."""
        self.plan = self.plan.changed(self._position, mixture)
        self._begin()

    def _begin(self) -> None:
        """Have a step of this loader's size begin at the position, also after a short one."""
        last, position = self._changes[-1], self._position
        is_inside = (position - last.position) % last.size and position < self.plan.length
        if last.size != self._batch or is_inside:
            kept = [each for each in self._changes if each.position < position]
            self._changes = [*kept, Change(self.step, position, self._batch)]

    @property
    def _reader(self) -> Reads:
        (_, quotas), sources = self.plan.segments[-1], [whole(each) for each in self.plan.sources]
        like = next(number for number, quota in enumerate(quotas) if quota)
        return Reads(sources, self._form, self._collate, like)

    def _reads(self, steps: Iterator[Step], whole: bool = False) -> Iterator[Read]:
        """Yield what is read for each batch; the samples of many steps are found at once."""
        for some in _chunks(steps, _AHEAD * self.world):
            positions = [share(step, self.rank, self.world) for step in some]
            sources, numbers, bits = self.plan.drawn_at(np.concatenate(positions))
            first = 0
            for step, own in zip(some, positions, strict=True):
                size = len(own) if whole or self.micro is None else self.micro
                for begin in range(0, max(len(own), 1), max(size, 1)):
                    stop = min(begin + size, len(own))
                    at = slice(first + begin, first + stop)
                    real = own[begin:stop] < self.plan.length
                    is_last = stop == len(own)
                    yield Read(step, sources[at], numbers[at], bits[at], real, is_last)
                first += len(own)

    def _write_ledger(self) -> None:
        if self._ledger is None or self.rank:
            return
        state = self.state_dict()
        line = {
            "position": self._position,
            "step": state["step"],
            "state_sha256": hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest(),
            "world": self.world,
            "workers": self.workers,
            "batch": self._batch,
            "gristmill": state["gristmill"],
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        with self._ledger.open("a") as file:
            file.write(json.dumps(line) + "\n")


class BatchSampler:
    """Lists of sample numbers, for a reader and transforms of one's own.

    plan: of one source; numbers of several count on from source to source, as torch's
        ConcatDataset has them.
    The other arguments are those of `Loader`.

        sampler = BatchSampler(Plan(data.source(), seed=7), 256, rank=rank, world=world)
        for batch in DataLoader(data, batch_sampler=sampler, num_workers=2): ...

    `state_dict(step)` is the state after that many steps, since a data loader asks ahead.
    """

    def __init__(
        self,
        plan: Plan,
        batch: int,
        *,
        rank: int = 0,
        world: int = 1,
        ends: Ends = "short",
        uneven: bool = False,
    ) -> None:
        self._loader = Loader(
            plan, batch, rank=rank, world=world, ends=ends, uneven=uneven, form="numpy"
        )

    def __len__(self) -> int:
        """Batches from the position on."""
        return len(self._loader)

    def __iter__(self) -> Iterator[list[int]]:
        plan = self._loader.plan
        before = np.cumsum([0, *(int(whole(source).cuts[-1]) for source in plan.sources)])
        steps = steps_from(
            self._loader._changes, self._loader.position, plan.length, self._loader.ends
        )
        for read in self._loader._reads(steps):
            yield (read.numbers + before[read.sources]).tolist()

    def state_dict(self, given: int) -> dict[str, Any]:
        """The state after `given` batches of this iteration, as the training loop counted them.

        Raises GristmillError for more than there are.
        """
        if not 0 <= given <= len(self):
            raise GristmillError(f"{given} batches of {len(self)}: count those since the start")
        position = self._loader.position + given * self._loader._batch
        return state_of(
            self._loader.plan, self._loader._changes, min(position, self._loader.plan.length)
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was written; as `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)


def _chunks(steps: Iterable[Step], most: int) -> Iterator[list[Step]]:
    """Yield steps together, up to a number of positions, the first alone."""
    steps = iter(steps)
    for first in steps:
        yield [first]
        more = max(most // max(first.size, 1), 1)
        while some := list(itertools.islice(steps, more)):
            yield some
