import errno
import fcntl
import multiprocessing
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import audits
from gristmill.reasoning.format.audits import Audit

_AUDIT = Audit("gsm8k_test_000007", "ab", "right", "Ana", "2026-11-22T10:00:00+00:00", "très bien")


def test_audits_are_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "audits" / "gsm8k__test.jsonl"
    other = replace(_AUDIT, example_id="gsm8k_test_000008", verdict="wrong")
    audits.append(path, _AUDIT)
    before = path.read_bytes()
    audits.append(path, other)
    assert path.read_bytes().startswith(before)
    assert list(audits.read(path)) == [_AUDIT, other]


def test_the_last_audit_of_a_text_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for verdict, sha256 in (("right", "ab"), ("wrong", "ab"), ("right", "cd")):
        audits.append(path, replace(_AUDIT, verdict=verdict, text_sha256=sha256))
    assert audits.latest(path) == {
        (_AUDIT.example_id, "ab"): "wrong",
        (_AUDIT.example_id, "cd"): "right",
    }


def test_without_a_file_there_are_no_audits(tmp_path: Path) -> None:
    assert audits.latest(None) == audits.latest(tmp_path / "none") == {}


def test_a_line_by_hand_needs_three_keys_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"example_id": "a", "text_sha256": "b", "verdict": "wrong"}')
    assert list(audits.read(path)) == [Audit("a", "b", "wrong", "", "", "")]
    audits.append(path, _AUDIT)
    assert list(audits.read(path))[1] == _AUDIT


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
def test_a_broken_line_is_refused_with_its_number(tmp_path: Path, line: str, rule: str) -> None:
    path = tmp_path / "a.jsonl"
    audits.append(path, _AUDIT)
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(BadInput, match=rule) as caught:
        audits.latest(path)
    assert caught.value.row == 2


def test_a_link_is_refused(tmp_path: Path) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "a.jsonl"
    audits.append(target, _AUDIT)
    link.symlink_to(target)
    with pytest.raises(BadInput):
        audits.latest(link)
    with pytest.raises(BadInput, match="cannot be written"):
        audits.append(link, _AUDIT)


def test_a_dangling_link_is_not_taken_for_no_audits(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "none")
    with pytest.raises(BadInput):
        audits.latest(tmp_path / "a.jsonl")


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    audits.append(path, _AUDIT)
    monkeypatch.setattr(audits, "LIMITS", replace(audits.LIMITS, bytes=path.stat().st_size))
    assert len(audits.latest(path)) == 1
    audits.append(path, _AUDIT)
    with pytest.raises(BadInput, match="more than"):
        audits.latest(path)


def test_an_unknown_verdict_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of right, wrong"):
        audits.append(tmp_path / "a.jsonl", replace(_AUDIT, verdict="good"))
    assert not (tmp_path / "a.jsonl").exists()


def test_a_failed_write_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    audits.append(path, _AUDIT)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        audits.append(path, _AUDIT)
    assert path.read_bytes() == before


def test_a_writer_waits_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    audits.append(path, _AUDIT)
    writer = threading.Thread(target=audits.append, args=(path, _AUDIT))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.2)
        assert writer.is_alive() and len(audits.latest(path)) == 1
    writer.join(60)
    assert len(list(audits.read(path))) == 2


def _append_many(path: Path, by: str) -> None:
    for number in range(20):
        audits.append(path, replace(_AUDIT, by=by, notes=str(number) * 5000))


def test_writers_in_two_processes_do_not_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = list(audits.read(path))
    assert sorted(audit.by for audit in found) == ["a"] * 20 + ["b"] * 20
