"""What the puzzle benchmarks share: one published build, and a plain one's files."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import kit, publishing
from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Subject
from gristmill.provenance import Input, config_fields
from gristmill.publish.build import Attempt


@dataclass(frozen=True)
class Built:
    """Examples of a published dataset, and the seconds of its builder, its laws and all."""

    examples: int
    make: float
    laws: float
    whole: float


def published(
    root: Path,
    asset: str,
    config: Any,
    make: Callable[[Attempt], Summary],
    inputs: Sequence[Input] = (),
    clock: kit.Clock = time.process_time,
) -> Built:
    """Build and publish a dataset as the asset does."""
    taken: dict[str, float] = {}

    def made(attempt: Attempt) -> Summary:
        begun = clock()
        summary = make(attempt)
        taken["make"] = clock() - begun
        return summary

    def laws(folder: Path) -> list[Violation]:
        begun = clock()
        found = [*families.check(asset, Subject(folder, config=config_fields(config)))]
        taken["laws"] = clock() - begun
        return found

    begun = clock()
    done = publishing.published(
        *(root, asset, "bench", config, made, inputs),
        artifact=f"{asset}-bench",
        laws=laws,
        shared=False,
    )
    examples = sum(int(done.record.counts[f"examples/{split}"]) for split in ("train", "test"))
    return Built(examples, taken["make"], taken["laws"], clock() - begun)


def write_plain(folder: Path, inputs: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> int:
    """Write one split of a plain build; the number of examples.

    inputs, labels: [examples, cells]. groups: where each group begins, and the end of the last.
    """
    folder.mkdir(parents=True)
    count = len(inputs)
    arrays = {
        "inputs": inputs.astype(np.int32),
        "labels": labels.astype(np.int32),
        "puzzle_identifiers": np.zeros(count, np.int32),
        "puzzle_indices": np.arange(count + 1, dtype=np.int32),
        "group_indices": groups.astype(np.int32),
    }
    for name, array in arrays.items():
        np.save(folder / f"all__{name}.npy", array)
    (folder / "dataset.json").write_text(json.dumps({"seq_len": inputs.shape[1], "sets": ["all"]}))
    return count


def beside_loop(
    build: Callable[[Path], Built], loop: Callable[[Path], int], given: kit.Given
) -> tuple[float, float]:
    """Print the laws' share of a build; its median rate, and that in rates of a loop.

    build, loop: write into a new folder.
    """
    shares = []

    def ours(folder: Path) -> int:
        done = build(folder)
        shares.append(done.laws / done.make)
        return done.examples

    rates = []
    for number in range(given.rounds + 1):
        pair = []
        for work in (ours, loop):
            folder = given.scratch / f"{work.__name__}{number}"
            folder.mkdir()
            pair.append(kit.rate(partial(work, folder)))
            shutil.rmtree(folder)
        rates.append(pair)
    kit.bounded("laws by the build", median(shares[1:]), most=0.5)
    # In the first round kernels are compiled, and modules imported.
    own, other = zip(*rates[1:], strict=True)
    print(f"{median(own):,.0f} examples per CPU second, the loop {median(other):,.0f}")
    return median(own), kit.ratio(own, other)
