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
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import orjson

from bench import kit
from bench.puzzles_reader import write_dataset
from gristmill.exports.project import PARQUET, write, written
from gristmill.exports.table import Split
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.read.dataset import splits as steps_of
from gristmill.puzzles.read.rows import splits as puzzles_of
from gristmill.reasoning.format.names import NORMALIZED as NORMALIZED_FOLDER
from gristmill.reasoning.format.names import TOKENS as TOKENS_FOLDER
from gristmill.reasoning.format.names import meta as meta_name
from gristmill.reasoning.format.names import normalized
from gristmill.reasoning.format.published import NORMALIZED, TOKENS
from gristmill.reasoning.format.shards import EOS, Meta, meta_bytes
from gristmill.reasoning.read.exported import splits_of

LEAST = 0.5
MOST_MIB = 256
SEQUENCE = 2048


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
) -> None:
    """Compare a projection with its limit.

    limit: what the projection is compared with. least: ratio that is required.
    """
    total = sum(path.stat().st_size for path in files) / 1e6

    total = sum(path.stat().st_size for path in files) / 1e6

    out = root / "out"

    def new_folder() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    def project() -> float:
        _ = written(splits, out) if to == PARQUET else write(to, splits, out)
        return total

    def copy() -> float:
        limit(files, out)
        return total

    what, unit = f"{name}, {total:,.0f} MB", "MB per CPU second"
    kit.compare(what, project, copy, unit, least=least, before=new_folder)


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


def formats(given: kit.Given) -> None:
    """Compare all kinds."""
    root = given.scratch
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
    tokens = [*splits_of(TOKENS, root / TOKENS_FOLDER / "made", "gsm8k__train", root)]
    records = [
        each
        for split in ("train", "test")
        for each in splits_of(NORMALIZED, root / NORMALIZED_FOLDER, f"gsm8k__{split}", root)
    ]
    (root / "chunks").mkdir()
    write("litdata", tokens, root / "chunks")
    chunks = sorted((root / "chunks").glob("*/*.bin"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arrays = sorted(arc.glob("*/*.npy"))
    compare("puzzles like ARC", arrays, [*puzzles_of("puzzles/arc", arc)], root)
    compare("pack of 2048", [pack / "steps.npy"], [*steps_of("macroxue/pack", pack)], root)
    compare("tokens to llm.c", shards, tokens, root, "llm.c")
    compare("tokens to litdata, of twice the bytes", chunks, tokens, root, "litdata")
    compare("records to nanochat", texts, records, root, "nanochat", parsed, 0.25)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    kit.bounded("memory of its own, mapped files included: MiB", grown, most=MOST_MIB)


if __name__ == "__main__":
    kit.main(__doc__, formats)
