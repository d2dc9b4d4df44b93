"""Tables and banks: their rows are those of Python's csv, and what is wrong has its line."""

import csv
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, DominoConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.raw import tables
from gristmill.puzzles.raw.file_forms import check_names, source_labels, unpack_hint
from gristmill.puzzles.raw.samples import write_maze_sample
from gristmill.puzzles.raw.tables import (
    BANK_LIMITS,
    CSV_LIMITS,
    RatedRows,
    read_bank,
    read_mazes,
    read_rows,
    sudoku_files,
)
from gristmill.run.parts import PartStore
from tests.marked import mark
from tests.puzzles import arc_tasks, sudoku
from tests.puzzles.plain_mazes import maze, write_csv

HEADER = b"source,question,answer,rating\n"


def _file(folder: Path, text: bytes) -> Path:
    path = folder / "train.csv"
    path.write_bytes(text)
    return path


def _rows(path: Path, **options: object) -> list[tuple[int, bytes, bytes, str]]:
    return [
        (int(block.lines[k]), block.questions[k].tobytes(), block.answers[k].tobytes(), text)
        for block in read_rows(path, **options)  # type: ignore[arg-type]
        for k in range(len(block))
        for text in [((block.rating(k) if block.rating else None) or b"").decode("latin-1")]
    ]


def _by_csv(text: bytes) -> list[tuple[bytes, bytes, str]]:
    lines = io.StringIO(text.decode("latin-1"), newline="")
    next(reader := csv.reader(lines))
    return [(q.encode("latin-1"), a.encode("latin-1"), r) for _, q, a, r in filter(None, reader)]


@pytest.mark.parametrize(
    "text",
    [
        HEADER + b"s,12,34,5\n",
        HEADER + b"s,12,34,5",
        HEADER.replace(b"\n", b"\r\n") + b"s,12,34,5\r\nt,..,67,\r\n",
        HEADER + b"s,12,34,5\n\n,1.,99,-7\n\n",
        HEADER + b'"a,b","12",34,"5"\nplain,12,34,6\n"c ""d""",56,78,7\n',
        HEADER + b"\xff\xfe s,# ,o#,x\n",
        b"\xef\xbb\xbf" + HEADER + b"s,12,34,5\n",
        b'"source",Question, answer ,RATING\ns,12,34,5\n',
    ],
)
def test_rows_are_those_of_the_csv_module(tmp_path, text):
    rows = _rows(_file(tmp_path, text))
    assert [row[1:] for row in rows] == _by_csv(text.removeprefix(b"\xef\xbb\xbf"))


def test_rows_that_span_the_parts_of_a_long_file_are_all_there(tmp_path, monkeypatch):
    lines = [b"source%d,%081d,%081d,%d\n" % (k, k, 3 * k, k % 7) for k in range(9000)]
    lines[4000] = b'"a,b",%081d,%081d,1\n' % (4000, 12000)
    text = HEADER + b"".join(lines)
    monkeypatch.setattr(tables, "reads", lambda file: iter(lambda: file.read(65_537), b""))
    rows = _rows(_file(tmp_path, text))
    assert [row[0] for row in rows] == list(range(2, 9002))
    assert [row[1:] for row in rows] == _by_csv(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"quizzes,solutions\n12,34\n56,78\n", [(2, b"12", b"34"), (3, b"56", b"78")]),
        (b"Solution,Puzzle\r\n34,12\r\n", [(2, b"12", b"34")]),
        (
            b'id,puzzle,solution,clues\n"1,2",12,34,7\n3,56,78,7',
            [(2, b"12", b"34"), (3, b"56", b"78")],
        ),
        (b"puzzle,rating,solution\n12,5,34\n", [(2, b"12", b"34")]),
    ],
)
def test_columns_are_found_by_their_names(tmp_path, text, rows):
    assert [row[:3] for row in _rows(_file(tmp_path, text))] == rows


def test_a_setting_names_a_column(tmp_path):
    path = _file(tmp_path, b"grid,puzzle,solution\n12,99,34\n")
    (block,) = read_rows(path, columns={"question": "Grid"})
    assert block.questions.tobytes() == b"12"


def test_one_column_is_not_question_and_answer(tmp_path):
    path = _file(tmp_path, b"puzzle,solution\n12,34\n")
    for given in ({"question": "Solution"}, {"answer": "puzzle"}):
        with pytest.raises(BadInput, match="is that of questions and of answers: name two col"):
            list(read_rows(path, columns=given))


