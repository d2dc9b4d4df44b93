"""The pool file: its keys, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.raw.pool_file import PoolFile, read_pool_file


def pool_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "p.toml"
    path.write_text(text)
    return path


def test_a_pool_file_has_members_and_settings(tmp_path: Path) -> None:
    path = pool_file(tmp_path, 'members = ["b", "a"]\n')
    assert read_pool_file(path) == PoolFile(("b", "a"), False, {})
    text = 'members = ["b", "a"]\ndelete_members = true\n[macroxue.pool]\nshard_rows = 5\n'
    path = pool_file(tmp_path, text)
    assert read_pool_file(path) == PoolFile(("b", "a"), True, {"shard_rows": 5})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("members = [", "not TOML"),
        ("", "`members` must be a list"),
        ('members = "ab"', "`members` must be a list"),
        ('members = ["a", 1]', "`members` must be a list"),
        ('members = ["a"]', "two or more packs"),
        ('members = ["a", "a"]', "two or more packs"),
        ('members = ["a", "b/c"]', "`members`: "),
        ('members = ["a", "b"]\ndelete_members = 1', "delete_members = 1: must be true or false"),
        ('members = ["a", "b"]\nmacroxue = 1', "must hold the table"),
        ('members = ["a", "b"]\n[macroxue]\npool = 1', "a table"),
        ('members = ["a", "b"]\n[macroxue.pool]\nnames = ["x", "y"]', "names: is not allowed"),
        ('members = ["a", "b"]\nshards = 1', 'unknown key "shards"'),
    ],
)
def test_a_pool_file_that_breaks_a_rule_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    path = pool_file(tmp_path, text)
    with pytest.raises(BadInput, match=rule) as caught:
        read_pool_file(path)
    assert caught.value.file == str(path)


def test_a_pool_file_that_is_gone_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.toml: the pool file is gone: .*retire gone"):
        read_pool_file(tmp_path / "gone.toml")
    with pytest.raises(BadInput, match=r"`gristmill retire -- -a\.b`"):
        read_pool_file(tmp_path / "-a.b.toml")
