"""Drops of corpora: which partitions the sensor asks for, tick by tick."""

import json
from pathlib import Path

import dagster as dg
import pytest

from assets.reasoning import FAMILY
from commands.graph import register
from gristmill.inbox import READY
from gristmill.reasoning.builds import today
from gristmill.reasoning.raw import available, keys_of
from resources import Lake
from tests.sensors.ticks import Ticks, partitions_of

INBOX, *_ = FAMILY.inboxes
RECORD = {"question": "One and one?", "answer": "1+1 = <<1+1=2>>2\n#### 2"}


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake: Lake) -> Ticks:
    return Ticks(INBOX, instance, lake)


def drop(lake: Lake, *files: str) -> Path:
    """Write files of one record; returns the drop of the last one."""
    for name in files:
        path = lake.inbox("reasoning") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(RECORD) + "\n")
    return path.parent


def requested(result: dg.SensorResult) -> list[str]:
    return ["-".join(partitions_of(request)) for request in result.run_requests or ()]


def test_a_settled_drop_starts_one_run_of_all_its_splits_and_a_later_split_another(tick, lake):
    drop(lake, "gsm8k/test.jsonl")
    assert requested(tick()) == []
    result = tick()
    assert requested(result) == ["gsm8k__test"]
    kinds = {
        (type(event).__name__, event.partition) for event in result.asset_events if event.partition
    }
    assert kinds == {("AssetObservation", "gsm8k__test"), ("AssetMaterialization", "gsm8k__test")}
    assert {event.asset_key for event in result.asset_events} == {INBOX.raw_drop}
    assert requested(tick()) == []
    drop(lake, "gsm8k/train-00000-of-00001.jsonl")
    assert requested(tick()) == []
    assert requested(tick()) == ["gsm8k__train-gsm8k__test"]


def test_audits_are_no_drop_and_an_unknown_corpus_names_the_missing_file(tick, lake):
    drop(lake, "audits/gsm8k__test.jsonl", "math/train.jsonl")
    tick()
    result = tick()
    assert requested(result) == []
    reason = str(result.skip_reason)
    assert "write a file corpus.toml" in reason and "gsm8k, cot_collection" in reason
    assert "drops/reasoning/audits" not in reason


def test_the_command_reports_a_drop_for_its_splits_once(instance, lake):
    def versions() -> dict[str, int]:
        events = instance.fetch_materializations(INBOX.raw_drop, limit=100).records
        keys = [record.partition_key for record in events]
        return {str(key): keys.count(key) for key in keys}

    drop(lake, "gsm8k/test.jsonl", "wiqa/dev.jsonl")
    assert register(instance, lake, INBOX) == []
    assert versions() == {"gsm8k__test": 1, "wiqa__validation": 1}
    assert register(instance, lake, INBOX) == []
    assert versions() == {"gsm8k__test": 1, "wiqa__validation": 1}
    drop(lake, "gsm8k/train.jsonl")
    assert register(instance, lake, INBOX) == []
    assert versions() == {"gsm8k__test": 2, "gsm8k__train": 1, "wiqa__validation": 1}


def test_what_is_available_are_the_splits_of_the_drops_and_the_day_of_the_report(lake):
    assert FAMILY.available is not None
    assert available(lake) == set() == FAMILY.available(lake)
    folder = drop(lake, "gsm8k/test.jsonl")
    drop(lake, "math/train.jsonl", "trip/readme.txt")
    assert available(lake) == {"gsm8k__test"}
    assert FAMILY.available(lake) == {"gsm8k__test", today().isoformat()}
    assert lake.judged("reasoning", folder).state == READY
    assert keys_of(folder) == ["gsm8k__test"]
