"""Packing raw drops: speed against a JSON parser that drops its result, workers, memory.

Run from the checkout: python -m bench.pack [--rows N]. Needs the real drops
(GRISTMILL_REAL_DATA, default ../shared/data), which it repeats in a scratch
folder. Every line compares two things measured in turns in this run and ends
with the ratio; the exit status is 1 where a required ratio is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", "../shared/data")) / "macroxue"
ROWS_OF_REAL = 108_891
ROUNDS = 5


def repeat_drop(root: Path, rows: int) -> Path:
    """The real drops over and over in folders of their own, at least `rows` rows.

    The first copy is one, the others are hard links to it.
    """
    for i in range(-(-rows // ROWS_OF_REAL)):
        for drop in ("d6_v1", "d7_v1"):
            source, place = root / "0000" / drop, root / f"{i:04d}" / drop
            if i == 0:
                shutil.copytree(REAL / drop, place)
            else:
                shutil.copytree(source, place, copy_function=os.link)
    return root


def text_of(path: Path) -> bytes:
    """A steps file unzipped at once, as fast as isal can."""
    from isal import igzip

    return igzip.decompress(path.read_bytes())


def gunzip_only(drop: Path) -> int:
    """The ceiling: unzip every steps file; returns raw bytes."""
    return sum(len(text_of(path)) for path in sorted(drop.rglob("*.jsonl.gz")))


def gunzip_and_loads(drop: Path) -> int:
    """The baseline: unzip, orjson.loads of every line, result dropped; returns lines."""
    import orjson

    lines = 0
    for path in sorted(drop.rglob("*.jsonl.gz")):
        for line in text_of(path).splitlines():
            orjson.loads(line)
            lines += 1
    return lines


def pack_one(drop: Path, out: Path, workers: int) -> int:
    """Pack into a folder that is removed at once; returns rows."""
    from gristmill.macroxue import PackConfig, pack

    rows = pack(drop, out, PackConfig(workers=workers)).rows
    shutil.rmtree(out)
    return rows


def cpu(work: object, *args: object) -> float:
    """CPU seconds of a call in this process."""
    start = time.process_time()
    work(*args)  # type: ignore[operator]
    return time.process_time() - start


def spawn(drop: Path, out: Path, workers: int) -> subprocess.Popen[str]:
    """A fresh process that packs `drop` and prints its rows and peak memory."""
    command = [sys.executable, "-m", "bench.pack", "--one", str(drop), str(out), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, int]:
    """What a process of `spawn` printed; ends the benchmark where it failed."""
    text, _ = process.communicate()
    if process.returncode:
        sys.exit(f"a packing process failed with status {process.returncode}")
    return dict(json.loads(text))


def run_one(drop: Path, out: Path, workers: int) -> None:
    """The child's side of `spawn`. VmHWM: ru_maxrss would carry over the parent's peak."""
    rows = pack_one(drop, out, workers)
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"rows": rows, "peak_kb": peak}))


def report(name: str, ours: str, limit: str, ratio: float, required: str, good: bool) -> bool:
    """Print one comparison."""
    verdict = "ok" if good else "MISSED"
    print(
        f"{name}: ours {ours} | limit {limit} | ratio {ratio:.2f} | required {required}: {verdict}"
    )
    return good


def speed(scratch: Path, rows: int) -> bool:
    """(a) CPU seconds of one process; the scanner alone and gunzip alone beside it."""
    drop = repeat_drop(scratch / "speed", rows)
    out = scratch / "out"
    pack_one(drop, out, 1)
    ours, theirs, ceiling = [], [], []
    for _ in range(ROUNDS):
        ours.append(cpu(pack_one, drop, out, 1))
        theirs.append(cpu(gunzip_and_loads, drop))
        ceiling.append(cpu(gunzip_only, drop))
    count = gunzip_and_loads(drop)
    mine, other, top = map(statistics.median, (ours, theirs, ceiling))
    good = report(
        "pack, one process, rows per CPU second",
        f"{count / mine / 1e6:.2f}M",
        f"{count / other / 1e6:.2f}M (gunzip + orjson.loads, dropped)",
        other / mine,
        ">= 1.5",
        other / mine >= 1.5,
    )
    print(
        f"  ceiling, gunzip alone: {count / top / 1e6:.2f}M rows per CPU second, {mine / top:.2f}x"
    )
    scan_rate(sorted(drop.rglob("*.jsonl.gz"))[:40])
    shutil.rmtree(drop)
    return good


def scan_rate(paths: list[Path]) -> None:
    """Print the scanner's own rate, on text that is unzipped already."""
    from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
    from gristmill.macroxue.raw.fast_scanner import PAD, scan

    raw = b"".join(map(text_of, paths))
    rows = np.zeros(raw.count(b"\n"), STEP_ROW_DTYPE)
    text = np.frombuffer(raw + bytes(PAD), np.uint8)
    state = np.zeros(4, np.int64)
    rates = [len(rows) / cpu(scan, text, 0, len(raw), rows, 0, state) for _ in range(ROUNDS)]
    print(f"  scanner alone: {statistics.median(rates) / 1e6:.2f}M rows per CPU second")


