"""One run from its two files: batches of lines, the number of a bad line, and its warnings."""

from __future__ import annotations

import gzip
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.raw import read_run
from gristmill.macroxue.raw.drops import RunFiles, find_runs
from gristmill.macroxue.raw.fast_scanner import scan
from gristmill.macroxue.raw.names import Names
from gristmill.macroxue.raw.read_run import batches_of_lines, notes_of
from gristmill.macroxue.raw.run_facts import RawDigest
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
