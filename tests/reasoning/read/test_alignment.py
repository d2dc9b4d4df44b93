"""Audits as files, and the examples of alignments with what they are about."""

import errno
import fcntl
import multiprocessing
import os
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.format import names
from gristmill.reasoning.read import alignment
from gristmill.reasoning.read.alignment import Audit, Drawn, draw, example, pairs, week_of
from gristmill.reasoning.read.trace import place_of
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.normalized_files import write_aligned

_AUDIT = Audit("gsm8k_test_000007", "ab", "right", "Ana", "2026-11-22T10:00:00+00:00", "très bien")


def test_audits_are_appended_and_the_last_one_of_a_text_counts(tmp_path):
    path = tmp_path / "audits" / "gsm8k__test.jsonl"
    other = replace(_AUDIT, example_id="gsm8k_test_000008", verdict="wrong")
    alignment.append(path, _AUDIT)
    before = path.read_bytes()
    alignment.append(path, other)
    assert path.read_bytes().startswith(before)
    assert list(alignment.read(path)) == [_AUDIT, other]
    path = tmp_path / "a.jsonl"
    for verdict, sha256 in (("right", "ab"), ("wrong", "ab"), ("right", "cd")):
        alignment.append(path, replace(_AUDIT, verdict=verdict, text_sha256=sha256))
    assert alignment.latest(path) == {
        (_AUDIT.example_id, "ab"): "wrong",
        (_AUDIT.example_id, "cd"): "right",
    }
    assert alignment.latest(None) == alignment.latest(tmp_path / "none") == {}


def test_a_line_by_hand_needs_three_keys_and_an_unknown_verdict_is_not_written(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"example_id": "a", "text_sha256": "b", "verdict": "wrong"}')
    assert list(alignment.read(path)) == [Audit("a", "b", "wrong", "", "", "")]
    alignment.append(path, _AUDIT)
    assert list(alignment.read(path))[1] == _AUDIT
    (tmp_path := tmp_path / "next").mkdir()
    with pytest.raises(ValueError, match="none of right, wrong"):
        alignment.append(tmp_path / "a.jsonl", replace(_AUDIT, verdict="good"))
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{", "not JSON"),
        ("[]", "is no object"),
        ("[" * 10 + "]" * 10, "nested deeper"),
        ('{"example_id": "a", "text_sha256": "b"}', "is no object"),
        ('{"example_id": "a", "text_sha256": "b", "verdict": "right", "x": ""}', "is no object"),
        ('{"example_id": "a", "text_sha256": 1, "verdict": "right"}', "no text"),
        ('{"example_id": "a", "text_sha256": "b", "verdict": "good"}', "none of right, wrong"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(tmp_path, line, rule):
    path = tmp_path / "a.jsonl"
    alignment.append(path, _AUDIT)
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(BadInput, match=rule) as caught:
        alignment.latest(path)
    assert caught.value.row == 2


def test_a_link_dangling_or_not_is_refused(tmp_path):
    target, link = tmp_path / "target.jsonl", tmp_path / "a.jsonl"
    alignment.append(target, _AUDIT)
    link.symlink_to(target)
    with pytest.raises(BadInput):
        alignment.latest(link)
    with pytest.raises(BadInput, match="cannot be written"):
        alignment.append(link, _AUDIT)
    (tmp_path := tmp_path / "next").mkdir()
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "none")
    with pytest.raises(BadInput):
        alignment.latest(tmp_path / "a.jsonl")


def test_a_large_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    alignment.append(path, _AUDIT)
    monkeypatch.setattr(alignment, "LIMITS", replace(alignment.LIMITS, bytes=path.stat().st_size))
    assert len(alignment.latest(path)) == 1
    alignment.append(path, _AUDIT)
    with pytest.raises(BadInput, match="more than"):
        alignment.latest(path)


def test_a_failed_write_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    alignment.append(path, _AUDIT)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        alignment.append(path, _AUDIT)
    assert path.read_bytes() == before


def test_a_writer_waits_for_the_lock(tmp_path):
    path = tmp_path / "a.jsonl"
    alignment.append(path, _AUDIT)
    writer = threading.Thread(target=alignment.append, args=(path, _AUDIT))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.2)
        assert writer.is_alive() and len(alignment.latest(path)) == 1
    writer.join(60)
    assert len(list(alignment.read(path))) == 2


def _append_many(path: Path, by: str) -> None:
    for number in range(20):
        alignment.append(path, replace(_AUDIT, by=by, notes=str(number) * 5000))


def test_writers_in_two_processes_do_not_mix_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = list(alignment.read(path))
    assert sorted(audit.by for audit in found) == ["a"] * 20 + ["b"] * 20