def workers(scratch: Path, rows: int) -> bool:
    """(b) One build with two workers against two processes that pack a half each."""
    halves = [repeat_drop(scratch / "joint" / half, rows // 2) for half in ("a", "b")]
    joint, pooled = [], []
    for _ in range(3):
        start = time.perf_counter()
        pair = [spawn(half, scratch / f"out{i}", 1) for i, half in enumerate(halves)]
        count = sum(finish(process)["rows"] for process in pair)
        joint.append(time.perf_counter() - start)
        start = time.perf_counter()
        assert finish(spawn(scratch / "joint", scratch / "out", 2))["rows"] == count
        pooled.append(time.perf_counter() - start)
    shutil.rmtree(scratch / "joint")
    ratio = statistics.median(j / p for j, p in zip(joint, pooled, strict=True))
    return report(
        f"two workers, {count / 1e6:.1f}M rows, rows per second",
        f"{count / statistics.median(pooled) / 1e6:.2f}M",
        f"{count / statistics.median(joint) / 1e6:.2f}M (two independent processes)",
        ratio,
        ">= 0.85",
        ratio >= 0.85,
    )


def memory(scratch: Path) -> bool:
    """(c) Peak resident memory of 2 million rows against 500 thousand, fresh processes."""
    peaks = []
    for rows in (500_000, 2_000_000):
        drop = repeat_drop(scratch / f"memory{rows}", rows)
        peaks.append(finish(spawn(drop, scratch / "out", 1))["peak_kb"] / 1024)
        shutil.rmtree(drop)
    ratio = peaks[1] / peaks[0]
    return report(
        "peak memory", f"{peaks[1]:.0f} MB at 2M rows", f"{peaks[0]:.0f} MB at 0.5M rows",
        ratio, "<= 1.10", ratio <= 1.10,
    )  # fmt: skip


def main() -> int:
    """Run all three comparisons; 0 where every required ratio is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the speed drop")
    parser.add_argument("--worker-rows", type=int, default=20_000_000)
    parser.add_argument("--one", nargs=3, metavar=("DROP", "OUT", "WORKERS"))
    args = parser.parse_args()
    if args.one:
        run_one(Path(args.one[0]), Path(args.one[1]), int(args.one[2]))
        return 0
    if not REAL.is_dir():
        sys.exit(f"no real drops at {REAL}: set GRISTMILL_REAL_DATA")
    with tempfile.TemporaryDirectory(prefix="bench_pack_") as folder:
        scratch = Path(folder)
        results = [
            speed(scratch, args.rows),
            memory(scratch),
            workers(scratch, args.worker_rows),
        ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
