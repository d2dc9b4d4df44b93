"""Drops of puzzles: which files are read, and why a folder is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.drops import refusal, source_files
from gristmill.untrusted.files import LinkRule


def laid(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return folder


def names_of(kind: str, folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in source_files(kind, folder)]


def test_tasks_are_in_folders_one_level_below_a_source(tmp_path: Path) -> None:
    folder = laid(
        tmp_path / "arc",
        "training/b.json",
        "training/a.json",
        "evaluation/c.json",
        "top.json",
        "training/deep/d.json",
        "training/.e.json",
        "training/f.txt",
    )
    assert names_of("arc", folder) == ["evaluation/c.json", "training/a.json", "training/b.json"]


@pytest.mark.parametrize("kind", ["sudoku", "maze"])
def test_puzzles_are_in_tables_in_the_source_itself(kind: str, tmp_path: Path) -> None:
    folder = laid(tmp_path / "bank", "train.csv", "easy.txt", "LICENSE", "more/test.csv", ".s.csv")
    assert names_of(kind, folder) == ["easy.txt", "train.csv"]


def test_a_link_with_the_name_of_a_task_is_refused_or_followed(tmp_path: Path) -> None:
    folder = laid(tmp_path / "arc", "training/a.json")
    other = laid(tmp_path / "other", "b.json") / "b.json"
    (folder / "training" / "b.json").symlink_to(other)
    with pytest.raises(BadInput, match=r"training/b\.json: is a link"):
        source_files("arc", folder)
    links = LinkRule(True, (str(tmp_path / "other"),))
    assert len(source_files("arc", folder, links)) == 2


def test_a_drop_without_a_file_of_puzzles_is_refused(tmp_path: Path) -> None:
    folder = laid(tmp_path / "drop", "README.md", "more/.hidden.csv", "gristmill.toml")
    assert "holds no file of puzzles" in str(refusal(folder))
    assert refusal(laid(folder, "more/train.csv")) is None


def test_a_drop_of_packed_files_says_what_to_unpack(tmp_path: Path) -> None:
    folder = laid(tmp_path / "drop", "README.md", "train.csv.gz")
    assert str(refusal(folder)).endswith("into it; unpack train.csv.gz")
