"""Every law of normalised files finds what it is for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.drops import splits_of
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.config import NormalizeConfig
from gristmill.reasoning.laws.normalized import normalized_laws
from gristmill.reasoning.samples import write_drop
from tests.reasoning.drops import write

RECORD: dict[str, Any] = {
    "question": "q",
    "answer": "a",
    "cot": "x\ny",
    "source_dataset": "reveal",
    "context": "c",
    "citation": None,
    "cot_steps": ["x", "y"],
}
PLAIN = {key: value for key, value in RECORD.items() if key != "cot_steps"} | {"cot": None}


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_samples_break_no_law(corpus: str, tmp_path: Path) -> None:
    write_drop(tmp_path / corpus, corpus)
    for split in splits_of(tmp_path / corpus):
        out = tmp_path / "out" / split
        normalize(tmp_path / corpus, out, NormalizeConfig(), split=split)
        assert list(normalized_laws(out, f"{corpus}__{split}")) == []
        assert list(normalized_laws(out)) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A normalised split of reveal with one record, and one refused record."""
    rows = [{**RECORD, "rationale": ["x", "y"]}, {"x": 1}]
    write(tmp_path / "reveal", "test.jsonl", rows)
    normalize(tmp_path / "reveal", tmp_path / "out", NormalizeConfig(bad_rows=1), split="test")
    return tmp_path / "out"


def _laws(folder: Path) -> set[str]:
    return {violation.law for violation in normalized_laws(folder, "reveal__test")}


@pytest.mark.parametrize(
    ("line", "law"),
    [
        (b"{", "json"),
        (b"\n", "json"),
        (b"[]\n", "json"),
        (json.dumps({**RECORD, "more": 1}).encode() + b"\n", "keys"),
        (json.dumps(dict(reversed(RECORD.items()))).encode() + b"\n", "keys"),
        (json.dumps({**RECORD, "answer": 1}).encode() + b"\n", "types"),
        (json.dumps({**RECORD, "question": None}).encode() + b"\n", "types"),
        (json.dumps({**RECORD, "cot": ["x"]}).encode() + b"\n", "types"),
        (json.dumps({**RECORD, "citation": []}).encode() + b"\n", "types"),
        (json.dumps({**RECORD, "source_dataset": "trip"}).encode() + b"\n", "source"),
        (json.dumps({**RECORD, "cot_steps": ["x"]}).encode() + b"\n", "steps"),
        (json.dumps({**RECORD, "cot_steps": ["x", " y"]}).encode() + b"\n", "steps"),
        (json.dumps({**RECORD, "cot_steps": None}).encode() + b"\n", "steps"),
        (json.dumps({**RECORD, "question": "a\rb"}).encode() + b"\n", "canonical"),
        (json.dumps({**RECORD, "answer": "\ufeffb"}).encode() + b"\n", "canonical"),
        (json.dumps({**RECORD, "question": " "}).encode() + b"\n", "question"),
        (json.dumps({**PLAIN, "answer": " "}).encode() + b"\n", "answer"),
        (json.dumps({**RECORD, "context": " "}).encode() + b"\n", "evidence"),
        (json.dumps({**RECORD, "answer": "ä"}).encode() + b"\n", "form"),
        (json.dumps(RECORD, separators=(",", ":")).encode() + b"\n", "form"),
        (json.dumps(RECORD).encode(), "form"),
    ],
)  # fmt: skip
def test_a_changed_line_breaks_its_law(folder: Path, line: bytes, law: str) -> None:
    path = folder / "reveal/test.jsonl"
    assert _laws(folder) == set()
    assert path.read_bytes() == json.dumps(RECORD).encode() + b"\n"
    path.write_bytes(line)
    assert _laws(folder) == {law}


def test_a_number_is_evidence(tmp_path: Path) -> None:
    given = ({"context": 5}, {"citation": 0.5}, {"context": " ", "citation": False})
    rows = [{"question": "q", "answer": "a", **evidence} for evidence in given]
    write(tmp_path / "reveal", "test.jsonl", [*rows, {**rows[0], "context": " "}])
    summary = normalize(tmp_path / "reveal", tmp_path / "out", NormalizeConfig(), split="test")
    assert (summary.records, summary.left_out_by) == (3, {"evidence": 1})
    lines = (tmp_path / "out/reveal/test.jsonl").read_text().splitlines()
    assert [json.loads(line)["context"] for line in lines] == [5, None, " "]
    assert _laws(tmp_path / "out") == set()


@pytest.mark.parametrize(
    "places", [[[0, 1], [0, 2]], [[0, 0]], [[-1, 1]], [0, 1], [[0, 1, 2]], [[0.0, 1.0]]]
)
def test_other_origins_break_their_law(folder: Path, places: list[Any]) -> None:
    np.save(folder / "origins/reveal__test.npy", np.array(places))
    assert _laws(folder) == {"origins"}


def test_missing_files_are_found(folder: Path) -> None:
    (folder / "origins/reveal__test.npy").unlink()
    assert _laws(folder) == {"origins"}
    (folder / "reveal/test.jsonl").unlink()
    assert _laws(folder) == {"readable"}
    assert list(normalized_laws(folder)) == []


@pytest.mark.parametrize(
    "line",
    [b"{\n", b"[]\n", b'{"reason": "json"}\n', b'{"reason":"x","file":"","row":1,"rule":""}'],
)
def test_a_changed_list_of_refused_records_is_found(folder: Path, line: bytes) -> None:
    (folder / "rejected/reveal__test.jsonl").write_bytes(line)
    assert _laws(folder) == {"refused"}


def test_names_and_columns_that_are_no_utf8_break_no_law(tmp_path: Path) -> None:
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    path = os.fsencode(drop) + b"/a\xff.jsonl"
    with open(path, "wb") as file:  # noqa: PTH123 - a name that is not UTF-8
        file.write(b'{"\\ud800": 1}\n{"a\\nb": "\\u0007"}\n{"question": "q", "answer": "a"}\n')
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(bad_rows=2), split="train")
    assert summary.rejected_by == {"shape": 2}
    assert list(normalized_laws(tmp_path / "out", "gsm8k__train")) == []


def test_many_violations_are_counted(folder: Path) -> None:
    (folder / "reveal/test.jsonl").write_bytes(b"{}\n" * 50)
    found = [str(violation) for violation in normalized_laws(folder, "reveal__test")]
    assert len([text for text in found if "keys" in text]) == 21
    assert "reveal/test.jsonl: keys: 30 more of 50 rows" in found