def test_ratings_are_read_from_their_column_alone(tmp_path):
    (block,) = read_rows(_file(tmp_path, b"difficulty,puzzle,solution\n7,12,34\n-2,12,34\n"))
    assert block.whole_ratings().tolist() == [7, -2]
    (block,) = read_rows(_file(tmp_path, b"puzzle,solution\n12,34\n"))
    with pytest.raises(BadInput, match="has no column rating, which min_difficulty compares with"):
        block.whole_ratings()


@pytest.mark.parametrize(
    ("text", "row", "rule"),
    [
        (b"", None, "is empty"),
        (HEADER, None, "has no row below its header"),
        (HEADER + b"\n\n", None, "has no row below its header"),
        (HEADER.replace(b"\n", b"\r") + b"s,12,34,5\r", 1, "line ends of one carriage return (CR)"),
        (HEADER.replace(b"\n", b"\r") + b"s,12,34,5\r" * 200, 1, "of one carriage return (CR)"),
        ((HEADER + b"s,12,34,5\n").decode().encode("utf-16"), None, "is UTF-16: save it as UTF-8"),
        (b"id,question,rating\ns,12,34\n", 1, "the first line is 'id,question"),
        (b"id,question,rating\ns,12,34\n", 1, "rename it, or set answer_column to its name"),
        (b"puzzle;solution\n12;34\n", 1, "part the columns by commas, not by ';'"),
        (b"puzzle\tsolution\n12\t34\n", 1, r"not by '\t'"),
        (b"1.,12\n.2,12\n", 1, "write it before the rows, or give a bank of puzzles the ending"),
        (
            b"quizzes,solutions\n12,34\n12,34,5\n",
            3,
            "has 3 columns, must have 2: quizzes,solutions",
        ),
        (b"quizzes,solutions\n12,34\n12,345\n", 3, "the answer has 3 characters, must have 2"),
        (b'quizzes,solutions\n12,34\n"1",34\n', 3, "the question has 1 characters, must have 2"),
        (HEADER + b"s,12,34,5\ns,123,34,5\n", 3, "the question has 3 characters, must have 2"),
        (HEADER + b"s,12,34,5\n\ns,12,3,5\n", 4, "take it out; a program that takes a column for"),
        (HEADER + b"s,12,34\n", 2, "has 3 columns, must have 4"),
        (HEADER + b"s,12,34,5\ns,12,34,5,6\n", 3, "has 5 columns, must have 4"),
        (HEADER + b's,"1\n2",34,5\n', 2, "quotes must end on the line"),
        (HEADER + b"s,12,34,5\ns,12\r,34,5\n", 3, "is not a line of CSV"),
        (HEADER + b"s,,,5\n", 2, "the question is empty"),
        (HEADER + b"s" * 2000 + b",12,34,5\n", 2, "a line of more than 1,000 bytes"),
    ],
)
def test_a_broken_row_is_named_by_its_line(tmp_path, text, row, rule, monkeypatch):
    monkeypatch.setattr(tables, "reads", lambda file: iter(lambda: file.read(1500), b""))
    path = _file(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        _rows(path, limits=replace(CSV_LIMITS, line_bytes=1000))
    assert (caught.value.file, caught.value.row) == (str(path), row)
    assert rule in caught.value.rule


def test_a_length_that_is_asked_for_holds_from_the_first_row(tmp_path):
    with pytest.raises(BadInput, match="must have 81") as caught:
        _rows(_file(tmp_path, HEADER + b"s,12,34,5\n"), length=81)
    assert caught.value.row == 2


def test_too_many_lines_and_bytes_are_refused(tmp_path):
    path = _file(tmp_path, HEADER + b"s,12,34,5\n" * 9)
    with pytest.raises(BadInput, match="more than 5 lines"):
        _rows(path, limits=replace(CSV_LIMITS, rows=5))
    with pytest.raises(BadInput, match="more than 50 bytes"):
        _rows(path, limits=replace(CSV_LIMITS, bytes=50))


def test_a_link_is_refused(tmp_path):
    path = _file(tmp_path, HEADER)
    (tmp_path / "test.csv").symlink_to(path)
    with pytest.raises(BadInput, match="is a link"):
        _rows(tmp_path / "test.csv")


def test_a_rating_that_is_too_large_is_refused(tmp_path):
    (block,) = read_rows(_file(tmp_path, HEADER + b"s,12,34,9999999999999999999\n"))
    with pytest.raises(BadInput, match="does not fit into 64 bits"):
        block.whole_ratings()


def test_whole_ratings_are_those_of_int(tmp_path):
    texts = ["0", "7", "-3", "+12", " 8", "1_0", "123456789012345678", '"44"']
    lines = "".join(f"s,12,34,{text}\n" for text in texts)
    (*blocks,) = read_rows(_file(tmp_path, HEADER + lines.encode()))
    ratings = np.concatenate([block.whole_ratings() for block in blocks])
    assert ratings.tolist() == [int(text.strip('"')) for text in texts]


@pytest.mark.parametrize("text", ["7.2", "", "x", "--1", "-"])
def test_a_rating_that_is_no_whole_number_is_refused_with_the_cure(tmp_path, text):
    (block,) = read_rows(_file(tmp_path, HEADER + f"s,12,34,5\ns,12,34,{text}\n".encode()))
    with pytest.raises(BadInput, match=r"convert the ratings \(as 7.2 to 72\)") as caught:
        block.whole_ratings()
    assert caught.value.row == 3


def test_blank_lines_have_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "reads", lambda file: iter(lambda: file.read(7), b""))
    limits = replace(CSV_LIMITS, blank_lines=3)
    text = HEADER + b"\n\r\n \t\n\ns,12,34,5\n" + b"\n" * 7
    assert len(_rows(_file(tmp_path, text), limits=limits)) == 1
    with pytest.raises(BadInput, match=r"has 12 blank lines and 2 others: a text may have 3 blank"):
        _rows(_file(tmp_path, text + b"\n"), limits=limits)


