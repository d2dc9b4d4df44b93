"""The raw files of a split as inputs of its build."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.reasoning.raw.ready import files_of, split_inputs
from resources import Lake


def test_files_in_folders_are_inputs_under_their_paths_in_the_order_in_which_they_are_read(
    tmp_path: Path,
) -> None:
    lake = Lake(data_root=str(tmp_path))
    for name in ("train_a/0.jsonl", "train/1.jsonl", "test/0.jsonl"):
        path = lake.inbox("reasoning") / "gsm8k" / name
        path.parent.mkdir(parents=True)
        path.write_text(name)
    folder, corpus, files, account = files_of(lake, "gsm8k", "train")
    assert corpus == CORPORA["gsm8k"]
    assert folder == lake.inbox("reasoning") / "gsm8k"
    assert account.taken == {"": ["train/1.jsonl", "train_a/0.jsonl"]}
    inputs = split_inputs(lake, files, "gsm8k__train")
    drop = "drops/reasoning/gsm8k"
    assert [item.path for item in inputs] == [f"{drop}/train/1.jsonl", f"{drop}/train_a/0.jsonl"]


def test_inputs_with_equal_sums_are_refused_where_a_look_did_not_compare_them(
    tmp_path: Path,
) -> None:
    lake = Lake(data_root=str(tmp_path))
    drop = lake.inbox("reasoning") / "gsm8k"
    drop.mkdir(parents=True)
    for name in ("train-0.jsonl", "train-1.jsonl"):
        (drop / name).write_text("{}\n")
    (drop / "train-2.jsonl").touch()
    (drop / "train-3.jsonl").touch()
    files = [drop / f"train-{number}.jsonl" for number in (0, 2, 3)]
    assert len(split_inputs(lake, files, "gsm8k__train")) == 3
    with pytest.raises(BadInput) as raised:
        split_inputs(lake, [*files, drop / "train-1.jsonl"], "gsm8k__train")
    assert str(raised.value) == (
        f"{drop}/train-1.jsonl: has the bytes of drops/reasoning/gsm8k/train-0.jsonl: its records "
        "would count twice: take one of them out"
    )
