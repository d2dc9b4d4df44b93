"""One set of choices for all configs of a month."""

import pytest

from gristmill.chess import (
    MonthConfig,
    ValidateConfig,
)


def test_one_config_for_the_month() -> None:
    month = MonthConfig(min_context=10, min_target=2, seed=3, cache_cap=6, legacy_cap=9, workers=2)
    assert month.game().min_context == month.cache().min_context == month.splice().min_context == 10
    assert month.cache().contract() == {
        "min_context": 10, "min_target": 2, "max_samples_per_game": 6, "seed": 3
    }  # fmt: skip
    assert month.splice().max_samples_per_game == 9
    assert month.validate().workers == 2
    assert (MonthConfig().cache_cap, MonthConfig().legacy_cap, MonthConfig().legacy) == (0, 8, True)
    for bad in ({"min_context": 0}, {"min_target": 0}, {"train_ratio": 0.9, "val_ratio": 0.2}):
        with pytest.raises(ValueError, match=r"min_context|min_target|ratio"):
            MonthConfig(**bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time_controls"):
        ValidateConfig(time_controls=("slow",))
