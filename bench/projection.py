"""Projections against copies of the same files, in turns in one run.

Run from the checkout: python -m bench.projection. To Parquet: arrays of puzzles like ARC and a
pack of 2048. To llm.c and litdata: shards of a token dataset; to nanochat: normalised records. The
copy is `shutil.copyfileobj` of each file, 16 MiB at a time: of the arrays, of the shards, of the
chunks, and of the records, whose lines orjson parses besides.
Exit status 1 where a projection has less than half the bytes per CPU second of the copy, of the
records less than a quarter, since they are rendered, or takes more than 256 MiB of memory of its
own.
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
import orjson

from bench.puzzles_reader import write_dataset
from gristmill.exports.project import PARQUET, write, written
from gristmill.exports.table import Split
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.read.exported import splits as steps_of
from gristmill.puzzles.read.exported import splits as puzzles_of
from gristmill.reasoning.format.names import NORMALIZED as NORMALIZED_FOLDER
from gristmill.reasoning.format.names import TOKENS as TOKENS_FOLDER
from gristmill.reasoning.format.names import meta as meta_name
from gristmill.reasoning.format.names import normalized
from gristmill.reasoning.format.published import NORMALIZED, TOKENS
from gristmill.reasoning.format.shards import EOS, Meta, meta_bytes
from gristmill.reasoning.read.exported import split_of

ROUNDS = 5
LEAST = 0.5
MOST_MIB = 256
SEQUENCE = 2048


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


def parsed(files: Sequence[Path], out: Path) -> None:
    """Copy files, and parse each of their lines as JSON."""
    copied(files, out)
    for path in files:
        for line in path.open("rb"):
            orjson.loads(line)


def compare(
    name: str,
    files: Sequence[Path],
    splits: Sequence[Split],
    root: Path,
    to: str = PARQUET,
    limit: Callable[[Sequence[Path], Path], object] = copied,
    least: float = LEAST,
) -> bool:
    """Measure both in turns; print the bytes per CPU second and the median ratio.

    limit: what the projection is compared with. least: ratio that is required.
    """

    def project(out: Path) -> object:
        return written(splits, out) if to == PARQUET else write(to, splits, out)

    seconds(project, root)
    pairs = [
        (seconds(lambda out: limit(files, out), root), seconds(project, root))
        for _ in range(ROUNDS)
    ]
    ratio = statistics.median(copy / own for copy, own in pairs)
    total = sum(path.stat().st_size for path in files) / 1e6
    rates = [total / statistics.median(column) for column in zip(*pairs, strict=True)]
    good = ratio >= least
    print(
        f"{name}, {total:,.0f} MB: copy {rates[0]:,.0f} MB, projection {rates[1]:,.0f} MB per CPU "
        f"second, ratio {ratio:.2f} (required {least:g}) {'ok' if good else 'MISSED'}"
    )
    return good


def write_shards(root: Path, tokens: int) -> list[Path]:
    """Shards of a token dataset with documents of some 200 tokens; returns their files."""
    chance = np.random.default_rng(1)
    folder = root / "gsm8k" / "train"
    folder.mkdir(parents=True)
    for number in range(4):
        ids = chance.integers(0, EOS, (tokens // 4 // SEQUENCE, SEQUENCE)).astype("<u2")
        ids.reshape(-1)[::200] = EOS
        ids[-1, -1] = EOS
        ends = int((ids == EOS).sum())
        path = f"gsm8k/train/shard_{number:05d}.bin"
        (root / path).write_bytes(ids.tobytes())
        sizes = (SEQUENCE, len(ids), ids.size, number)
        meta = Meta("gsm8k", "train", *sizes, path, "", (), 0, 1, "", ids.size - ends, ends, 0, "",
                    "", "", tokenizer="made", dtype="uint16", eod=EOS, ids=EOS + 1)  # fmt: skip
        (root / meta_name(path)).write_bytes(meta_bytes(meta))
    return sorted(folder.glob("*.bin"))


def write_records(root: Path, count: int) -> list[Path]:
    """Normalised records of two splits; returns their files."""
    for split in ("train", "test"):
        path = root / normalized("gsm8k", split)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            for number in range(count if split == "train" else count // 10):
                row = {"question": f"Question {number}? " * 20, "answer": f"{number} " * 40}
                file.write(json.dumps({**row, "cot": None, "source_dataset": "gsm8k"}) + "\n")
    return sorted(path.parent.glob("*.jsonl"))


def main() -> None:
    """Compare all kinds; exit with 1 where a requirement is missed."""
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
        shards = write_shards(root / TOKENS_FOLDER / "made", 100_000_000)
        texts = write_records(root / NORMALIZED_FOLDER, 200_000)
        tokens = [split_of(TOKENS, root / TOKENS_FOLDER / "made", "gsm8k__train", root)]
        records = [
            split_of(NORMALIZED, root / NORMALIZED_FOLDER, f"gsm8k__{split}", root)
            for split in ("train", "test")
        ]
        (root / "chunks").mkdir()
        write("litdata", tokens, root / "chunks")
        chunks = sorted((root / "chunks").glob("*/*.bin"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        arrays = sorted(arc.glob("*/*.npy"))
        good = [
            compare("puzzles like ARC", arrays, [*puzzles_of("puzzles/arc", arc)], root),
            compare("pack of 2048", [pack / "steps.npy"], [*steps_of("macroxue/pack", pack)], root),
            compare("tokens to llm.c", shards, tokens, root, "llm.c"),
            compare("tokens to litdata, of twice the bytes", chunks, tokens, root, "litdata"),
            compare("records to nanochat", texts, records, root, "nanochat", parsed, 0.25),
        ]
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory of its own: {grown:,.0f} MiB (allowed {MOST_MIB}, mapped files included)")
    sys.exit(0 if all(good) and grown <= MOST_MIB else 1)


if __name__ == "__main__":
    main()
