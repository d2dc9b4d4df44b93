"""A training loop that can be killed anywhere: it notes each step, and saves its state."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.loading import Loader, read_mix

BATCH, EACH_STATE = 6, 2
STEPS, STATE, DONE = "steps.txt", "state.json", "done"


@dataclass(frozen=True)
class Run:
    """A run by a mix file.

    folder: of the run, with `mix.toml`; the loop writes its files there.
    data: the data root.
    """

    folder: Path
    data: Path

    def loaders(self, world: int) -> list[Loader]:
        """A loader of each rank, where the last saved state leaves off."""
        state, loaders = self.folder / STATE, []
        for rank in range(world):
            plan = read_mix(self.folder / "mix.toml", self.data)
            loader = Loader(plan, BATCH, rank=rank, world=world, form="numpy")
            if state.exists():
                loader.load_state_dict(json.loads(state.read_text())["loader"])
            loaders.append(loader)
        return loaders

    def lines(self, world: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The line of each step, the same at any number of ranks, and the state after it."""
        loaders = self.loaders(world)
        for batches in zip(*loaders, strict=True):
            states = [loader.state_dict() for loader in loaders]
            assert all(state == states[0] for state in states)
            yield _line(batches), states[0]

    def train(self, world: int) -> None:
        """Go on from the last saved state to the end of the run."""
        with (self.folder / STEPS).open("ab") as steps:
            steps.truncate(self._kept())
            for number, (line, state) in enumerate(self.lines(world)):
                steps.write(line.encode())
                steps.flush()
                if number % EACH_STATE == 0:
                    self.save(state, steps.tell())
        (self.folder / DONE).touch()

    def _kept(self) -> int:
        """Bytes of the lines that the saved state knows."""
        state = self.folder / STATE
        return int(json.loads(state.read_text())["kept"]) if state.exists() else 0

    def save(self, state: Mapping[str, Any], kept: int) -> None:
        """Save a state of the loaders and how many bytes of lines it knows, all or nothing."""
        unfinished = self.folder / f"{STATE}.{os.getpid()}"
        unfinished.write_text(json.dumps({"loader": state, "kept": kept}))
        unfinished.replace(self.folder / STATE)


def _line(batches: tuple[Mapping[str, Any], ...]) -> str:
    """The samples of a step, and a hash over all columns of each, whatever its rank pads to."""
    rows = [
        (int(batch["source"][at]), int(batch["number"][at]), _hash(batch, at))
        for batch in batches
        for at in range(len(batch["number"]))
    ]
    return json.dumps([int(batches[0]["step"]), rows]) + "\n"


def _hash(batch: Mapping[str, Any], at: int) -> str:
    found = hashlib.sha256()
    for name in sorted(batch):
        if getattr(batch[name], "ndim", 0):
            row = np.atleast_1d(batch[name][at])
            # Labels are filled with -100, all else with 0.
            own = row[: batch["length"][at]] if "length" in batch else np.trim_zeros(row, "b")
            found.update(name.encode() + own.tobytes())
    return found.hexdigest()[:12]


def train(folder: str, data: str, world: int) -> None:
    """Run the loop; what a process is started with."""
    Run(Path(folder), Path(data)).train(world)
