"""Spaces between tokens: lines without them are the same JSON, and need no strict parser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.macroxue.raw import read_run
from gristmill.macroxue.raw.drops import find_runs
from gristmill.macroxue.raw.fast_scanner import scan
from gristmill.macroxue.raw.json_spaces import squeezed
from gristmill.macroxue.raw.strict_parser import Names
from tests.macroxue.lines import STEP, compact, step, write_run

TOKENS = [*"{}[],:", *" \t\r\v", '"a b"', '"\\" "', '"\\\\"', '"', "\\", "1", "-2.5", "null", "é"]


def value(line: bytes) -> object:
    try:
        return json.dumps(json.loads(line.decode()))
    except ValueError:
        return None


@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), min_size=1))
def test_a_line_is_json_as_before_and_of_the_same_value(texts: list[str]) -> None:
    lines = [text.encode() for text in texts]
    buffer = bytearray(b"before\n" + b"".join(line + b"\n" for line in lines) + b" 1 ")
    end = len(buffer) - 3
    out, size, starts = squeezed(buffer, 7, end, 9)
    assert len(out) == end - 7 + 9
    assert starts.tolist() == [7, *(7 + np.cumsum([len(line) + 1 for line in lines])).tolist()]
    shorter = bytes(out[:size]).split(b"\n")
    assert shorter.pop() == b""
    assert list(map(value, shorter)) == list(map(value, lines))


def rows_of(folder: Path, lines: Sequence[bytes], scanner: Any) -> tuple[bytes, str, list[str]]:
    """The rows of a run, what else it says, and its names."""
    if not folder.exists():
        write_run(folder, "g", lines, meta={"num_moves": len(lines)})
    (run,) = find_runs(folder).runs
    rows, names = bytearray(), Names()
    try:
        facts = read_run.read_run(
            run, 1, names, lambda batch: rows.extend(batch.tobytes()), scanner
        )
    except BadInput as error:
        return bytes(rows), str(error), names.known
    said = (facts.rows, facts.legal_rows, facts.kinds, facts.ranks, read_run.notes_of(facts))
    return bytes(rows), str(said), names.known


SPACED = [json.dumps(STEP | {"step_index": at}).encode() for at in range(40)]
NAMED = [step(step_index=at, valuation_type=["line_plan", "", "a b"][at % 3]) for at in range(40)]
LARGE = [step(seed=seed) for seed in (10**16, 10**17 + 7, 2**63, 2**64 - 1, 10**19, 2**64 - 10**4)]
FORMS = {
    "CRLF": ([step(step_index=at) + b"\r" for at in range(40)], 0),
    "spaces": (SPACED, 0),
    "indents": ([b"\t " + line.replace(b",", b" ,\r\t") + b" " for line in SPACED], 0),
    "blank lines": ([b"", b" \r", *SPACED[:9], b"\t", b"", b"\v", *SPACED[9:], b" "], 0),
    "names": (NAMED, 3),
    "names and spaces": ([json.dumps(json.loads(line)).encode() for line in NAMED], 3),
    "large seeds": (LARGE, 0),
    "one escape": ([*SPACED[:20], compact(STEP).replace(b"move", b"mov\\u0065"), *SPACED[20:]], 1),
}


@pytest.mark.parametrize("batch", [700, 1 << 19])
@pytest.mark.parametrize("form", FORMS)
def test_the_scanner_takes_usual_forms_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, batch: int
) -> None:
    monkeypatch.setattr(read_run, "BATCH_BYTES", batch)
    monkeypatch.setattr(read_run, "BATCH_ROWS", 7)
    lines, strict = FORMS[form]
    expected = rows_of(tmp_path / "d", lines, None)
    assert len(expected[0]) == 48 * sum(map(bool, map(bytes.split, lines)))
    asked = []
    parse = read_run.parse_step
    monkeypatch.setattr(read_run, "parse_step", lambda line: (asked.append(line), parse(line))[1])
    assert rows_of(tmp_path / "d", lines, scan) == expected
    assert len(asked) == strict


@pytest.mark.parametrize(
    "bad",
    [
        b'{"board": [1, 2 3]}',
        SPACED[0][:-1],
        SPACED[0].replace(b"left", b"le ft"),
        SPACED[0] + b" x",
        step(seed=2**64).replace(b",", b", "),
        step(seed=10**20),
        step(seed=7).replace(b":7,", b":01234567890123456789,"),
        SPACED[0].replace(b"search", b"\xff"),
    ],
)
@pytest.mark.parametrize("batch", [700, 1 << 19])
def test_a_bad_line_is_named_as_it_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: bytes, batch: int
) -> None:
    monkeypatch.setattr(read_run, "BATCH_BYTES", batch)
    lines = [*SPACED[:5], b" ", *SPACED[5:11], bad, *SPACED[11:]]
    strict, scanned = (rows_of(tmp_path / "d", lines, scanner) for scanner in (None, scan))
    assert "g.jsonl.gz:13: " in strict[1]
    assert scanned[1] == strict[1]