MAZE_HEADER = HEADER.decode()


def read(tmp_path: Path, text: str, length: int | None = None) -> list[tuple[str, str, int]]:
    path = tmp_path / "train.csv"
    path.write_bytes(text.encode("latin-1"))
    return [
        ("".join(map(str, row.tolist())), "".join(map(str, label.tolist())), line)
        for rows in read_mazes(path, length=length)
        for row, label, line in zip(rows.inputs, rows.labels, rows.lines.tolist(), strict=True)
    ]


def test_the_mazes_of_a_file_come_with_their_lines(tmp_path):
    text = MAZE_HEADER + 'a,S  G,So G,2\n\na,"SG##",SG##,1\nb,  SG,  SG,1'
    assert read(tmp_path, text) == [("3224", "3524", 2), ("3411", "3411", 4), ("2234", "2234", 5)]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("a,S.#G,S.#G,1", r"question has the character '\.'"),
        ("a,S #G,S\t#G,1", r"answer has the character '\\t'"),
        ("a,S\xe9#G,S #G,1", "question has the character 'é'"),
        ("a,S  G,S  G,1", "does not lead from the start to the goal"),
        ("a,S  G,SooG,1", "more cells than the shortest way"),
        ("a,S##G,S##G,1", "no way leads"),
        ("a,SS G,SSoG,1", "exactly one start"),
        ("a,S oG,S oG,1", "a cell of the path"),
        ("a,S  G,So#G,1", "differs from the input"),
        ("a,S  G,S G,1", "3 characters"),
        ("a,S  G#,S  G#,1", "5 characters"),
        ("a,S  G,So G", "3 columns"),
    ],
)
def test_a_bad_maze_is_refused_with_its_file_and_line(tmp_path, row, rule):
    with pytest.raises(BadInput, match=rule) as caught:
        read(tmp_path, f"{MAZE_HEADER}a,S  G,So G,1\n{row}\n")
    assert caught.value.row == 3
    assert caught.value.file.endswith("train.csv")


def test_a_maze_that_is_not_square_is_refused(tmp_path):
    with pytest.raises(BadInput, match="6 cells is not square") as caught:
        read(tmp_path, MAZE_HEADER + "a,S  G##,So G##,1\n")
    assert caught.value.row == 2


def test_the_length_of_the_other_split_is_kept(tmp_path):
    with pytest.raises(BadInput, match="must have 9"):
        read(tmp_path, MAZE_HEADER + "a,S  G,So G,1\n", length=9)


QUESTION, ANSWER = sudoku.pairs(0, 1)[0]


def _bank(folder: Path, text: str) -> Path:
    path = folder / "bank.txt"
    path.write_text(text)
    return path


def _bank_rows(path: Path) -> RatedRows:
    (rows,) = read_bank(path)
    return rows


