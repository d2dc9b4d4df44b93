"""Canonical JSON and the fields of configs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest

from gristmill import provenance
from gristmill.settings.kinds import NO_EFFECT


@dataclass(frozen=True)
class Config:
    seed: int = 1
    place: Path = Path("a/b")
    workers: Annotated[int, NO_EFFECT] = 1


def test_a_config_is_a_dataclass_of_plain_values() -> None:
    class Level(Enum):
        LOW = 1

    @dataclass(frozen=True)
    class Odd:
        value: object = None

    assert provenance.config_fields(Odd(Level.LOW)) == {"value": "Level.LOW"}
    with pytest.raises(TypeError, match="a config holds plain values"):
        provenance.config_fields(Odd(object()))
    for wrong in ({"seed": 1}, Config):
        with pytest.raises(TypeError, match="instance of a dataclass"):
            provenance.config_fields(wrong)
    every = {spec.name for spec in dataclasses.fields(Config)}
    assert provenance.config_fields(Config()).keys() == every
    assert provenance.config_fields(Config(), affecting_output=True).keys() == every - {"workers"}
