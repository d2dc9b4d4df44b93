"""What names of data files say of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.reasoning.raw import drops
from gristmill.reasoning.raw.file_names import name_notes

TWICE = "records may count twice"


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        (["train.jsonl", "train-1.jsonl", "copy.jsonl", "train_copyright.jsonl"], []),
        (["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"], []),
        (["train-00001-of-00001.parquet"], []),
        (
            ["data/train-00000-of-00003.parquet", "data/train-00002-of-00003.parquet"],
            ["2 of the 3 files data/train-*-of-00003.parquet are there: the rest is not read"],
        ),
        (
            ["train.jsonl", "train-00000-of-00001.jsonl"],
            ["train.jsonl is beside its parts train-*-of-00001.jsonl: records may count twice"],
        ),
        *(
            (["train.jsonl", copy], [f"{copy} is named as a copy of train.jsonl: {TWICE}"])
            for copy in ("train (1).jsonl", "train(2).jsonl", "train - Copy.jsonl")
        ),
    ],
)
def test_parts_that_are_not_there_and_copies_are_named(names: list[str], notes: list[str]) -> None:
    assert list(name_notes(names)) == notes


def test_the_account_of_a_drop_has_them(tmp_path: Path) -> None:
    (drop := tmp_path / "gsm8k").mkdir()
    (drop / "train-00001-of-00002.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    (note,) = drops.account(drop).notes
    assert note.startswith("1 of the 2 files train-*-of-00002.jsonl are there")
