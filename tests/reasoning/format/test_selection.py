"""Selections: examples by the extras of the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.format import names
from gristmill.reasoning.format.selection import Selection
from gristmill.reasoning.read.shard_reader import ShardReader
from tests.reasoning.supervised_folder import write_supervised


def test_an_example_must_have_one_of_the_values_of_each_extra() -> None:
    selection = Selection.of({"difficulty": ["hard", 3], "subject": "algebra"})
    assert selection.takes({"extras": {"difficulty": 3, "subject": "algebra"}})
    assert selection.takes({"extras": {"difficulty": "hard", "subject": "algebra", "source": 1}})
    for extras in ({"difficulty": "3", "subject": "algebra"}, {"difficulty": 3}, {}, None):
        assert not selection.takes({"extras": extras})
    assert not selection.takes({})


def test_no_selection_takes_all() -> None:
    for nothing in (None, {}):
        assert not Selection.of(nothing)
        assert Selection.of(nothing).takes({})


def test_a_selection_has_one_text_whatever_its_order() -> None:
    one = Selection.of({"subject": ["b", "a"], "difficulty": "x"})
    assert str(one) == '{"difficulty": ["x"], "subject": ["a", "b"]}'
    assert str(Selection.of({"difficulty": ["x"], "subject": {"a", "b"}})) == str(one)


def test_what_the_index_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="the index has no 'corpus'; it has difficulty"):
        Selection.of({"corpus": "wiqa"})
    made = write_supervised(tmp_path, examples=9)
    with pytest.raises(BadInput, match=r'index\.jsonl: no example has {"difficulty": \["none"\]}'):
        ShardReader(made.root, select={"difficulty": "none"})


def test_a_state_of_another_selection_is_refused(tmp_path: Path) -> None:
    made = write_supervised(tmp_path)
    state = ShardReader(made.root, select={"difficulty": "hard"}).state()
    with pytest.raises(GristmillError, match="its select is"):
        ShardReader(made.root).load_state(state)
    with pytest.raises(GristmillError, match="its select is"):
        ShardReader(made.root, select={"difficulty": "easy"}).load_state(state)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    made = write_supervised(tmp_path, examples=5)
    (made.root / names.split_index(made.corpus, made.split)).write_text("{}\n[")
    with pytest.raises(BadInput, match=r"index\.jsonl: cannot be read"):
        ShardReader(made.root, select={"difficulty": "hard"})
