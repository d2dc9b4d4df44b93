"""The raw files of a split as inputs of its build.

Recipes of token datasets: what is refused, what waits, and a build from the drop on.
"""

from pathlib import Path

import pytest

from definitions import build_of
from gristmill.contract import BadInput, NothingToBuild
from gristmill.corpora.corpus import CORPORA
from gristmill.data_root import DataRoot
from gristmill.inbox.listing import Waits
from gristmill.publish.publish import is_current
from gristmill.reasoning import raw
from gristmill.reasoning.raw import files_of, split_inputs
from gristmill.reasoning.samples import write_sample
from resources import Lake
from tests.reasoning.published_root import built
from tests.tiny_tokenizer import put_recipe, put_tiny


def test_files_in_folders_are_inputs_in_the_order_in_which_they_are_read(tmp_path):
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


def test_inputs_with_equal_sums_are_refused_where_a_look_did_not_compare_them(tmp_path):
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put_tiny(tmp_path)
    write_sample("gsm8k", tmp_path / "drops/reasoning/gsm8k")
    put_recipe(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"corpora": []}, "`corpora` is missing"),
        ({"tokenizer": ""}, "`tokenizer` is missing"),
        ({"corpora": ["Gsm8k"]}, "is no corpus"),
        ({"corpora": ["gsm8k", "gsm8k"]}, "must name each once"),
        ({"tokenizer": "../x"}, "tokenizer: "),
        ({"outputs": []}, "outputs: must name bin or safetensors"),
        ({"outputs": ["pt"]}, "outputs"),
        ({"safetensors": True}, "safetensors: is not allowed"),
        ({"seq_length": 5}, "unknown key"),
        ({"seq_len": 7}, "no multiple of seq_len"),
    ],
)
def test_a_recipe_that_breaks_a_rule_is_refused(root, values, error):
    path = put_recipe(root, **values)
    with pytest.raises(BadInput, match=error) as caught:
        raw.account(path)
    assert str(path) in str(caught.value)
    assert raw.wanted(DataRoot(root)) == []


def test_a_recipe_waits_for_its_corpora_and_its_tokenizer_and_is_built(root):
    lake, path = DataRoot(root), root / "drops/reasoning/recipes/mine.toml"
    assert raw.wanted(lake) == ["mine"]  # what it needs has drops
    for asset, key, missing in (
        ("reasoning/normalized", "gsm8k__test", "reasoning/normalized of gsm8k is not built"),
        ("tokenizers/placed", "tiny", "tiny: no tokenizer is placed there, but its drop is there"),
    ):
        with pytest.raises(Waits, match=missing):
            raw.needs(path, root, lambda *_: True)
        with pytest.raises(NothingToBuild, match=missing):
            build_of("reasoning/tokens", lake, "mine")
        built(root, asset, key)
    raw.needs(path, root, lambda *_: True)
    built(root, "reasoning/tokens", "mine")
    assert {each.name for each in (root / "reasoning/tokens/mine/gsm8k").iterdir()} == {"test"}
    build = build_of("reasoning/tokens", lake, "mine")
    assert build is not None and is_current(build)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"corpora": ["gsm8"]}, 'no drop gives "gsm8": did you mean gsm8k? Else bring the drop '),
        ({"corpora": ["gsm8k__tst"]}, "did you mean gsm8k__test?"),
        ({"corpora": ["zzz"]}, 'no drop gives "zzz": bring the drop '),
        ({"tokenizer": "tinny"}, "placed there: did you mean tiny? Else bring its file by"),
        ({"tokenizer": "zzz"}, "placed there: bring its file by `gristmill tokenizers FILE"),
    ],
)
def test_a_recipe_with_a_name_that_nothing_has_names_the_nearest_one(root, values, said):
    built(root, "reasoning/normalized", "gsm8k__test")
    with pytest.raises(Waits) as caught:
        raw.needs(put_recipe(root, **values), root, lambda *_: True)
    assert said in str(caught.value)
    assert "recipes/mine.toml: " in str(caught.value)


def test_a_recipe_that_changed_is_said(root):
    config = {"corpora": ["gsm8k"], "tokenizer": "tiny", "seq_len": 64, "tokens_per_shard": 640}
    path = put_recipe(root)
    assert raw.recipe_change(path, root, config, ()) == ""
    put_recipe(root, seq_len=128)
    assert raw.recipe_change(path, root, config, ()) == "seq_len is 128 now, was 64"


def test_the_terms_of_a_corpus_hold_for_a_dataset_too(root):
    write_sample("reveal", root / "drops/reasoning/reveal")
    built(root, "tokenizers/placed", "tiny")
    key = next(key for key in raw.dropped(DataRoot(root)) if key.startswith("reveal"))
    built(root, "reasoning/normalized", key)
    put_recipe(root, corpora=["reveal"])
    with pytest.raises(NothingToBuild, match="forbid training"):
        build_of("reasoning/tokens", DataRoot(root), "mine")
    put_recipe(root, corpora=["reveal"], allow=["reveal"])
    assert build_of("reasoning/tokens", DataRoot(root), "mine") is not None
