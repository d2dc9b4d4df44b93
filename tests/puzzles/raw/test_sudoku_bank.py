"""Banks of Sudokus: the three forms of a line, and the files of a drop."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.sudoku_bank import BANK_LIMITS, BankRows, read_bank, sudoku_files
from tests.marked import mark
from tests.puzzles import sudoku

QUESTION, ANSWER = sudoku.pairs(0, 1)[0]


def _bank(folder: Path, text: str) -> Path:
    path = folder / "bank.txt"
    path.write_text(text)
    return path


def _rows(path: Path) -> BankRows:
    (rows,) = read_bank(path)
    return rows


def test_the_three_forms_of_a_line_are_read(tmp_path: Path) -> None:
    text = f"\ufeff{QUESTION}\n\n{QUESTION} {ANSWER}\r\n  0000183b305c\t{QUESTION}  1.2"
    rows = _rows(_bank(tmp_path, text))
    assert rows.lines.tolist() == [1, 3, 4]
    assert {row.tobytes().decode() for row in rows.questions} == {QUESTION}
    assert [row.tobytes().decode() for row in rows.answers] == ["0" * 81, ANSWER, "0" * 81]
    assert rows.ratings == [None, None, b"1.2"]


def test_long_banks_come_in_batches_and_all_bytes_are_seen(tmp_path: Path) -> None:
    path = _bank(tmp_path, f"{QUESTION}\n" * 9000)
    digest = hashlib.sha256()
    batches = [*read_bank(path, see=digest.update)]
    assert [len(batch) for batch in batches] == [4096, 4096, 808]
    assert [int(line) for batch in batches for line in batch.lines] == [*range(1, 9001)]
    assert digest.digest() == hashlib.sha256(path.read_bytes()).digest()


@pytest.mark.parametrize(
    "line",
    [
        *("x", QUESTION[1:], f"{QUESTION} {ANSWER}1", f"{QUESTION} 1.2", f"a {QUESTION} 1 2"),
        *(f"{QUESTION} {QUESTION} {QUESTION}", f"a {QUESTION} {QUESTION}"),
    ],
)
def test_another_form_of_a_line_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match="a line is `puzzle`") as caught:
        _rows(_bank(tmp_path, f"{QUESTION}\n{line}\n"))
    assert caught.value.row == 2


def test_ratings_are_numbers(tmp_path: Path) -> None:
    rows = _rows(_bank(tmp_path, f"a {QUESTION} 1.2\nb {QUESTION} 7\n"))
    assert rows.rating_numbers().tolist() == [1.2, 7.0]


@pytest.mark.parametrize("line", [QUESTION, f"a {QUESTION} x", f"a {QUESTION} nan"])
def test_a_row_without_a_rating_cannot_be_compared(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match="min_difficulty needs a number") as caught:
        _rows(_bank(tmp_path, f"a {QUESTION} 1.2\n{line}\n")).rating_numbers()
    assert caught.value.row == 2


def test_limits_hold(tmp_path: Path) -> None:
    path = _bank(tmp_path, f"{QUESTION}\n" * 9)
    for limits in ({"bytes": 50}, {"rows": 5}, {"line_bytes": 60}):
        with pytest.raises(BadInput):
            list(read_bank(path, limits=replace(BANK_LIMITS, **limits)))


def test_csv_files_come_before_banks(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "README.txt", "License.txt", ".c.txt", "notes.md", "README.TXT"):
        (tmp_path / name).touch()
    assert [(file.path.name, file.split) for file in sudoku_files(tmp_path)] == [
        ("a.txt", None),
        ("b.txt", None),
    ]
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).touch()
    assert [(file.path.name, file.split) for file in sudoku_files(tmp_path)] == [
        ("test.csv", "test"),
        ("train.csv", "train"),
    ]


def test_real_files_take_the_place_of_a_sample(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("invented")
    mark(tmp_path)
    _bank(tmp_path, QUESTION)
    (tmp_path / "README.txt").write_text("no bank")
    assert [file.path.name for file in sudoku_files(tmp_path)] == ["bank.txt"]
    (tmp_path / "train.csv").write_text("real")
    with pytest.raises(BadInput, match=r"has train\.csv, but no test\.csv but that of a sample"):
        sudoku_files(tmp_path)
    (tmp_path / "test.csv").write_text("real")
    names = [file.path.name for file in sudoku_files(tmp_path)]
    assert names == ["test.csv", "train.csv"]


def test_a_file_that_is_no_bank_takes_no_place_of_a_sample(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("invented")
    mark(tmp_path)
    (tmp_path / "README.txt").write_text("no bank")
    assert [file.path.name for file in sudoku_files(tmp_path)] == ["test.csv", "train.csv"]


def test_a_folder_without_a_whole_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither"):
        sudoku_files(tmp_path)
    with pytest.raises(BadInput, match="cannot be read"):
        sudoku_files(tmp_path / "missing")
    (tmp_path / "train.csv").touch()
    with pytest.raises(BadInput, match=r"has train.csv, but no test.csv"):
        sudoku_files(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").touch()
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/a.txt").symlink_to(tmp_path / "outside")
    with pytest.raises(BadInput, match="is a link"):
        sudoku_files(tmp_path / "drop")


@pytest.mark.parametrize(
    ("there", "name", "rule"),
    [
        ((), "bank.txt.gz", "unpack it"),
        (("a.txt",), "b.TXT.gz", "unpack it"),
        (("train.csv",), "test.csv.zst", "unpack it"),
        (("test.csv", "train.csv"), "Train.csv", "is there beside Train.csv|keep one of them"),
        (("a.txt",), "train.csv.gz", "unpack it"),
    ],
)
def test_a_file_that_would_be_passed_over_is_refused(
    there: tuple[str, ...], name: str, rule: str, tmp_path: Path
) -> None:
    for each in (*there, name):
        (tmp_path / each).touch()
    with pytest.raises(BadInput, match=f"(?i:{name}): .*({rule})"):
        sudoku_files(tmp_path)


def test_packed_banks_beside_tables_do_not_count_and_other_packed_files_are_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "all.zip").touch()
    with pytest.raises(BadInput, match=r"nor a bank, `\*\.txt`; unpack all\.zip"):
        sudoku_files(tmp_path)
    for name in ("train.CSV", "Test.csv", "bank.txt.gz", "bank.TXT"):
        (tmp_path / name).touch()
    found = [(file.path.name, file.split) for file in sudoku_files(tmp_path)]
    assert found == [("Test.csv", "test"), ("train.CSV", "train")]


def test_capitals_and_a_byte_order_mark_change_no_bank_and_other_ends_are_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bank.TXT"
    line = b"." * 80 + b"1"
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n" + line)
    assert [file.path for file in sudoku_files(tmp_path)] == [path]
    (rows,) = read_bank(path)
    assert rows.lines.tolist() == [1, 2]
    assert rows.questions.tobytes() == line * 2
    for text, rule in (
        (line + b"\r" + line + b"\r", r":1: has line ends of one carriage return \(CR\)"),
        (line + b"\n" + line + b"\r" + line, r":2: has line ends of one carriage return"),
        (line.decode().encode("utf-16"), ": is UTF-16: save it as UTF-8"),
        (b"", ": holds no puzzle: get the file again, or remove it"),
        (b"\xef\xbb\xbf \n\n", ": holds no puzzle"),
    ):
        path.write_bytes(text)
        with pytest.raises(BadInput, match=f"bank.TXT{rule}"):
            list(read_bank(path))


def test_comments_of_a_bank_are_passed_over_and_a_blank_sign_is_none(tmp_path: Path) -> None:
    path = tmp_path / "bank.txt"
    line = "#" * 80 + "1"
    path.write_text(f"# 17 clues\n#\n{line}\n\t# {line}\n#a {line} 1.5\n")
    (rows,) = read_bank(path)
    assert rows.lines.tolist() == [3, 5]
    assert rows.questions.tobytes().decode() == line * 2
    path.write_text("# none\n")
    with pytest.raises(BadInput, match="holds no puzzle"):
        list(read_bank(path))


def test_a_folder_of_other_endings_is_refused_with_a_file_to_rename(tmp_path: Path) -> None:
    for name in (".hidden", "SHA256SUMS", "b.sdm", "c.sdm"):
        (tmp_path / name).touch()
    with pytest.raises(
        BadInput, match=r"nor a bank, `\*\.txt`: give b\.sdm the ending \.txt if it"
    ):
        sudoku_files(tmp_path)
