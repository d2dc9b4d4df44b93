"""The check `arrivals`: what is not in order in an inbox, said once by whoever looks."""

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checking.arrivals import (
    NAME,
    arrivals_check,
    changed_evaluation,
    out_of_order,
    retire,
    taken,
)
from assets.inbox import Inbox
from assets.versions import DATA_VERSION
from commands.graph import register
from gristmill.inbox import Look, Standing, present_drops
from resources import Lake
from tests.sensors.ticks import Ticks
from tests.toy_inbox import add_inboxes, asked, toy_kind

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")
RAW = dg.AssetSpec(["toy", "raw_drop"], partitions_def=PARTITIONS)


def refuse(folder: Path) -> str | None:
    return None if (folder / "grain.txt").exists() else "no grain.txt in it"


@dg.asset(key=["toy", "text"], deps=[RAW], partitions_def=PARTITIONS)
def text() -> None: ...


INBOX = Inbox(
    "toy",
    RAW.key,
    PARTITIONS,
    [text],
    starts=lambda *_: [],
    built_in=lambda: {"toy_drops": ["fixed"]},
)


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    add_inboxes(monkeypatch, toy=toy_kind(refuse))


def land(lake: Lake, key: str, name: str = "grain.txt") -> Path:
    folder = lake.inbox("toy") / key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("oats")
    return folder


def rows(evaluation: Any) -> dict[str, tuple[str, str]]:
    table = evaluation.metadata.get("drops")
    records = table.records if table is not None else []
    return {row.data["drop"]: (row.data["state"], row.data["reason"]) for row in records}


def last(instance: dg.DagsterInstance, asset: dg.AssetKey = RAW.key) -> dg.AssetCheckEvaluation:
    key = dg.AssetCheckKey(asset, NAME)
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert found.evaluation is not None
    return found.evaluation


def count(instance: dg.DagsterInstance) -> int:
    key = dg.AssetCheckKey(RAW.key, NAME)
    return len(instance.event_log_storage.get_asset_check_execution_history(key, limit=100))


def four_kinds(instance: dg.DagsterInstance, lake: Lake) -> None:
    land(lake, "good")
    land(lake, "refused", name="chaff.txt")
    (land(lake, "half") / ".incomplete").touch()
    instance.add_dynamic_partitions("toy_drops", ["gone", "fixed"])


EXPECTED = {
    "refused": ("refused", "no grain.txt in it"),
    "half": ("arriving", ".incomplete says that it is not complete: remove that file when it is"),
    "gone": (
        "gone",
        "its partition is known and the drop is gone: bring it back, or forget it with "
        "`gristmill retire gone`",
    ),
}


def test_the_command_names_each_drop_once_and_is_quiet_when_nothing_changes(instance, lake):
    four_kinds(instance, lake)
    found = register(instance, lake, INBOX)
    assert {drop.key: (drop.state, drop.reason) for drop in found} == EXPECTED
    found = last(instance)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert rows(found) == EXPECTED
    assert found.description.replace("\\", "") == (
        "3 in drops/toy/ not in order: refused (refused), half (arriving), gone (gone)"
    )
    register(instance, lake, INBOX)
    assert count(instance) == 1
    shutil.rmtree(lake.inbox("toy") / "refused")
    register(instance, lake, INBOX)
    assert last(instance).severity is dg.AssetCheckSeverity.WARN, "no refused drop is left"
    (lake.inbox("toy") / "half/.incomplete").unlink()
    instance.delete_dynamic_partition("toy_drops", "gone")
    register(instance, lake, INBOX)
    assert (last(instance).passed, count(instance)) == (True, 3)
    assert "all drops" in (last(instance).description or "")


def test_the_sensor_says_the_same_as_the_command(instance, lake):
    four_kinds(instance, lake)
    defs = dg.Definitions(assets=[RAW, text], resources={"lake": lake})
    tick = Ticks(INBOX, instance, lake, defs, adds=True)
    evaluations = []
    for _ in range(4):
        result = tick()
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
        evaluations.append(
            [event for event in result.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
        )
    assert [len(each) for each in evaluations] == [1, 1, 1, 0]
    assert {key: state for key, (state, _) in rows(evaluations[0][0]).items()} == {
        "good": "arriving",
        "refused": "arriving",
        "half": "arriving",
        "gone": "gone",
    }
    assert rows(evaluations[1][0]) == EXPECTED
    register(instance, lake, INBOX)
    assert count(instance) == 3


def test_executed_by_itself_it_looks_at_the_inbox(instance, lake):
    four_kinds(instance, lake)
    check = arrivals_check(INBOX)
    defs = dg.Definitions(assets=[RAW], asset_checks=[check], resources={"lake": lake})

    def run() -> dg.AssetCheckEvaluation:
        job = defs.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance)
        assert result.success
        (evaluation,) = result.get_asset_check_evaluations()
        return evaluation

    untaken = "its sensor has not taken it yet: see its last tick"
    assert rows(run()) == {**EXPECTED, "good": ("ready", untaken)}
    register(instance, lake, INBOX)
    assert rows(run()) == EXPECTED


def test_an_arrival_is_followed_by_an_evaluation_though_it_says_the_same(instance):
    first = changed_evaluation(instance, INBOX, [])
    assert first is not None
    instance.report_runless_asset_event(first)
    assert changed_evaluation(instance, INBOX, []) is None
    instance.report_runless_asset_event(dg.AssetMaterialization(RAW.key, partition="x"))
    second = changed_evaluation(instance, INBOX, [])
    assert second is not None
    instance.report_runless_asset_event(second)
    assert changed_evaluation(instance, INBOX, []) is None