def test_the_three_forms_of_a_line_are_read(tmp_path):
    text = f"\ufeff{QUESTION}\n\n{QUESTION} {ANSWER}\r\n  0000183b305c\t{QUESTION}  1.2"
    rows = _bank_rows(_bank(tmp_path, text))
    assert rows.lines.tolist() == [1, 3, 4]
    assert {row.tobytes().decode() for row in rows.questions} == {QUESTION}
    assert [row.tobytes().decode() for row in rows.answers] == ["0" * 81, ANSWER, "0" * 81]
    assert [rows.rating(k) for k in range(3) if rows.rating] == [None, None, b"1.2"]


def test_long_banks_come_in_batches_and_all_bytes_are_seen(tmp_path):
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
def test_another_form_of_a_line_is_refused(tmp_path, line):
    with pytest.raises(BadInput, match="a line is `puzzle`") as caught:
        _bank_rows(_bank(tmp_path, f"{QUESTION}\n{line}\n"))
    assert caught.value.row == 2


def test_ratings_are_numbers(tmp_path):
    rows = _bank_rows(_bank(tmp_path, f"a {QUESTION} 1.2\nb {QUESTION} 7\n"))
    assert rows.rating_numbers().tolist() == [1.2, 7.0]


@pytest.mark.parametrize("line", [QUESTION, f"a {QUESTION} x", f"a {QUESTION} nan"])
def test_a_row_without_a_rating_cannot_be_compared(tmp_path, line):
    with pytest.raises(BadInput, match="min_difficulty needs a number") as caught:
        _bank_rows(_bank(tmp_path, f"a {QUESTION} 1.2\n{line}\n")).rating_numbers()
    assert caught.value.row == 2


def test_limits_hold(tmp_path):
    path = _bank(tmp_path, f"{QUESTION}\n" * 9)
    for limits in ({"bytes": 50}, {"rows": 5}, {"line_bytes": 60}):
        with pytest.raises(BadInput):
            list(read_bank(path, limits=replace(BANK_LIMITS, **limits)))


def test_csv_files_come_before_banks(tmp_path):
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


def test_real_files_take_the_place_of_a_sample(tmp_path):
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


def test_a_file_that_is_no_bank_takes_no_place_of_a_sample(tmp_path):
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("invented")
    mark(tmp_path)
    (tmp_path / "README.txt").write_text("no bank")
    assert [file.path.name for file in sudoku_files(tmp_path)] == ["test.csv", "train.csv"]


def test_a_folder_without_a_whole_source_is_refused(tmp_path):
    with pytest.raises(BadInput, match="neither"):
        sudoku_files(tmp_path)
    with pytest.raises(BadInput, match="cannot be read"):
        sudoku_files(tmp_path / "missing")
    (tmp_path / "train.csv").touch()
    with pytest.raises(BadInput, match=r"has train.csv, but no test.csv"):
        sudoku_files(tmp_path)


def test_a_bank_that_is_a_link_is_refused(tmp_path):
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
def test_a_file_that_would_be_passed_over_is_refused(there, name, rule, tmp_path):
    for each in (*there, name):
        (tmp_path / each).touch()
    with pytest.raises(BadInput, match=f"(?i:{name}): .*({rule})"):
        sudoku_files(tmp_path)


def test_packed_banks_beside_tables_do_not_count_and_other_packed_files_are_named(tmp_path):
    (tmp_path / "all.zip").touch()
    with pytest.raises(BadInput, match=r"nor a bank, `\*\.txt`; unpack all\.zip"):
        sudoku_files(tmp_path)
    for name in ("train.CSV", "Test.csv", "bank.txt.gz", "bank.TXT"):
        (tmp_path / name).touch()
    found = [(file.path.name, file.split) for file in sudoku_files(tmp_path)]
    assert found == [("Test.csv", "test"), ("train.CSV", "train")]


def test_capitals_and_a_byte_order_mark_change_no_bank_and_other_ends_are_refused(tmp_path):
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


def test_comments_of_a_bank_are_passed_over_and_a_blank_sign_is_none(tmp_path):
    path = tmp_path / "bank.txt"
    line = "#" * 80 + "1"
    path.write_text(f"# 17 clues\n#\n{line}\n\t# {line}\n#a {line} 1.5\n")
    (rows,) = read_bank(path)
    assert rows.lines.tolist() == [3, 5]
    assert rows.questions.tobytes().decode() == line * 2
    path.write_text("# none\n")
    with pytest.raises(BadInput, match="holds no puzzle"):
        list(read_bank(path))


