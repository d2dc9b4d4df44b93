"""Configs of SYNTH, and which artifact a folder without a record holds."""

from pathlib import Path
from typing import Any

import pytest

from gristmill.provenance import config_fields, recipe
from gristmill.settings.fields import COUNTED_BEFORE, NO_EFFECT, fields_with, rules_of
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.family import asset_of
from gristmill.vocabularies.pinned import O200K, find


def test_the_vocabulary_is_found_in_its_folder(
    vocabulary_root: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KDConfig(vocabulary_root).vocabulary == find(O200K, vocabulary_root)
    monkeypatch.setenv(str(O200K.variable), str(vocabulary))
    assert KDConfig(vocabulary_root).vocabulary == vocabulary
    assert KDConfig(Path("absent")).vocabulary == Path("absent")


@pytest.mark.parametrize(
    "wrong",
    [
        {"reasoning_effort": "High"},
        {"num_shards": 0},
        {"rows_per_group": 0},
        {"metadata_fields": ("nothing", "synth_id")},
        {"metadata_fields": ("language",)},
        {"metadata_fields": ("synth_id", "synth_id")},
    ],
)
def test_a_wrong_harmony_config_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HarmonyConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"valid_fraction": 1.5}, {"valid_fraction": -0.1}, {"bad_rows": -1}, {"workers": -1}]
)
def test_a_wrong_kd_config_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KDConfig(Path("v"), **wrong)  # type: ignore[arg-type]


def test_the_bounds_of_configs_are_allowed_and_bad_rows_count_in_earlier_records() -> None:
    HarmonyConfig(num_shards=1, rows_per_group=1, metadata_fields=("synth_id",))
    for fraction in (0, 1):
        KDConfig(Path("v"), fraction, bad_rows=0, workers=0)
    some, none = KDConfig(Path("v"), bad_rows=7), KDConfig(Path("v"))
    assert recipe("1", some, []) == recipe("1", none, [])
    assert recipe("1", KDConfig(Path("v"), workers=7), []) == recipe("1", none, [])
    assert recipe("1", KDConfig(Path("v"), engine="tiktoken"), []) == recipe("1", none, [])
    assert config_fields(some)["bad_rows"] == 7
    assert recipe("1", KDConfig(Path("v"), max_rows=7), []) != recipe("1", none, [])
    assert fields_with(KDConfig, COUNTED_BEFORE) == ("bad_rows",)


@pytest.mark.parametrize(
    ("caps", "capped"),
    [({}, False), ({"max_rows": 0}, True), ({"max_tokens": 0}, True), ({"max_rows": -2}, False)],
)
def test_a_cap_of_0_is_a_cap_and_a_negative_one_is_none(caps: dict[str, int], capped: bool) -> None:
    assert KDConfig(Path("v"), **caps).capped is capped  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [HarmonyConfig, KDConfig])
def test_every_field_has_a_help_text_and_a_default_among_its_choices(config: Any) -> None:
    for rule in rules_of(config).values():
        assert rule.help.endswith(".")
        assert rule.needed or rule.refusal(rule.default) is None


@pytest.mark.parametrize(
    ("config", "names"),
    [(HarmonyConfig, {"dataset"}), (KDConfig, {"vocabulary", "bad_rows", "engine"})],
)
def test_the_fields_that_change_no_byte(config: Any, names: set[str]) -> None:
    assert set(fields_with(config, NO_EFFECT)) - {"workers"} == names


@pytest.mark.parametrize("fraction", [0, 1])
def test_the_fraction_1_and_the_fraction_1_0_are_one_config(fraction: int) -> None:
    whole, exact = KDConfig(Path("v"), fraction), KDConfig(Path("v"), float(fraction))
    assert recipe("1", whole, []) == recipe("1", exact, [])
    assert repr(config_fields(whole)) == repr(config_fields(exact))


@pytest.mark.parametrize(
    ("files", "asset"),
    [
        (["synth_harmony_shard_00.parquet", "manifest.json"], "synth/harmony"),
        (["trace/trace_00.parquet", "train/shard_00_tokens.bin"], "synth/kd_shards"),
        (["trace/trace_00.parquet", "synth_harmony_shard_00.parquet"], "synth/kd_shards"),
        (["train/shard_00_tokens.idx"], "synth/kd_shards"),
        (["dataset_dict.json", "trace/trace_00.parquet"], "synth/distill"),
        (["trace/readme.txt", "train/shard_00_tokens.bin"], None),
        (["synth_001.parquet"], None),
        ([], None),
    ],
)
def test_a_folder_is_known_by_the_names_of_its_files(tmp_path, files, asset):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert asset_of(tmp_path) == asset
    assert asset_of(tmp_path / "missing") is None
