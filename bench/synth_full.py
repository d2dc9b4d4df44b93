"""SYNTH at full size: what every stage reads and writes, the disk at its peak, and the seconds.

Builds raw files of distinct rows through the asset graph to the last manifest, by command, in
a data root of its own, and reckons the same for the full corpus (76 million rows of 856 tokens).
Bytes are those that processes ask the system for: what it has in memory counts, but not what
is read through a memory map.
Ends with status 1 where a limit is missed.

    python -m bench.synth_full [--rows 2000000] [--workers 2] [--folder FOLDER]
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from bench import kit
from bench.distinct_text import Text, raw_table
from gristmill.provenance import find_artifacts, read_record
from gristmill.vocabularies.pinned import O200K, drop_folder, find

_FILES = 8
_BATCH_ROWS = 10_000
_FULL_ROWS, _FULL_TOKENS = 76e6, 65e9

# Reads of a result beyond the build itself (one, and the indexes, which are a twentieth of a
# dataset, once more), and the disk at the peak beyond the inputs.
_MOST_READS, _MOST_DISK = 1.1, 1.3
STAGES = (
    ("harmony", ["synth/harmony"]),
    ("harmony manifest", ["synth/harmony_manifest"]),
    ("datasets", ["synth/kd_shards"]),
    ("datasets manifest", ["synth/kd_manifest"]),
)


@dataclass
class Cost:
    """What one stage took; bytes, and CPU seconds of all its processes."""

    read: int = 0
    written: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    peak: int = 0


def write_drop(folder: Path, rows: int) -> None:
    """Write raw files with distinct rows."""
    folder.mkdir(parents=True)
    text, first = Text(), 0
    for number in range(_FILES):
        left = rows // _FILES + (number < rows % _FILES)
        writer: pq.ParquetWriter | None = None
        while left:
            table = raw_table(text, min(left, _BATCH_ROWS), first)
            writer = writer or pq.ParquetWriter(
                folder / f"synth_{number + 1:03d}.parquet", table.schema, compression="zstd"
            )
            writer.write_table(table)
            left, first = left - len(table), first + len(table)
        if writer is not None:
            writer.close()
    (folder / ".done").touch()


def size_of(folder: Path) -> int:
    """Bytes that the files below a folder take on disk, each file once."""
    sizes = {}
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                stat = os.lstat(os.path.join(here, name))  # noqa: PTH118  called very often
            except FileNotFoundError:
                continue
            sizes[stat.st_ino] = stat.st_blocks * 512
    return sum(sizes.values())


@dataclass
class Meter:
    """Measures the processes that run inside of `measure`."""

    root: Path
    cost: Cost = field(default_factory=Cost)

    @contextmanager
    def measure(self) -> Iterator[Cost]:
        """Give the cost, which is complete on leaving."""
        self.cost, ended = Cost(), threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended,))
        before, begin, cpu = _transferred(), time.monotonic(), _cpu()
        watcher.start()
        try:
            yield self.cost
        finally:
            ended.set()
            watcher.join()
            after = _transferred()
            self.cost.read = after["rchar"] - before["rchar"]
            self.cost.written = after["wchar"] - before["wchar"]
            self.cost.wall, self.cost.cpu = time.monotonic() - begin, _cpu() - cpu

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(0.5):
            self.cost.peak = max(self.cost.peak, size_of(self.root))


def _transferred() -> dict[str, int]:
    """Bytes that this process and the children that it waited for have read and written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def materialize(root: Path, home: Path, assets: list[str]) -> None:
    """Build assets by command."""
    places = {"DAGSTER_HOME": str(home), "GRISTMILL_DATA": str(root)}
    kit.python(["operate.py", "materialize", *assets, "--data-root", str(root)], places)


def outputs(root: Path, asset: str) -> tuple[int, int, int]:
    """Bytes, rows and tokens of what is published of an asset."""
    size = rows = tokens = 0
    for item in find_artifacts.artifacts_of(root, asset):
        record = read_record(item.record_path)
        size += sum(output.bytes for output in record.outputs)
        rows += int(record.counts["rows"])
        tokens += sum(int(record.counts.get(f"{s}_tokens", 0)) for s in ("train", "valid"))
    return size, rows, tokens


def report(root: Path, raw: int, costs: dict[str, Cost]) -> None:
    """Print the table and what has a limit."""
    harmony, rows, _ = outputs(root, "synth/harmony")
    datasets, documents, tokens = outputs(root, "synth/kd_shards")
    if not datasets:
        sys.exit("nothing was built")
    # Python and its modules: what a command reads that has hardly any work.
    idle = costs["harmony manifest"].read
    print(f"{rows:,} rows, {tokens:,} tokens; raw {raw:,}, harmony {harmony:,}, {datasets:,} bytes")
    print(f"{'stage':18} {'read':>15} {'written':>15} {'CPU s':>8} {'wall s':>8} {'peak disk':>15}")
    for name, cost in costs.items():
        print(
            f"{name:18} {cost.read:>15,} {cost.written:>15,} {cost.cpu:8.1f} {cost.wall:8.1f} "
            f"{cost.peak:>15,}"
        )
    # The build itself reads its input once, and what it wrote as parts.
    # Parts of a Harmony shard are mapped, which the system does not count as reading.
    first, second = costs["harmony"], costs["datasets"]
    parts = max(0, second.written - datasets)
    beyond = [
        (first.read - idle - raw) / (raw + harmony),
        (second.read - idle - harmony - parts) / datasets,
    ]
    peak = (max(cost.peak for cost in costs.values()) - raw) / (harmony + datasets)
    kit.bounded("reads beyond the build of raw and harmony together", beyond[0], most=_MOST_READS)
    kit.bounded("reads beyond the build of the datasets", beyond[1], most=_MOST_READS)
    kit.bounded("peak disk beyond the raw files, of the result", peak, most=_MOST_DISK)
    kit.bounded("documents of a row", documents / rows, least=1, most=1)
    scale = _FULL_TOKENS / tokens / 1e9
    read = sum(cost.read - idle for cost in costs.values()) * scale
    cpu = sum(cost.cpu for cost in costs.values()) * scale * 1e9
    result = (harmony + datasets) * scale
    print(
        f"{_FULL_ROWS / 1e6:.0f} M rows: {read:,.0f} GB read, result {result:,.0f} GB, peak "
        f"{peak * result:,.0f} GB beside {raw * scale:,.0f} GB raw, {cpu / 3600:.1f} core hours"
    )


def stages(given: kit.Given) -> None:
    root, home = given.scratch / "data", given.scratch / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    drop_folder(root).mkdir(parents=True)
    shutil.copy(find(O200K, kit.DATA), drop_folder(root) / O200K.file)
    tables = ("synth.harmony", "synth.kd_shards")
    (root / "gristmill.toml").write_text(
        "".join(f"[{table}]\nworkers = {given.workers}\n" for table in tables)
    )
    drop = root / "drops/synth/bench"
    write_drop(drop, given.rows)
    materialize(root, home, ["tokenizers/o200k_harmony"])
    raw, meter, costs = size_of(drop), Meter(root), {}
    for name, assets in STAGES:
        with meter.measure() as costs[name]:
            materialize(root, home, assets)
    report(root, raw, costs)


if __name__ == "__main__":
    kit.main(__doc__, stages, rows=2_000_000, workers=2, folder={"type": Path})
