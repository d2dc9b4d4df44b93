"""Declarations of assets: the functions that they name are there."""

import dataclasses
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gristmill import families
from gristmill.asset import Wanted, declared
from gristmill.data_root import DataRoot
from gristmill.lazy_exports import Call

ARGUMENTS = {
    "build": 1,
    "check": 1,
    "trace": 1,
    "given": 2,
    "history": 2,
    "past": 1,
    "place_of": 4,
    "sample": 1,
    "source": 1,
    "notes": 1,
    "counted": 2,
    "compared": 2,
    "tests_seen": 3,
    "available": 1,
    "is_asked": 2,
    "ranks": 1,
    "change": 4,
    "account": 2,
    "needs": 3,
    "asset_of": 1,
    "columns": 1,
    "column_states": 4,
    "tables": 3,
    "facts": 2,
    "samples": 1,
    "splits": 2,
    "talks": 2,
    "forgets": 0,
}
"""How many arguments the caller of each field gives."""


def named(value: Any, field: str) -> Iterator[tuple[str, Call]]:
    """The functions that a declaration names late, each with its field."""
    if isinstance(value, Call):
        yield field, value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from named(each, field)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from named(each, field)
    elif dataclasses.is_dataclass(value) and type(value).__module__.startswith("gristmill."):
        for each in dataclasses.fields(value):
            yield from named(getattr(value, each.name), each.name)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_every_function_that_a_catalog_names_takes_what_its_caller_gives(family: str) -> None:
    for field, late in named(families.catalog(family), ""):
        given = [*late.first, *([None] * ARGUMENTS[field])]
        inspect.signature(late.function).bind(*given)


def test_the_columns_of_a_build_are_those_of_the_files_of_its_split(tmp_path: Path) -> None:
    drop = tmp_path / "drops/reasoning/mine"
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text(
        'schema = 1\nname = "mine"\nquestion = "q"\nanswer = "a"\nlicence = { train = true }\n'
    )
    for split, set_name in (("train", "test"), ("test", "test")):
        row = {"q": f"Which {split}?", "a": "It is.", "set": set_name, split: "x"}
        (drop / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    found = {}
    for split in ("train", "test"):
        wanted = Wanted(declared()["reasoning/normalized"], DataRoot(tmp_path), f"mine__{split}")
        build = wanted.asset.build(wanted)
        found[split] = {each.name: each for each in build.columns({"unknown_keys/late": 2})}
    assert [*found["train"]] == ["q", "a", "set", "train", "late"]
    assert [*found["test"]] == ["q", "a", "set", "test", "late"]
    # Rows of the test stand in train.
    assert (found["train"]["set"].is_split, found["test"]["set"].is_split) == (True, False)
    assert found["train"]["late"].rows == 2
