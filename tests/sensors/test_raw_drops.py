"""What the raw-drop sensor asks Dagster for, tick by tick."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.inbox import Inbox, Start
from assets.publishing import FAILS_ALONE
from gristmill.inbox import Look, Standing, present_drops
from resources import Lake
from sensors.raw_drops import events_of, raw_drop_sensor
from tests.sensors.ticks import Ticks, partitions_of
from tests.toy_inbox import add_inboxes, asked, toy_kind

partitions = dg.DynamicPartitionsDefinition(name="toy_drops")
raw_drop = dg.AssetSpec(["toy", "raw_drop"], partitions_def=partitions)


@dg.asset(key=["toy", "text"], deps=[raw_drop], partitions_def=partitions)
def text() -> None: ...


def refuse(folder: Path) -> str | None:
    return None if (folder / "grain.txt").exists() else "no grain.txt in it"


INBOX = Inbox("toy", raw_drop.key, partitions, [text])


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    add_inboxes(monkeypatch, toy=toy_kind(refuse))


def ticks(instance: dg.DagsterInstance, root: Path, inbox: Inbox = INBOX) -> Ticks:
    """Looks of the sensor of an inbox, which knows no other assets."""
    lake = Lake(data_root=str(root))
    defs = dg.Definitions(assets=[raw_drop, *inbox.targets], resources={"lake": lake})
    return Ticks(inbox, instance, lake, defs, adds=True)


@pytest.fixture
def tick(instance: dg.DagsterInstance, tmp_path: Path) -> Ticks:
    return ticks(instance, tmp_path)


def reported(result: dg.SensorResult) -> list[Any]:
    """The events of a tick without the evaluation of the check `arrivals`."""
    kinds = (dg.AssetMaterialization, dg.AssetObservation)
    return [event for event in result.asset_events if isinstance(event, kinds)]


def land(root: Path, key: str, name: str = "grain.txt", text: str = "oats") -> None:
    folder = root / "drops/toy" / key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_it_is_on_by_default_and_only_new_refusals_are_events_of_which_many_are_counted():
    assert raw_drop_sensor(INBOX).default_status is dg.DefaultSensorStatus.RUNNING
    many = [Standing(f"d{n}", "refused", 0, "x", is_new=n > 0) for n in range(30)]
    events = events_of(INBOX, [], {}, Look(idle=many))
    assert len(events) == 21
    assert events[-1].metadata["refused"].value == "and 9 more"


def test_a_settled_drop_becomes_a_partition_and_a_run_and_a_replaced_one_another(tick, tmp_path):
    land(tmp_path, "d1")
    assert tick().run_requests == []
    result = tick()
    (request,) = result.run_requests
    assert request.partition_key == "d1"
    assert request.asset_selection == [text.key]
    observed, landed = reported(result)
    signature = landed.tags["dagster/data_version"]
    assert request.run_key.startswith(f"d1:{signature}:")
    assert [add.partition_keys for add in result.dynamic_partitions_requests] == [["d1"]]
    assert (observed.partition, landed.partition) == ("d1", "d1")
    assert landed.metadata["files"].value == 1
    assert tick().run_requests == []
    tick(), tick()
    land(tmp_path, "d1", text="wheat")
    assert tick().run_requests == []
    result = tick()
    assert [request.partition_key for request in result.run_requests] == ["d1"]
    assert result.dynamic_partitions_requests == []


def materialize(instance: dg.DagsterInstance, asset: dg.AssetKey, version: str) -> None:
    event = dg.AssetMaterialization(
        asset_key=asset, partition="d1", tags={"dagster/data_version": version}
    )
    instance.report_runless_asset_event(event)


@pytest.mark.parametrize("is_built", [True, False])
def test_a_drop_built_since_it_was_reported_starts_no_run(tick, tmp_path, instance, is_built):
    land(tmp_path, "d1")
    found = present_drops(tmp_path / "drops/toy", asked(refuse))
    events = [(raw_drop.key, found.arrivals[0].signature), (text.key, "f")]
    for asset, version in events if is_built else reversed(events):
        materialize(instance, asset, version)
    tick()
    result = tick()
    assert [request.partition_key for request in result.run_requests] == ["d1"] * (not is_built)
    if is_built:
        assert reported(result) == []
        assert result.skip_reason.skip_message == "built already: d1"
    land(tmp_path, "d1", text="wheat")
    tick()
    assert [request.partition_key for request in tick().run_requests] == ["d1"]


def test_a_refused_drop_is_observed_once_and_is_the_reason_of_each_tick(tick, tmp_path):
    land(tmp_path, "d2", name="chaff.txt")
    tick()
    result = tick()
    (observation,) = reported(result)
    assert observation.metadata["refused"].value == "d2"
    assert "no grain.txt" in observation.metadata["reason"].value
    again = tick()
    assert reported(again) == []
    assert "d2 is refused: no grain.txt in it" in again.skip_reason.skip_message


def test_requests_of_one_tick_are_bounded(tick, tmp_path):
    for number in range(50):
        land(tmp_path, f"d{number}")
    tick()
    sizes = [len(tick().run_requests) for _ in range(4)]
    assert max(sizes) <= 20
    assert sum(sizes) == 50


def test_a_quiet_tick_says_why(tick, tmp_path):
    assert tick().skip_reason.skip_message == "no new drop"
    land(tmp_path, "d3")
    assert tick().skip_reason.skip_message == "still arriving: d3"


def test_thousands_of_loose_files_are_reported_once_and_shortly(tick, tmp_path):
    folder = tmp_path / "drops/toy"
    folder.mkdir(parents=True)
    for number in range(2_000):
        (folder / f"game_{number:05}.jsonl.gz").touch()
    land(tmp_path, "d1")
    first = tick()
    assert len(reported(first)) == 21
    assert reported(first)[-1].metadata["refused"].value == "and 1,980 more"
    assert "game_00009.jsonl.gz is refused: a drop is a folder" in first.skip_reason.skip_message
    assert "and 1,990 more; still arriving: d1" in first.skip_reason.skip_message
    second = tick()
    assert [request.partition_key for request in second.run_requests] == ["d1"]
    assert len(reported(second)) == 2
    quiet = tick()
    assert reported(quiet) == []
    for result in (first, second, quiet):
        assert len(result.cursor) < 1_000
    for result in (first, quiet):
        assert len(result.skip_reason.skip_message) < 2_000


def test_only_new_refusals_are_warned_of(tick, tmp_path, monkeypatch):
    messages: list[str] = []

    class Log:
        def warning(self, message: str) -> None:
            messages.append(message)

    monkeypatch.setattr(dg.SensorEvaluationContext, "log", property(lambda _: Log()))
    folder = tmp_path / "drops/toy"
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"{number:03}.gz").touch()
    tick()
    assert len(messages) == 21
    tick()
    assert len(messages) == 21


# Drops of which several share a run.


def of_many(most: int, name: str = "meal") -> dg.AssetsDefinition:
    policy = dg.BackfillPolicy.multi_run(most)

    @dg.asset(key=["toy", name], deps=[raw_drop], partitions_def=partitions, backfill_policy=policy)
    def meal() -> None: ...

    return meal


def shared(result: dg.SensorResult) -> list[str]:
    return ["-".join(partitions_of(request)) for request in result.run_requests or []]


def test_drops_that_settle_at_one_look_share_a_run_up_to_the_policy(tmp_path, instance):
    inbox = Inbox("toy", raw_drop.key, partitions, [of_many(3), of_many(100, "crumbs")])
    look = ticks(instance, tmp_path, inbox)
    for number in range(7):
        land(tmp_path, f"d{number}")
    look()
    result = look()
    assert shared(result) == ["d0-d2", "d3-d5", "d6"]
    together, _, alone = result.run_requests
    assert together.tags[FAILS_ALONE] == "true" and FAILS_ALONE not in alone.tags
    assert together.asset_selection == [asset.key for asset in inbox.targets]
    assert {event.partition for event in reported(result)} == {f"d{n}" for n in range(7)}
    assert look().run_requests == []


def test_a_shared_run_takes_no_partition_between_those_that_landed(tmp_path, instance):
    look = ticks(instance, tmp_path, Inbox("toy", raw_drop.key, partitions, [of_many(100)]))
    for key in ("d1", "d3", "d2"):
        land(tmp_path, key)
    look()
    assert shared(look()) == ["d1-d3"]
    for key in ("d0", "d1", "d3"):
        land(tmp_path, key, text="wheat")
    look()
    # The new one comes after all that were there.
    assert shared(look()) == ["d1", "d3-d0"]


def test_a_shared_run_has_one_key_at_each_look_and_others_another(tmp_path, instance):
    look = ticks(instance, tmp_path, Inbox("toy", raw_drop.key, partitions, [of_many(100)]))
    land(tmp_path, "d1"), land(tmp_path, "d2")
    look()
    before = look.cursor
    (first,) = look().run_requests or []
    look.cursor = before
    (repeated,) = look().run_requests or []
    assert first.run_key == repeated.run_key
    assert str(first.run_key).startswith("d1...:")
    land(tmp_path, "d2", text="wheat"), land(tmp_path, "d3")
    look()
    (changed,) = look().run_requests or []
    assert changed.run_key != first.run_key


def test_one_look_takes_as_many_drops_as_a_run_may_have(tmp_path, instance):
    look = ticks(instance, tmp_path, Inbox("toy", raw_drop.key, partitions, [of_many(100)]))
    for number in range(120):
        land(tmp_path, f"d{number:03}")
    look()
    assert shared(look()) == ["d000-d099"]
    assert shared(look()) == ["d100-d119"]


# One drop that starts runs of several assets, each with partitions of its own.


def of_letter(letter: str) -> dg.AssetsDefinition:
    definition = dg.DynamicPartitionsDefinition(name=f"toy_{letter}")

    @dg.asset(key=["toy", letter], deps=[raw_drop], partitions_def=definition)
    def made() -> None: ...

    return made


LETTERS = {letter: of_letter(letter) for letter in "ab"}


def starts(instance: dg.DagsterInstance, drop: Path, settled: Collection[str]) -> Sequence[Start]:
    known = {*instance.get_dynamic_partitions("toy_drops"), *settled}
    both = "" if {"d1", "d2"} <= known else "waits for the other"
    return [Start((LETTERS["a"],), f"{drop.name}-alone"), Start((LETTERS["b"],), "both", both)]


several = Inbox(
    "toy",
    raw_drop.key,
    partitions,
    list(LETTERS.values()),
    starts=starts,
    built_in=lambda: {"toy_a": ["fixed"]},
)


@pytest.fixture
def see(instance: dg.DagsterInstance, tmp_path: Path) -> Ticks:
    return ticks(instance, tmp_path, several)


def requested(result: dg.SensorResult) -> list[tuple[str, str | None]]:
    return [
        (asset.to_user_string(), request.partition_key)
        for request in result.run_requests or []
        for asset in request.asset_selection or []
    ]


def test_a_run_that_waits_for_another_drop_starts_when_that_one_lands(see, tmp_path, instance):
    land(tmp_path, "d1")
    see()
    first = see()
    assert requested(first) == [("toy/a", "d1-alone")]
    assert list(instance.get_dynamic_partitions("toy_b")) == ["both"]
    assert list(instance.get_dynamic_partitions("toy_drops")) == ["d1"]
    land(tmp_path, "d2")
    see()
    second = see()
    assert requested(second) == [("toy/a", "d2-alone"), ("toy/b", "both")]
    keys = [request.run_key for request in [*first.run_requests, *second.run_requests]]
    assert len(set(keys)) == len(keys)
    assert requested(see()) == []


def test_drops_that_settle_together_start_a_common_run_once(see, tmp_path):
    land(tmp_path, "d1"), land(tmp_path, "d2")
    see()
    result = see()
    assert requested(result) == [("toy/a", "d1-alone"), ("toy/a", "d2-alone"), ("toy/b", "both")]
    assert {event.partition for event in reported(result)} == {"d1", "d2"}


def test_a_drop_whose_runs_all_wait_is_reported_and_says_for_what(see, tmp_path, monkeypatch):
    def waiting(*_: object) -> list[Start]:
        return [Start((LETTERS["b"],), "both", "waits for the other")]

    monkeypatch.setitem(several.__dict__, "starts", waiting)
    land(tmp_path, "d1")
    see()
    result = see()
    assert result.run_requests == []
    assert [event.partition for event in reported(result)] == ["d1", "d1"]
    assert result.skip_reason.skip_message == "arrived: d1; both waits for the other"


def test_a_run_that_the_command_line_has_built_is_not_started(see, tmp_path, instance):
    land(tmp_path, "d1")
    found = present_drops(tmp_path / "drops/toy", asked(refuse))
    materialize(instance, raw_drop.key, found.arrivals[0].signature)
    event = dg.AssetMaterialization(asset_key=["toy", "a"], partition="d1-alone")
    instance.report_runless_asset_event(event)
    see()
    assert see().skip_reason.skip_message == "built already: d1"


def test_a_data_root_that_is_gone_has_lost_no_drops(tick, tmp_path, instance):
    land(tmp_path, "d1")
    tick(), tick()
    moved = tmp_path.rename(tmp_path.with_name("unmounted"))
    result = tick()
    moved.rename(tmp_path)
    assert result.skip_reason.skip_message.startswith(f"{tmp_path}: the data root is not there: ")
    assert result.asset_events == []
    assert reported(tick()) == []
