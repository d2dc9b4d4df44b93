"""Packing raw drops: speed against a JSON parser that drops its result, workers, memory.

Run from the checkout: python -m bench.pack [--rows N] [--worker-rows N] [--only PART]. Needs the
real drops (GRISTMILL_REAL_DATA, default ../shared/data), which it repeats in a scratch folder.
Every line compares two things measured in turns in this run and ends with the ratio; the exit
status is 1 where a required ratio is missed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from statistics import median

import numpy as np

from bench import kit

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
                shutil.copytree(kit.real("macroxue") / drop, place)
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


def child(drop: str, out: str, workers: str) -> dict[str, int]:
    """Pack in a process of its own; its rows and peak memory."""
    rows = pack_one(Path(drop), Path(out), int(workers))
    return {"rows": rows, "peak": kit.peak_bytes()}


def speed(given: kit.Given) -> None:
    """Compare one process with the JSON parser; the scanner alone and gunzip alone beside it."""
    drop, out = repeat_drop(given.scratch / "speed", given.rows), given.scratch / "out"
    kit.compare(
        *("pack and gunzip + orjson.loads", lambda: pack_one(drop, out, 1) / 1e6),
        lambda: gunzip_and_loads(drop) / 1e6,
        "M rows per CPU second",
        least=2.0,
        rounds=ROUNDS,
    )
    rows = gunzip_and_loads(drop) / 1e6
    (ceiling,) = kit.in_turns(lambda: gunzip_only(drop), rounds=ROUNDS)
    print(f"  ceiling, gunzip alone: {rows / median(ceiling):.2f} M rows per CPU second")
    scan_rate(sorted(drop.rglob("*.jsonl.gz"))[:40])
    shutil.rmtree(drop)


def scan_rate(paths: list[Path]) -> None:
    """Print the scanner's own rate, on text that is unzipped already."""
    from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
    from gristmill.macroxue.raw.fast_scanner import scan
    from gristmill.macroxue.raw.read_run import PAD

    raw = b"".join(map(text_of, paths))
    rows = np.zeros(raw.count(b"\n"), STEP_ROW_DTYPE)
    text = np.frombuffer(raw + bytes(PAD), np.uint8)
    state = np.zeros(4, np.int64)
    (times,) = kit.in_turns(lambda: scan(text, 0, len(raw), rows, 0, state), rounds=ROUNDS)
    print(f"  scanner alone: {len(rows) / median(times) / 1e6:.2f} M rows per CPU second")


def memory(given: kit.Given) -> None:
    """Compare the peak memory at 2 million rows with that at 500 thousand."""

    def peak(rows: int) -> int:
        drop = repeat_drop(given.scratch / f"memory{rows}", rows)
        found = kit.finish(kit.start(drop, given.scratch / "out", 1))
        shutil.rmtree(drop)
        return int(found["peak"])

    kit.grows(peak, 500_000, 2_000_000, "rows", most=1.1)


def workers(given: kit.Given) -> None:
    """Compare one build with two workers with two processes that pack a half each."""
    joint = given.scratch / "joint"
    halves = [repeat_drop(joint / half, given.worker_rows // 2) for half in ("a", "b")]
    outs = [given.scratch / f"out{number}" for number in range(2)]
    words = [(half, out, 1) for half, out in zip(halves, outs, strict=True)]
    kit.two_workers(words, (joint, outs[0], 2), 3)


if __name__ == "__main__":
    kit.main(__doc__, speed, memory, workers, child=child, rows=1_000_000, worker_rows=20_000_000)
