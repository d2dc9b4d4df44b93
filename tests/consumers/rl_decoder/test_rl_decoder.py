"""Normalised records as RL-Decoder reads them, and the spans of the same annotations."""

from __future__ import annotations

import json
import re

import pytest

from tests.consumers.rl_decoder import RL_DECODER
from tests.sample_root import SampleRoot

pytestmark = pytest.mark.slow
RESULT = re.compile(r"\s*-?\d+(\.\d+)?\s*")


def read(lines: list[bytes], split: str) -> list[tuple[str, int, str, str, float]]:
    """Trace, number, text, expression and result of each annotation, line by line."""
    found = []
    for index, line in enumerate(lines):
        row = json.loads(line)
        text, number, at = f"{row['question']}\n{row['answer']}", 0, 0
        while (begin := text.find("<<", at)) >= 0 and (end := text.find(">", begin)) >= 0:
            expression, sign, result = text[begin + 2 : end].rpartition("=")
            at = end
            if text[end : end + 2] == ">>" and sign and RESULT.fullmatch(result):
                whole = text[begin : end + 2]
                trace = f"gsm8k_{split}_{index:05d}"
                found.append((trace, number, whole, expression.strip(), float(result)))
                number += 1
    return found


@RL_DECODER.opens("reasoning/normalized", how="`--gsm8k-path`: `gsm8k/train.jsonl`, `test.jsonl`")
@RL_DECODER.opens("reasoning/spans", how="the spans of the annotations that it finds")
def test_the_spans_are_those_of_the_annotations_that_it_finds(sample_root: SampleRoot) -> None:
    normalized, _ = sample_root.record("reasoning/normalized")
    spans, _ = sample_root.record("reasoning/spans")
    for split in ("train", "test"):
        lines = (normalized / f"gsm8k/{split}.jsonl").read_bytes().splitlines()
        assert all({"question", "answer"} <= json.loads(line).keys() for line in lines)
        rows = map(json.loads, (spans / f"gsm8k/{split}.spans.jsonl").read_bytes().splitlines())
        keys = ("trace_id", "ann_idx", "ann_text", "expr_str", "C")
        wanted = read(lines, split)
        assert len(wanted) > 5
        assert [tuple(row[key] for key in keys) for row in rows] == wanted