def test_a_folder_of_other_endings_is_refused_with_a_file_to_rename(tmp_path):
    for name in (".hidden", "SHA256SUMS", "b.sdm", "c.sdm"):
        (tmp_path / name).touch()
    with pytest.raises(
        BadInput, match=r"nor a bank, `\*\.txt`: give b\.sdm the ending \.txt if it"
    ):
        sudoku_files(tmp_path)


def counts(name: str) -> bool:
    return name.lower().endswith(".json") or name.lower() == "train.csv"


@pytest.mark.parametrize(
    "name",
    ["train.csv.gz", "a/x.json.zip", "train.csv.ZST", "x.JSON.xz", "Train.CSV.bz2", "x.json.7z"],
)
def test_a_packed_file_that_would_count_is_refused(name):
    with pytest.raises(BadInput, match=f"drop/{name}: is packed, .*: unpack it"):
        check_names(
            Path("drop"), ["x.json", name] if "x.json" not in name.lower() else [name], counts
        )


def test_other_names_are_let_be():
    listed = [
        *(
            "x.json",
            "Train.csv",
            "train.csv.gz",
            "X.JSON.gz",
            "x.json.zip",
            "notes.md",
            "notes.txt.gz",
        ),
        *(".train.csv.gz", ".git/X.JSON", "a/train.csv.gz", "test.csv", "README", "a.gz", "gz"),
    ]
    check_names(Path("drop"), listed, counts)
    check_names(Path("drop"), [], counts)


def test_the_first_packed_file_is_named():
    assert unpack_hint(["b.tar.GZ", "a/x.zip", "c.json"]) == "; unpack a/x.zip"
    assert unpack_hint(["c.json", "gzip", "a.gz.txt"]) == ""


BUILDS: dict[str, Callable[[list[Path], Path], object]] = {
    "arc": lambda folders, out: build_arc(folders, out, ArcConfig(num_aug=0)),
    "sudoku": lambda folders, out: build_sudoku(folders, out, SudokuConfig()),
    "maze": lambda folders, out: build_maze(folders, out, MazeConfig()),
}


@pytest.mark.parametrize("kind", BUILDS)
def test_a_source_that_is_a_file_or_missing_is_refused(kind, tmp_path):
    (tmp_path / "train.csv").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, words in (("train.csv", "is not a folder"), ("nowhere", "is missing")):
        with pytest.raises(BadInput, match=f"{name}: {words}"):
            BUILDS[kind]([tmp_path / "empty", tmp_path / name], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", BUILDS)
def test_sources_of_one_name_have_longer_labels_in_any_order(kind, tmp_path, monkeypatch):
    sources = [tmp_path / name / "data" for name in "xy"]
    for number, source in enumerate(sources):
        if kind == "arc":
            name = ("training", "evaluation")[number]
            arc_tasks.write(source, {f"{name}/{number}": arc_tasks.task(number + 1)})
        elif kind == "sudoku":
            pairs = sudoku.pairs(4 * number, 4)
            sudoku.write_drop(source, pairs[:3], pairs[3:])
        else:
            source.mkdir(parents=True)
            for split in ("train", "test"):
                write_csv(source / f"{split}.csv", [maze(Random(f"{number}{split}"), 5)])
    for order in (sources, sources[::-1]):
        out = tmp_path / f"out{order is sources}"
        BUILDS[kind](order, out)
        files = json.loads((out / "trace/sources.json").read_text())["files"]
        assert {Path(file["path"]).parts[:2] for file in files} == {("x", "data"), ("y", "data")}
    assert source_labels(sources) == dict(zip(sources, ("x/data", "y/data"), strict=True))
    monkeypatch.chdir(sources[0])
    assert source_labels([Path()]) == {Path(): "data"}


def test_the_folder_of_parts_is_made(tmp_path):
    write_maze_sample(tmp_path / "drop")
    for name, build in (
        ("maze", lambda out, parts: build_maze(tmp_path / "drop", out, parts=parts)),
        ("domino", lambda out, parts: build_domino(out, DominoConfig(num_games=9), parts=parts)),
    ):
        build(tmp_path / name, PartStore(tmp_path / f"kept/{name}/parts"))
        assert list((tmp_path / f"kept/{name}/parts").glob("*.part"))
