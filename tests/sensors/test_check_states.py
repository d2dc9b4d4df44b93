"""The sensor `check_states`: what checks show stays true after a kill, and as packs change."""

import shutil
from pathlib import Path

import dagster as dg
import pytest

import definitions
from assets.checking.verdicts import Verdict, opened
from assets.macroxue import FAMILY
from gristmill.macroxue.samples import write_drop
from resources import Lake
from sensors.check_states import check_states
from tests.assets.helpers import built, materialized

pack, pool = built("macroxue/pack"), built("macroxue/pool")
PACK = pack.key
MEMBERS = dg.AssetCheckKey(pool.key, "pool_members_current")
TRUE = "every check shows what it last found"
NOTEWORTHY = dg.AssetCheckKey(PACK, "noteworthy")


def looked(instance: dg.DagsterInstance, lake: Lake, cursor: str | None) -> tuple[str, str]:
    """What a look of the sensor says, and its next cursor."""
    context = dg.build_sensor_context(instance=instance, resources={"lake": lake}, cursor=cursor)
    result = check_states(context)
    assert isinstance(result, dg.SkipReason)
    return str(result.skip_message), str(context.cursor)


def tick(instance: dg.DagsterInstance, lake: Lake, cursor: str | None = None) -> str:
    return looked(instance, lake, cursor)[0]


@pytest.mark.parametrize("cursor", ["yesterday", "[]", "7", "null", "[" * 100_000])
def test_a_cursor_that_a_person_typed_counts_as_none(instance, tmp_path, cursor):
    assert tick(instance, Lake(data_root=str(tmp_path)), cursor) == TRUE


def test_checks_of_a_killed_run_show_what_stood(instance, tmp_path):
    lake = Lake(data_root=str(tmp_path))
    instance.add_dynamic_partitions("macroxue_drops", ["d1", "d2"])
    with opened(tmp_path) as verdicts:
        verdicts.register_all("macroxue/pack", {})
        verdicts.keep("macroxue/pack", "noteworthy", [Verdict("d1", "", "odd", "know it")])
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={PACK}), tags={"dagster/partition": "d2"}
    )
    assert tick(instance, lake) == TRUE  # it is under way
    instance.report_run_failed(run)
    said = tick(instance, lake)
    assert "reported again: " in said
    assert "macroxue/pack:noteworthy" in said
    storage = instance.event_log_storage
    shown = storage.get_latest_asset_check_execution_by_key([NOTEWORTHY])[NOTEWORTHY].evaluation
    assert shown is not None
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert tick(instance, lake) == TRUE
    instance.delete_dynamic_partition("macroxue_drops", "d1")
    assert tick(instance, lake) == "reported again: macroxue/pack:noteworthy"


class Pools:
    """A pool `p` of the packs `d1` and `d2`, another pack `d3`, and a sensor with its cursor."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.lake, self.instance, self.cursor = Lake(data_root=str(root)), instance, ""
        for number, key in enumerate(("d1", "d2", "d3")):
            self.build(key, number)
        file = self.lake.inbox("pools") / "p.toml"
        file.parent.mkdir(parents=True)
        file.write_text('members = ["d1", "d2"]\n')
        self.materialize(pool, "p")

    def build(self, key: str, seed: int) -> None:
        """Build the pack of a drop that is exchanged for the games of a seed."""
        folder = self.lake.inbox("macroxue") / key
        shutil.rmtree(folder, ignore_errors=True)
        write_drop(folder, seed=seed, games=1, max_moves=30, depth=6)
        self.materialize(pack, key)

    def materialize(self, asset: dg.AssetsDefinition, key: str) -> None:
        self.instance.add_dynamic_partitions(str(asset.partitions_def.name), [key])  # type: ignore[union-attr]
        assert materialized(asset, FAMILY.assets, self.lake, self.instance, key).success

    def tick(self) -> str:
        said, self.cursor = looked(self.instance, self.lake, self.cursor)
        return said

    def shown(self) -> dg.AssetCheckEvaluation | None:
        storage = self.instance.event_log_storage
        records = storage.get_latest_asset_check_execution_by_key([MEMBERS])
        return records[MEMBERS].evaluation if MEMBERS in records else None


def test_pools_are_checked_without_a_run_after_a_pack_was_built(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    assert [pools.tick(), pools.tick()] == [TRUE, TRUE]
    pools.build("d3", 7)
    assert pools.tick() == TRUE  # no pool has it
    assert pools.shown() is None
    pools.build("d1", 8)
    runs = instance.get_runs_count()
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
    shown = pools.shown()
    assert shown is not None
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert shown.description == "1 of 1 partition (p): p/d1: member: was rebuilt"
    assert pools.tick() == TRUE
    assert instance.get_runs_count() == runs
    pools.build("d1", 0)
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
    shown = pools.shown()
    assert shown is not None and shown.passed


def test_what_the_pools_check_found_while_a_run_was_to_evaluate_it_is_kept(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    pools.tick()
    pools.build("d1", 8)
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={pool.key}), tags={"dagster/partition": "another"}
    )
    assert pools.tick() == TRUE
    instance.report_run_failed(run)
    assert "macroxue/pool:pool_members_current" in pools.tick()
    shown = pools.shown()
    assert shown is not None and not shown.passed


def test_it_is_one_of_the_definitions_and_runs_by_itself():
    sensor = definitions.build_defs().get_repository_def().get_sensor_def("check_states")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_a_data_root_that_is_gone_has_lost_no_artifacts(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    pools.tick()
    pools.build("d1", 8)
    said = tick(instance, Lake(data_root=str(tmp_path / "unmounted")))
    assert said.startswith(f"{tmp_path}/unmounted: the data root is not there: ")
    assert not (tmp_path / "unmounted").exists()
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
