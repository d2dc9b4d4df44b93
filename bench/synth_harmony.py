"""SYNTH, raw files to Harmony shards: our build beside pyarrow alone.

Raw files of distinct rows (see `distinct_text.py`) become one published Harmony shard: read in a
child process, converted, written, hashed, its laws checked. Beside it (a) pyarrow alone, which
reads the same columns of the same files and writes the same table with the same settings; (b) two
workers beside two independent processes; (c) the peak memory at two sizes. Seconds are CPU
seconds, those of the child process included, but for (b). Ends with status 1 beyond a limit.

    python -m bench.synth_harmony [--rows 40000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from bench.cpu_seconds import cpu_seconds
from bench.distinct_text import Text, raw_table
from gristmill import families
from gristmill.families import Subject
from gristmill.provenance import Input
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.raw.files import TEXTS

HERE = Path(__file__).resolve().parent.parent
DROP = "drops/synth/bench"
ASSET = "synth/harmony"
_FILE_ROWS = 20_000
_RATE = 0.5
_TWO = 0.85
# What four times the rows may cost in memory: the allocator's noise, not a share of the rows.
_GROWTH = 1.2


def write_drop(root: Path, rows: int) -> list[Path]:
    """Raw files of distinct rows in a data root; one row in forty has no answer."""
    folder, text = root / DROP, Text()
    folder.mkdir(parents=True)
    paths = []
    for number, first in enumerate(range(0, rows, _FILE_ROWS)):
        table = raw_table(text, min(_FILE_ROWS, rows - first), first)
        at = table.schema.get_field_index("synthetic_answer")
        answers = table["synthetic_answer"].to_pylist()
        answers[::40] = [None] * len(answers[::40])
        table = table.set_column(at, table.schema.field(at), [answers])
        paths.append(folder / f"synth_{number:03d}.parquet")
        pq.write_table(table, paths[-1], compression="zstd")
    return paths


@cache
def hashed(root: Path) -> tuple[Input, ...]:
    """The raw files as inputs: they are hashed when a drop arrives, not by a build."""
    files = sorted((root / DROP).iterdir())
    return tuple(raw_inputs(root, files, "synth/raw", "bench", {}))


def published(root: Path, workers: int = 1) -> Path:
    """Build and publish the shard as the asset does; returns it."""
    files = sorted((root / DROP).iterdir())
    config = HarmonyConfig(num_shards=1, workers=workers)
    done = publish(
        Build(
            root=root,
            artifact="synth_harmony",
            asset=ASSET,
            partition="00",
            code_version=HarmonyConfig.CODE_VERSION,
            config=config,
            inputs=hashed(root),
            make=lambda attempt: to_harmony(files, attempt.out, 0, config, attempt.parts),
            laws=lambda folder: families.check(ASSET, Subject(folder, "00")),
            shared=True,
        )
    )
    return done.folder / "synth_harmony_shard_00.parquet"


def by_pyarrow(files: list[Path], shard: Path, out: Path) -> Callable[[], None]:
    """Reads the columns of the raw files, and writes the table of the shard."""
    table = pq.read_table(shard)
    columns = [*TEXTS, *HarmonyConfig().metadata_fields]
    group = HarmonyConfig().rows_per_group

    def work() -> None:
        for file in files:
            with pq.ParquetFile(file, pre_buffer=False) as parquet:
                for _ in parquet.iter_batches(1000, columns=columns, use_threads=False):
                    pass
        with pq.ParquetWriter(out, table.schema, compression="zstd") as writer:
            for first in range(0, len(table), group):
                writer.write_table(table.slice(first, group), row_group_size=group)

    return work


def children() -> list[int]:
    """Process ids of the children of this process."""
    lists = Path("/proc/self/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def timed(work: Callable[[], object]) -> float:
    """CPU seconds that `work` takes."""
    before = cpu_seconds()
    work()
    return cpu_seconds() - before


def missed(what: str, ratio: float, floor: float) -> list[str]:
    """A line that says so where the ratio is below its floor."""
    return [] if ratio >= floor else [f"{what}: {ratio:.3f}, floor {floor}"]


def against_pyarrow(root: Path, files: list[Path], rounds: int) -> list[str]:
    """Rate of our published build over that of pyarrow alone."""
    # The first build loads compiled code and starts the child.
    theirs = by_pyarrow(files, published(root), root / "pyarrow.parquet")
    ratios = []
    for number in range(rounds):
        # Half before and half after, so that a machine that slows down favours nobody.
        before = timed(theirs)
        _forget(root)
        ours = timed(lambda: published(root))
        after = timed(theirs)
        ratios.append((before + after) / 2 / ours)
        print(
            f"  round {number + 1}: pyarrow alone {(before + after) / 2:.2f} s, raw files to "
            f"published shard {ours:.2f} s"
        )
    ratio = median(ratios)
    print(f"build over pyarrow alone: {ratio:.3f} of its rate (CPU); floor {_RATE}")
    return missed("build over pyarrow alone", ratio, _RATE)


def _forget(root: Path) -> None:
    """Remove what a build published."""
    shutil.rmtree(root / "synth_harmony")


def against_two(root: Path, scratch: Path, rounds: int) -> list[str]:
    """Two workers on a shard over two independent processes, each on half of its raw files.

    By the clock, so it needs an idle machine. Both sides convert the same rows once, and start
    from nothing: the shard is so large that the start of a process takes a few per cent.
    """
    files = sorted((root / DROP).iterdir())

    def seconds(shares: list[list[Path]], workers: int) -> float:
        copies = [scratch / f"process_{number}" for number in range(len(shares))]
        for share, copy in zip(shares, copies, strict=True):
            linked(share, copy)
        began = time.perf_counter()
        running = [child("build", copy, workers) for copy in copies]
        for process in running:
            process.wait()
        taken = time.perf_counter() - began
        for copy in copies:
            shutil.rmtree(copy)
        return taken

    ratios = []
    for number in range(rounds):
        two, workers = seconds([files[::2], files[1::2]], 1), seconds([files], 2)
        ratios.append(two / workers)
        print(f"  round {number + 1}: two processes {two:.2f} s, two workers {workers:.2f} s")
    ratio = median(ratios)
    print(
        f"two workers over two independent processes: {ratio:.3f} of their joint rate; floor {_TWO}"
    )
    return missed("two workers over two processes", ratio, _TWO)


def memory(scratch: Path, rows: int) -> list[str]:
    """Peak memory of one build and its child at two sizes: four times the rows, a fifth more."""
    peaks = []
    for size in (rows // 4, rows):
        root = scratch / f"{size}"
        write_drop(root, size)
        linked(sorted((root / DROP).iterdir()), scratch / "peak")
        process = child("peak", scratch / "peak", 1, stdout=subprocess.PIPE)
        peaks.append(int(process.communicate()[0]) / 1e6)
        shutil.rmtree(scratch / "peak")
    grown = peaks[1] / peaks[0]
    print(
        f"peak memory: {peaks[0]:.0f} MB at {rows // 4:,} rows, {peaks[1]:.0f} MB at {rows:,}"
        f" ({grown:.2f}x); ceiling {_GROWTH}x"
    )
    return [] if grown <= _GROWTH else [f"peak memory: {grown:.3f}x, ceiling {_GROWTH}x"]


def linked(files: list[Path], root: Path) -> None:
    """A data root with a drop of these raw files."""
    (root / DROP).mkdir(parents=True)
    for file in files:
        (root / DROP / file.name).hardlink_to(file)


def child(
    what: str, root: Path, workers: int, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    """A process that builds the shard of a data root."""
    return subprocess.Popen(
        [sys.executable, "-m", "bench.synth_harmony", "--child", what, str(root), str(workers)],
        cwd=HERE,
        stdout=stdout,
    )


def run_child(what: str, root: str, workers: str) -> None:
    published(Path(root), int(workers))
    if what == "peak":
        # Not ru_maxrss: a child inherits its parent's.
        peaks = []
        for process in ("self", *children()):
            status = Path(f"/proc/{process}/status").read_text()
            peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
        print(sum(peaks) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["pyarrow", "two", "memory"])
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*arguments.child)
        return
    misses: list[str] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as folder:
        scratch = Path(folder)
        if arguments.only in (None, "pyarrow"):
            root = scratch / "root"
            misses += against_pyarrow(root, write_drop(root, arguments.rows), arguments.rounds)
            shutil.rmtree(root)
        if arguments.only in (None, "two"):
            # So much that what a process needs to start matters as little as in the full run.
            root = scratch / "two"
            write_drop(root, 6 * arguments.rows)
            misses += against_two(root, scratch, arguments.rounds)
            shutil.rmtree(root)
        if arguments.only in (None, "memory"):
            misses += memory(scratch, arguments.rows)
    for miss in misses:
        print(f"MISSED {miss}")
    if misses:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
