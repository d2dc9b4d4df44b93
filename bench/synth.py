"""SYNTH: our whole build against the limits that one cannot do without.

Builds one Harmony shard of at least 20,000 conversations, Parquet to published
datasets, beside (a) tiktoken's encode_ordinary over the same bodies and (b)
openai-harmony with Megatron's IndexedDatasetBuilder; then two workers beside two
independent processes, and the peak memory at two sizes. Ends with status 1
where a floor is missed. Needs the real
conversations beside the checkout (GRISTMILL_REAL_DATA) and a vocabulary.

    python -m bench.synth [--rows 20000] [--rounds 5]
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
import pyarrow as pa
import pyarrow.parquet as pq

from bench.plain_tiktoken import plain_tiktoken
from gristmill.contract import Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.synth.build.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.laws import kd_shard as laws
from gristmill.synth.render.harmony import encoding
from gristmill.vocabularies import encode as bpe
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import O200K

HERE = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", HERE.parent / "shared" / "data")) / "synth"
DATA = Path(os.environ.get("GRISTMILL_DATA", HERE / "data"))

# What four times the rows may cost in memory: the allocator's noise, not a share of the rows.
_GROWTH = 1.2


def write_shard(path: Path, rows: int) -> pa.Table:
    """The 1,000 real conversations over and over, in the row groups of the full run."""
    shards = sorted((REAL / "synth_harmony").glob("synth_harmony_shard_*.parquet"))
    table = pa.concat_tables([pq.read_table(shard) for shard in shards])
    times = -(-rows // len(table))
    pq.write_table(pa.concat_tables([table] * times), path, compression="zstd", row_group_size=2000)
    return table


def published(shard: Path, root: Path, vocabulary: Path, workers: int = 1) -> int:
    """Build and publish the shard as the asset does; the number of tokens."""

    def make(attempt: Attempt) -> Summary:
        return build_kd_shard(shard, attempt.out, config, attempt.parts)

    config = KDConfig(vocabulary, 0.001, workers=workers)
    done = publish(
        Build(
            root=root,
            artifact="megatron/synth_kd_v1",
            asset="synth/kd_shards",
            partition="00",
            code_version=KDConfig.CODE_VERSION,
            config=config,
            inputs=[Input(path=shard.name, sha256="0" * 64, bytes=shard.stat().st_size)],
            make=make,
            laws=lambda folder: laws.kd_laws(folder, "00", 0.001),
            shared=True,
        )
    )
    return int(done.record.counts["train_tokens"] + done.record.counts["valid_tokens"])


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds (of this process) that `work` takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def missed(what: str, ratio: float, floor: float) -> list[str]:
    """A line that says so where the ratio is below its floor."""
    return [] if ratio >= floor else [f"{what}: {ratio:.3f}, floor {floor}"]


def against_encoding(
    shard: Path, base: pa.Table, scratch: Path, vocabulary: Path, rounds: int
) -> list[str]:
    """Rate of our published build over that of encode_ordinary, both in one process."""
    bodies = [
        message["content"][0]["text"]
        for text in base.column("messages_json").to_pylist()
        for message in json.loads(text)["messages"][2:]
    ]
    times = pq.ParquetFile(shard).metadata.num_rows // len(base)
    # The bare vocabulary with o200k's own pattern, as tiktoken ships it.
    limit = plain_tiktoken(vocabulary)

    def encode(times: int) -> None:
        for _ in range(times):
            for body in bodies:
                limit.encode_ordinary(body)

    def build() -> None:
        published(shard, scratch / "root", vocabulary)

    ours, theirs = [], []
    for number in range(rounds):
        # Half before and half after, so that a machine that slows down favours nobody.
        before = timed(lambda: encode(times // 2))
        shutil.rmtree(scratch / "root", ignore_errors=True)
        (scratch / "root").mkdir()
        ours.append(timed(build))
        after = timed(lambda: encode(times - times // 2))
        theirs.append((before[0] + after[0], before[1] + after[1]))
        print(
            f"  round {number + 1}: encode_ordinary {theirs[-1][0]:.2f} s, "
            f"parquet to published shard {ours[-1][0]:.2f} s (CPU {ours[-1][1]:.2f} s)"
        )
    shutil.rmtree(scratch / "root")
    wall = median(t[0] / o[0] for t, o in zip(theirs, ours, strict=True))
    cpu = median(t[1] / o[1] for t, o in zip(theirs, ours, strict=True))
    print(f"build over encode_ordinary: {wall:.3f} of its rate (CPU {cpu:.3f}); floor 0.80")
    return missed("build over encode_ordinary", wall, 0.80)


def against_harmony(
    shard: Path, base: pa.Table, scratch: Path, vocabulary: Path, rounds: int
) -> list[str]:
    """Rate of our published build over openai-harmony with IndexedDatasetBuilder.

    Ours takes the whole shard. Theirs renders each conversation once, takes the
    1,000 real ones before ours and again after it, and its time is scaled to
    the rows of the shard: it is linear in them.
    """
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    from openai_harmony import Conversation, RenderConversationConfig

    harmony = encoding(vocabulary)
    small = scratch / "base.parquet"
    pq.write_table(base, small, compression="zstd", row_group_size=2000)
    rows = pq.ParquetFile(shard).metadata.num_rows
    config = RenderConversationConfig(auto_drop_analysis=False)

    def theirs_once() -> None:
        builder = IndexedDatasetBuilder(str(scratch / "theirs.bin"), dtype=np.int32)
        for text in pq.read_table(small).column("messages_json").to_pylist():
            tokens = harmony.render_conversation_for_training(Conversation.from_json(text), config)
            tokens.append(199999)
            # An array: the builder takes it four times as fast as a list or a tensor of one.
            builder.add_document(np.array(tokens, dtype=np.int32), [len(tokens)])
        builder.finalize(str(scratch / "theirs.idx"))

    def ours_once() -> None:
        published(shard, scratch / "root", vocabulary)

    theirs_once()
    bpe.encoding(vocabulary)
    ratios = []
    for number in range(rounds):
        before = timed(theirs_once)[0]
        shutil.rmtree(scratch / "root", ignore_errors=True)
        (scratch / "root").mkdir()
        ours = timed(ours_once)[0]
        after = timed(theirs_once)[0]
        theirs = (before + after) * rows / (2 * len(base))
        ratios.append(theirs / ours)
        print(
            f"  round {number + 1}: openai-harmony {theirs:.2f} s (from {2 * len(base):,} rows, "
            f"scaled to {rows:,}), parquet to published shard {ours:.2f} s"
        )
    shutil.rmtree(scratch / "root")
    print(f"build over openai-harmony + IndexedDatasetBuilder: {median(ratios):.2f}x; floor 4")
    return missed("over openai-harmony + IndexedDatasetBuilder", median(ratios), 4)


def against_two(scratch: Path, vocabulary: Path, arguments: argparse.Namespace) -> list[str]:
    """Two workers on one shard over two independent processes, each on a shard of its own.

    On six times the rows, so that what a process needs to start matters as little as
    it does for a shard of the full run.
    """
    shard = scratch / "two" / "synth_harmony_shard_00.parquet"
    shard.parent.mkdir()
    write_shard(shard, 6 * arguments.rows)
    ratios = []
    for _ in range(arguments.rounds):
        began = time.perf_counter()
        pair = [child("build", shard, scratch / f"pair{n}", vocabulary, 1) for n in range(2)]
        for process in pair:
            process.wait()
        two = 2 / (time.perf_counter() - began)
        began = time.perf_counter()
        child("build", shard, scratch / "workers", vocabulary, 2).wait()
        ratios.append(1 / (time.perf_counter() - began) / two)
        for name in ("pair0", "pair1", "workers"):
            shutil.rmtree(scratch / name)
    print(
        f"two workers over two independent processes: {median(ratios):.3f} "
        "of their joint rate; floor 0.85"
    )
    return missed("two workers over two processes", median(ratios), 0.85)


def memory(scratch: Path, vocabulary: Path, rows: int) -> list[str]:
    """Peak resident memory of one build at two sizes: four times the rows, a fifth more at most."""
    peaks = []
    for size in (rows // 4, rows):
        shard = scratch / f"{size}" / "synth_harmony_shard_00.parquet"
        shard.parent.mkdir()
        write_shard(shard, size)
        process = child("peak", shard, scratch / "peak", vocabulary, 1, stdout=subprocess.PIPE)
        peaks.append(int(process.communicate()[0]) / 1e6)
        shutil.rmtree(scratch / "peak")
    print(
        f"peak memory: {peaks[0]:.0f} MB at {rows // 4:,} rows, {peaks[1]:.0f} MB at {rows:,}"
        f" ({peaks[1] / peaks[0]:.2f}x); ceiling {_GROWTH}x"
    )
    grown = peaks[1] / peaks[0]
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
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["encoding", "harmony", "two", "memory"])
    parser.add_argument("--child", nargs=5)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(*arguments.child)
        return
    vocabulary = find(O200K, DATA)
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as folder:
        scratch = Path(folder)
        shard = scratch / "synth_harmony_shard_00.parquet"
        base = write_shard(shard, arguments.rows)
        parts: dict[str, Callable[[], list[str]]] = {
            "encoding": lambda: against_encoding(
                shard, base, scratch, vocabulary, arguments.rounds
            ),
            "harmony": lambda: against_harmony(shard, base, scratch, vocabulary, arguments.rounds),
            "two": lambda: against_two(scratch, vocabulary, arguments),
            "memory": lambda: memory(scratch, vocabulary, arguments.rows),
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
