"""Normalised files for tests, written without the builder of the corpora."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
