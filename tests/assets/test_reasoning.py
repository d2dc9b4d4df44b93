"""The checks of a daily report, on reports that are as they should not be."""

import json
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.reasoning import (
    FAMILY,
    _rebuilding,
    reasoning_audit_sample,
    reasoning_daily_report,
    reasoning_days,
    reasoning_weekly_audits,
)
from definitions import build_defs
from gristmill.contract import Violation
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import names
from resources import Lake
from tests.assets.helpers import built, built_by
from tests.report_day import working_on

GOOD: dict[str, Any] = {
    "splits": {"gsm8k__test": {"examples": 3, "shards": 1, "alignment_coverage": 1.0}},
    "invariance": {"breaches": []},
    "gate": {"passed": True, "baseline": None, "breaches": []},
}


def checked(lake: Lake, *reports: dict[str, Any]) -> dict[str, tuple[bool, str, str]]:
    """Evaluate the checks over reports of consecutive days: passed, severity, description."""
    folder = lake.root / names.REPORTS
    folder.mkdir(parents=True)
    for day, report in enumerate(reports, 1):
        (folder / f"2026-11-{day:02d}.json").write_text(json.dumps(report))
    keys = [dg.AssetCheckKey(built("reasoning/qc_report").key, name) for name in NAMES]
    result = dg.materialize(
        [*FAMILY.assets, *FAMILY.checks],
        selection=dg.AssetSelection.checks(*keys),
        resources={"lake": lake},
        raise_on_error=False,
    )
    return {
        each.check_name: (each.passed, each.severity.value, str(each.description))
        for each in result.get_asset_check_evaluations()
    }


_ALIGNED = {"examples": 3, "aligned": 0}
NAMES = ("drift", "invariance", "coverage")


def test_a_good_report_passes_and_the_newest_one_counts(lake):
    bad = GOOD | {"gate": {"passed": False, "baseline": None, "breaches": ["tokens"]}}
    found = checked(lake, bad, GOOD)
    assert {name: passed for name, (passed, _, _) in found.items()} == dict.fromkeys(NAMES, True)
    assert "2026-11-02" in found["drift"][2]


@pytest.mark.parametrize(
    ("change", "name", "severity", "words"),
    [
        (
            {"gate": {"passed": False, "baseline": "2026-11-01", "breaches": ["more tokens"]}},
            "drift",
            "ERROR",
            "(2026-11-01): 2026-11-01: report: more tokens",
        ),
        ({"invariance": {"breaches": ["crlf changes 2 %"]}}, "invariance", "ERROR", "crlf"),
        (
            {"splits": {"wiqa__test": {**_ALIGNED, "alignment_coverage": 0.0}}},
            "coverage",
            "WARN",
            "no example has steps",
        ),
        (
            {"splits": {"wiqa__test": {**_ALIGNED, "alignment_coverage": None}}},
            "coverage",
            "WARN",
            "no example has steps",
        ),
        (
            {"datasets": {"mine": {"splits": {"a__b": {**_ALIGNED, "alignment_coverage": 0.0}}}}},
            "coverage",
            "WARN",
            "mine/a__b: no example has steps",
        ),
    ],
)
def test_what_is_wrong_fails_its_check_alone(lake, change, name, severity, words):
    found = checked(lake, GOOD | change)
    assert {each for each, (passed, _, _) in found.items() if not passed} == {name}
    assert found[name][1] == severity
    assert words in found[name][2]


def test_a_split_without_examples_and_no_report_at_all_are_no_failure(lake):
    empty = {"splits": {"wiqa__test": {"examples": 0, "alignment_coverage": None}}}
    splits = {"a__b": {"examples": 3, "alignment_coverage": None}}
    without_alignments = {"datasets": {"mine": {"splits": splits}}}
    found = checked(lake, GOOD | empty | without_alignments)
    assert all(passed for passed, _, _ in found.values())


def test_without_a_report_nothing_fails(lake, tmp_path):
    found = checked(lake)
    assert all(passed for passed, _, _ in found.values())
    assert "nothing is published" in found["drift"][2]


