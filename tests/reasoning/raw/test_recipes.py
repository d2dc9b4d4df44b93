"""Recipes of token datasets: what is refused, what waits, and a build from the drop on."""

from __future__ import annotations

from pathlib import Path

import pytest

from definitions import build_of
from gristmill.contract import BadInput, NothingToBuild
from gristmill.data_root import DataRoot
from gristmill.inbox.account import Waits
from gristmill.publish.publish import is_current
from gristmill.reasoning.raw import ready, recipes
from gristmill.reasoning.samples import write_sample
from tests.reasoning.published_root import built
from tests.tiny_tokenizer import put_recipe, put_tiny


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
def test_a_recipe_that_breaks_a_rule_is_refused(
    root: Path, values: dict[str, object], error: str
) -> None:
    path = put_recipe(root, **values)
    with pytest.raises(BadInput, match=error) as caught:
        recipes.account(path)
    assert str(path) in str(caught.value)
    assert recipes.wanted(DataRoot(root)) == []


def test_a_recipe_waits_for_its_corpora_and_its_tokenizer_and_is_built(root: Path) -> None:
    lake, path = DataRoot(root), root / "drops/reasoning/recipes/mine.toml"
    assert recipes.wanted(lake) == ["mine"]  # what it needs has drops
    for asset, key, missing in (
        ("reasoning/normalized", "gsm8k__test", "reasoning/normalized of gsm8k is not built"),
        ("tokenizers/placed", "tiny", "tiny: no tokenizer is placed there, but its drop is there"),
    ):
        with pytest.raises(Waits, match=missing):
            recipes.needs(path, root, lambda *_: True)
        with pytest.raises(NothingToBuild, match=missing):
            build_of("reasoning/tokens", lake, "mine")
        built(root, asset, key)
    recipes.needs(path, root, lambda *_: True)
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
def test_a_recipe_with_a_name_that_nothing_has_names_the_nearest_one(
    root: Path, values: dict[str, object], said: str
) -> None:
    built(root, "reasoning/normalized", "gsm8k__test")
    with pytest.raises(Waits) as caught:
        recipes.needs(put_recipe(root, **values), root, lambda *_: True)
    assert said in str(caught.value)
    assert "recipes/mine.toml: " in str(caught.value)


def test_a_recipe_that_changed_is_said(root: Path) -> None:
    config = {"corpora": ["gsm8k"], "tokenizer": "tiny", "seq_len": 64, "tokens_per_shard": 640}
    path = put_recipe(root)
    assert recipes.recipe_change(path, root, config, ()) == ""
    put_recipe(root, seq_len=128)
    assert recipes.recipe_change(path, root, config, ()) == "seq_len is 128 now, was 64"


def test_the_terms_of_a_corpus_hold_for_a_dataset_too(root: Path) -> None:
    write_sample("reveal", root / "drops/reasoning/reveal")
    built(root, "tokenizers/placed", "tiny")
    key = next(key for key in ready.dropped(DataRoot(root)) if key.startswith("reveal"))
    built(root, "reasoning/normalized", key)
    put_recipe(root, corpora=["reveal"])
    with pytest.raises(NothingToBuild, match="forbid training"):
        build_of("reasoning/tokens", DataRoot(root), "mine")
    put_recipe(root, corpora=["reveal"], allow=["reveal"])
    assert build_of("reasoning/tokens", DataRoot(root), "mine") is not None