INDEX = f"{names.TOKENIZED}/gsm8k/test/index.jsonl"
_EMPTY = {"question": "", "answer": " ", "cot": None}
_RECORDS = [_EMPTY, *({"question": f"{k}?", "answer": "a\nb", "cot": None} for k in range(4))]
_RECORDS.insert(3, _EMPTY)


@pytest.fixture
def root(tmp_path: Path, vocabulary_root: Path) -> Path:
    write_aligned(tmp_path, "gsm8k", "test", _RECORDS, find(GPT2, vocabulary_root))
    return tmp_path


def folders(root: Path) -> list[Path]:
    return [root / name for name in (names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT)]


@pytest.mark.parametrize("name", [f"{names.ALIGNMENT}/gsm8k/test.align.jsonl", INDEX])
def test_a_row_too_few_is_refused(root, name):
    found = list(pairs(*folders(root)[1:], "gsm8k", "test"))
    assert [row.example_id[-1] for row, _ in found] == ["1", "2", "4", "5"]
    path = root / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadInput, match="gsm8k_test_000005"):
        list(pairs(*folders(root)[1:], "gsm8k", "test"))


def test_examples_are_found_by_id_and_text_and_weeks_are_those_of_iso(root):
    for number, question in zip((1, 2, 4, 5), range(4), strict=True):
        found = example(*folders(root), f"gsm8k_test_00000{number}")
        assert (found.record["question"], len(found.text_sha256)) == (f"{question}?", 64)
        assert found.rendered.text == f"{question}?\n\nAnswer:\na\nb"
    for missing in ("gsm8k_test_000000", "gsm8k_test_000009"):
        with pytest.raises(BadInput, match=f"has no row {missing}"):
            example(*folders(root), missing)
    path = root / names.NORMALIZED / "gsm8k/test.jsonl"
    path.write_text(path.read_text().replace("2?", "two?"))
    with pytest.raises(BadInput, match="gsm8k_test_000004 is of another text"):
        example(*folders(root), "gsm8k_test_000004")
    path.write_text("\n")
    with pytest.raises(GristmillError, match="has no record 4"):
        example(*folders(root), "gsm8k_test_000004")
    assert week_of(date(2026, 11, 22)) == "2026-W47"
    assert week_of(date(2027, 1, 1)) == "2026-W53"
    assert week_of(date(2026, 1, 5)) == "2026-W02"


@pytest.mark.parametrize(
    "wrong", ["", "gsm8k_test_", "gsm8k_test_1", "gsm8k_de v_000001", "gsm8k_test_" + "9" * 30]
)
def test_what_is_no_id_is_refused(wrong):
    with pytest.raises(GristmillError, match="is no id"):
        place_of(wrong)


def _records(count: int) -> list[dict[str, str | None]]:
    answers = ["1+1=<<1+1=2>>2\n#### 2", "2\n#### 2", "Step 1: b\n#### 2", "#### 2"]
    return [{"question": f"{k}?", "answer": answers[k % 4], "cot": None} for k in range(count)]


@pytest.fixture
def sampled(tmp_path: Path, vocabulary_root: Path) -> Path:
    for split, count in (("train", 24), ("test", 16)):
        write_aligned(tmp_path, "gsm8k", split, _records(count), find(GPT2, vocabulary_root))
    return tmp_path


def _draw(
    sampled: Path, week: str = "2026-W47", count: int = 5, corpus: str = "gsm8k"
) -> list[Drawn]:
    return draw(
        sampled / names.TOKENIZED,
        sampled / names.ALIGNMENT,
        sampled / "audits",
        corpus,
        week,
        count,
    )


def test_the_least_sure_come_first_and_another_week_draws_others(sampled):
    found = _draw(sampled, count=30)
    sure = [drawn.row.confidence for drawn in found]
    assert sure == [0.85] * 10 + [0.89] * 10 + [1.0] * 10  # those without steps are left out
    assert {drawn.row.example_id.split("_")[1] for drawn in found} == {"train", "test"}
    assert _draw(sampled, count=7) == found[:7]
    assert len(_draw(sampled, count=99)) == 30
    assert _draw(sampled) == _draw(sampled)
    assert {each.row.example_id for each in _draw(sampled)} != {
        each.row.example_id for each in _draw(sampled, "2026-W48")
    }
    assert _draw(sampled, corpus="wiqa") == []


def test_what_has_an_audit_is_not_drawn_again(sampled):
    first, second, third, *rest = _draw(sampled)
    for drawn, verdict, sha256 in (
        (first, "right", first.text_sha256),
        (second, "wrong", second.text_sha256),
        (third, "right", "another text"),
    ):
        split = drawn.row.example_id.split("_")[1]
        audit = Audit(drawn.row.example_id, sha256, verdict, "", "", "")
        alignment.append(sampled / "audits" / f"gsm8k__{split}.jsonl", audit)
    assert _draw(sampled)[:3] == [third, *rest]