def test_laws_drift_and_invariance_stop_what_follows_in_the_run():
    blocking = {
        (spec.asset_key.to_user_string(), spec.name)
        for check in FAMILY.checks
        for spec in check.check_specs
        if spec.blocking
    }
    followed = [name for name in built_by("reasoning") if name != "audits/leaks"]
    assert blocking == {(name, "lawful") for name in followed} | {
        *((name, "clean") for name in ("chat/conversations", "reasoning/normalized")),
        ("reasoning/qc_report", "drift"),
        ("reasoning/qc_report", "invariance"),
    }


SHARDS = "gristmill materialize reasoning/gpt2_shards --partition"


@pytest.mark.parametrize(
    ("law", "where", "found", "commands"),
    [
        ("sha256", "trip/train/shard_00002.pt", "x", [f"{SHARDS} trip__train"]),
        ("meta", "trip/train/shard_00002.meta.json", "x", [f"{SHARDS} trip__train"]),
        ("manifest", "manifest.json", "does not list a_b/c/shard_00000.pt", [f"{SHARDS} a_b__c"]),
        ("manifest", "manifest.json", "is missing", []),
        (
            "normalised file",
            "/data/reasoning/raw/wiqa/test.jsonl",
            "x",
            [
                "gristmill materialize reasoning/normalized --partition wiqa__test",
                "gristmill materialize reasoning/raw_manifest",
            ],
        ),
        (
            "normalised file",
            "/data/reasoning/raw/own/train/00001.jsonl",
            "x",
            [
                "gristmill materialize reasoning/normalized --partition own__train",
                "gristmill materialize reasoning/raw_manifest",
            ],
        ),
        (
            "raw manifest",
            "/data/reasoning/raw/manifest.json",
            "x",
            ["gristmill materialize reasoning/raw_manifest"],
        ),
    ],
)
def test_the_cure_of_checksums_builds_what_differs_again(law, where, found, commands):
    all_of_it = [*commands, "gristmill materialize reasoning/manifest"]
    said = "run " + ", then ".join(f"`{each} --rebuild`" for each in all_of_it)
    assert _rebuilding("reasoning/manifest", "", [Violation(law, where, found)] * 2) == said


def test_the_cure_of_checksums_names_eight_partitions_and_days_end_with_the_current_one():
    many = [Violation("sha256", f"c{n:02d}/train/shard_00000.pt", "x") for n in range(20)]
    said = _rebuilding("reasoning/manifest", "", many)
    assert said.count("--partition ") == 8 and "--partition c07__train --rebuild`" in said
    before, last = today().isoformat(), reasoning_days.get_last_partition_key()
    assert before <= str(last) <= today().isoformat()
    assert reasoning_days.timezone == "UTC"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def test_the_daily_and_the_weekly_schedule_ask_for_one_run_each(instance):
    context = dg.build_schedule_context(
        instance=instance, repository_def=build_defs().get_repository_def()
    )
    with working_on("2026-11-28"):
        (request,) = reasoning_daily_report.evaluate_tick(context).run_requests or ()
    assert request.partition_key == request.run_key == "2026-11-28"
    context = dg.build_schedule_context(instance=instance)
    (request,) = reasoning_weekly_audits.evaluate_tick(context).run_requests or ()
    assert request.partition_key is None


def test_the_weekly_job_reports_what_it_draws(instance, tmp_path, monkeypatch):
    key = dg.AssetKey(["reasoning", "alignment"])
    drawn = [dg.AssetObservation(key, partition=name) for name in ("gsm8k__test", "wiqa__test")]
    monkeypatch.setattr("assets.reasoning.observations", lambda _: iter(drawn))
    done = reasoning_audit_sample.execute_in_process(
        instance=instance, resources={"lake": Lake(data_root=str(tmp_path))}
    )
    seen = [
        event.asset_observation_data.asset_observation
        for event in done.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    assert [(each.asset_key, each.partition) for each in seen] == [
        (key, "gsm8k__test"),
        (key, "wiqa__test"),
    ]
