"""The order in which the values of a config are looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.chess.config import MonthConfig
from gristmill.contract import BadInput
from gristmill.macroxue.config import MergeConfig
from gristmill.settings.resolve import resolve
from gristmill.settings.tables import Settings


def test_values_come_from_the_run_then_the_file_then_the_asset() -> None:
    run = {"min_context": 11}
    settings = Settings({"min_context": 9, "seed": 3, "time_controls": ["blitz"]}, Path("x.toml"))
    config = resolve(MonthConfig, settings, run, defaults={"seed": 1, "min_plies": 4})
    assert (config.min_context, config.seed, config.min_plies) == (11, 3, 4)
    assert config.time_controls == ("blitz",)


def test_a_value_that_the_asset_fills_in_is_not_read_from_the_file() -> None:
    settings = Settings({"names": ("x", "y"), "drop": "d"}, Path("x.toml"))
    filled = {"names": ("a", "b")}
    assert resolve(MergeConfig, settings, {}, filled_in=filled).names == (
        "a",
        "b",
    )


def test_values_that_do_not_fit_together_name_their_file() -> None:
    settings = Settings({"train_ratio": 0.95}, Path("/root/gristmill.toml"))
    rule = r"sum to 0 .. 1 \(given: train_ratio = 0.95\)"
    with pytest.raises(BadInput, match=rf"^/root/gristmill.toml: .*{rule}"):
        resolve(MonthConfig, settings, {})
    with pytest.raises(BadInput, match=r"^configuration: .*train_ratio = 0.95, seed = 5"):
        resolve(MonthConfig, settings, {"seed": 5})
    with pytest.raises(BadInput, match=r"^configuration: seed = -1: must be"):
        resolve(MonthConfig, Settings({}, Path("x.toml")), {"seed": -1})
