"""Inboxes: the partitions that are built from a drop."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.inbox import Inbox
from commands.graph import INBOXES
from gristmill import families
from gristmill.inbox import Arrival, present_drops

DYNAMIC = dg.DynamicPartitionsDefinition(name="toy_drops")
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")
SHARDS = dg.StaticPartitionsDefinition(["00", "01"])


def inbox(partitions: dg.PartitionsDefinition[str]) -> Inbox:
    return Inbox("toy", dg.AssetKey("raw_drop"), partitions, targets=[], refuse=lambda _: None)


def arrival(key: str) -> Arrival:
    return Arrival(key=key, path=Path(key), signature="1", run_key=key, files=1, bytes=1)


@pytest.mark.parametrize(
    ("partitions", "expected"), [(DYNAMIC, ["d1"]), (MONTHS, ["d1"]), (SHARDS, ["00", "01"])]
)
def test_a_drop_is_built_into_its_partition_or_into_every_static_one(partitions, expected):
    assert list(inbox(partitions).partitions_of("d1")) == expected


def test_only_unknown_keys_of_dynamic_partitions_are_new(instance):
    instance.add_dynamic_partitions("toy_drops", ["d1"])
    arrivals = [arrival("d2"), arrival("d1"), arrival("d0")]
    assert inbox(DYNAMIC).new_keys(instance, arrivals) == ["d2", "d0"]
    assert inbox(MONTHS).new_keys(instance, arrivals) == []
    assert (inbox(DYNAMIC).dynamic, inbox(SHARDS).dynamic) == ("toy_drops", None)


FOLDERS = [inbox for inbox in INBOXES if not inbox.shape.endings]


@pytest.mark.parametrize("inbox", FOLDERS, ids=lambda inbox: str(inbox.folder))
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[macroxue.pak]", "is an unknown table: did you mean"),
        ("macroxue = 1", "must hold tables"),
        ("[[", "not TOML"),
        ("[inbox]\nfollow_links = true", "is not read from a drop"),
    ],
)
def test_a_drop_with_wrong_settings_is_refused_and_no_other(
    inbox: Inbox, text: str, rule: str, tmp_path: Path
) -> None:
    folder = tmp_path / "drops" / inbox.folder
    for name in ("wrong", "right"):
        (folder / name).mkdir(parents=True)
    (folder / "wrong" / "gristmill.toml").write_text(text)
    refusals = {
        refusal.key: refusal.reason
        for refusal in present_drops(folder, inbox.refusal, inbox.shape).refusals
    }
    assert rule in refusals["wrong"]
    assert str(folder / "wrong" / "gristmill.toml") in refusals["wrong"]
    assert "gristmill.toml" not in refusals["right"]  # refused for its files alone


def test_the_inboxes_of_tables_exist() -> None:
    named = {inbox for table in families.tables().values() for inbox in table.inboxes}
    assert named <= {inbox.folder for inbox in INBOXES}
