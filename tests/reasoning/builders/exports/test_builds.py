"""Published spans and exports are shown and traced to raw rows; what has nothing is not built."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill.asset import Wanted, declared
from gristmill.cli import main
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.data_root import DataRoot
from gristmill.reasoning.render.annotations import KEYS, rows_of
from tests.reasoning.exported_root import build_dataset, built


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


def test_a_split_without_annotations_has_no_spans(tmp_path: Path) -> None:
    build_dataset(tmp_path)
    path = tmp_path / "reasoning/raw/gsm8k/train.jsonl"
    asset = declared()["reasoning/spans"]
    lake = DataRoot(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"<<", b"<").replace(b"test", b"<<1+1"))
    with pytest.raises(NothingToBuild, match="no annotation as <<48/2=24>>"):
        asset.build(Wanted(asset, lake, "gsm8k__train"))


@pytest.mark.parametrize("damage", ["missing", "no JSON"])
@pytest.mark.parametrize(
    ("asset", "partition", "chosen"),
    [
        ("reasoning/spans", "gsm8k__train", {"tokenizer": "tiny"}),
        # Other outputs than those that are published.
        ("reasoning/tokens", "mine", {"outputs": ["safetensors"]}),
    ],
)
def test_a_damaged_split_is_refused_by_its_record_with_the_cure(
    tmp_path: Path, asset: str, partition: str, chosen: dict[str, object], damage: str
) -> None:
    build_dataset(tmp_path)
    path = tmp_path / "reasoning/raw/gsm8k/train.jsonl"
    path.unlink() if damage == "missing" else path.write_bytes(b'{"a": <<\n')
    with pytest.raises(GristmillError, match="materialize reasoning/normalized --partition gsm8k"):
        built(tmp_path, asset, partition, **chosen)


@pytest.mark.parametrize("asset", ["reasoning/spans", "reasoning/exports"])
def test_only_settings_ask_for_an_asset_that_no_command_names(tmp_path: Path, asset: str) -> None:
    lake, made = DataRoot(tmp_path), declared()[asset]
    assert not made.is_asked(lake, "gsm8k__train")
    (tmp_path / "gristmill.toml").write_text(
        '[reasoning.spans]\ntokenizer = "gpt2"\n[reasoning.exports]\nformats = ["llm.c"]\n'
    )
    assert made.is_asked(lake, "gsm8k__train")
