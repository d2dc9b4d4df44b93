"""Normalised files for tests, written without the builder of the corpora."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import AlignConfig, NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format import names
from tests.paths import REAL_DATA

GSM8K = REAL_DATA / "reasoning" / "gsm8k"


def write(path: Path, records: Iterable[Mapping[str, Any]], corpus: str = "gsm8k") -> Path:
    """A normalised file of records, which need only the keys that matter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {"question": "", "answer": "", "cot": None, "source_dataset": corpus}
    lines = [json.dumps({**keys, **record}, ensure_ascii=False) + "\n" for record in records]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_gsm8k(path: Path) -> Path:
    """The real test split, normalised."""
    raw = map(json.loads, (GSM8K / "test.jsonl").read_text(encoding="utf-8").splitlines())
    return write(path, ({key: record[key] for key in ("question", "answer")} for record in raw))


def numbered(count: int) -> list[dict[str, Any]]:
    """Records of different lengths; some have a chain of thought, some no text at all."""
    records: list[dict[str, Any]] = []
    for number in range(count):
        words = " ".join(f"word{number * k}" for k in range(number * 7 % 13))
        record = {"question": f"Question {number}? {words}", "answer": str(number)}
        if number % 3 == 0:
            record["cot"] = f"First, {number} is a number.\nThen … {words}"
        records.append({"answer": " \n"} if number % 11 == 5 else record)
    return records


FOLDERS = {
    "gsm8k": "gsm8k",
    "cot_collection": "flan_cot",
    "reasoning_traces": "metamath",
    "wiqa": "wiqa",
}


def write_split(
    root: Path,
    corpus: str,
    split: str,
    records: Iterable[Mapping[str, Any]],
    vocabulary: Path,
    seq_len: int = 64,
) -> Path:
    """Write a normalised file and its shards where a data root has them."""
    jsonl = write(root / names.NORMALIZED / names.normalized(corpus, split), records, corpus)
    config = TokenizeConfig(vocabulary, seq_len=seq_len)
    _add(root / names.TOKENIZED, lambda out: tokenize(jsonl, out, config))
    return jsonl


def write_aligned(
    root: Path, corpus: str, split: str, records: Iterable[Mapping[str, Any]], vocabulary: Path
) -> None:
    """Write a split and its alignment where a data root has them."""
    jsonl = write_split(root, corpus, split, records, vocabulary)
    shards, config = root / names.TOKENIZED, AlignConfig(vocabulary)
    _add(root / names.ALIGNMENT, lambda out: align(jsonl, shards, out, config))


def _add(folder: Path, make: Callable[[Path], object]) -> None:
    """Add to a folder what a builder makes, which needs a folder of its own."""
    with TemporaryDirectory() as scratch:
        make(Path(scratch) / "out")
        shutil.copytree(Path(scratch) / "out", folder, dirs_exist_ok=True)


@cache
def real_records(corpus: str, split: str) -> list[dict[str, Any]]:
    """Records of the real data, normalised; skips where it is not there."""
    drop = REAL_DATA / "reasoning" / FOLDERS[corpus]
    if not drop.is_dir():
        pytest.skip(f"no real data at {drop} (GRISTMILL_REAL_DATA)")
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        normalize(drop, out, NormalizeConfig(), corpus=corpus, split=split)
        lines = (out / names.normalized(corpus, split)).read_bytes().splitlines()
    return [json.loads(line) for line in lines]
