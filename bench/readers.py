"""Plain data loaders over the readers, against reading samples one by one, in turns in one run.

Run from the checkout: python -m bench.readers [--rows N] [--only PART]. Exit status 1 where a
required ratio is missed: batches of 2048 rows at least 20 times as fast as the same rows one by one
with torch's default collate. Opening times at each level of verification are printed without a
limit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset, Subset

from bench import kit
from bench.macroxue_pools import write_pack
from gristmill.chess import GameSpliceDataset, build_game_dataset, build_splice_cache, validate
from gristmill.chess.samples import write_month
from gristmill.macroxue import StepDataset

ROUNDS = 3
BATCH = 4096
LEAST = 20


class OneByOne(Dataset[Any]):
    """A dataset without `__getitems__`, so that torch reads and collates sample by sample."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        return self.dataset[number]


def epoch(dataset: Any, samples: int, collate: Callable[[Any], Any] | None = None) -> kit.Work:
    """An epoch over random samples, in this process."""
    chosen = np.random.default_rng(0).integers(0, len(dataset), samples).tolist()

    def work() -> int:
        for _ in DataLoader(Subset(dataset, chosen), batch_size=BATCH, collate_fn=collate):
            pass
        return samples

    return work


def compare(what: str, batches: kit.Work, one_by_one: kit.Work, least: float | None) -> None:
    """Compare batches with samples one by one, by the clock."""
    kit.compare(
        *(f"{what} in batches and one by one", batches, one_by_one, "samples a second"),
        least=least,
        rounds=ROUNDS,
        clock=time.perf_counter,
        warm=False,
    )


def steps(given: kit.Given) -> None:
    """Plain data loaders over a pack."""
    pack = write_pack(given.scratch / "pack", given.rows)
    data = StepDataset(pack).as_torch()
    opening("opening the pack", lambda: StepDataset(pack, verify="none"))
    opening("  with sizes", lambda: StepDataset(pack))
    compare("2048 rows", epoch(data, 50 * BATCH), epoch(OneByOne(data), 2 * BATCH), LEAST)


def games(given: kit.Given) -> None:
    """Plain data loaders over a month."""
    pgn = given.scratch / "lichess_elite_2024-01.pgn"
    dataset = given.scratch / "elite_2024-01_game"
    write_month(pgn, "2024-01", 400, 1)
    validate([pgn], given.scratch / "valid")
    build_game_dataset(given.scratch / "valid", dataset)
    build_splice_cache(dataset, dataset / "runtime_splice_cache")
    samples = GameSpliceDataset(dataset)
    samples.vocabulary()
    opening("opening the month", lambda: GameSpliceDataset(dataset, verify="none"))
    opening("  with sizes", lambda: GameSpliceDataset(dataset))
    plain = epoch(OneByOne(samples), 2 * BATCH, samples.collate)
    compare("chess samples", epoch(samples, 2 * BATCH), plain, None)


def opening(name: str, opens: Callable[[], object]) -> None:
    """Print the median time of an opening."""
    times = (kit.spent(opens, time.perf_counter) for _ in range(20))
    print(f"{name}: {median(times) * 1e3:.2f} ms")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch warns about itself
    kit.main(__doc__, steps, games, rows=1_000_000)
