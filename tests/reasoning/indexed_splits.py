"""Normalised files with the index of their shards, and the records of the real data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gristmill.reasoning.format import names
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.pinned import GPT2
from tests.paths import REAL_DATA

SEQ_LEN = 64
"""Short, so that examples cross sequences."""


def write_split(
    root: Path,
    corpus: str,
    split: str,
    records: Iterable[dict[str, Any]],
    vocabulary: Path,
    seq_len: int = SEQ_LEN,
) -> Path:
    """Write a normalised file below `root/raw` and its index below `root/tokenized`."""
    jsonl = root / "raw" / names.normalized(corpus, split)
    index = root / "tokenized" / names.split_index(corpus, split)
    for path in (jsonl, index):
        path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(records)
    jsonl.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in kept))
    index.write_text("".join(_index_lines(corpus, split, kept, vocabulary, seq_len)))
    return jsonl


def _index_lines(
    corpus: str, split: str, records: list[dict[str, Any]], vocabulary: Path, seq_len: int
) -> Iterator[str]:
    texts = [text_of(record) for record in records]
    place = 0
    shard = "reasoning/tokenized/gpt2/" + names.shard(corpus, split, 0)
    for record, ids in enumerate(encoder(GPT2, vocabulary).encode(texts).ids):
        if not texts[record]:
            continue
        tokens = ids.nbytes // 4
        sha256 = hashlib.sha256(texts[record].encode()).hexdigest()
        row = {
            "example_id": names.example_id(corpus, split, record),
            "shard_path": shard,
            "sequence_index": place // seq_len,
            "token_start": place % seq_len,
            "num_tokens": tokens,
            "num_tokens_with_eos": tokens + 1,
            "spans": list(_spans(shard, place, tokens + 1, seq_len)),
            "rank": 0,
            "text_sha256": sha256,
        }
        place += tokens + 1
        yield json.dumps(row) + "\n"


def _spans(shard: str, place: int, tokens: int, seq_len: int) -> Iterator[dict[str, Any]]:
    end = place + tokens
    while place < end:
        stop = min(end, (place // seq_len + 1) * seq_len)
        yield {
            "shard_path": shard,
            "sequence_index": place // seq_len,
            "start": place % seq_len,
            "end": (stop - 1) % seq_len + 1,
        }
        place = stop


def real_records(corpus: str, split: str = "test") -> list[dict[str, Any]]:
    """Records of the real data, normalised by hand; skips where it is not there."""
    folder = REAL_DATA / "reasoning"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder} (GRISTMILL_REAL_DATA)")
    return list(_REAL[corpus](folder, split))


def _record(corpus: str, question: str, answer: str, cot: str | None) -> dict[str, Any]:
    return {"question": question, "answer": answer, "cot": cot, "source_dataset": corpus}


def _gsm8k(folder: Path, split: str) -> Iterator[dict[str, Any]]:
    for line in (folder / "gsm8k" / f"{split}.jsonl").open(encoding="utf-8"):
        raw = json.loads(line)
        yield _record("gsm8k", raw["question"], raw["answer"], None)


def _flan_cot(folder: Path, _split: str) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "flan_cot").glob("*.tsv")):
        for line in path.open(encoding="utf-8"):
            question, answer, cot = line.rstrip("\n").replace("\\n", "\n").split("\t")
            yield _record("cot_collection", question, answer, cot)


def _metamath(folder: Path, _split: str) -> Iterator[dict[str, Any]]:
    for line in (folder / "metamath" / "GSM8K_Backward.jsonl").open(encoding="utf-8"):
        raw = json.loads(line)
        cot = raw.get("inv_question_pred_answer")
        yield _record("reasoning_traces", raw["question"], raw["answer"], cot)


def _wiqa(folder: Path, _split: str) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "wiqa").glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            raw = json.loads(line)
            nested = raw.get("question", {})
            stem = raw.get("question_stem") or nested["stem"]
            listed = raw.get("question_para_step") or nested["para_steps"]
            label = raw.get("answer_label") or nested["answer_label"]
            steps = [step.strip() for step in listed if step.strip()]
            record = _record("wiqa", stem, label, "\n".join(steps))
            yield record | {"cot_steps": steps}


_REAL = {
    "gsm8k": _gsm8k,
    "cot_collection": _flan_cot,
    "reasoning_traces": _metamath,
    "wiqa": _wiqa,
}
