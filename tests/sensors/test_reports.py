"""What the event of a drop that grew says."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets.inbox import Inbox
from gristmill.inbox import Arrival, Look, Standing, present_drops
from gristmill.untrusted.files import REFUSE_LINKS
from sensors.reports import arrival_events, changes_of, events_of
from tests.toy_inbox import asked

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")
RAW = dg.AssetKey(["toy", "raw_drop"])
INBOX = Inbox("toy", RAW, PARTITIONS, [])


def write(folder: Path, *names: str, text: str = "game") -> Arrival:
    """Write files of a drop; returns its arrival."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text)
    (arrival,) = present_drops(folder.parent, asked()).arrivals
    return arrival


def report(instance: dg.DagsterInstance, arrival: Arrival) -> None:
    for event in arrival_events(INBOX, arrival, [arrival.key]):
        instance.report_runless_asset_event(event)


def changes(instance: dg.DagsterInstance, arrival: Arrival) -> str:
    return changes_of(instance, INBOX, arrival, [arrival.key], REFUSE_LINKS)


def test_a_drop_that_grew_says_by_how_much_and_which_files_came(instance, tmp_path):
    first = write(tmp_path / "d6", *(f"{n:02}" for n in range(7)))
    assert changes(instance, first) == ""
    report(instance, first)
    assert changes(instance, first) == ""
    grown = write(tmp_path / "d6", *(f"{n:02}" for n in range(7, 20)))
    said = changes(instance, grown)
    assert said.startswith("since it was taken on 20")
    assert "UTC: 13 files more; 52 bytes more; new or changed: 07, 08, 09, 10" in said
    assert said.endswith("16, and 3 more")
    (observed, landed) = arrival_events(INBOX, grown, ["d6"], said)
    assert landed.metadata["changes"].value == said
    assert observed.metadata == {}
    assert observed.tags == landed.tags


def test_a_drop_that_shrank_or_changed_in_place_says_so(instance, tmp_path):
    report(instance, write(tmp_path / "d6", "a", "b"))
    (tmp_path / "d6/b").unlink()
    said = changes(instance, write(tmp_path / "d6", "a", text="name"))
    assert "1 file fewer; 4 bytes fewer; new or changed: a" in said
    report(instance, write(tmp_path / "d6", "a", "b"))
    assert "as many files; as many bytes; new or changed: b" in changes(
        instance, write(tmp_path / "d6", "b", text="mane")
    )


def test_only_new_refusals_are_events_and_many_are_counted():
    many = [Standing(f"d{n}", "refused", 0, "x", is_new=n > 0) for n in range(30)]
    events = events_of(INBOX, [], {}, Look(idle=many), {})
    assert len(events) == 21
    assert events[-1].metadata["refused"].value == "and 9 more"
