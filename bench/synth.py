"""SYNTH: our whole build against the limits that one cannot do without.

Builds Harmony shards, Parquet to published datasets, laws and hashes included, beside
tiktoken's encode_ordinary over the same bodies: the 1,000 real conversations once, with
an engine that knows no word yet, and a longer text that no row repeats. Beside
openai-harmony with Megatron's IndexedDatasetBuilder, and the original's way with it; two
workers beside two independent processes; and the peak memory at two sizes. CPU seconds of
this process and its children; medians of interleaved rounds. Ends with status 1 where a
floor is missed. Needs the real conversations beside the checkout (GRISTMILL_REAL_DATA)
and a vocabulary.

    python -m bench.synth [--rows 8000] [--rounds 5] [--only cold]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.parquet as pq

from bench.plain_tiktoken import plain_tiktoken
from bench.synth_build import HERE, NAME, built, cpu, published, write_distinct, write_real
from gristmill.synth.render.harmony import encoding, render
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import O200K

DATA = Path(os.environ.get("GRISTMILL_DATA", HERE / "data"))

_THEIR_ROWS = 500
# What four times the text may cost in memory, the engine's bounded growth included.
_GROWTH = 1.2


def missed(what: str, ratio: float, floor: float) -> list[str]:
    """A line that says so where the ratio is below its floor."""
    return [] if ratio >= floor else [f"{what}: {ratio:.3f}, floor {floor}"]


def bodies_of(shard: Path) -> list[str]:
    """The texts of the users and the assistants."""
    return [
        message["content"][0]["text"]
        for text in pq.read_table(shard).column("messages_json").to_pylist()
        for message in json.loads(text)["messages"][2:]
    ]


def against_encoding(
    what: str, shard: Path, scratch: Path, vocabulary: Path, rounds: int, floor: float
) -> list[str]:
    """Rate of our published build over that of encode_ordinary, both in one process.

    Both vocabularies are loaded before, as they are once for many shards.
    """
    bodies = bodies_of(shard)
    # The bare vocabulary with o200k's own pattern, as tiktoken ships it.
    limit = plain_tiktoken(vocabulary)
    characters = sum(map(len, bodies))

    def encode() -> None:
        for body in bodies:
            limit.encode_ordinary(body)

    built(shard, scratch, vocabulary)
    ratios = []
    for number in range(rounds):
        before, ours, after = cpu(encode), built(shard, scratch, vocabulary), cpu(encode)
        theirs = (before + after) / 2
        ratios.append(theirs / ours)
        print(
            f"  round {number + 1}: encode_ordinary {theirs:.3f} s, parquet to published shard "
            f"{ours:.3f} s"
        )
    print(
        f"build over encode_ordinary, {what} ({characters / 1e6:.1f} M characters): "
        f"{median(ratios):.2f} times its rate; floor {floor}"
    )
    return missed(f"build over encode_ordinary, {what}", median(ratios), floor)


def against_harmony(shard: Path, scratch: Path, vocabulary: Path, rounds: int) -> list[str]:
    """Rate of our published build over openai-harmony with IndexedDatasetBuilder.

    Theirs renders each conversation once and writes the tokens alone. The original's way
    renders it whole and again message by message, and writes three datasets. Both take the
    first rows, and their times are scaled to the characters of the shard.
    """
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    from openai_harmony import Conversation, RenderConversationConfig

    harmony = encoding(vocabulary)
    texts = pq.read_table(shard).column("messages_json").to_pylist()
    scale = sum(map(len, texts)) / sum(map(len, texts[:_THEIR_ROWS]))
    small = scratch / "small.parquet"
    pq.write_table(pq.read_table(shard).slice(0, _THEIR_ROWS), small, compression="zstd")
    config = RenderConversationConfig(auto_drop_analysis=False)

    def theirs() -> None:
        builder = IndexedDatasetBuilder(str(scratch / "theirs.bin"), dtype=np.int32)
        for text in pq.read_table(small).column("messages_json").to_pylist():
            tokens = harmony.render_conversation_for_training(Conversation.from_json(text), config)
            tokens.append(199999)
            # An array: the builder takes it four times as fast as a list or a tensor of one.
            builder.add_document(np.array(tokens, dtype=np.int32), [len(tokens)])
        builder.finalize(str(scratch / "theirs.idx"))

    def original() -> None:
        builders = {
            name: IndexedDatasetBuilder(str(scratch / f"{name}.bin"), dtype=dtype)
            for name, dtype in (("t", np.int32), ("m", np.uint8), ("s", np.uint8))
        }
        for text in pq.read_table(small).column("messages_json").to_pylist():
            rendered = render(json.loads(text)["messages"], harmony)
            lengths, spans = [*rendered.lengths, 1], [*rendered.spans, 0]
            span = [code for code, n in zip(spans, lengths, strict=True) for _ in range(n)]
            span = [*span[1:], 0]
            lists = {"t": list(rendered.tokens), "m": [int(c != 0) for c in span], "s": span}
            for name, values in lists.items():
                builders[name].add_item(torch.tensor(values))
                builders[name].end_document()
        for name, builder in builders.items():
            builder.finalize(str(scratch / f"{name}.idx"))

    theirs()
    built(shard, scratch, vocabulary)
    ratios, originals = [], []
    for number in range(rounds):
        before, ours, after = cpu(theirs), built(shard, scratch, vocabulary), cpu(theirs)
        originals.append(scale * cpu(original) / ours)
        ratios.append(scale * (before + after) / 2 / ours)
        print(f"  round {number + 1}: {ratios[-1]:.1f} and {originals[-1]:.1f} times")
    print(f"build over openai-harmony + IndexedDatasetBuilder: {median(ratios):.2f}x; floor 8")
    print(f"build over the original's way, a document at a time: {median(originals):.1f}x")
    return missed("over openai-harmony + IndexedDatasetBuilder", median(ratios), 8)


def against_two(scratch: Path, vocabulary: Path, rows: int, rounds: int) -> list[str]:
    """Two workers on one shard over two independent processes, each on half of as many rows.

    By the clock, so it needs an idle machine. So every process meets as many words as another
    one, and the shards are so large that the start of a process takes a few per cent.
    """
    half, whole = (scratch / f"two_{part}" / NAME for part in ("half", "whole"))
    for shard, size in ((half, 15 * rows), (whole, 30 * rows)):
        shard.parent.mkdir()
        write_distinct(shard, size)

    def seconds(shard: Path, processes: int, workers: int) -> float:
        roots = [scratch / f"process_{number}" for number in range(processes)]
        began = time.perf_counter()
        running = [child("build", shard, root, vocabulary, workers) for root in roots]
        for process in running:
            process.wait()
        taken = time.perf_counter() - began
        for root in roots:
            shutil.rmtree(root)
        return taken

    ratios = [seconds(half, 2, 1) / seconds(whole, 1, 2) for _ in range(rounds)]
    print(
        f"two workers over two independent processes: {median(ratios):.3f} "
        "of their joint rate; floor 0.85"
    )
    return missed("two workers over two processes", median(ratios), 0.85)


def memory(scratch: Path, vocabulary: Path, rows: int) -> list[str]:
    """Peak resident memory of one build at two sizes: four times the text, a fifth more at most."""
    peaks = []
    for size in (rows, 4 * rows):
        shard = scratch / f"{size}" / NAME
        shard.parent.mkdir()
        write_distinct(shard, size)
        process = child("peak", shard, scratch / "peak", vocabulary, 1, stdout=subprocess.PIPE)
        peaks.append(int(process.communicate()[0]) / 1e6)
        shutil.rmtree(scratch / "peak")
    grown = peaks[1] / peaks[0]
    print(
        f"peak memory: {peaks[0]:.0f} MB at {rows:,} distinct rows, {peaks[1]:.0f} MB at "
        f"{4 * rows:,} ({grown:.2f}x); ceiling {_GROWTH}x"
    )
    return [] if grown <= _GROWTH else [f"peak memory: {grown:.3f}x, ceiling {_GROWTH}x"]


def child(
    what: str, shard: Path, root: Path, vocabulary: Path, workers: int, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    root.mkdir()
    arguments = [what, str(shard), str(root), str(vocabulary), str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.synth", "--child", *arguments], cwd=HERE, stdout=stdout
    )


def run_child(what: str, shard: str, root: str, vocabulary: str, workers: str) -> None:
    published(Path(shard), Path(root), Path(vocabulary), int(workers))
    if what == "peak":
        # Not ru_maxrss: a child inherits its parent's.
        status = Path("/proc/self/status").read_text()
        print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["cold", "long", "harmony", "two", "memory"])
    parser.add_argument("--child", nargs=5)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*arguments.child)
        return
    vocabulary, rows, rounds = find(O200K, DATA), arguments.rows, arguments.rounds
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as folder:
        scratch = Path(folder)

        def real() -> Path:
            write_real(scratch / NAME)
            return scratch / NAME

        def long() -> Path:
            shard = scratch / "long" / NAME
            if not shard.exists():
                shard.parent.mkdir()
                write_distinct(shard, rows)
            return shard

        parts: dict[str, Callable[[], list[str]]] = {
            "cold": lambda: against_encoding(
                "1,000 real conversations, cold", real(), scratch, vocabulary, rounds, 1.5
            ),
            "long": lambda: against_encoding(
                "distinct text", long(), scratch, vocabulary, rounds, 2.0
            ),
            "harmony": lambda: against_harmony(long(), scratch, vocabulary, rounds),
            "two": lambda: against_two(scratch, vocabulary, rows, rounds),
            "memory": lambda: memory(scratch, vocabulary, rows),
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
