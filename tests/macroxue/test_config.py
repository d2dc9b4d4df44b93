"""The configs: help texts, choices and bounds."""

import pytest

from gristmill.macroxue import MergeConfig, PackConfig, ValueConfig
from gristmill.settings.fields import NO_EFFECT, fields_with, rules_of

CONFIGS = (PackConfig, MergeConfig, ValueConfig)


@pytest.mark.parametrize("config", CONFIGS)
def test_each_field_has_a_help_text_that_names_its_choices(config):
    for rule in rules_of(config).values():
        assert rule.help.endswith(".")
        for choice in rule.choices:
            assert f"{choice}:" in rule.help, f"{config.__name__}.{rule.name}: {choice}"


def test_only_workers_leave_the_output_as_it_is():
    unused = {
        (config.__name__, name) for config in CONFIGS for name in fields_with(config, NO_EFFECT)
    }
    assert unused == {("PackConfig", "workers"), ("MergeConfig", "workers")}


@pytest.mark.parametrize(
    ("configs", "name", "allowed", "refused"),
    [
        (CONFIGS[:2], "layout", ["aligned48", "packed46"], ["packed48", ""]),
        (CONFIGS[:2], "shard_rows", [0, 1], [-1]),
        (CONFIGS[:2], "enum_form", ["list", "object"], ["dict"]),
        (CONFIGS[:2], "game_laws", ["refuse", "warn"], ["ignore"]),
        (CONFIGS[:2], "workers", [0, 1], [-1]),
        ([PackConfig], "on_error", ["strict", "quarantine"], ["warn"]),
        ([PackConfig], "quarantine_share", [0, 1, 0.5], [-0.001, 1.001, float("nan")]),
        ([MergeConfig], "names", [(), ("a", "b")], [("a", "a"), ("a", ""), ("a/b", "c")]),
        ([ValueConfig], "gamma", [0, 1.5], [-0.001, float("nan"), float("inf")]),
        ([ValueConfig], "reward_scale", [0.001, 2], [0, -1, float("nan"), float("inf")]),
        ([ValueConfig], "epsilon", [0, 1], [-0.001, float("nan"), float("inf")]),
        ([ValueConfig], "compat", ["none", "reference"], ["original"]),
    ],
)
def test_values_up_to_their_bounds_are_allowed(configs, name, allowed, refused):
    for config in configs:
        for value in allowed:
            assert getattr(config(**{name: value}), name) == value
        for value in refused:
            with pytest.raises(ValueError, match=name):
                config(**{name: value})
