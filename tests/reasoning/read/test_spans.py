"""Rows of spans are read with their form checked, and the command shows and traces them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.reasoning.read.spans import KEYS, rows_of
from tests.reasoning.exported_root import build_dataset, built


@pytest.mark.parametrize(
    ("line", "rule"),
    [("{", "is not JSON"), ("[]", "no row of spans"), ('{"trace_id": "a"}', "no row of spans")],
)
def test_a_line_of_another_form_is_named(line: str, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "train.spans.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadInput, match=rule) as raised:
        list(rows_of(path))
    assert "1" in str(raised.value)


def test_a_missing_file_says_what_to_build(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="build reasoning/spans"):
        list(rows_of(tmp_path / "train.spans.jsonl"))


def test_a_record_is_shown_with_its_annotations_and_traced_to_its_raw_row(tmp_path: Path) -> None:
    build_dataset(tmp_path)
    built(tmp_path, "reasoning/spans", "gsm8k__train", tokenizer="tiny")
    built(tmp_path, "reasoning/exports", "mine", formats=("llm.c", "nanochat"))
    folder = tmp_path / "reasoning/spans"
    assert all(tuple(row) == KEYS for row in rows_of(folder / "gsm8k/train.spans.jsonl"))

    def said(*words: object) -> str:
        done = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    shown = said("show", folder, "gsm8k_train_000004")
    assert "2 annotations" in shown
    assert "<<16/2=8>>" in shown
    traced = said("trace", folder, "gsm8k_train_000004")
    assert "drops/reasoning/gsm8k/train.jsonl" in traced
    assert "<<16/2=8>>" in traced
    exported = tmp_path / "reasoning/exports/mine"
    assert "llm.c/tokens_train_000000.bin" in said("show", exported, "0")
    traced = said("trace", exported, "gsm8k_train_000004")
    assert "drops/reasoning/gsm8k/train.jsonl" in traced
    for shard, split in (("00000", "train"), ("00001", "test")):
        traced = said("trace", exported, "4", "--shard", shard)
        assert f"drops/reasoning/gsm8k/{split}.jsonl" in traced
        assert "raw_row: 5\n" in traced
