"""The code location loads, is complete, pays for nothing heavy, and follows conditions."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.family import Family
from definitions import build_defs, followers_sensor
from gristmill.corpora.corpus import PARTITIONS
from resources import Lake
from tests.paths import ran

HEAVY = [
    *("numpy", "torch", "megatron", "polars", "numba", "pyarrow", "pandas", "openai_harmony"),
    "tiktoken",
]


@pytest.fixture(scope="module")
def specs() -> list[dg.AssetSpec]:
    return list(build_defs().resolve_all_asset_specs())


def test_definitions_load_and_the_target_of_followers_is_every_asset_with_a_condition():
    dg.Definitions.validate_loadable(build_defs())
    repository = build_defs().get_repository_def()
    sensor = repository.get_sensor_def("followers")
    graph = repository.asset_graph
    assert sensor.asset_selection.resolve(graph) == {
        key for key in graph.get_all_asset_keys() if graph.get(key).automation_condition is not None
    }
    assert not any(graph.get(key).automation_condition for key in graph.asset_check_keys)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_every_asset_is_presentable(specs):
    for spec in specs:
        name = spec.key.to_user_string()
        assert spec.description, name
        assert spec.group_name != "default", name
        assert spec.kinds, name
        assert spec.owners, name


def test_every_asset_that_is_built_has_a_code_version():
    graph = build_defs().resolve_asset_graph()
    for key in graph.materializable_asset_keys:
        assert graph.get(key).code_version, key


@pytest.mark.slow
def test_loading_imports_nothing_heavy_and_no_job_brings_a_warning():
    script = (
        "import sys, json, definitions; made = definitions.build_defs().get_repository_def();"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]));"
        "made.get_all_jobs()"
    )
    done = ran([sys.executable, "-c", script], check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert done.stderr == ""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("macroxue_drops", ["d1"])
        made.add_dynamic_partitions("macroxue_pools", ["p"])
        yield made


def test_a_pack_that_was_built_starts_no_run_of_a_check(instance):
    """The sensor `check_states` looks at the pools, without a run."""

    def tick(cursor: Any = None) -> Any:
        return dg.evaluate_automation_conditions(build_defs(), instance, cursor=cursor)

    first = tick()
    assert first.total_requested == 0
    instance.report_runless_asset_event(
        dg.AssetMaterialization(dg.AssetKey(["macroxue", "pack"]), partition="d1")
    )
    assert tick(first.cursor).total_requested == 0


def test_an_asset_of_another_family_is_followed():
    @dg.asset(automation_condition=dg.AutomationCondition.eager())
    def follows() -> None: ...

    @dg.asset
    def does_not_follow() -> None: ...

    assets = [follows, does_not_follow]
    sensor = followers_sensor([Family(assets=assets[:1]), Family(assets[1:])])
    graph = dg.Definitions(assets=assets).resolve_asset_graph()
    assert sensor.asset_selection.resolve(graph) == {follows.key}


@pytest.mark.parametrize(
    ("name", "job", "cron", "is_on"),
    [
        ("chess_elite_months", "chess_month", "0 4 * * 1", False),
        ("reasoning_daily_report", "reasoning_report", "0 5 * * *", False),
        ("reasoning_weekly_audits", "reasoning_audit_sample", "0 6 * * 1", False),
        ("prune_nightly", "prune", "30 3 * * *", True),
    ],
)
def test_a_schedule_that_starts_builds_is_off_until_it_is_switched_on(name, job, cron, is_on):
    schedule = build_defs().resolve_schedule_def(name)
    status = dg.DefaultScheduleStatus
    assert schedule.default_status is (status.RUNNING if is_on else status.STOPPED)
    assert (schedule.job_name, schedule.cron_schedule) == (job, cron)
    assert schedule.execution_timezone == "UTC"


NORMALIZED, HARMONY = "reasoning/normalized", "synth/harmony"
FOLLOWED: dict[str, list[tuple[str, str]]] = {
    "reasoning": [  # after each split, whatever the others do
        ("", ""),
        (f"{NORMALIZED} gsm8k__test", "reasoning/raw_manifest"),
        ("reasoning/raw_manifest", ""),
        ("reasoning/gpt2_shards gsm8k__test", "reasoning/manifest"),
        # A split that is built after the manifest, and seen by the same tick.
        ("reasoning/manifest; reasoning/gpt2_shards wiqa__test", "reasoning/manifest"),
        ("reasoning/manifest", ""),
        (f"{NORMALIZED} wiqa__test", "reasoning/raw_manifest"),
        ("", ""),
    ],
    "synth": [  # once all shards stand, and each manifest after that of what it is made from
        ("tokenizers/o200k_harmony", ""),
        (f"{HARMONY} 00 01 02", ""),
        (f"{HARMONY} 03", "synth/harmony_manifest"),
        ("synth/harmony_manifest", ""),
        ("synth/kd_shards 00 01 02 03", "synth/kd_manifest"),
        ("synth/kd_manifest", ""),
    ],
}
"""By family: what is built, step by step, and the manifest that is asked for then."""


@pytest.mark.parametrize("family", FOLLOWED)
def test_manifests_follow_what_they_list(family, instance, tmp_path):
    defs = build_defs({"lake": Lake(data_root=str(tmp_path))})
    sensor = defs.get_repository_def().get_sensor_def("followers")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    graph, cursor = defs.resolve_asset_graph(), None
    keys = [key for key in graph.materializable_asset_keys if key.path[-1].endswith("manifest")]
    instance.add_dynamic_partitions("reasoning_splits", list(PARTITIONS))
    for built, expected in FOLLOWED[family]:
        for asset, *partitions in (each.split() for each in built.split("; ") if each):
            for partition in partitions or [None]:
                event = dg.AssetMaterialization(asset.split("/"), partition=partition)
                instance.report_runless_asset_event(event)
        found = dg.evaluate_automation_conditions(defs=defs, instance=instance, cursor=cursor)
        cursor = found.cursor
        asked = [key.to_user_string() for key in keys if found.get_num_requested(key)]
        assert asked == [expected] * bool(expected), built
