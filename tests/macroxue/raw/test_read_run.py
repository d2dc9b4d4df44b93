"""One run from its two files: batches of lines, the number of a bad line, and its warnings."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.raw import drops, read_run
from gristmill.macroxue.raw.drops import RunFiles, find_runs
from gristmill.macroxue.raw.fast_scanner import scan
from gristmill.macroxue.raw.read_run import batches_of_lines, notes_of
from gristmill.macroxue.raw.strict_parser import Names, RawDigest
from tests.macroxue.lines import step, write_run
from tests.paths import CHECKOUT


def run_of_lines(folder: Path, lines: list[bytes], **meta: object) -> RunFiles:
    write_run(folder, "g", lines, meta=meta)
    (files,) = find_runs(folder).runs
    return files


@pytest.mark.parametrize("scanner", [scan, None])
def test_rows_come_in_batches_and_lines_are_counted_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanner: read_run.Scanner | None
) -> None:
    monkeypatch.setattr(read_run, "BATCH_ROWS", 7)
    monkeypatch.setattr(read_run, "BATCH_BYTES", 400)
    lines = [step(step_index=index) for index in range(20)]
    files = run_of_lines(tmp_path / "good", [*lines[:3], b"", *lines[3:]], num_moves=20)
    batches: list[Rows] = []
    facts = read_run.read_run(files, 5, Names(), lambda rows: batches.append(rows.copy()), scanner)
    assert [len(rows) for rows in batches] == [7, 7, 6]
    rows = np.concatenate(batches)
    assert rows["step_index"].tolist() == list(range(20))
    assert set(rows["run_id"].tolist()) == {5}
    assert (facts.rows, facts.legal_rows, dict(facts.kinds)) == (20, 20, {0: 20})
    assert notes_of(facts) == []
    files = run_of_lines(tmp_path / "bad", [*lines[:3], b"", *lines[3:10], b"{", *lines[10:]])
    with pytest.raises(BadInput) as caught:
        read_run.read_run(files, 0, Names(), lambda rows: None, scanner)
    assert caught.value.row == 12


def test_batches_have_whole_lines_with_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_run, "BATCH_BYTES", 300)
    lines = [b"x" * (7 * number % 90) for number in range(100)]
    files = run_of_lines(tmp_path / "drop", lines)
    text = b""
    for buffer, end in batches_of_lines(files, RawDigest()):
        assert buffer[end - 1 : end] == b"\n"
        assert len(buffer) >= end + read_run.PAD
        text += buffer[:end]
    assert text == b"".join(line + b"\n" for line in lines)


def test_at_most_20_unknown_branches_are_listed_and_cut_to_40_characters(tmp_path: Path) -> None:
    lines = [step(branch_evs={f"{number:02d}" + "x" * 60: 1}) for number in range(25)]
    files = run_of_lines(tmp_path / "drop", [*lines, lines[0]], num_moves=26)
    facts = read_run.read_run(files, 0, Names(), lambda rows: None, None)
    names = [f"{number:02d}" + "x" * 38 for number in range(20)]
    assert notes_of(facts) == [
        {"kind": "unknown_branches", "rows": {name: 1 + (name == names[0]) for name in names}},
        {"kind": "no_legal_branch"},
    ]


@pytest.mark.parametrize("scanner", [None, scan])
@pytest.mark.parametrize("blank", [b"\n" * 7, b" \t\r\x0b\x0c\n\n \n", b"\r\n" * 3])
def test_blank_lines_are_counted_and_give_no_rows(
    tmp_path: Path, scanner: read_run.Scanner | None, blank: bytes
) -> None:
    good = step()
    run = run_of_lines(tmp_path, [])
    run.steps.write_bytes(gzip.compress(blank + good + b"\n" + blank + good + b"\n" + b"{]\n"))
    with pytest.raises(BadInput) as raised:
        read_run.read_run(run, 0, Names(), lambda rows: None, scanner)
    assert raised.value.row == 2 * blank.count(b"\n") + 3


@pytest.mark.parametrize("scanner", [None, scan])
def test_blank_lines_have_a_bound(tmp_path: Path, scanner: read_run.Scanner | None) -> None:
    run = run_of_lines(tmp_path, [])
    says = (
        r"has 10,005 blank lines and 1 others: a text may have 10,000 blank lines, and 4 more for"
    )
    for blank, is_right in ((10_004, True), (10_005, False)):
        run.steps.write_bytes(gzip.compress(step() + b"\n" + b"\n" * blank))
        with nullcontext() if is_right else pytest.raises(BadInput, match=says):
            read_run.read_run(run, 0, Names(), lambda rows: None, scanner)


@pytest.mark.slow
def test_small_files_that_unpack_to_much_are_read_in_bounded_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.macroxue.raw.bombs", str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    said = {name: rule for name, _, _, rule in lines}
    for name in ("empty_lines", "blank_lines", "many_empty_lines"):
        assert " blank lines and 0 others: a text may have 10,000 blank lines" in said.pop(name)
    bomb = "unpacks to more than 200 times its size: it looks like a decompression bomb"
    assert said == {
        "long_line": "more than 262144 values",
        "deep_line": "nested deeper than 256 levels",
        "long_number": "board must be an array of exactly 16 ranks",
        "endless_line": bomb,
        "long_string": "board must be an array of exactly 16 ranks",
    }


def test_a_file_that_becomes_a_link_after_the_listing_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "drop", "g", [step()])
    (run,) = drops.find_runs(tmp_path / "drop").runs
    run.steps.rename(tmp_path / "away.gz")
    run.steps.symlink_to(tmp_path / "away.gz")
    with pytest.raises(BadInput, match="is a link"):
        list(read_run.gunzip(run.steps, RawDigest(), 100, run.folder, run.links))
    run.meta.unlink()
    run.meta.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="is a link"):
        read_run.read_meta(run.meta, RawDigest(), run.folder, run.links)


def test_much_more_text_than_the_size_explains_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    size = 0
    with pytest.raises(BadInput, match=r"unpacks to more than 200 times its size"):
        for text in read_run.gunzip(path, RawDigest(), 1 << 19):
            size += len(text)
    assert size == 16 << 20
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    assert len(unzipped(path)[0]) == 16 << 20


def unzipped(path: Path, most: int = 1 << 18) -> tuple[bytes, RawDigest]:
    digest = RawDigest()
    pieces = list(read_run.gunzip(path, digest, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    return b"".join(pieces), digest


@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 18])
def test_every_member_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(read_run, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(read_run, "_HEADER_BYTES", 1)
    path = tmp_path / "x.jsonl.gz"
    text = [os.urandom(100), b"", b"\n" * 5000]
    path.write_bytes(b"".join(map(gzip.compress, text)))
    whole, digest = unzipped(path, 700)
    assert whole == b"".join(text)
    assert digest.size == path.stat().st_size


def member(text: bytes, fields: bool) -> bytes:
    """A gzip member; with `fields` its header has all that RFC 1952 allows."""
    head = b"\x1f\x8b\x08" + bytes([0b11110 if fields else 0]) + bytes(5) + b"\xff"
    if fields:
        head += (6).to_bytes(2, "little") + b"BC\x02\x00ab" + b"name\0" + b"comment\0"
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    tail = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return head + squeeze.compress(text) + squeeze.flush() + tail


@pytest.mark.parametrize("before", range(1, 34, 4))
def test_a_header_may_come_in_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    first, second = member(b"one\n" * 9, False), member(b"two\n" * 9, True)
    monkeypatch.setattr(read_run, "_READ_BYTES", len(first) + before)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(first + second)
    assert gzip.decompress(path.read_bytes()) == b"one\n" * 9 + b"two\n" * 9
    assert unzipped(path)[0] == b"one\n" * 9 + b"two\n" * 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "cut short"),
        (lambda data: data[:-8], "cut short"),
        (lambda data: data[:5], "cut short"),
        (lambda data: data + data[:12], "cut short"),
        (lambda data: data[:-8] + b"\0" * 4 + data[-4:], "checksum"),
        (lambda data: data[:-4] + b"\0" * 4, "checksum"),
        (lambda data: data + b"garbage", "behind gzip member 1"),
        (lambda data: data + b"\0" * 64, "behind gzip member 1"),
        (lambda data: b'{"seed":1}', "gzip"),
    ],
)
def test_broken_gzip_is_named(tmp_path: Path, change, rule: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(change(gzip.compress(b"line\n" * 1000)))
    with pytest.raises(BadInput, match=rule) as caught:
        unzipped(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(("name", "pack"), [("x.json", bytes), ("x.json.gz", gzip.compress)])
def test_a_meta_object_of_exactly_the_limit_is_read_and_none_above_it(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(pack(b" " * (1 << 20)))
    assert len(read_run.read_meta(tmp_path / name, RawDigest())) == 1 << 20
    (tmp_path / name).write_bytes(pack(b" " * ((1 << 20) + 1)))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        read_run.read_meta(tmp_path / name, RawDigest())
