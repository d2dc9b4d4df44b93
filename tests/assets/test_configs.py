"""Builder configs in the launchpad: what a person reads about each field."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import dagster as dg
import pytest
import yaml

from assets.chess import ChessMonth
from assets.configs import chosen_values, launchpad, launchpad_text, place_in_run
from definitions import build_defs
from gristmill import asset as gristmill_asset
from gristmill import families
from gristmill.macroxue.config import PackConfig
from gristmill.reasoning.config import NormalizeConfig
from gristmill.settings.fields import Help, Unit, equal, rules_of
from gristmill.settings.tables import Settings, resolve
from gristmill.synth.config import KDConfig


@dataclass(frozen=True)
class Example:
    layout: Annotated[Literal["wide", "narrow"], Help("The rows' form.")] = "wide"
    rows: Annotated[int, Unit("rows")] = 3


def _described(config: type[Any], name: str, **options: Any) -> str:
    return str(launchpad(config, **options).model_fields[name].description)


def test_a_field_shows_its_help_its_choices_its_unit_and_its_default() -> None:
    expected = 'The rows\' form. Must be one of "wide", "narrow". Default: "wide".'
    assert _described(Example, "layout") == expected
    expected = "Must be a whole number of at most 64 bits. Unit: rows. Default: 3."
    assert _described(Example, "rows") == expected


def test_a_default_of_the_asset_is_the_one_that_is_shown() -> None:
    assert _described(Example, "rows", defaults={"rows": 7}).endswith("Default: 7.")


@pytest.mark.parametrize("asset", ["macroxue/pack", "synth/harmony", "chess/valid_games"])
def test_the_text_to_paste_has_every_field_with_its_sentence_and_default(
    whole_graph: dg.JobDefinition, asset: str
) -> None:
    declared = gristmill_asset.declared()[asset]
    block = launchpad_text(declared).split("```")[1].removeprefix("yaml\n")
    config = yaml.safe_load(block)
    assert dg.validate_run_config(whole_graph, config)
    kind, name = place_in_run(declared)
    table = declared.settings_table
    rules = {
        key: rule for key, rule in rules_of(table.config).items() if key not in declared.filled_in
    }
    values = config[kind][name]["config"]
    assert list(values) == list(rules)
    said = " ".join(line.strip(" #") for line in block.splitlines() if "#" in line)
    for key, rule in rules.items():
        default = table.defaults.get(key, rule.default)
        assert equal(values[key], default), key
        sentences = replace(rule, default=default).sentences
        assert " ".join(sentences.split()) in said, key


def test_the_page_of_an_asset_with_settings_has_the_text_to_paste() -> None:
    with_text = {
        spec.key.to_user_string()
        for asset in build_defs().assets or []
        for spec in (asset.specs if isinstance(asset, dg.AssetsDefinition) else [])
        if "launchpad" in spec.metadata
    }
    assert with_text == {
        key for key, asset in gristmill_asset.declared().items() if asset.table is not None
    }


def _choices(field_: dg.Field) -> tuple[str, ...]:
    """The values that the UI lists for a field."""
    kind: Any = field_.config_type
    while hasattr(kind, "inner_type"):
        kind = kind.inner_type
    return tuple(kind.config_values)


@pytest.fixture(scope="module")
def whole_graph() -> dg.JobDefinition:
    """The job of all assets, which the launchpad asks about a config."""
    return build_defs().resolve_implicit_global_asset_job_def()


@pytest.fixture(scope="module")
def launchpads() -> dict[str, dict[str, dg.Field]]:
    """The fields that the UI shows, by the table of gristmill.toml that they stand for."""
    found = {}
    for asset in build_defs().assets or []:
        schema = asset.op.config_schema if isinstance(asset, dg.AssetsDefinition) else None
        if shape := getattr(getattr(schema, "config_type", None), "fields", None):
            found[asset.key.to_user_string()] = dict(shape)
    found["chess/month"] = ChessMonth.to_fields_dict()
    return found


def test_every_field_of_every_launchpad_says_what_it_is(
    launchpads: dict[str, dict[str, dg.Field]],
) -> None:
    tables = families.tables()
    without_launchpad = {
        *("alerts", "inbox", "mirror", "run", "tokenizers/placed"),
        *("synth/raw", "chess/collection", "reasoning/sources"),
    }
    chosen = {name for name in tables if not name.startswith("inbox/")} - without_launchpad
    assert set(launchpads) == chosen
    for name, fields in launchpads.items():
        rules = rules_of(tables[name].config)
        settable = set(tables[name].rules(in_root=False)) - {"num_shards"}
        assert settable <= set(fields) <= set(rules), name
        for key, field_ in fields.items():
            rule = replace(rules[key], default=tables[name].defaults.get(key, rules[key].default))
            where = f"{name} {key}"
            assert rule.help.endswith("."), where
            assert field_.description == rule.sentences, where
            assert rule.words in rule.sentences and "Default: " in rule.sentences, where
            if rule.kind in (int, float):
                assert f"Unit: {rule.unit}." in rule.sentences and rule.unit, where
            if rule.choices:
                assert _choices(field_) == rule.choices, where


@pytest.mark.parametrize(
    ("op", "values", "reason"),
    [
        ("macroxue__pack", {"layout": "packed48"}, "not in enum type aligned48 | packed46"),
        ("macroxue__pack", {"layout": 48}, "layout"),
        ("macroxue__pack", {"layouts": "aligned48"}, 'unexpected config entry "layouts"'),
        ("macroxue__pack", {"shard_rows": "many"}, 'Value "many"'),
        ("macroxue__values", {"gamma": "high"}, 'Value "high"'),
        ("reasoning__normalized", {"cleaning": ["boxed", "box"]}, "cleaning[1] not in enum type"),
        ("reasoning__normalized", {"cleaning": "boxed"}, "must be list"),
        ("reasoning__gpt2_shards", {"safetensors": "yes"}, 'Value "yes"'),
        ("synth__harmony", {"reasoning_effort": "most"}, "low | medium | high"),
        ("synth_smoke__kd_shards", {"engine": "fast"}, "auto | tiktoken"),
        ("puzzles__domino", {"augmentation": "both"}, "reversal | modular"),
        ("chess_month", {"time_controls": ["slow"]}, "time_controls[0] not in enum type"),
        ("chess_month", {"split": "random"}, "moves | opening | shuffle"),
    ],
)
def test_a_wrong_choice_type_or_key_is_refused_before_a_run_starts(
    whole_graph: dg.JobDefinition, op: str, values: dict[str, Any], reason: str
) -> None:
    group = "resources" if op == "chess_month" else "ops"
    with pytest.raises(dg.DagsterInvalidConfigError, match=re.escape(reason)):
        dg.validate_run_config(whole_graph, {group: {op: {"config": values}}})


def test_right_choices_are_accepted_and_reach_the_config_as_texts(
    whole_graph: dg.JobDefinition,
) -> None:
    for op, values in (
        ("macroxue__pack", {"layout": "packed46", "shard_rows": 5}),
        ("macroxue__pack", {"layout": None}),
        ("reasoning__normalized", {"cleaning": ["boxed", "final_line"]}),
    ):
        assert dg.validate_run_config(whole_graph, {"ops": {op: {"config": values}}})
    run = launchpad(PackConfig)(layout="packed46")
    assert type(chosen_values(run)["layout"]) is str
    run = launchpad(NormalizeConfig)(cleaning=["boxed"])
    assert [type(item) for item in chosen_values(run)["cleaning"]] == [str]
    config = resolve(NormalizeConfig, Settings({}, Path("x.toml")), chosen_values(run))
    assert config == NormalizeConfig(cleaning=("boxed",))


def test_a_whole_number_in_a_file_or_in_the_launchpad_is_the_equal_float() -> None:
    run = launchpad(KDConfig, leave_out=["vocabulary"])
    place = {"vocabulary": Path("v")}
    of_file = resolve(KDConfig, Settings({"valid_fraction": 1}, Path("x")), {}, filled_in=place)
    given = chosen_values(run(valid_fraction=1))
    chosen = resolve(KDConfig, Settings({}, Path("x")), given, filled_in=place)
    assert repr(of_file.valid_fraction) == repr(chosen.valid_fraction) == "1.0"
