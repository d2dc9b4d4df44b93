"""One set of choices for all configs of a month."""

from dataclasses import replace
from typing import Annotated, Any, get_origin

import pytest

from gristmill.chess import GameConfig, MonthConfig, SpliceConfig, ValidateConfig, code
from gristmill.chess import config as configs
from gristmill.code.digest import definitions_of
from gristmill.provenance.record import config_fields


def test_one_config_for_the_month_and_the_older_name_of_games_in_fingerprints():
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
    for kind in (GameConfig, SpliceConfig):
        older = [
            config_fields(kind(games=games), affecting_output=True)["allow_draws"]  # type: ignore[arg-type]
            for games in ("decisive", "finished", "all")
        ]
        assert older == [False, True, None]


@pytest.mark.parametrize("config", [GameConfig, SpliceConfig, MonthConfig])
def test_allow_draws_is_the_older_name_of_games(config):
    for older, games in ((True, "finished"), (False, "decisive"), (None, "decisive")):
        assert config(allow_draws=older) == config(games=games)
        assert config(allow_draws=older, **({"games": games} if older else {})).games == games
    # What was made from a config can be stated again with it.
    for games in ("decisive", "finished", "all"):
        assert replace(config(games=games), seed=8).games == games
        assert replace(config(), games=games) == config(games=games)
        assert replace(config(games="all"), games=games) == config(games=games)
    assert replace(config(), allow_draws=True) == config(games="finished")
    assert MonthConfig(games="all").splice().games == MonthConfig(games="all").game().games == "all"


@pytest.mark.parametrize(
    ("older", "games", "meant"),
    [
        (True, "decisive", "finished"),
        (True, "all", "finished"),
        (False, "finished", "decisive"),
        (False, "all", "decisive"),
    ],
)
def test_games_and_its_older_name_must_agree(older, games, meant):
    with pytest.raises(ValueError, match="allow_draws") as caught:
        MonthConfig(games=games, allow_draws=older)
    assert str(caught.value) == (
        f'games = "{games}" and allow_draws = {str(older).lower()}, which means games = "{meant}", '
        "disagree: leave allow_draws out"
    )


@pytest.mark.parametrize("builder", [code.GAMES, code.SPLICES, code.CACHE, code.VALID])
def test_the_help_of_a_field_is_no_code_of_a_builder(builder):
    reached = {p.name for p in definitions_of(builder.entries) if p.module == configs.__name__}
    assert reached and "MonthConfig" not in reached
    assert not [name for name in reached if get_origin(getattr(configs, name)) is Annotated]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        *((kind, "drop_duplicates", True) for kind in (GameConfig, SpliceConfig, MonthConfig)),
        *((kind, "opening_plies", 9) for kind in (GameConfig, SpliceConfig, MonthConfig)),
        *((kind, "games", "finished") for kind in (GameConfig, SpliceConfig, MonthConfig)),
        *((ValidateConfig, *each) for each in (("drop_bots", True), ("titles", ("GM",)))),
        (ValidateConfig, "events", ("x",)),
    ],
)
def test_a_setting_of_later_counts_for_the_fingerprint_only_where_it_is_set(kind, field, value):
    assert field not in config_fields(kind(), affecting_output=True)
    assert field in config_fields(kind(**{field: value}), affecting_output=True)
    month: Any = MonthConfig(**{field: value})
    for made in (month.game(), month.splice(), month.validate()):
        assert not isinstance(made, kind) or getattr(made, field) == value


@pytest.mark.parametrize("kind", [GameConfig, SpliceConfig, MonthConfig])
@pytest.mark.parametrize("plies", [0, 201])
def test_the_length_of_the_opening_has_limits(kind, plies):
    with pytest.raises(ValueError, match=r"opening_plies = .*from 1 to 200"):
        kind(opening_plies=plies)
