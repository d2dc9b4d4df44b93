"""Mazes of CSV files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.rated_csv import read_mazes

HEADER = "source,question,answer,rating\n"


def read(tmp_path: Path, text: str, length: int | None = None) -> list[tuple[str, str, int]]:
    path = tmp_path / "train.csv"
    path.write_bytes(text.encode("latin-1"))
    return [
        ("".join(map(str, row.tolist())), "".join(map(str, label.tolist())), line)
        for rows in read_mazes(path, length=length)
        for row, label, line in zip(rows.inputs, rows.labels, rows.lines.tolist(), strict=True)
    ]


def test_the_mazes_of_a_file_come_with_their_lines(tmp_path: Path) -> None:
    text = HEADER + 'a,S  G,So G,2\n\na,"SG##",SG##,1\nb,  SG,  SG,1'
    assert read(tmp_path, text) == [
        ("3224", "3524", 2),
        ("3411", "3411", 4),
        ("2234", "2234", 5),
    ]


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
def test_a_bad_maze_is_refused_with_its_file_and_line(tmp_path: Path, row: str, rule: str) -> None:
    with pytest.raises(BadInput, match=rule) as caught:
        read(tmp_path, f"{HEADER}a,S  G,So G,1\n{row}\n")
    assert caught.value.row == 3
    assert caught.value.file.endswith("train.csv")


def test_a_maze_that_is_not_square_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="6 cells is not square") as caught:
        read(tmp_path, HEADER + "a,S  G##,So G##,1\n")
    assert caught.value.row == 2


def test_the_length_of_the_other_split_is_kept(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must have 9"):
        read(tmp_path, HEADER + "a,S  G,So G,1\n", length=9)
