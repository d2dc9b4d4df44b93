"""Reasoning: our whole build against the limit that one cannot do without.

Normalises GSM8K, FLAN CoT, MetaMath and distinct text, publishes their shards, index and manifest,
laws and hashes included, beside a bare loop of tiktoken's encode_ordinary over the same rendered
texts, with its own pattern; with either engine. Two workers beside two independent processes; the
peak memory at two sizes. CPU seconds of this process and its children; medians of interleaved
rounds. Ends with status 1 where a floor is missed. Needs the real corpora beside the checkout
(GRISTMILL_REAL_DATA) and a vocabulary.

    python -m bench.reasoning [--records 100000] [--rounds 3] [--only build]
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import orjson
import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str

from bench.reasoning_build import HERE, cpu, lines, normalized, published, write_drops
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.engine import AUTO, TIKTOKEN
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2, read_verified

DATA = Path(os.environ.get("GRISTMILL_DATA", HERE / "data"))

_FLOORS = {TIKTOKEN: 0.9, AUTO: 1.5}
# What four times the text may cost in memory, the engine's bounded growth included.
_GROWTH = 1.2


def missed(what: str, ratio: float, floor: float) -> list[str]:
    """A line that says so where the ratio is below its floor."""
    return [] if ratio >= floor else [f"{what}: {ratio:.3f}, floor {floor}"]


def plain_tiktoken(vocabulary: Path) -> tiktoken.Encoding:
    """GPT-2 as tiktoken ships it, from the local file."""
    ranks = {}
    for line in read_verified(GPT2, vocabulary).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name="gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens={}
    )


def against_encoding(scratch: Path, vocabulary: Path, records: int, rounds: int) -> list[str]:
    """Rate of our published build over that of encode_ordinary, all in one process."""
    root = scratch / "build"
    partitions = write_drops(root, records)
    took = cpu(lambda: normalized(root, partitions))
    texts = [text_of(orjson.loads(line)) for line in lines(root, partitions)]
    print(f"{len(texts):,} records, {sum(map(len, texts)) / 1e6:.1f} M characters")
    print(f"raw files to published normalised files: {took / len(texts) * 1e6:.1f} us a record")
    limit = plain_tiktoken(vocabulary)

    def encode() -> None:
        for text in texts:
            limit.encode_ordinary(text)

    ratios: dict[str, list[float]] = {engine: [] for engine in _FLOORS}
    published(root, partitions[:2], vocabulary)
    for number in range(rounds):
        times = {"before": cpu(encode)}
        for engine in ratios:
            times[engine] = cpu(
                lambda engine=engine: published(root, partitions, vocabulary, engine=engine)
            )
        theirs = (times["before"] + cpu(encode)) / 2
        for engine, all_ratios in ratios.items():
            all_ratios.append(theirs / times[engine])
        shown = ", ".join(f"{name} {times[name] / len(texts) * 1e6:.1f}" for name in ratios)
        print(
            f"  round {number + 1}, us a record: encode_ordinary "
            f"{theirs / len(texts) * 1e6:.1f}; build with {shown}"
        )
    misses = []
    for engine, floor in _FLOORS.items():
        ratio = median(ratios[engine])
        print(f"build over encode_ordinary, engine {engine}: {ratio:.2f} times; floor {floor}")
        misses += missed(f"build over encode_ordinary, engine {engine}", ratio, floor)
    return misses


def against_two(scratch: Path, vocabulary: Path, records: int, rounds: int) -> list[str]:
    """Two workers on one split over two independent processes, each on half of as many records.

    By the clock, so it needs an idle machine. The splits are so large that the start of a process
    takes a few per cent.
    """
    halves = [scratch / f"two_half_{number}" for number in range(2)]
    whole = scratch / "two_whole"
    for root, size, seed in ((halves[0], 2, 1), (halves[1], 2, 2), (whole, 4, 1)):
        partitions = write_drops(root, size * records, seed, real=False)
        normalized(root, partitions)

    def seconds(roots: list[Path], workers: int) -> float:
        began = time.perf_counter()
        running = [child("build", root, vocabulary, workers) for root in roots]
        if any(process.wait() for process in running):
            raise SystemExit("a build failed")
        return time.perf_counter() - began

    ratios = [seconds(halves, 1) / seconds([whole], 2) for _ in range(rounds)]
    print(
        f"two workers over two independent processes: {median(ratios):.3f} "
        "of their joint rate; floor 0.85"
    )
    return missed("two workers over two processes", median(ratios), 0.85)


def memory(scratch: Path, vocabulary: Path, records: int) -> list[str]:
    """Peak resident memory of one build at two sizes: four times the text, a fifth more at most."""
    peaks = []
    for size in (records, 4 * records):
        root = scratch / f"memory_{size}"
        normalized(root, write_drops(root, size, real=False))
        process = child("peak", root, vocabulary, 1, stdout=subprocess.PIPE)
        peaks.append(int(process.communicate()[0]) / 1e6)
        shutil.rmtree(root)
    grown = peaks[1] / peaks[0]
    print(
        f"peak memory: {peaks[0]:.0f} MB at {records:,} distinct records, {peaks[1]:.0f} MB at "
        f"{4 * records:,} ({grown:.2f}x); ceiling {_GROWTH}x"
    )
    return [] if grown <= _GROWTH else [f"peak memory: {grown:.3f}x, ceiling {_GROWTH}x"]


def child(
    what: str, root: Path, vocabulary: Path, workers: int, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    arguments = [what, str(root), str(vocabulary), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.reasoning", "--child", *arguments], cwd=HERE, stdout=stdout
    )


def run_child(what: str, root: str, vocabulary: str, workers: str) -> None:
    drops = sorted((Path(root) / "drops" / "reasoning").iterdir())
    partitions = [f"{drop.name}__train" for drop in drops]
    published(Path(root), partitions, Path(vocabulary), workers=int(workers))
    if what == "peak":
        # Not ru_maxrss: a child inherits its parent's.
        status = Path("/proc/self/status").read_text()
        print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["build", "two", "memory"])
    parser.add_argument("--child", nargs=4)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*arguments.child)
        return
    vocabulary, records, rounds = find(GPT2, DATA), arguments.records, arguments.rounds
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as folder:
        scratch = Path(folder)
        parts: dict[str, Callable[[], list[str]]] = {
            "build": lambda: against_encoding(scratch, vocabulary, records, rounds),
            "two": lambda: against_two(scratch, vocabulary, records, rounds),
            "memory": lambda: memory(scratch, vocabulary, records // 2),
        }
        misses = [
            miss
            for name, part in parts.items()
            if arguments.only in (None, name)
            for miss in part()
        ]
    for miss in misses:
        print(f"MISSED {miss}")
    if misses:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
