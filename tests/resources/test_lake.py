"""Paths, keys, settings and published inputs, as assets ask the Lake for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.keys import BadKey
from resources.lake import CHECKOUT, Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(data_root=str(tmp_path))


def test_the_root_is_the_argument_then_the_variable_then_the_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("GRISTMILL_DATA", raising=False)
    assert Lake().root == CHECKOUT / "data"
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "variable"))
    assert Lake().root == tmp_path / "variable"
    assert Lake(data_root=str(tmp_path)).root == tmp_path


@pytest.mark.parametrize("key", ["../x", "a/b", "..", ".", "", "a\n", "a b", "-/", "ä", "a..b"])
def test_no_path_is_made_from_a_name_outside_the_grammar(lake, key):
    with pytest.raises(BadKey):
        lake.artifact("macroxue", "packs", key)
    with pytest.raises(BadKey):
        lake.drop("macroxue", key)


@pytest.mark.parametrize("key", ["d6_v1", "d6-10g.v1", "0", "_", "2024-01", "x" * 100])
def test_names_in_the_grammar_make_paths(lake, key):
    assert lake.artifact("macroxue", "packs", key) == f"macroxue/packs/{key}"


def test_a_drop_that_is_gone_says_what_to_do(lake):
    with pytest.raises(GristmillError, match=r"gone: bring it back, or retire .* retire d6_v1"):
        lake.drop("macroxue", "d6_v1")


def test_settings_of_the_drop_come_before_those_of_the_root(lake, tmp_path):
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    (tmp_path / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    assert lake.settings("macroxue/pack", drop) == {"shard_rows": 5}
    (drop / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    assert lake.settings("macroxue/pack", drop) == {"layout": "packed46"}
    assert lake.settings("macroxue/values", drop) == {}


def test_a_wrong_file_of_a_drop_is_not_passed_over(lake, tmp_path):
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    (drop / "gristmill.toml").write_text("[macroxue.values]\ngamma = 1\n")
    with pytest.raises(BadInput, match=r"\[macroxue.values\] is not read from a drop"):
        lake.settings("macroxue/pack", drop)
    (drop / "gristmill.toml").write_text("[macroxue.pack]\nworkers = true\n")
    with pytest.raises(BadInput, match=r"d6/gristmill.toml: \[macroxue.pack\] workers = true"):
        lake.settings("macroxue/pack", drop)


def test_settings_name_the_file_that_they_are_from(lake, tmp_path):
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    (tmp_path / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    assert lake.settings("macroxue/pack", drop).file == tmp_path / "gristmill.toml"
    (drop / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 6\n")
    assert lake.settings("macroxue/pack", drop).file == drop / "gristmill.toml"


@pytest.mark.parametrize(
    ("text", "rule"), [("[macroxue", "not TOML"), ("macroxue.pack = 3", "must be a table")]
)
def test_broken_settings_name_the_file(lake, tmp_path, text, rule):
    (tmp_path / "gristmill.toml").write_text(text)
    with pytest.raises(BadInput, match=rf"gristmill\.toml: .*{rule}"):
        lake.settings("macroxue/pack")


def test_an_input_that_is_not_published_is_named(lake):
    with pytest.raises(GristmillError, match="macroxue/packs/d6"):
        lake.published("macroxue/packs/d6", "macroxue/pack", "d6")
