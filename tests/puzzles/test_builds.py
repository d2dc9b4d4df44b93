"""What gives a value of a puzzle dataset, and where a person writes another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.data_root import DataRoot
from gristmill.puzzles.builds import place_of, settings_of
from gristmill.puzzles.raw.known_recipes import RECIPES_INBOX
from gristmill.settings.tables import Settings

OWN = 'kind = "maze"\nsources = ["here"]\n[settings]\naug = true\n'


@pytest.mark.parametrize(
    ("key", "field", "source", "target"),
    [
        ("maze-sample", "aug", "the built-in recipe maze-sample", "[settings] in OWN, a recipe"),
        ("maze-sample", "seed", "FILE", "[puzzles.maze] in FILE"),
        ("maze-sample", "dtype", "the default", "[puzzles.maze] in FILE"),
        ("mine", "aug", "OWN", "[settings] in OWN"),
        ("mine", "dtype", "the default", "[settings] in OWN"),
    ],
)
def test_a_value_is_written_where_it_counts_for_the_dataset_of_this_recipe(
    tmp_path: Path, key: str, field: str, source: str, target: str
) -> None:
    lake = DataRoot(tmp_path)
    file, own = tmp_path / "gristmill.toml", lake.inbox(RECIPES_INBOX) / f"{key}.toml"
    file.write_text("[puzzles.maze]\nseed = 3\n")
    own.parent.mkdir(parents=True)
    (own.parent / "mine.toml").write_text(OWN)
    gives, takes = place_of(lake, key, field, settings_of("maze", lake, key))
    assert gives == source.replace("OWN", str(own)).replace("FILE", str(file))
    assert takes.startswith(target.replace("OWN", str(own)).replace("FILE", str(file)))


def test_the_table_of_a_recipe_that_is_gone_has_no_name(tmp_path: Path) -> None:
    file = tmp_path / "gristmill.toml"
    found = place_of(DataRoot(tmp_path), "gone", "seed", Settings({}, file=file))
    assert found == ("the default", f"its table in {file}")
