"""What the types of fields say: traits that add up, and the kinds that families share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from gristmill.provenance.canonical import config_fields
from gristmill.settings.fields import rules_of
from gristmill.settings.kinds import (
    ADDED_LATER,
    COUNTED_BEFORE,
    IN_EVENT,
    MOST_WORKERS,
    NO_EFFECT,
    BadRows,
    Count,
    Engine,
    Ge,
    Help,
    Positive,
    Seed,
    Share,
    Unit,
    Workers,
    declared,
    fields_with,
)
from gristmill.vocabularies.engine import ENGINES


@dataclass(frozen=True)
class Mill:
    workers: Workers = 1
    threads: Annotated[Workers, Unit("threads"), Help("Threads.")] = 2
    stones: Annotated[Positive, Ge(3), IN_EVENT] = 4
    seed: Seed = 0
    share: Share = 0.5
    bad_rows: BadRows = 0
    engine: Engine = "auto"
    sieve: Annotated[Count, ADDED_LATER] = 7
    label: str = ""


def test_a_field_has_the_traits_of_its_kind_and_its_own_which_replace_them() -> None:
    sentences = [rule.sentences for rule in rules_of(Mill).values()]
    assert sentences[:7] == [
        f"Must be a whole number from 0 to {MOST_WORKERS}. Unit: processes. Default: 1.",
        f"Threads. Must be a whole number from 0 to {MOST_WORKERS}. Unit: threads. Default: 2.",
        "Must be a whole number, 3 or more. Default: 4.",
        "Must be a whole number, 0 or more. Unit: none, any number. Default: 0.",
        "Must be a finite number from 0 to 1. Default: 0.5.",
        "Must be a whole number, 0 or more. Default: 0.",
        "What encodes texts: auto for gigatoken where it is proven equal to tiktoken, or tiktoken "
        'for all texts. The tokens are the same. Must be one of "auto", "tiktoken". '
        'Default: "auto".',
    ]
    assert [name for name, rule in rules_of(Mill).items() if rule.in_event] == ["stones"]
    assert rules_of(Mill)["engine"].choices == ENGINES


def test_traits_say_what_records_make_of_a_field() -> None:
    assert fields_with(Mill, NO_EFFECT) == ("workers", "threads", "bad_rows", "engine")
    assert fields_with(Mill, COUNTED_BEFORE) == ("bad_rows",)
    assert fields_with(Mill, ADDED_LATER) == ("sieve",)
    counted = config_fields(Mill(workers=3), affecting_output=True)
    assert counted == {"stones": 4, "seed": 0, "share": 0.5, "label": ""}
    assert config_fields(Mill(sieve=8), affecting_output=True) == counted | {"sieve": 8}


def test_a_class_that_inherits_fields_has_traits_of_its_own() -> None:
    @dataclass(frozen=True)
    class Later(Mill):
        label: Annotated[str, NO_EFFECT] = ""

    assert list(declared(Later)) == list(declared(Mill))
    assert fields_with(Later, NO_EFFECT) == (*fields_with(Mill, NO_EFFECT), "label")
    assert fields_with(Mill, NO_EFFECT) == ("workers", "threads", "bad_rows", "engine")


def test_rules_in_metadata_are_refused_wherever_a_config_is_looked_at() -> None:
    older = dataclasses.make_dataclass(
        "Older", [("workers", int, field(default=1, metadata={"affects_output": False}))]
    )
    for look in (rules_of, lambda config: config_fields(config(), affecting_output=True)):
        with pytest.raises(TypeError) as caught:
            look(older)
        assert str(caught.value) == ("workers: has metadata: write its rules as traits of its type")
