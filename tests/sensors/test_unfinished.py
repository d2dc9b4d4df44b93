"""Drops that were taken and are not built: which runs the sensor requests again."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import versions
from assets.inbox import Inbox, Start
from assets.publishing import NOT_BUILT
from gristmill.inbox import State
from resources import Lake
from sensors import unfinished
from sensors.unfinished import newest_answers
from tests.sensors.ticks import Ticks
from tests.toy_inbox import add_inboxes, toy_kind

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")
RAW = dg.AssetSpec(["toy", "raw_drop"], partitions_def=PARTITIONS)
TROUBLE: dict[str, BaseException] = {}
VERSION = {"pack": "1"}


@dg.asset(key=["toy", "pack"], deps=[RAW], partitions_def=PARTITIONS)
def pack() -> dg.MaterializeResult[None]:
    if "pack" in TROUBLE:
        raise TROUBLE["pack"]
    return dg.MaterializeResult(data_version=dg.DataVersion(VERSION["pack"]))


@dg.asset(key=["toy", "values"], deps=[pack], partitions_def=PARTITIONS)
def values() -> None:
    if "values" in TROUBLE:
        raise TROUBLE["values"]


INBOX = Inbox("toy", RAW.key, PARTITIONS, [pack, values])
ERROR = ValueError("a bad line")
INTERRUPT = KeyboardInterrupt()
WHOLE = [("d1", ["pack", "values"])]
TOGETHER = versions.run_tags(["d1", "d2"])


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    add_inboxes(monkeypatch, toy=toy_kind())


class Toy:
    """A data root, an instance, a sensor, and runs in this process."""

    def __init__(self, root: Path, instance: dg.DagsterInstance, inbox: Inbox = INBOX) -> None:
        self.root, self.instance, lake = root, instance, Lake(data_root=str(root))
        self.defs = dg.Definitions(assets=[RAW, pack, values], resources={"lake": lake})
        self.look = Ticks(inbox, instance, lake, self.defs, adds=True)

    def land(self, key: str, text: str = "oats") -> None:
        folder = self.root / "drops/toy" / key
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "grain").write_text(text)

    def tick(self) -> list[tuple[str, list[str]]]:
        """Partition and assets of each run that a tick requests."""
        result = self.look()
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        self.requests = list(result.run_requests or [])
        return [
            (str(request.partition_key), [key.path[-1] for key in request.asset_selection or []])
            for request in self.requests
        ]

    def run(self, key: str, *assets: str, **trouble: BaseException) -> None:
        TROUBLE.clear()
        TROUBLE.update(trouble)
        job = self.defs.resolve_implicit_global_asset_job_def()
        with suppress(KeyboardInterrupt):
            job.execute_in_process(
                instance=self.instance,
                partition_key=key,
                asset_selection=[dg.AssetKey(["toy", name]) for name in assets],
                raise_on_error=False,
            )

    def report(self, key: str, asset: dg.AssetsDefinition, status: str) -> None:
        """What a run says that builds nothing."""
        event = dg.AssetObservation(asset.key, partition=key, metadata={"status": status})
        self.instance.report_runless_asset_event(event)

    def begin(self, key: str, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
        """A run as the daemon made it, whose process does nothing."""
        chosen = frozenset({pack.key, values.key})
        job = self.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=chosen)
        return self.instance.create_run_for_job(
            job_def=job,
            status=status,
            asset_selection=chosen,
            tags=tags or {"dagster/partition": key},
        )


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Toy]:
    VERSION["pack"] = "1"
    with dg.DagsterInstance.ephemeral() as instance:
        made = Toy(tmp_path, instance)
        made.land("d1")
        assert made.tick() == []
        assert made.tick() == WHOLE
        yield made


def test_a_drop_that_was_built_is_left_alone(toy):
    toy.run("d1", "pack", "values")
    assert [toy.tick(), toy.tick()] == [[], []]
    assert "asked" not in str(toy.look.cursor)


def test_a_run_that_was_interrupted_is_requested_again_with_another_key_at_most_three_times(toy):
    keys = set()
    for _ in range(3):
        toy.run("d1", "pack", "values", pack=INTERRUPT)
        assert toy.tick() == WHOLE
        keys.add(toy.requests[0].run_key)
    toy.run("d1", "pack", "values", pack=INTERRUPT)
    assert [toy.tick(), toy.tick()] == [[], []]
    assert len(keys) == 3


def test_a_run_that_was_interrupted_after_its_first_asset_is_requested_for_the_others(toy):
    toy.run("d1", "pack", "values", values=INTERRUPT)
    assert toy.tick() == [("d1", ["values"])]
    toy.run("d1", "values")
    assert toy.tick() == []


@pytest.mark.parametrize("asset", ["pack", "values"])
def test_a_run_that_failed_by_its_own_error_is_left_alone(toy, asset):
    toy.run("d1", "pack", "values", **{asset: ERROR})
    assert [toy.tick(), toy.tick()] == [[], []]


def test_a_run_that_was_reaped_is_requested_again_at_the_next_start(toy):
    run = toy.begin("d1", dg.DagsterRunStatus.STARTED)
    assert [toy.tick(), toy.tick()] == [[], []]
    toy.instance.report_run_failed(run, "Reaped: its process is gone.")
    assert toy.tick() == WHOLE


def test_a_run_that_never_came_is_requested(toy):
    assert toy.tick() == WHOLE


def test_values_follow_a_pack_that_was_built_by_hand(toy):
    toy.run("d1", "pack", "values", pack=ERROR)
    assert toy.tick() == []
    toy.run("d1", "pack")
    assert toy.tick() == [("d1", ["values"])]
    toy.run("d1", "values", values=ERROR)
    assert [toy.tick(), toy.tick()] == [[], []]


def test_values_of_another_version_of_the_pack_are_built_again_and_those_of_the_same_are_not(toy):
    toy.run("d1", "pack", "values")
    toy.run("d1", "pack")
    assert [toy.tick(), toy.tick()] == [[], []]
    VERSION["pack"] = "2"
    toy.run("d1", "pack")
    assert toy.tick() == [("d1", ["values"])]


def test_a_drop_that_was_not_built_for_a_reason_is_left_alone_until_it_changes(toy):
    """What is built from it is skipped, and says nothing."""
    toy.report("d1", pack, NOT_BUILT)
    toy.look.cursor = None
    assert [toy.tick() for _ in range(3)] == [[], [], []]
    toy.land("d1", "wheat")
    assert [toy.tick(), toy.tick()] == [[], WHOLE]


def test_values_that_were_not_built_for_a_reason_are_left_alone_until_their_pack_changes(toy):
    toy.run("d1", "pack")
    toy.report("d1", values, NOT_BUILT)
    toy.look.cursor = None
    assert [toy.tick() for _ in range(3)] == [[], [], []]
    VERSION["pack"] = "2"
    toy.run("d1", "pack")
    assert toy.tick() == [("d1", ["values"])]


@pytest.mark.parametrize("asset", [pack, values])
def test_a_report_of_another_kind_is_no_answer_to_a_drop(toy, asset):
    toy.report("d1", asset, NOT_BUILT)
    toy.report("d1", asset, "failed")
    toy.look.cursor = None
    assert [toy.tick(), toy.tick()] == [[], WHOLE]


def test_what_was_built_before_its_drop_was_found_to_have_nothing_to_build_is_left_alone(toy):
    toy.run("d1", "pack", "values")
    toy.land("d1", "wheat")
    toy.tick(), toy.tick()
    toy.report("d1", pack, NOT_BUILT)
    toy.look.cursor = None
    assert [toy.tick() for _ in range(3)] == [[], [], []]


def test_a_drop_that_grew_and_whose_run_was_interrupted_is_built_again(toy):
    toy.run("d1", "pack", "values")
    toy.land("d1", "wheat")
    assert [toy.tick(), toy.tick()] == [[], WHOLE]
    toy.run("d1", "pack", "values", pack=INTERRUPT)
    assert toy.tick() == WHOLE


def test_nothing_is_requested_while_a_run_of_many_partitions_builds_it(toy):
    run = toy.begin("d1", dg.DagsterRunStatus.STARTED, **dict.fromkeys(TOGETHER, "d1"))
    assert toy.tick() == []
    toy.instance.report_run_failed(run, "Reaped")
    assert toy.tick() == WHOLE


def test_what_a_run_of_many_partitions_did_not_build_gets_a_run_of_its_own(toy):
    toy.land("d2")
    toy.tick(), toy.tick()
    toy.begin("", dg.DagsterRunStatus.SUCCESS, **TOGETHER)
    for asset in (pack, values):
        toy.instance.report_runless_asset_event(dg.AssetMaterialization(asset.key, partition="d1"))
    assert toy.tick() == [("d2", ["pack", "values"])]
    toy.run("d2", "pack", "values", pack=ERROR)
    assert [toy.tick(), toy.tick()] == [[], []]


@pytest.mark.parametrize("keys", [["d1"], ["d1", "d2"]])
@pytest.mark.parametrize("is_person", [True, False], ids=["a person", "nobody"])
def test_a_run_that_was_cancelled_is_requested_again_unless_a_person_did_it(toy, is_person, keys):
    for key in keys[1:]:
        toy.land(key)
        toy.tick(), toy.tick()
    run = toy.begin("", dg.DagsterRunStatus.STARTED, **versions.run_tags(keys))
    if is_person:
        toy.instance.report_run_canceling(run)
    toy.instance.report_run_canceled(run)
    assert [key for key, _ in toy.tick()] == ([] if is_person else keys)


def test_a_partition_does_not_wait_for_a_run_of_others(toy):
    toy.land("d2")
    toy.tick(), toy.tick()
    toy.begin("", dg.DagsterRunStatus.STARTED, **dict.fromkeys(TOGETHER, "d2"))
    assert toy.tick() == WHOLE


def test_many_partitions_are_looked_into_in_turn(toy, monkeypatch):
    monkeypatch.setattr(unfinished, "MOST_ASKED", 2)
    for number in range(2, 6):
        toy.land(f"d{number}")
    toy.tick(), toy.tick()
    for number in range(1, 6):
        toy.begin(f"d{number}", dg.DagsterRunStatus.STARTING)
    assert [toy.tick() for _ in range(3)] == [[], [], []]
    for run in toy.instance.get_runs():
        toy.instance.report_run_failed(run, "Reaped")
    found = [key for _ in range(3) for key, _ in toy.tick()]
    assert sorted(set(found)) == ["d1", "d2", "d3", "d4", "d5"]


def test_a_drop_with_runs_of_its_own_kind_is_taken_up_again(tmp_path):
    def starts(_instance: Any, drop: Path, _settled: Any) -> list[Start]:
        waiting = "waits for another" if drop.name == "d2" else "is started already"
        return [Start((pack,), f"of-{drop.name}", waiting)]

    inbox = Inbox("toy", RAW.key, PARTITIONS, [pack], starts=starts)
    with dg.DagsterInstance.ephemeral() as instance:
        toy = Toy(tmp_path, instance, inbox)
        toy.land("d1"), toy.land("d2")
        assert [toy.tick(), toy.tick()] == [[], []]
        assert toy.tick() == [("of-d1", ["pack"])]
        toy.run("of-d1", "pack")
        assert toy.tick() == []


def test_the_next_tick_goes_on_after_the_last_key_with_the_one_that_follows(toy, monkeypatch):
    """Also where one key begins with the other, and where a key was looked into last."""
    monkeypatch.setattr(unfinished, "MOST_ASKED", 1)
    for key in ("d1-2", "d10", "d2"):
        toy.land(key)
    toy.tick(), toy.tick()
    seen: list[str] = []
    monkeypatch.setattr(unfinished, "_reason", lambda *those: seen.append(those[-1].partition))
    state = State.read(toy.look.cursor)
    state.asked_from = ""
    toy.look.cursor = state.write()
    for _ in range(5):
        assert toy.tick() == []
    assert seen == ["d1", "d1-2", "d10", "d2", "d1"]


def number(instance: dg.DagsterInstance, kind: dg.DagsterEventType, key: str) -> int:
    return instance.get_latest_storage_id_by_partition(pack.key, kind, {key})[key]


def test_an_answer_is_what_was_built_or_a_later_report_that_it_is_not(instance):
    keys = ["built", "then_refused", "refused", "noted", "then_built"]
    for key in ("built", "then_refused"):
        instance.report_runless_asset_event(dg.AssetMaterialization(pack.key, partition=key))
    for key in ("then_refused", "refused", "noted", "then_built"):
        status = {"status": "looked at" if key == "noted" else NOT_BUILT}
        report = dg.AssetObservation(pack.key, partition=key, metadata=status)
        instance.report_runless_asset_event(report)
    instance.report_runless_asset_event(dg.AssetMaterialization(pack.key, partition="then_built"))
    seen = dg.DagsterEventType.ASSET_OBSERVATION
    made = dg.DagsterEventType.ASSET_MATERIALIZATION
    reports = {key: number(instance, seen, key) for key in ("then_refused", "refused")}
    builds = {key: number(instance, made, key) for key in ("built", "then_built")}
    answers = newest_answers(instance, [pack, values], [*keys, "never_seen"])
    # What is built from a partition that is not built is skipped, and has that answer.
    assert answers == {pack.key: builds | reports, values.key: reports}
    assert newest_answers(instance, [pack], ["noted"]) == {pack.key: {}}
