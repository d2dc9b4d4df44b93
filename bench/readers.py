"""Plain data loaders over the readers, against reading samples one by one, in turns in one run.

Run from the checkout: python -m bench.readers [--rows N]. Exit status 1 where a required ratio is
missed: batches of 2048 rows at least 20 times as fast as the same rows one by one with torch's
default collate. Opening times at each level of verification are printed without a limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset, Subset

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


def rate(dataset: Any, samples: int, collate: Callable[[Any], Any] | None = None) -> float:
    """Samples a second of one epoch over random samples, in this process."""
    chosen = np.random.default_rng(0).integers(0, len(dataset), samples).tolist()
    loader = DataLoader(Subset(dataset, chosen), batch_size=BATCH, collate_fn=collate)
    start = time.perf_counter()
    for _ in loader:
        pass
    return samples / (time.perf_counter() - start)


def report(name: str, ours: list[float], theirs: list[float], least: float) -> bool:
    """Print the medians and the median ratio of the interleaved rounds."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    good = ratio >= least
    asked = f" (required {least:g}) {'ok' if good else 'MISSED'}" if least else ""
    print(
        f"{name}: {statistics.median(ours):,.0f} samples a second in batches,"
        f" {statistics.median(theirs):,.0f} one by one, ratio {ratio:.1f}{asked}"
    )
    return good


def bench_steps(root: Path, rows: int) -> bool:
    """Plain data loaders over a pack."""
    pack = write_pack(root / "pack", rows)
    steps = StepDataset(pack).as_torch()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(rate(steps, 50 * BATCH))
        theirs.append(rate(OneByOne(steps), 2 * BATCH))
    opening("opening the pack", lambda: StepDataset(pack, verify="none"))
    opening("  with sizes", lambda: StepDataset(pack))
    return report("2048 rows", ours, theirs, LEAST)


def bench_games(root: Path) -> bool:
    """Plain data loaders over a month."""
    pgn, dataset = root / "lichess_elite_2024-01.pgn", root / "elite_2024-01_game"
    write_month(pgn, "2024-01", 400, 1)
    validate([pgn], root / "valid")
    build_game_dataset(root / "valid", dataset)
    build_splice_cache(dataset, dataset / "runtime_splice_cache")
    samples = GameSpliceDataset(dataset)
    samples.vocabulary()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(rate(samples, 2 * BATCH))
        theirs.append(rate(OneByOne(samples), 2 * BATCH, samples.collate))
    opening("opening the month", lambda: GameSpliceDataset(dataset, verify="none"))
    opening("  with sizes", lambda: GameSpliceDataset(dataset))
    return report("chess samples", ours, theirs, 0)


def opening(name: str, opens: Callable[[], object]) -> None:
    """Print the median time of an opening."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        opens()
        times.append(time.perf_counter() - start)
    print(f"{name}: {statistics.median(times) * 1e3:.2f} ms")


def main() -> None:
    """All of it; see the module's head."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the pack")
    rows = parser.parse_args().rows
    warnings.simplefilter("ignore")  # torch warns about itself
    with tempfile.TemporaryDirectory() as scratch:
        good = [bench_steps(Path(scratch), rows), bench_games(Path(scratch))]
    if not all(good):
        sys.exit("missed a required ratio")


if __name__ == "__main__":
    main()