def test_another_reason_is_a_change_and_many_drops_make_a_bounded_table(instance):
    def evaluation(reason: str, since: int) -> dg.AssetCheckEvaluation | None:
        found = [Standing("d", "refused", since, reason)]
        return changed_evaluation(instance, INBOX, found)

    instance.report_runless_asset_event(evaluation("a", 1_700_000_000_000))
    assert evaluation("a", 1_800_000_000_000) is None
    changed = evaluation("b", 1_700_000_000_000)
    assert changed is not None
    assert changed.metadata["drops"].records[0].data["since"] == "2023-11-14 22:13 UTC"
    found = [Standing(f"d{n}", "refused", 0, "x" * 5000) for n in range(1000)]
    evaluation = changed_evaluation(instance, INBOX, found)
    assert evaluation is not None
    assert evaluation.metadata["drops to look at"].value == 1000
    assert len(evaluation.metadata["drops"].records) == 200
    assert len(evaluation.metadata["drops"].records[0].data["reason"]) < 1100


@pytest.mark.parametrize(("key", "named"), [("-x", "-- -x"), ("$(reboot) [x](y)", "KEY")])
def test_a_hostile_key_makes_no_option_no_command_and_no_markdown(instance, key, named):
    instance.add_dynamic_partitions("toy_drops", [key])
    (vanished,) = out_of_order(instance, INBOX, Look())
    assert vanished.reason.endswith(f"`gristmill retire {named}`")
    found = changed_evaluation(instance, INBOX, [vanished])
    assert found is not None
    assert "[x]" not in (found.description or "")


SHARDS = dg.StaticPartitionsDefinition(["00", "01", "02"])
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")
SHARDED = dg.AssetSpec(["toy", "sharded"], partitions_def=SHARDS)
MONTHLY = dg.AssetSpec(["toy", "monthly"], partitions_def=MONTHS)


def fixed_inbox(spec: dg.AssetSpec) -> Inbox:
    def keys_of(drop: Path) -> list[str]:
        return ["01", "02"] if drop.name.startswith("two") else ["00"]

    assert spec.partitions_def is not None
    named = {"keys_of": keys_of} if spec is SHARDED else {}
    return Inbox("toy", spec.key, spec.partitions_def, [text], **named)


def standing(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> dict[str, str]:
    seen = present_drops(lake.inbox("toy"), asked())
    found = out_of_order(instance, inbox, seen)
    assert {one.state for one in found} <= {"gone"}
    return {one.key: one.reason for one in found}


def gone(key: str) -> str:
    return f"it was taken and is gone: bring it back, or forget it with `gristmill retire {key}`"


@pytest.mark.parametrize(
    ("spec", "keys", "partitions"),
    [
        (SHARDED, ("one", "two"), {"one": ["00"], "two": ["01", "02"]}),
        (MONTHLY, ("2024-01", "2024-02"), {"2024-01": ["2024-01"], "2024-02": ["2024-02"]}),
    ],
)
def test_a_drop_of_fixed_partitions_is_known_until_retired(instance, lake, spec, keys, partitions):
    inbox, (stays, goes) = fixed_inbox(spec), keys
    for key in keys:
        land(lake, key)
    assert standing(instance, lake, inbox) == {}
    register(instance, lake, inbox)
    assert (standing(instance, lake, inbox), taken(instance, inbox)) == ({}, partitions)
    shutil.rmtree(lake.inbox("toy") / goes)
    assert standing(instance, lake, inbox) == {goes: gone(goes)}
    register(instance, lake, inbox)
    assert rows(last(instance, inbox.raw_drop)) == {goes: ("gone", gone(goes))}
    retire(instance, inbox, goes, partitions[goes])
    assert standing(instance, lake, inbox) == {}
    assert taken(instance, inbox) == {stays: partitions[stays]}
    # It keeps its version, so that nothing downstream is stale, until another drop comes.
    observed = instance.fetch_observations(inbox.raw_drop, limit=1).records[0].asset_observation
    arrived = instance.fetch_materializations(
        dg.AssetRecordsFilter(inbox.raw_drop, asset_partitions=partitions[goes]), limit=1
    ).records[0]
    assert arrived.asset_materialization is not None and observed is not None
    assert observed.tags == {DATA_VERSION: arrived.asset_materialization.tags[DATA_VERSION]}
    (land(lake, goes) / "more.txt").touch()
    register(instance, lake, inbox)
    shutil.rmtree(lake.inbox("toy") / goes)
    assert standing(instance, lake, inbox) == {goes: gone(goes)}


def test_a_drop_that_another_one_replaced_in_all_partitions_did_not_vanish(instance, lake):
    inbox = fixed_inbox(SHARDED)
    for key in ("two_old", "two_new"):
        land(lake, key)
        register(instance, lake, inbox)
        shutil.rmtree(lake.inbox("toy") / key)
    assert standing(instance, lake, inbox) == {"two_new": gone("two_new")}


def test_executed_without_its_data_root_it_names_no_drop(instance, lake, tmp_path):
    land(lake, "d1")
    register(instance, lake, INBOX)
    gone = Lake(data_root=str(tmp_path / "unmounted"))
    defs = dg.Definitions(
        assets=[RAW], asset_checks=[arrivals_check(INBOX)], resources={"lake": gone}
    )
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert result.get_asset_check_evaluations() == []
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    assert "the data root is not there" in failure.step_failure_data.error.to_string()
