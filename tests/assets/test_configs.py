"""Builder configs in the launchpad: what a person reads about each field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from assets.configs import launchpad
from gristmill.chess.config import MonthConfig
from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig
from gristmill.synth.config import HarmonyConfig, KDConfig


@dataclass(frozen=True)
class Example:
    layout: Literal["wide", "narrow"] = field(default="wide", metadata={"help": "The rows' form."})
    rows: int = 3


def _described(config: type[Any], name: str, **options: Any) -> str:
    return str(launchpad(config, **options).model_fields[name].description)


def test_a_field_shows_its_help_its_choices_and_its_default() -> None:
    expected = "The rows' form. One of 'wide', 'narrow'. default: 'wide'"
    assert _described(Example, "layout") == expected
    assert _described(Example, "rows") == "default: 3"


def test_a_default_of_the_asset_is_the_one_that_is_shown() -> None:
    assert _described(Example, "rows", defaults={"rows": 7}) == "default: 7"


@pytest.mark.parametrize(
    "config", [PackConfig, MergeConfig, ValueConfig, HarmonyConfig, KDConfig, MonthConfig]
)
def test_every_field_that_a_person_can_choose_has_a_help_text(config: type[Any]) -> None:
    silent = [spec.name for spec in dataclasses.fields(config) if not spec.metadata.get("help")]
    assert silent == []
