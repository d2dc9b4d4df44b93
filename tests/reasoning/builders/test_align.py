import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.builders import align as build
from gristmill.reasoning.builders.align import AlignSummary, align
from gristmill.reasoning.config import AlignConfig
from gristmill.reasoning.format import align as form
from gristmill.reasoning.format import names
from gristmill.reasoning.format.align import AlignRow, rows
from gristmill.reasoning.read import alignment
from gristmill.reasoning.read.alignment import Audit
from gristmill.reasoning.render.text import text_of
from gristmill.run.parts import PartStore
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import GPT2, MissingVocabulary
from gristmill.vocabularies.tokenizer import Tokenizer
from tests.reasoning.normalized_files import real_records, write_split

INDEX = f"{names.TOKENIZED}/gsm8k/test/index.jsonl"
_ANSWER = "She has 1+1=<<1+1=2>>2.\nThen 2*3=<<2*3=6>>6 caf\u00e9s.\n#### 6"


def _records(count: int) -> list[dict[str, Any]]:
    return [
        {
            "question": f"How many, {number}?",
            "answer": _ANSWER if number % 3 else f"{number}",
            "cot": None if number % 4 else f"Step 1: {number} \u2019\nStep 2: done",
            "source_dataset": "gsm8k",
        }
        for number in range(count)
    ]


def _align(
    root: Path, jsonl: Path, vocabulary: Path, **more: Any
) -> tuple[AlignSummary, list[AlignRow]]:
    out = root / more.pop("out", "out")
    parts = more.pop("parts", None)
    found = more.pop("audits", None)
    config = AlignConfig(vocabulary, **more)
    summary = align(jsonl, root / names.TOKENIZED, out, config, parts, audits=found)
    return summary, list(rows(out / names.alignment(jsonl.parent.name, jsonl.stem)))


def test_a_row_has_the_steps_in_characters_and_tokens(tmp_path, vocabulary):
    records = _records(6)
    jsonl = write_split(tmp_path, "gsm8k", "test", records, vocabulary)
    _, found = _align(tmp_path, jsonl, vocabulary)
    index = (tmp_path / INDEX).read_text().splitlines()
    assert len(found) == len(index) == 6
    decode = tiktoken_encoding(GPT2, vocabulary)
    for record, row, line in zip(records, found, map(json.loads, index), strict=True):
        for name in ("example_id", "sequence_index", "shard_path"):
            assert getattr(row, name) == line[name]
        text = text_of(record)
        ids = decode.encode_ordinary(text)
        for (start, end), (first, last) in zip(
            row.text_offset_ranges, row.token_offset_ranges, strict=True
        ):
            assert decode.decode(ids[first:last]).strip() == text[start:end]
    assert found[0].step_labels == ["Step 1", "Step 2", "Answer"]
    assert found[1].confidence == 0.89
    assert found[3].step_labels == ["Step 1"]
    assert found[1].notes == "heuristic:lines; pending manual audit"


def test_the_summary_counts_rows_by_rule_and_confidence(tmp_path, vocabulary):
    records = [*_records(6), {"question": "Q", "answer": "#### 6", "cot": None}]
    jsonl = write_split(tmp_path, "gsm8k", "test", records, vocabulary)
    summary, found = _align(tmp_path, jsonl, vocabulary)
    assert (summary.examples, summary.aligned, summary.no_steps) == (7, 6, 1)
    assert (summary.explicit, summary.regex, summary.heuristic) == (0, 2, 4)
    assert summary.rules == {"regex:markers": 2, "heuristic:lines": 4, "no-steps": 1}
    assert summary.spans == sum(len(row.step_labels) for row in found) == 16
    assert summary.labels == {"Answer": 5, "Step": 11}
    assert summary.low_confidence == 5
    assert summary.confidence["0.9"] == 2 and summary.confidence["0.8"] == 4
    assert summary.confidence["0.0"] == 1 and len(summary.confidence) == 10
    assert summary.mean_confidence == pytest.approx(sum(row.confidence for row in found) / 7)
    (note,) = summary.files.values()
    assert list(summary.files) == ["gsm8k/test.align.jsonl"] and note.rows == 7
    assert found[6].notes == "no-steps" and found[6].confidence == 0.0


