"""Inboxes: the partitions that are built from a drop."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.schema import DynamicPartitionsTable

from assets.inbox import Inbox, Start, add_partitions
from commands.graph import INBOXES
from gristmill import families
from gristmill.data_root import DataRoot
from gristmill.inbox import Arrival, Shape, present_drops
from tests.toy_inbox import asked

DYNAMIC = dg.DynamicPartitionsDefinition(name="toy_drops")
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")
SHARDS = dg.StaticPartitionsDefinition(["00", "01"])


def inbox(partitions: dg.PartitionsDefinition[str]) -> Inbox:
    return Inbox("toy", dg.AssetKey("raw_drop"), partitions, targets=[])


def arrival(key: str) -> Arrival:
    return Arrival(
        key=key, path=Path("data/drops/toy", key), signature="1", run_key=key, files=1, bytes=1
    )


@pytest.mark.parametrize(
    ("partitions", "expected"), [(DYNAMIC, ["d1"]), (MONTHS, ["d1"]), (SHARDS, ["00", "01"])]
)
def test_a_drop_is_built_into_its_partition_or_into_every_static_one(partitions, expected):
    assert list(inbox(partitions).partitions_of(arrival("d1"))) == expected


def test_every_inbox_has_a_name_and_drops_go_into_the_partitions_of_their_family():
    named = replace(inbox(SHARDS), keys_of=lambda drop: [f"{drop.name}1"])
    assert list(named.partitions_of(arrival("0"))) == ["01"]
    dynamic = replace(inbox(DYNAMIC), keys_of=lambda _: ["01"])
    assert list(dynamic.partitions_of(arrival("d1"))) == ["01"]
    assert (dynamic.dynamic, dynamic.named_by_drops, dynamic.is_by_drop) == (None, [], False)
    assert {inbox.folder for inbox in INBOXES} == {
        name for each in families.catalogs() for name in each.drops()
    }
    assert replace(inbox(DYNAMIC), folder="toy/recipes").name == "toy_recipes"
    named = {inbox for table in families.tables().values() for inbox in table.inboxes}
    assert named <= {inbox.folder for inbox in INBOXES}


def test_a_reserved_entry_of_an_inbox_is_no_drop_and_is_not_refused(tmp_path):
    for name in ("audits", "d1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    found = present_drops(tmp_path, asked(), Shape(reserved=("audits",)))
    assert [drop.key for drop in found.arrivals] == ["d1"]
    assert found.refusals == []


def test_only_unknown_keys_are_new_and_a_drop_without_runs_is_built_by_all_targets(instance):
    instance.add_dynamic_partitions("toy_drops", ["d1"])
    arrivals = [arrival("d2"), arrival("d1"), arrival("d0")]
    assert inbox(DYNAMIC).additions(instance, arrivals) == {"toy_drops": ["d2", "d0"]}
    assert inbox(MONTHS).additions(instance, arrivals) == {}
    assert (inbox(DYNAMIC).dynamic, inbox(SHARDS).dynamic) == ("toy_drops", None)
    assert inbox(SHARDS).starts_of(instance, arrival("d1"), []) == [
        Start([], "00"),
        Start([], "01"),
    ]


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="toy_recipes"))
def made() -> None: ...


def test_the_runs_of_a_drop_and_built_in_keys_become_partitions_of_their_definitions(instance):
    built = dg.AssetMaterialization(made.key, partition="fixed")
    instance.report_runless_asset_event(built)
    instance.add_dynamic_partitions("toy_recipes", ["known"])
    several = replace(
        inbox(DYNAMIC),
        targets=[made],
        starts=lambda _, drop, settled: [
            Start((made,), f"of-{drop.name}", "" if "d2" in settled else "waits for d2")
        ],
        built_in=lambda: {"toy_recipes": ["known", "fixed", "of nobody"]},
    )
    arrivals = [arrival("d1")]
    starts = several.starts_of(instance, arrivals[0], ["d1"])
    assert starts == [Start((made,), "of-d1", "waits for d2")]
    assert several.starts_of(instance, arrivals[0], ["d1", "d2"])[0].waiting == ""
    assert several.additions(instance, arrivals, starts) == {
        "toy_recipes": ["fixed", "of-d1"],
        "toy_drops": ["d1"],
    }
    assert several.additions(instance, []) == {"toy_recipes": ["fixed"]}
    assert several.named_by_drops == ["toy_drops", "toy_recipes"]
    assert inbox(SHARDS).named_by_drops == []


FOLDERS = [inbox for inbox in INBOXES if not inbox.shape.endings]


@pytest.mark.parametrize("inbox", FOLDERS, ids=lambda inbox: str(inbox.folder))
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[macroxue.pak]", "is an unknown table"),
        ("macroxue = 1", "must hold tables"),
        ("[[", "not TOML"),
        ("[inbox]\nfollow_links = true", "is not read from a drop"),
    ],
)
def test_a_drop_with_wrong_settings_is_refused_and_no_other(inbox, text, rule, tmp_path):
    folder = tmp_path / "drops" / inbox.folder
    for name in ("wrong", "right"):
        (folder / name).mkdir(parents=True)
    (folder / "wrong" / "gristmill.toml").write_text(text)
    asked_now = DataRoot(tmp_path).asked(inbox.folder)
    refusals = {
        refusal.key: refusal.reason
        for refusal in present_drops(folder, asked_now, inbox.shape).refusals
    }
    assert rule in refusals["wrong"]
    assert str(folder / "wrong" / "gristmill.toml") in refusals["wrong"]
    assert "gristmill.toml" not in refusals["right"]  # refused for its files alone


def test_keys_that_another_process_adds_first_are_added_once(instance, monkeypatch):
    add, looks = instance.add_dynamic_partitions, []

    def slower(name: str, keys: Sequence[str]) -> None:
        looks.append(keys)
        if len(looks) == 1:  # the other process adds after this one has looked
            add(name, keys[:1])
            rows = [{"partitions_def_name": name, "partition": key} for key in keys]
            with instance.event_log_storage.index_connection() as connection:
                connection.execute(DynamicPartitionsTable.insert(), rows)
        add(name, keys)

    monkeypatch.setattr(instance, "add_dynamic_partitions", slower)
    add_partitions(instance, "toy_drops", ["d1", "d2"])
    assert instance.get_dynamic_partitions("toy_drops") == ["d1", "d2"]
    assert len(looks) == 2
