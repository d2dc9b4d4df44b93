"""SYNTH, raw files to Harmony shards: our build beside pyarrow alone.

Raw files of distinct rows (see `distinct_text.py`) become one published Harmony shard: read in a
child process, converted, written, hashed, its laws checked. Beside it (a) pyarrow alone, which
reads the same columns of the same files and writes the same table with the same settings; (b) two
workers beside two independent processes; (c) the peak memory at two sizes. Seconds are CPU
seconds, those of the child process included, but for (b). Ends with status 1 beyond a limit.

    python -m bench.synth_harmony [--rows 40000] [--rounds 5] [--only two]
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from bench import kit, publishing
from bench.distinct_text import Text, raw_table
from gristmill import families
from gristmill.families import Subject
from gristmill.provenance import Input
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.raw import TEXTS

DROP = "drops/synth/bench"
ASSET = "synth/harmony"
_FILE_ROWS = 20_000
_RATE = 0.35
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
    done = publishing.published(
        *(root, ASSET, "00", config),
        lambda attempt: to_harmony(files, attempt.out, 0, config, attempt.parts),
        hashed(root),
        artifact="synth_harmony",
        laws=lambda folder: families.check(ASSET, Subject(folder, "00")),
    )
    return done.folder / "synth_harmony_shard_00.parquet"


def by_pyarrow(files: list[Path], shard: Path, out: Path) -> kit.Work:
    """Reads the columns of the raw files, and writes the table of the shard."""
    table = pq.read_table(shard)
    columns = [*TEXTS, *HarmonyConfig().metadata_fields]
    group = HarmonyConfig().rows_per_group

    def work() -> float:
        for file in files:
            with pq.ParquetFile(file, pre_buffer=False) as parquet:
                for _ in parquet.iter_batches(1000, columns=columns, use_threads=False):
                    pass
        with pq.ParquetWriter(out, table.schema, compression="zstd") as writer:
            for first in range(0, len(table), group):
                writer.write_table(table.slice(first, group), row_group_size=group)
        return len(table)

    return work


def pyarrow(given: kit.Given) -> None:
    """Compare our published build with pyarrow alone."""
    root = given.scratch / "root"
    files = write_drop(root, given.rows)
    # The first build loads compiled code and starts the child.
    theirs = by_pyarrow(files, published(root), root / "pyarrow.parquet")
    rows = theirs()

    def ours() -> float:
        published(root)
        return rows

    kit.compare(
        *("build and pyarrow alone", ours, theirs, "rows per CPU second"),
        least=_RATE,
        rounds=given.rounds,
        clock=kit.cpu_seconds,
        warm=False,
        around=True,
        before=lambda: shutil.rmtree(root / "synth_harmony", ignore_errors=True),
    )


def two(given: kit.Given) -> None:
    """Compare two workers on a shard with two processes, each on half of its raw files.

    Both sides convert the same rows once, and start from nothing: the shard is so large that the
    start of a process takes a few per cent.
    """
    root, files = given.scratch / "two", write_drop(given.scratch / "two", 6 * given.rows)
    roots = [given.scratch / name for name in ("half_0", "half_1", "whole")]
    for copy, share in zip(roots, (files[::2], files[1::2], files), strict=True):
        linked(share, copy)
    made = [copy / "synth_harmony" for copy in roots]
    kit.two_workers([(copy, 1) for copy in roots[:2]], (roots[2], 2), given.rounds, made=made)
    shutil.rmtree(root)


def memory(given: kit.Given) -> None:
    """Compare the peak memory of one build and its child at two sizes."""

    def peak(size: int) -> int:
        root = given.scratch / f"{size}"
        write_drop(root, size)
        return int(kit.finish(kit.start(root, 1)))

    kit.grows(peak, given.rows // 4, given.rows, "rows", most=_GROWTH)


def linked(files: list[Path], root: Path) -> None:
    """A data root with a drop of these raw files."""
    (root / DROP).mkdir(parents=True)
    for file in files:
        (root / DROP / file.name).hardlink_to(file)


def child(root: str, workers: str) -> int:
    """A build in a process of its own; the peak memory of it and of its child."""
    published(Path(root), int(workers))
    return kit.peak_bytes(children=True)


if __name__ == "__main__":
    kit.main(__doc__, pyarrow, two, memory, child=child, rows=40_000, rounds=5)
