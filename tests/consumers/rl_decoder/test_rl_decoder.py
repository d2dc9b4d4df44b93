"""Normalised records as RL-Decoder reads them, and the spans of the same annotations."""

import json
import math
import operator
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gristmill.reasoning.builders.exports import write_controls
from gristmill.reasoning.config import SpansConfig
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


STEP = re.compile(
    r"^STEP\s+(\d+):\s+(?:OPERATE\s+lhs=(\S+)\s+op=([-+*/]|unknown)\s+rhs=(\S+)\s+subresult=(\S+)"
    r"|EMIT_RESULT\s+value=(\S+)\s+sign=(neg|zero|pos)\s+mag=(\[[^\]]+\)))$"
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
APPLIED = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def steps(text: str) -> tuple[list[tuple[int, bool]], str]:
    """Number of each step of a text, in its order, and whether it is right; the final answer."""
    found, final = [], ""
    for line in text.splitlines():
        if line.startswith("FINAL_ANSWER value="):
            final = line.partition("=")[2]
        elif match := STEP.match(line.removeprefix("CORRECTION ")):
            number, left, sign, right, result, value, of_value, size = match.groups()
            numbers = [each for each in (left, right, result, value) if each is not None]
            assert all(NUMBER.fullmatch(each) for each in numbers), line
            if value is None:
                is_right = math.isclose(
                    APPLIED[sign](float(left), float(right)), float(result), rel_tol=1e-5
                )
            else:
                least, most = map(float, size[1:-1].replace("+", ",inf").split(","))
                is_right = least <= abs(float(value)) < most
                assert of_value == ("zero", "pos", "neg")[(float(value) > 0) - (float(value) < 0)]
            found.append((int(number), is_right))
        else:
            assert not line.startswith(("STEP ", "CORRECTION ")), line
    return found, final


def part(traces: set[str]) -> set[str]:
    """The traces that `split_audit_dataset.py` takes for calibration."""
    ids = sorted(traces)
    Random(20260303).shuffle(ids)
    return set(ids[: min(max(1, round(0.30 * len(ids))), len(ids) - 1)]) if ids[1:] else set()


@RL_DECODER.opens("reasoning/spans", how="`--controls`, `--audit`: `gsm8k/<split>.controls.json`")
def test_control_pairs_are_read_and_split_by_trace(sample_root: SampleRoot, tmp_path: Path) -> None:
    spans, _ = sample_root.record("reasoning/spans")
    for split in ("train", "test"):
        rows = [*map(json.loads, (spans / f"gsm8k/{split}.spans.jsonl").open("rb"))]
        read_of = {row["trace_id"] for row in rows if not row["skipped"]}
        made = tmp_path / f"{split}.controls.json"
        of_split = spans / f"gsm8k/{split}.spans.jsonl"
        write_controls(made, of_split, split, SpansConfig(control_traces=12))
        payload = json.loads(made.read_text())
        of_trace: dict[str, dict[str, dict[str, Any]]] = {}
        for control in payload["controls"]:
            of_trace.setdefault(control["trace_id"], {})[control["variant"]] = control
        assert [*of_trace] == sorted(read_of)[:12]
        assert len(of_trace) > 3
        for trace, variants in of_trace.items():
            values = [row for row in rows if row["trace_id"] == trace and not row["skipped"]]
            order, final = steps(variants["faithful"]["cot_text"])
            assert order == [(number, True) for number in range(len(order))]
            assert float(final) == values[-1]["C"]
            right = variants["faithful"]["cot_text_steps"]
            assert len(variants) == 11
            for name, control in variants.items():
                found, same = steps(control["cot_text"])
                assert same == final
                assert control["gold_label"] == ("faithful" if name == "faithful" else "unfaithful")
                is_wrong = not {*control["cot_text_steps"]} <= {*right}
                assert is_wrong == ("_step_" in (control["expected_failure_mode"] or ""))
                flipped = name in ("order_flip_only", "answer_first_order_flip")
                assert found == order[::-1] if flipped else len(found) >= len(order)
        audits = payload["audits"]
        calibrate = part({each["trace_id"] for each in audits})
        assert payload["split"]["trace_ids_calib"] == sorted(calibrate)
        assert payload["split"]["trace_ids_eval"] == sorted(of_trace.keys() - calibrate)
        for audit, control in zip(audits, payload["controls"], strict=True):
            keys = ("trace_id", "control_variant", "gold_label")
            assert tuple(audit[key] for key in keys) == tuple(
                control[key] for key in ("trace_id", "variant", "gold_label")
            )
            in_calibration = control["trace_id"] in calibrate
            assert control["part"] == ("calibration" if in_calibration else "evaluation")


def test_thirty_rows_of_ten_traces_are_nine_and_twenty_one() -> None:
    ids = [f"gsm8k_test_{number:05d}" for number in range(10)]
    calibrate = part({*ids})
    parts = [trace in calibrate for trace in ids for _ in range(3)]
    assert (parts.count(True), parts.count(False)) == (9, 21)
