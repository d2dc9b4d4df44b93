"""Builder configs in the launchpad: what a person reads about each field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from assets.configs import launchpad, resolve
from gristmill.chess.config import MonthConfig
from gristmill.contract import BadInput
from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig
from gristmill.settings.tables import Settings
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


def test_values_come_from_the_run_then_the_file_then_the_asset() -> None:
    run = launchpad(MonthConfig)(min_context=11)
    settings = Settings({"min_context": 9, "seed": 3, "time_controls": ["blitz"]}, Path("x.toml"))
    config = resolve(MonthConfig, settings, run, defaults={"seed": 1, "min_plies": 4})
    assert (config.min_context, config.seed, config.min_plies) == (11, 3, 4)
    assert config.time_controls == ("blitz",)


def test_a_value_that_the_asset_fills_in_is_not_read_from_the_file() -> None:
    settings = Settings({"names": ("x", "y"), "drop": "d"}, Path("x.toml"))
    filled = {"names": ("a", "b")}
    assert resolve(MergeConfig, settings, launchpad(MergeConfig)(), filled_in=filled).names == (
        "a",
        "b",
    )


def test_values_that_do_not_fit_together_name_their_file() -> None:
    settings = Settings({"train_ratio": 0.95}, Path("/root/gristmill.toml"))
    rule = r"sum to 0 .. 1 \(given: train_ratio = 0.95\)"
    with pytest.raises(BadInput, match=rf"^/root/gristmill.toml: .*{rule}"):
        resolve(MonthConfig, settings, launchpad(MonthConfig)())
    with pytest.raises(BadInput, match=r"^configuration: .*train_ratio = 0.95, seed = 5"):
        resolve(MonthConfig, settings, launchpad(MonthConfig)(seed=5))
    with pytest.raises(BadInput, match=r"^configuration: seed = -1: must be"):
        resolve(MonthConfig, Settings({}, Path("x.toml")), launchpad(MonthConfig)(seed=-1))


def test_a_whole_number_in_a_file_or_in_the_launchpad_is_the_equal_float() -> None:
    run = launchpad(KDConfig, leave_out=["vocabulary"])
    place = {"vocabulary": Path("v")}
    of_file = resolve(KDConfig, Settings({"valid_fraction": 1}, Path("x")), run(), filled_in=place)
    chosen = resolve(KDConfig, Settings({}, Path("x")), run(valid_fraction=1), filled_in=place)
    assert repr(of_file.valid_fraction) == repr(chosen.valid_fraction) == "1.0"
