"""Projections to Parquet against copies of the same files, in turns in one run.

Run from the checkout: python -m bench.projection. The files are arrays of puzzles like ARC and a
pack of 2048; the copy is `shutil.copyfileobj` of each, 16 MiB at a time.
Exit status 1 where a projection has less than half the bytes per CPU second of the copy, or takes
more than 256 MiB of memory of its own.
"""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.puzzles_reader import write_dataset
from gristmill.exports.project import written
from gristmill.exports.table import Split
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.read.exported import splits as steps_of
from gristmill.puzzles.read.exported import splits as puzzles_of

ROUNDS = 5
LEAST = 0.5
MOST_MIB = 256


def seconds(work: Callable[[Path], object], root: Path) -> float:
    """CPU seconds of work that writes into a new folder."""
    out = root / "out"
    out.mkdir()
    start = time.process_time()
    work(out)
    taken = time.process_time() - start
    shutil.rmtree(out)
    return taken


def copied(files: Sequence[Path], out: Path) -> None:
    """Copy files."""
    for number, path in enumerate(files):
        with path.open("rb") as source, (out / str(number)).open("xb", buffering=0) as target:
            shutil.copyfileobj(source, target, 16 << 20)


def compare(name: str, files: Sequence[Path], splits: Sequence[Split], root: Path) -> bool:
    """Measure both in turns; print the bytes per CPU second and the median ratio."""
    seconds(lambda out: written(splits, out), root)
    pairs = [
        (
            seconds(lambda out: copied(files, out), root),
            seconds(lambda out: written(splits, out), root),
        )
        for _ in range(ROUNDS)
    ]
    ratio = statistics.median(copy / own for copy, own in pairs)
    total = sum(path.stat().st_size for path in files) / 1e6
    rates = [total / statistics.median(column) for column in zip(*pairs, strict=True)]
    good = ratio >= LEAST
    print(
        f"{name}, {total:,.0f} MB: copy {rates[0]:,.0f} MB, projection {rates[1]:,.0f} MB per CPU "
        f"second, ratio {ratio:.2f} (required {LEAST:g}) {'ok' if good else 'MISSED'}"
    )
    return good


def main() -> None:
    """Compare both kinds; exit with 1 where a requirement is missed."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        arc = write_dataset(root / "arc", 900, 12, 200, 100, 5)
        (arc / "identifiers.json").write_text(json.dumps([str(at) for at in range(20_000)]))
        pack = root / "pack"
        pack.mkdir()
        chance = np.random.default_rng(0)
        octets = chance.integers(0, 256, 4_000_000 * STEP_ROW_DTYPE.itemsize, np.uint8)
        np.save(pack / "steps.npy", octets.view(STEP_ROW_DTYPE))
        del octets
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        arrays = sorted(arc.glob("*/*.npy"))
        good = [
            compare("puzzles like ARC", arrays, [*puzzles_of("puzzles/arc", arc)], root),
            compare("pack of 2048", [pack / "steps.npy"], [*steps_of("macroxue/pack", pack)], root),
        ]
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory of its own: {grown:,.0f} MiB (allowed {MOST_MIB}, mapped files included)")
    sys.exit(0 if all(good) and grown <= MOST_MIB else 1)


if __name__ == "__main__":
    main()