def test_blank_lines_keep_the_numbers_and_no_records_make_an_empty_one(tmp_path, vocabulary):
    empty = {"question": " ", "answer": "", "cot": None}
    records = [empty, *_records(2), empty, *_records(1), empty]
    jsonl = write_split(tmp_path, "gsm8k", "train", records, vocabulary)
    jsonl.write_text(jsonl.read_text().replace("\n", "\n \n\n", 2))
    _, found = _align(tmp_path, jsonl, vocabulary)
    assert [row.example_id[-1] for row in found] == ["1", "2", "4"]
    (tmp_path := tmp_path / "next").mkdir()
    jsonl = write_split(tmp_path, "gsm8k", "train", [], vocabulary)
    summary, found = _align(tmp_path, jsonl, vocabulary)
    assert found == [] and summary.examples == 0 and summary.mean_confidence == 0.0


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few records, in batches of fewer."""
    monkeypatch.setattr(build, "_PART_BYTES", 1000)
    monkeypatch.setattr(build, "BATCH_BYTES", 300)


def _aligned_bytes(root: Path, jsonl: Path, vocabulary: Path, out: str, **more: Any) -> bytes:
    _align(root, jsonl, vocabulary, out=out, **more)
    return (root / out / "gsm8k/test.align.jsonl").read_bytes()


def test_parts_and_engines_do_not_change_a_byte(tmp_path, vocabulary, monkeypatch):
    empty = {"question": " ", "answer": "", "cot": None}
    records = [*_records(23), empty, empty, *_records(9), empty]
    jsonl = write_split(tmp_path, "gsm8k", "test", records, vocabulary)
    jsonl.write_text(jsonl.read_text().replace("\n", "\n \n\n", 9))
    whole = _aligned_bytes(tmp_path, jsonl, vocabulary, "whole")
    monkeypatch.setattr(build, "BATCH_BYTES", 300)
    for size in (1, 100, 1000):
        monkeypatch.setattr(build, "_PART_BYTES", size)
        assert _aligned_bytes(tmp_path, jsonl, vocabulary, f"parts{size}") == whole
    assert _aligned_bytes(tmp_path, jsonl, vocabulary, "slow", engine="tiktoken") == whole


@pytest.mark.slow
def test_workers_do_not_change_a_byte(tmp_path, vocabulary, small_parts):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(40), vocabulary)
    one = _aligned_bytes(tmp_path, jsonl, vocabulary, "one")
    assert _aligned_bytes(tmp_path, jsonl, vocabulary, "two", workers=2) == one


def test_finished_parts_are_used_again(tmp_path, vocabulary, small_parts, monkeypatch):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(40), vocabulary)
    fresh = _aligned_bytes(tmp_path, jsonl, vocabulary, "fresh")
    (tmp_path / "parts").mkdir()
    store = PartStore(tmp_path / "parts")
    made: list[int] = []
    make: Callable[..., Any] = build.make_part

    def counted(task: build.Task, path: Path) -> dict[str, Any]:
        made.append(task.first_record)
        if len(made) == 3:
            raise RuntimeError("killed")
        return dict(make(task, path))

    monkeypatch.setattr(build, "make_part", counted)
    with pytest.raises(RuntimeError, match="killed"):
        _aligned_bytes(tmp_path, jsonl, vocabulary, "killed", parts=store)
    assert _aligned_bytes(tmp_path, jsonl, vocabulary, "again", parts=store) == fresh
    assert sorted(set(made)) == sorted(made[:2] + made[3:])


def test_audits_mark_examples_with_the_same_text(tmp_path, vocabulary):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(6), vocabulary)
    index = (tmp_path / INDEX).read_text().splitlines()
    hashes = [json.loads(line)["text_sha256"] for line in index]
    path = tmp_path / "audits.jsonl"
    for number, verdict, sha256 in (
        (1, "right", hashes[1]),
        (2, "wrong", hashes[2]),
        (3, "right", hashes[2]),
        (99, "right", hashes[4]),
    ):
        key = names.example_id("gsm8k", "test", number)
        alignment.append(path, Audit(key, sha256, verdict, "", "", ""))
    alignment.append(path, Audit("another", hashes[4], "right", "", "", ""))
    for out in ("first", "second"):  # a rebuild keeps them
        summary, found = _align(tmp_path, jsonl, vocabulary, audits=path, out=out)
        states = [row.notes.partition("; ")[2] for row in found]
        pending = "pending manual audit"
        assert states == [pending, "verified", "found wrong by manual audit", *[pending] * 3]
        assert (summary.verified, summary.wrong) == (1, 1)


def test_audits_reach_the_examples_of_every_part(tmp_path, vocabulary, small_parts):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(40), vocabulary)
    path = tmp_path / "audits.jsonl"
    for line in (tmp_path / INDEX).read_text().splitlines():
        row = json.loads(line)
        alignment.append(path, Audit(row["example_id"], row["text_sha256"], "right", "", "", ""))
    alignment.append(path, Audit("no number", "", "right", "", "", ""))
    summary, _ = _align(tmp_path, jsonl, vocabulary, audits=path)
    assert summary.verified == summary.aligned == 40


def test_a_row_is_unsure_below_the_bound(tmp_path, vocabulary, monkeypatch):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(6), vocabulary)
    monkeypatch.setattr("gristmill.reasoning.format.align.UNSURE", 0.89)
    assert _align(tmp_path, jsonl, vocabulary)[0].low_confidence == 1  # of 0.85, not of 0.89


def test_an_audit_of_an_example_without_steps_changes_nothing(tmp_path, vocabulary):
    records = [{"question": "Q", "answer": "6", "cot": None}]
    jsonl = write_split(tmp_path, "wiqa", "test", records, vocabulary)
    (line,) = (tmp_path / INDEX.replace("gsm8k", "wiqa")).read_text().splitlines()
    path = tmp_path / "audits.jsonl"
    sha256 = json.loads(line)["text_sha256"]
    alignment.append(path, Audit("wiqa_test_000000", sha256, "right", "", "", ""))
    summary, (row,) = _align(tmp_path, jsonl, vocabulary, audits=path)
    assert row.notes == "no-steps" and summary.verified == 0


def test_only_texts_with_steps_are_encoded(tmp_path, vocabulary, monkeypatch, small_parts):
    quoted = 'Why "cot": null, "source_dataset": "wiqa"'
    values = {"source_dataset": "wiqa"}
    records = [
        {"question": quoted, "answer": f"caf\u00e9 {number}", "cot": cot} | values
        for number, cot in enumerate((None, "Step 1: so\n\nStep 2: it is", "", " \n", quoted) * 5)
    ]
    jsonl = write_split(tmp_path, "wiqa", "test", records, vocabulary)
    encode, seen = Tokenizer.encode, list[str]()
    monkeypatch.setattr(
        Tokenizer,
        "encode",
        lambda self, texts, engine: seen.extend(texts) or encode(self, texts, engine),
    )
    summary, found = _align(tmp_path, jsonl, vocabulary)
    assert seen == [text_of(each) for each in records if (each["cot"] or "").strip()]
    assert (summary.examples, summary.no_steps, summary.low_confidence) == (25, 15, 20)
    assert [bool(row.step_labels) for row in found] == [False, True, False, False, True] * 5
    index = (tmp_path / INDEX.replace("gsm8k", "wiqa")).read_text().splitlines()
    for row, line in zip(found, map(json.loads, index), strict=True):
        for name in ("example_id", "sequence_index", "shard_path"):
            assert getattr(row, name) == line[name]
    written = (tmp_path / "out" / names.alignment("wiqa", "test")).read_bytes()
    assert written == b"".join(map(form.line, found))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (("text_sha256", "0" * 64), "has another text_sha256"),
        (("num_tokens", 1), "has num_tokens 1, but its text has"),
        (("example_id", "gsm8k_test_000009"), "is no record of"),
        (("example_id", "gsm8k_test_000000"), "is no record of"),
    ],
)
def test_an_index_of_other_records_is_refused(tmp_path, vocabulary, change, rule):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(3), vocabulary)
    index = tmp_path / INDEX
    lines = [json.loads(line) for line in index.read_text().splitlines()]
    lines[2][change[0]] = change[1]
    index.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BadInput, match=rule):
        _align(tmp_path, jsonl, vocabulary)


@pytest.mark.parametrize("change", [None, "order", "other", "form"])
def test_parts_without_a_chain_are_made_as_others_are(tmp_path, vocabulary, monkeypatch, change):
    none = [{"question": f"Q {n}" * (n % 5 > 0), "answer": "", "cot": None} for n in range(40)]
    jsonl = write_split(tmp_path, "wiqa", "test", none, vocabulary)
    index = tmp_path / names.TOKENIZED / "wiqa/test/index.jsonl"
    lines = index.read_text().splitlines(keepends=True)
    changed = {"order": [lines[1], lines[0]], "form": [lines[0].replace('": ', '":'), lines[1]]}
    changed["other"] = [lines[0].replace("_000001", "_000005"), lines[1]]
    index.write_text("".join([*changed.get(change, lines[:2]), *lines[2:]]))

    def made() -> bytes | str:
        try:
            _align(tmp_path, jsonl, vocabulary)
            return (tmp_path / "out/wiqa/test.align.jsonl").read_bytes()
        except BadInput as error:
            return error.rule
        finally:
            shutil.rmtree(tmp_path / "out")

    one = made()
    monkeypatch.setattr(build, "_without_steps", lambda _: None)
    assert one == made() and isinstance(one, bytes) == (change in (None, "form"))


def test_an_index_without_ids_is_refused(tmp_path, vocabulary, small_parts):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(30), vocabulary)
    (tmp_path / INDEX).write_text("{}\n")
    with pytest.raises(BadInput, match="does not begin with example_id"):
        _align(tmp_path, jsonl, vocabulary)


def test_missing_inputs_name_what_to_build(tmp_path, vocabulary):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(3), vocabulary)
    with pytest.raises(BadInput, match=r"is no <corpus>/<split>\.jsonl"):
        _align(tmp_path, tmp_path / names.NORMALIZED / "gsm8k/de v.jsonl", vocabulary)
    with pytest.raises(BadInput, match="build reasoning/normalized"):
        _align(tmp_path, tmp_path / names.NORMALIZED / "gsm8k/train.jsonl", vocabulary)
    (tmp_path / INDEX).unlink()
    with pytest.raises(BadInput, match="build reasoning/gpt2_shards"):
        _align(tmp_path, jsonl, vocabulary)
    assert not (tmp_path / "out").exists()


def test_a_missing_vocabulary_is_refused_before_anything_is_written(tmp_path, vocabulary):
    jsonl = write_split(tmp_path, "gsm8k", "test", _records(3), vocabulary)
    with pytest.raises(MissingVocabulary):
        _align(tmp_path, jsonl, tmp_path / "none")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_records(tmp_path, vocabulary, monkeypatch):
    monkeypatch.setattr(build, "_PART_BYTES", 50_000)
    monkeypatch.setattr(build, "BATCH_BYTES", 20_000)
    peaks = []
    for split, count in (("test", 8_000), ("test", 1_000), ("train", 8_000)):
        jsonl = write_split(tmp_path, "gsm8k", split, _records(count), vocabulary)
        tracemalloc.start()
        config = AlignConfig(vocabulary)
        align(jsonl, tmp_path / names.TOKENIZED, tmp_path / f"{split}-{count}", config)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.25 * peaks[1]  # the first one loads both engines


def test_gsm8k_is_aligned_whole(tmp_path, vocabulary):
    jsonl = write_split(tmp_path, "gsm8k", "test", real_records("gsm8k", "test"), vocabulary, 2048)
    summary, found = _align(tmp_path, jsonl, vocabulary)
    assert (summary.examples, summary.aligned, summary.spans) == (1319, 1319, 6138)
    assert summary.labels == {"Answer": 1319, "Step": 4819}
    assert max(row.sequence_index for row in found) == 103
    pairs = np.array([pair for row in found for pair in row.token_offset_ranges])
    assert (pairs[:, 0] < pairs[:, 1]).all()
