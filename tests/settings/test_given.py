"""Settings of the command line: the values of TOML, and the rules of the table."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from gristmill.contract import BadInput
from gristmill.settings.given import given_values
from gristmill.settings.kinds import Positive
from gristmill.settings.tables import Table


@dataclass(frozen=True)
class Oven:
    loaves: Positive = 2
    heat: float = 200.5
    steam: bool = False
    bread: Literal["rye", "oat-8"] = "rye"
    day: str | None = None
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    mill: str = ""


OVEN = Table("corn/oven", Oven, root=Source, not_set={"steam": "the asset knows it"})
FREE = dataclasses.replace(OVEN, not_set={})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["loaves=1_000", "heat=7"], {"loaves": 1000, "heat": 7.0}),
        (["steam=true", "bread=oat-8"], {"steam": True, "bread": "oat-8"}),
        ([" bread = 'rye' "], {"bread": "rye"}),
        (["day=2026-11-22"], {"day": "2026-11-22"}),
        (["day=07:30:00"], {"day": "07:30:00"}),
        (["day=a=b/c.d"], {"day": "a=b/c.d"}),
        (["day="], {"day": ""}),
        (['day="a b # c"  # a comment'], {"day": "a b # c"}),
        (['seeds=["a",\n "b"]'], {"seeds": ("a", "b")}),
    ],
)
def test_a_value_is_one_of_toml_or_a_word(words: list[str], expected: dict[str, Any]) -> None:
    found = given_values(FREE, words)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(each) for each in expected.values()]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["loaves"], '"loaves": write it as field=value'),
        (["=3"], '"=3": write it as field=value'),
        (["loaves=1", "heat=1", "loaves=1"], "loaves is given twice: give it once"),
        (
            ["loafs=1"],
            "[corn.oven] loafs: unknown key: did you mean loaves?; the keys are loaves, heat, "
            "bread, day, seeds",
        ),
        (["loaves=0"], "[corn.oven] loaves = 0: must be a whole number, 1 or more"),
        (["loaves=many"], '[corn.oven] loaves = "many": must be a whole number, 1 or more'),
        (["loaves=007"], '[corn.oven] loaves = "007": must be a whole number, 1 or more'),
        (["heat=nan"], "[corn.oven] heat = nan: must be a finite number"),
        (["bread=oat"], '[corn.oven] bread = "oat": must be one of "rye", "oat-8"'),
        (["seeds=a"], '[corn.oven] seeds = "a": must be a list; each item must be a text'),
        (["steam=true"], "[corn.oven] steam: is not allowed: the asset knows it"),
        (["mill=a"], "[corn.oven] mill: is read from the data root's gristmill.toml only"),
        (["loaves=1,000"], 'loaves: "1,000" is no value of TOML: write a number, true, false'),
        (["loaves=1\nheat=2"], "is no value of TOML"),
        (["seeds=[a, b]"], """between ' and ' a text "a b" or a list ["a", "b"]"""),
        (["day=a b"], 'day: "a b" is no value of TOML'),
        (["loaves=" + "9" * 5000], "must be a whole number, 1 or more"),
        (["seeds=" + "[" * 5000], "is no value of TOML"),
    ],
)
def test_what_is_refused_names_the_field_the_rule_and_the_cure(
    words: list[str], reason: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(reason)) as caught:
        given_values(OVEN, words)
    assert str(caught.value).startswith("--set: ")
    assert len(str(caught.value)) < 400
