"""What files and the launchpad choose, and what pages say of it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import dagster as dg
import pytest
import yaml

from assets import choices
from assets.chess import ChessMonth
from assets.choices import chosen_values, launchpad, launchpad_text, place_in_run
from assets.macroxue import FAMILY
from definitions import build_defs
from gristmill import asset as gristmill_asset
from gristmill import families
from gristmill.chess.config import CacheConfig, MonthConfig
from gristmill.contract import BadInput
from gristmill.macroxue.config import MergeConfig, PackConfig
from gristmill.macroxue.samples import write_drop
from gristmill.provenance import Record
from gristmill.puzzles.config import BUILT_IN, SudokuConfig
from gristmill.reasoning.config import NormalizeConfig, TokenizeConfig
from gristmill.settings.fields import Help, Unit, equal, rules_of
from gristmill.settings.tables import Settings, resolve
from gristmill.synth.config import KDConfig
from resources import Lake
from tests.assets.helpers import built, failure, materialized

PACK, PLACE = "macroxue/pack", "macroxue/packs/d6"


def record(asset: str, config: Any, artifact: str = PLACE, partition: str = "d6") -> Record:
    """As much of a record as choices read."""
    values = config if isinstance(config, Mapping) else asdict(config)
    return SimpleNamespace(  # type: ignore[return-value]
        asset=asset, partition=partition, artifact=artifact, config=dict(values)
    )


def settings(lake: Lake, text: str, drop: str = "") -> Path:
    folder = lake.root / drop
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gristmill.toml").write_text(text)
    return folder / "gristmill.toml"


ALIGNED, PACKED = PackConfig(), PackConfig(layout="packed46")


def test_the_file_that_is_read_is_the_one_that_is_named(lake):
    root = settings(lake, '[macroxue.pack]\nlayout = "packed46"\n')
    (note,) = choices.config_notes(lake, record(PACK, ALIGNED))
    assert f'{root} gives "packed46"' in note.found
    drop = settings(lake, "[macroxue.pack]\nshard_rows = 0\n", "drops/macroxue/d6")
    (note,) = choices.config_notes(lake, record(PACK, PACKED))
    assert f'write `layout = "packed46"` under [macroxue.pack] in {drop}' in note.found


def test_each_field_that_differs_has_a_line_and_workers_have_none(lake):
    built = record(PACK, PackConfig(layout="packed46", shard_rows=7, workers=3))
    found = [note.found.split(",")[0] for note in choices.config_notes(lake, built)]
    assert found == ['built with layout = "packed46"', "built with shard_rows = 7"]
    assert list(choices.config_notes(lake, record("corn/mill", {"layout": "a"}))) == []


def test_a_wrong_file_is_a_note(lake):
    settings(lake, "[macroxue.pack]\nlayout = 3\n")
    (note,) = choices.config_notes(lake, record(PACK, PACKED))
    assert "[macroxue.pack] layout = 3: must be one of" in note.found


def test_what_stands_is_noteworthy_until_it_is_what_files_give(lake):
    assert list(choices.config_notes(lake, record(PACK, ALIGNED))) == []
    (note,) = choices.config_notes(lake, record(PACK, PACKED))
    assert (note.law, note.where) == ("config", PLACE)
    assert note.found == (
        'built with layout = "packed46", and the default gives "aligned48", which the next build '
        'takes. To keep "packed46", write `layout = "packed46"` under [macroxue.pack] in '
        f"{lake.root}/gristmill.toml"
    )
    settings(lake, '[macroxue.pack]\nlayout = "packed46"\n')
    assert list(choices.config_notes(lake, record(PACK, PACKED))) == []
    assert list(choices.config_notes(lake, record("tokenizers/gpt2", {"name": "x"}))) == []


def test_a_pool_is_compared_with_its_own_file_before_that_of_the_data_root(lake):
    file = lake.inbox("pools") / "both.toml"
    file.parent.mkdir(parents=True)
    file.write_text('members = ["a", "b"]\n[macroxue.pool]\nshard_rows = 9\n')
    settings(lake, '[macroxue.pool]\nshard_rows = 5\nlayout = "packed46"\n')
    built = record(
        "macroxue/pool",
        MergeConfig(names=("a", "b"), layout="packed46", shard_rows=9),
        partition="both",
    )
    assert list(choices.config_notes(lake, built)) == []
    built.config["shard_rows"] = 5
    (note,) = choices.config_notes(lake, built)
    assert f"write `shard_rows = 5` under [macroxue.pool] in {file}" in note.found


def test_a_month_is_compared_by_the_names_of_its_table(lake):
    settings(lake, "[chess.month]\nlegacy_cap = 3\ncache_cap = 4\nmin_context = 9\n")
    month = MonthConfig(legacy_cap=3, cache_cap=4)
    splices = record("chess/splice_dataset", month.splice(), partition="2024-01")
    (note,) = choices.config_notes(lake, splices)
    assert "built with min_context = 8" in note.found
    cache = record("chess/splice_cache", month.cache(), partition="2024-01")
    assert list(choices.config_notes(lake, cache)) == []  # min_context is that of the dataset
    cache.config["max_samples_per_game"] = 1
    (note,) = choices.config_notes(lake, cache)
    assert "write `cache_cap = 1` under [chess.month]" in note.found
    assert set(CacheConfig().contract()) <= set(cache.config)


@pytest.mark.parametrize(
    ("text", "games"),
    [("", "decisive"), ("allow_draws = true", "finished"), ('games = "all"', "all")],
)
def test_a_month_knows_its_games_by_one_name(lake, text, games):
    settings(lake, f"[chess.month]\n{text}\n")
    for asset, config in (
        ("chess/game_dataset", MonthConfig(games=games).game()),
        ("chess/splice_dataset", MonthConfig(games=games).splice()),
    ):
        built = record(asset, config, partition="2024-01")
        assert list(choices.config_notes(lake, built)) == []
        assert choices.config_rows(built).get("config/games") == (games if text else None)
        assert "config/allow_draws" not in choices.config_rows(built)
        built.config["games"] = "finished" if games == "all" else "all"
        (note,) = choices.config_notes(lake, built)
        assert f'built with games = "{built.config["games"]}", and ' in note.found
        assert f'gives "{games}", which the next build takes' in note.found


def test_a_split_is_compared_with_the_corpora_that_concern_it(lake):
    settings(lake, '[reasoning.gpt2_shards]\nallow = ["reveal"]\n')
    config = asdict(TokenizeConfig(Path("tokenizer/x")))
    other = record("reasoning/gpt2_shards", config, partition="gsm8k__train")
    assert list(choices.config_notes(lake, other)) == []
    own = record("reasoning/gpt2_shards", {**config, "allow": []}, partition="reveal__test")
    (note,) = choices.config_notes(lake, own)
    assert "built with allow = [], and" in note.found and 'gives ["reveal"]' in note.found


def test_a_message_that_is_off_is_an_empty_text_and_a_field_without_a_default_is_left_out(lake):
    built = record("synth/harmony", {"developer": None}, partition="00")
    (note,) = choices.config_notes(lake, built)
    assert 'write `developer = ""` under [synth.harmony]' in note.found
    settings(lake, '[synth.harmony]\ndeveloper = ""\n')
    assert list(choices.config_notes(lake, built)) == []
    settings(lake, "[puzzles.sudoku]\nmin_difficulty = 5\n")
    name = next(name for name, recipe in BUILT_IN.items() if recipe.kind == "sudoku")
    config = SudokuConfig(**BUILT_IN[name].settings)
    (note,) = choices.config_notes(lake, record("puzzles/sudoku", config, partition=name))
    assert "leave min_difficulty out of [puzzles.sudoku]" in note.found


def test_a_dataset_is_kept_by_its_recipe(lake):
    name, recipe = next((n, r) for n, r in BUILT_IN.items() if "num_aug" in r.settings)
    file = lake.inbox("puzzles/recipes") / f"{name}.toml"
    built = record(recipe.asset, {**recipe.settings, "num_aug": 3}, partition=name)
    (note,) = choices.config_notes(lake, built)
    assert f"the built-in recipe {name} gives {recipe.settings['num_aug']}" in note.found
    assert f"write `num_aug = 3` under [settings] in {file}, a recipe in place" in note.found
    file.parent.mkdir(parents=True)
    sources = ", ".join(f'"{source}"' for source in recipe.sources)
    file.write_text(f'kind = "{recipe.kind}"\nsources = [{sources}]\n[settings]\nnum_aug = 4\n')
    found = {item.found.split(" = ")[0]: item.found for item in choices.config_notes(lake, built)}
    assert f"{file} gives 4" in found["built with num_aug"]
    assert found["built with num_aug"].endswith(f"[settings] in {file}")


def test_the_config_that_matters_is_shown_and_constants_are_no_numbers():
    assert choices.config_rows(record(PACK, ALIGNED)) == {"config/layout": "aligned48"}
    rows = choices.config_rows(record(PACK, PackConfig(shard_rows=7, workers=4)))
    assert rows == {"config/layout": "aligned48", "config/shard_rows": "7"}
    config = asdict(TokenizeConfig(Path("x"), path_prefix="p" * 9000, allow=("reveal",)))
    rows = choices.config_rows(record("reasoning/gpt2_shards", config))
    assert (rows["config/seq_len"], rows["config/allow"]) == ("2048", '["reveal"]')
    assert len(rows["config/path_prefix"]) < 200
    assert choices.config_rows(record("corn/mill", {"layout": "x"})) == {}


def test_values_of_the_launchpad_are_refused_for_all_assets_of_the_run():
    config = {
        "ops": {
            "macroxue__pack": {"config": {"shard_rows": -1, "layout": "packed46"}},
            "macroxue__values": {"config": {"gamma": None}},
            "macroxue__pool": {},
            "other": {"config": {"shard_rows": -1}},
        },
        "resources": {"chess_month": {"config": {"train_ratio": 1.5, "seed": 3}}},
    }
    assert choices.refused_values(config) == [
        "macroxue/pack: shard_rows = -1: must be a whole number, 0 or more",
        "chess_month: train_ratio = 1.5: must be a finite number from 0 to 1",
    ]
    assert choices.refused_values({}) == []


def test_files_are_refused_for_the_assets_that_read_them(lake):
    file = settings(lake, "[chess.month]\ntrain_ratio = 0.95\n[macroxue.pack]\nshard_rows = -1\n")
    assert choices.refused_files(lake, ["macroxue/values", "tokenizers/gpt2"]) == []
    (pack,) = choices.refused_files(lake, [PACK])
    assert pack.startswith(f"{file}: [macroxue.pack] shard_rows = -1: must be")
    (month,) = choices.refused_files(lake, ["chess/valid_games", "chess/game_dataset"])
    assert month.startswith(f"{file}: [chess.month] train_ratio 0.95 and val_ratio 0.1 must sum")


def test_every_asset_with_a_launchpad_has_its_choices():
    from definitions import build_defs

    with_config = {
        asset.key.to_user_string()
        for asset in build_defs().assets or []
        if isinstance(asset, dg.AssetsDefinition)
        and (
            getattr(asset.op.config_schema.config_type, "fields", None)
            or "chess_month" in asset.required_resource_keys
        )
    }
    assert set(choices._known()) == with_config


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Any:
    def materialize(**config: Any) -> dg.ExecuteInProcessResult:
        return materialized(built(PACK), FAMILY.assets, lake, instance, "d6", **config)

    write_drop(lake.inbox("macroxue") / "d6", seed=3, games=2, max_moves=40, depth=6)
    instance.add_dynamic_partitions("macroxue_drops", ["d6"])
    return materialize


def test_a_number_out_of_its_range_fails_the_run_before_an_input_is_read(build, monkeypatch):
    monkeypatch.setattr(Lake, "raw_inputs", lambda *_: pytest.fail("an input was hashed"))
    monkeypatch.setattr(Lake, "ready_drop", lambda *_: pytest.fail("the drop was looked at"))
    refused = failure(build(shard_rows=-1, quarantine_share=2.0))
    assert "not started, change it in the launchpad" in refused
    assert "macroxue/pack: shard_rows = -1: must be a whole number, 0 or more" in refused
    assert "quarantine_share = 2.0: must be a finite number from 0 to 1" in refused


def test_given_settings_become_the_config_of_a_run_as_the_launchpad_has_it():
    pack = choices.given_values(PACK, ["layout=packed46", "shard_rows=7"])
    assert choices.run_config(PACK, pack) == {
        "ops": {"macroxue__pack": {"config": {"layout": "packed46", "shard_rows": 7}}}
    }
    month = choices.given_values("chess/valid_games", ['time_controls=["blitz"]'])
    assert month == {"time_controls": ("blitz",)}
    assert choices.run_config("chess/valid_games", month) == {
        "resources": {"chess_month": {"config": {"time_controls": ["blitz"]}}}
    }
    assert choices.given_values("tokenizers/gpt2", []) == {}
    assert choices.run_config("tokenizers/gpt2", {}) == {}


@pytest.mark.parametrize(
    ("asset", "word", "reason"),
    [
        ("reasoning/manifest", "a=1", "reasoning/manifest has no settings: leave --set out"),
        ("chess/splice_cache", "seed=1", "seed: is not allowed: chess/splice_cache takes it from"),
        ("synth/harmony", "num_shards=1", "num_shards: is not allowed: synth/harmony takes it"),
        ("macroxue/pool", 'names=["a"]', "names: is not allowed: "),
        ("macroxue/pack", "layout=packed48", 'layout = "packed48": must be one of "aligned48"'),
    ],
)
def test_a_setting_that_an_asset_does_not_take_is_refused(asset, word, reason):
    with pytest.raises(BadInput, match=re.escape(reason)):
        choices.given_values(asset, [word])


@dataclass(frozen=True)
class Example:
    layout: Annotated[Literal["wide", "narrow"], Help("The rows' form.")] = "wide"
    rows: Annotated[int, Unit("rows")] = 3


def _described(config: type[Any], name: str, **options: Any) -> str:
    return str(launchpad(config, **options).model_fields[name].description)


def test_a_field_shows_its_help_its_choices_its_unit_and_the_default_of_the_asset():
    expected = 'The rows\' form. Must be one of "wide", "narrow". Default: "wide".'
    assert _described(Example, "layout") == expected
    expected = "Must be a whole number of at most 64 bits. Unit: rows. Default: 3."
    assert _described(Example, "rows") == expected
    assert _described(Example, "rows", defaults={"rows": 7}).endswith("Default: 7.")


@pytest.mark.parametrize("asset", ["macroxue/pack", "synth/harmony", "chess/valid_games"])
def test_the_text_to_paste_has_every_field_with_its_sentence_and_default(whole_graph, asset):
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


def test_the_page_of_an_asset_with_settings_has_the_text_to_paste():
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


def test_every_field_of_every_launchpad_says_what_it_is(launchpads):
    tables = families.tables()
    without_launchpad = {
        *("alerts", "history", "inbox", "leaks", "mirror", "run", "tokenizers/placed"),
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
def test_a_wrong_choice_type_or_key_is_refused_before_a_run_starts(whole_graph, op, values, reason):
    group = "resources" if op == "chess_month" else "ops"
    with pytest.raises(dg.DagsterInvalidConfigError, match=re.escape(reason)):
        dg.validate_run_config(whole_graph, {group: {op: {"config": values}}})


def test_right_choices_are_accepted_and_reach_the_config_as_texts(whole_graph):
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


def test_a_whole_number_in_a_file_or_in_the_launchpad_is_the_equal_float():
    run = launchpad(KDConfig, leave_out=["vocabulary"])
    place = {"vocabulary": Path("v")}
    of_file = resolve(KDConfig, Settings({"valid_fraction": 1}, Path("x")), {}, filled_in=place)
    given = chosen_values(run(valid_fraction=1))
    chosen = resolve(KDConfig, Settings({}, Path("x")), given, filled_in=place)
    assert repr(of_file.valid_fraction) == repr(chosen.valid_fraction) == "1.0"
