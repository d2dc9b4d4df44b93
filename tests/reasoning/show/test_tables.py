"""The tables of reasoning: which of them an id names, and its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.browse.opening import Files
from gristmill.reasoning.show.tables import tables


@pytest.mark.parametrize(
    ("asset", "name", "found"),
    [
        ("reasoning/normalized", "{}.jsonl", 12),
        ("reasoning/alignment", "{}.align.jsonl", ("example_id",)),
        ("reasoning/tokens", "{}/index.jsonl", ("example_id",)),
    ],
)
def test_an_id_is_looked_for_in_the_table_of_its_split_alone(
    tmp_path: Path, asset: str, name: str, found: object
) -> None:
    for split in ("my_math/train", "my_math/test", "other/train"):
        path = tmp_path / name.format(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    of = {each.name: each.named for each in tables(asset, tmp_path, Files(tmp_path))}
    for split in ("my_math__train", "my_math__test", "other__train"):
        named = of[split]
        assert named is not None
        right = found if split == "my_math__train" else ()
        assert named("my_math_train_000012") == right
        assert named("my_math") == named("") == ()
