"""Laws of normalised files, the raw manifest and conversations find what they are for."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import Violation, counts_of
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.corpora.raw.drops import splits_of
from gristmill.families import Subject
from gristmill.reasoning.builders.manifest import write_raw_manifest
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.config import CorpusConfig, NormalizeConfig
from gristmill.reasoning.format import reports as form
from gristmill.reasoning.laws.texts import (
    conversation_laws,
    ids_again,
    normalized_laws,
    questions_again,
    raw_manifest_laws,
)
from gristmill.reasoning.samples import write_drop
from tests.reasoning.builders.test_manifest import record
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
def test_the_samples_break_no_law(corpus, tmp_path):
    write_drop(tmp_path / corpus, corpus)
    for split in splits_of(tmp_path / corpus):
        out = tmp_path / "out" / split
        normalize(tmp_path / corpus, out, NormalizeConfig(), split=split)
        assert list(normalized_laws(out, f"{corpus}__{split}")) == []
        assert list(normalized_laws(out)) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
def test_a_changed_line_breaks_its_law(folder, line, law):
    path = folder / "reveal/test.jsonl"
    assert _laws(folder) == set()
    assert path.read_bytes() == json.dumps(RECORD).encode() + b"\n"
    path.write_bytes(line)
    assert _laws(folder) == {law}


def test_a_number_is_evidence_and_names_that_are_no_utf8_break_no_law(tmp_path):
    given = ({"context": 5}, {"citation": 0.5}, {"context": " ", "citation": False})
    rows = [{"question": "q", "answer": "a", **evidence} for evidence in given]
    write(tmp_path / "reveal", "test.jsonl", [*rows, {**rows[0], "context": " "}])
    summary = normalize(tmp_path / "reveal", tmp_path / "out", NormalizeConfig(), split="test")
    assert (summary.records, summary.left_out_by) == (3, {"evidence": 1})
    lines = (tmp_path / "out/reveal/test.jsonl").read_text().splitlines()
    assert [json.loads(line)["context"] for line in lines] == [5, None, " "]
    assert _laws(tmp_path / "out") == set()
    (tmp_path := tmp_path / "next").mkdir()
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    path = os.fsencode(drop) + b"/a\xff.jsonl"
    with open(path, "wb") as file:  # noqa: PTH123 - a name that is not UTF-8
        file.write(b'{"\\ud800": 1}\n{"a\\nb": "\\u0007"}\n{"question": "q", "answer": "a"}\n')
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(bad_rows=2), split="train")
    assert summary.rejected_by == {"shape": 2}
    assert list(normalized_laws(tmp_path / "out", "gsm8k__train")) == []


@pytest.mark.parametrize(
    "places", [[[0, 1], [0, 2]], [[0, 0]], [[-1, 1]], [0, 1], [[0, 1, 2]], [[0.0, 1.0]]]
)
def test_other_origins_break_their_law(folder, places):
    np.save(folder / "origins/reveal__test.npy", np.array(places))
    assert _laws(folder) == {"origins"}


@pytest.mark.parametrize(
    ("numbers", "is_right"),
    [([1], True), ([7], True), ([0], False), ([-1], False), ([1, 2], False), ([], False)],
)
def test_numbers_ascend_and_have_a_gap(folder, numbers, is_right):
    np.save(folder / "reveal/test.numbers.npy", np.array(numbers, np.int64))
    assert _laws(folder) == (set() if is_right else {"numbers"})


def test_missing_files_are_found_and_many_violations_counted(folder):
    (folder / "origins/reveal__test.npy").unlink()
    assert _laws(folder) == {"origins"}
    (folder / "reveal/test.jsonl").unlink()
    assert _laws(folder) == {"readable"}
    assert list(normalized_laws(folder)) == []
    (folder / "reveal/test.jsonl").write_bytes(b"{}\n" * 50)
    found = [str(violation) for violation in normalized_laws(folder, "reveal__test")]
    assert len([text for text in found if "keys" in text]) == 21
    assert "reveal/test.jsonl: keys: 30 more of 50 rows" in found


@pytest.mark.parametrize(
    "line",
    [b"{\n", b"[]\n", b'{"reason": "json"}\n', b'{"reason":"x","file":"","row":1,"rule":""}'],
)
def test_a_changed_list_of_refused_records_is_found(folder, line):
    (folder / "rejected/reveal__test.jsonl").write_bytes(line)
    assert _laws(folder) == {"refused"}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    records = [record("gsm8k__train"), record("gsm8k__test")]
    write_raw_manifest(records, None, tmp_path / "out", generated_at="1")
    return tmp_path / "out" / "manifest.json"


def _laws_of_raw_manifest(path: Path) -> set[str]:
    return {violation.law for violation in raw_manifest_laws(path.parent)}


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda entry: entry.pop("notes"), "keys"),
        (lambda entry: entry.update(more=1), "keys"),
        (lambda entry: entry.update(name=entry.pop("name")), "keys"),
        (lambda entry: entry.update(hf_path="x"), "corpus"),
        (lambda entry: entry.update(name="x"), "corpus"),
        (lambda entry: entry["licence"].update(id="x"), "corpus"),
        (lambda entry: entry.update(licence=None), "corpus"),
        (lambda entry: entry["files"]["test"].update(path="x"), "files"),
        (lambda entry: entry["files"]["test"].update(sha256=0), "files"),
        (lambda entry: entry["files"]["test"].update(bytes=-1), "files"),
        (lambda entry: entry["files"]["test"].update(rejected=True), "files"),
        (lambda entry: entry["files"]["test"].update(records=4), "shapes"),
        (lambda entry: entry["files"].update(test=None), "files"),
        (lambda entry: entry["files"].update(other={}), "files"),
        (lambda entry: entry.update(files=[]), "files"),
        (lambda entry: entry["source_shape"].pop("test"), "files"),
        (lambda entry: entry["source_shape"].update(test=3), "files"),
    ],
)
def test_a_changed_entry_breaks_its_law(manifest, change, law):
    assert _laws_of_raw_manifest(manifest) == set()
    content = json.loads(manifest.read_text())
    change(content["gsm8k"])
    manifest.write_text(json.dumps(content, indent=2))
    assert law in _laws_of_raw_manifest(manifest)


@pytest.mark.parametrize(
    ("text", "law"), [("", "readable"), ("[]", "readable"), ("{}\n", "form"), ('{"x": 1}', "keys")]
)
def test_a_file_that_is_no_manifest_is_found(manifest, text, law):
    manifest.write_text(text)
    assert law in _laws_of_raw_manifest(manifest)


def test_a_missing_manifest_is_found(manifest):
    manifest.unlink()
    assert _laws_of_raw_manifest(manifest) == {"readable"}


USER = '{"role":"user","content":"q"}'
THOUGHT = '{"role":"assistant","content":"t","channel":"analysis"}'
FINAL = '{"role":"assistant","content":"a","channel":"final"}'


def row(*messages: str, **changed: Any) -> dict[str, Any]:
    """A row with these messages."""
    text = '{"messages":[' + ",".join(messages) + "]}"
    good = {"messages_json": text, "synth_id": "i", "spans": "012", "split": "train"}
    return {**good, "file": "a", "row": 1, **changed}


def laws(folder: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> list[str]:
    """The laws that rows break."""
    table = pa.Table.from_pylist(rows, schema or form.schema())
    pq.write_table(table, folder / "shard_00.parquet")
    return [each.law for each in conversation_laws(Subject(folder, None, []))]


GOOD = row(USER, THOUGHT, FINAL)


def test_good_rows_and_null_columns_of_synth_break_nothing(tmp_path):
    masked = row(USER, THOUGHT, FINAL, spans="000", split="validation")
    assert laws(tmp_path, [GOOD, masked, row(USER, FINAL, spans="22")]) == []
    kept = [{**GOOD, "language": None, "exercise": "x"}]
    assert laws(tmp_path, kept, form.schema(KEPT)) == []
    assert laws(tmp_path, [GOOD], form.schema(KEPT[:1])) == ["columns"]


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (row(USER, THOUGHT, FINAL, synth_id=" "), "no nulls"),
        (row(USER, THOUGHT, FINAL, file=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, row=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, messages_json=None), "no nulls"),
        (row(USER, THOUGHT, FINAL, split="test"), "split"),
        (row(USER, THOUGHT, FINAL, spans="01"), "spans"),
        (row(USER, THOUGHT, FINAL, spans="022"), "spans"),
        (row(USER, FINAL, FINAL, spans="022"), "turns"),
        (row(THOUGHT, FINAL, spans="12"), "turns"),
        (row(USER, THOUGHT, spans="01"), "turns"),
        (row(USER, FINAL.replace('"channel":"final"', '"x":1'), spans="02"), "messages"),
        (row(USER.replace("user", "tool"), FINAL, spans="02"), "messages"),
        (row(USER, FINAL, messages_json="{", spans="02"), "messages"),
    ],
)
def test_a_broken_row_is_found(tmp_path, broken, law):
    assert laws(tmp_path, [GOOD, broken]) == [law]


def test_other_columns_damage_and_no_shard_are_found(tmp_path):
    assert laws(tmp_path, [{"a": "b"}], pa.schema([("a", pa.string())])) == ["columns"]
    (tmp_path / "shard_00.parquet").write_bytes(b"PAR1")
    subject = Subject(tmp_path, None, [])
    assert [each.law for each in conversation_laws(subject)] == ["readable"]
    (tmp_path / "shard_00.parquet").unlink()
    assert [each.law for each in conversation_laws(subject)] == ["shards"]


def _split(folder: Path, split: str, questions: list[str], **more: Any) -> Any:
    """The record of a split of a corpus of a drop with the rows of all its questions."""
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a", **more}
    rows = [{"q": each, "a": str(at), "i": at // 2} for at, each in enumerate(questions)]
    drop = folder / "mine"
    write(drop, f"{split}.jsonl", rows)
    config = CorpusConfig(corpus=json.dumps(table))
    made = normalize(drop, folder / split, config, corpus="mine", split=split)
    shutil.copytree(folder / split / "mine", folder / "out/mine", dirs_exist_ok=True)
    return SimpleNamespace(
        partition=f"mine__{split}", counts=counts_of(made), config={"corpus": config.corpus}
    )


def test_equal_questions_of_two_splits_are_named_from_one_on_with_both_places(tmp_path):
    train = _split(tmp_path, "train", ["one", "two", "three", "two"])
    test = _split(tmp_path, "test", ["four", "  two ", "five", "two"])
    other = _split(tmp_path, "validation", ["six", "Two"])
    out = tmp_path / "out"
    assert list(questions_again(train, out)) == list(questions_again(other, out)) == []
    found = "asks what mine/train.jsonl:2 asks; 2 of 4 records do so"
    assert list(questions_again(test, out)) == [Violation("questions", "mine/test.jsonl:2", found)]
    for split in ("train", "test"):  # in parts of a line each
        path = out / f"mine/{split}.jsonl"
        path.with_suffix("").mkdir()
        for at, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            (path.with_suffix("") / f"{at:05d}.jsonl").write_bytes(line)
        path.unlink()
    found = found.replace("train.jsonl:2", "train/00001.jsonl:1")
    where = "mine/test/00001.jsonl:1"
    assert list(questions_again(test, out)) == [Violation("questions", where, found)]
    shutil.rmtree(out / "mine/train")
    assert list(questions_again(test, out)) == []


def test_ids_that_come_again_with_other_contents_are_noted_with_two_places(tmp_path):
    (note,) = ids_again(_split(tmp_path, "train", list("abcde"), id="i"), tmp_path / "out")
    assert note.law == "ids" and note.where == "mine__train"
    assert note.found == (
        "train.jsonl:1 and train.jsonl:2 have one id and other contents; so has each of 2 records"
    )
    assert list(ids_again(_split(tmp_path, "test", ["x", "y"], id="q"), tmp_path / "out")) == []
