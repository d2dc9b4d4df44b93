"""The check of notes on packs, and the views that a drop of annotations starts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checking.evaluations import THIS_RUN
from assets.family import disk_checks
from assets.macroxue import FAMILY
from gristmill.macroxue.laws import game_notes
from gristmill.macroxue.read.stream import StepStream
from gristmill.macroxue.samples import write_drop
from resources import Lake
from tests.assets.helpers import built

pack = built("macroxue/pack")
(CHECK,) = disk_checks(pack, "macroxue/packs", notes=game_notes)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("macroxue_drops", ["plain", "noted"])
        yield made


def evaluate(instance: dg.DagsterInstance, lake: Lake, key: str | None, **config: Any) -> Any:
    """Build the pack of `key` and check it; without a key check all that is published."""
    chosen = dg.AssetSelection.checks(CHECK)
    selection = chosen if key is None else dg.AssetSelection.assets(pack) | chosen
    made = dg.Definitions(
        assets=FAMILY.assets,
        asset_checks=[CHECK],
        resources={"lake": lake},
        jobs=[dg.define_asset_job("job", selection=selection)],
    )
    run_config = {"ops": {pack.op.name: {"config": config}}} if key else None
    result = made.resolve_job_def("job").execute_in_process(run_config, instance, partition_key=key)
    checks = {done.check_name: done for done in result.get_asset_check_evaluations()}
    assert set(checks) == {"built", "intact", "lawful", "noteworthy"}
    return checks["noteworthy"]


def said(evaluation: dg.AssetCheckEvaluation) -> str:
    return str(evaluation.metadata[THIS_RUN].value)


def test_notes_are_a_warning_that_names_them(instance, tmp_path):
    lake = Lake(data_root=str(tmp_path))
    for key in ("plain", "noted"):
        write_drop(lake.inbox("macroxue") / key, seed=1, games=2, max_moves=60, depth=6)
    meta = min((lake.inbox("macroxue") / "noted").glob("*.meta.json"))
    facts = json.loads(meta.read_text())
    meta.write_text(json.dumps({**facts, "score": facts["score"] + 4}))
    plain = evaluate(instance, lake, "plain")
    assert (plain.passed, said(plain)) == (
        True,
        "partitions of it: plain; 1 looked at, nothing found",
    )
    noted = evaluate(instance, lake, "noted", game_laws="warn")
    assert (noted.passed, noted.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "; 1 looked at, findings: " in said(noted)
    assert "score_differs" in noted.description
    assert "noted: run " in noted.metadata["listed"].value
    everything = evaluate(instance, lake, None)
    # Files choose another value of game_laws than this run.
    assert said(everything) == "everything published; 2 looked at, findings: 2"
    (row,) = everything.metadata["findings"].value.records
    assert row.data["partition"] == "noted"
    assert r"built with game_laws" in everything.metadata["listed"].value


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The packs of which all rows are read, once for each time."""
    read: list[Path] = []
    batches = StepStream.batches

    def counted(self: StepStream, **options: Any) -> Any:
        read.append(self.folder)
        return batches(self, **options)

    monkeypatch.setattr(StepStream, "batches", counted)
    return read


def test_a_run_notes_what_is_unusual_in_the_pass_of_its_laws(instance, tmp_path, passes):
    lake = Lake(data_root=str(tmp_path))
    # Each fifth game of this drop starts on a board with a 65536.
    drop = lake.inbox("macroxue") / "noted"
    write_drop(drop, seed=1, games=5, max_moves=40, depth=7, legacy=True)
    in_run = evaluate(instance, lake, "noted")
    assert "started_late" in in_run.description
    assert len(passes) == 1  # of the staged pack, by the laws
    published = tmp_path / "macroxue/packs/noted"
    passes.clear()
    alone = evaluate(instance, lake, None)
    assert passes == [published]  # by the laws; the notes are in the record
    assert alone.metadata["listed"] == in_run.metadata["listed"]
    passes.clear()
    again = evaluate(instance, lake, "noted")  # unchanged: built by another run
    assert passes == [published]
    assert again.metadata["listed"] == in_run.metadata["listed"]


def test_notes_of_laws_left_out_are_looked_for_before_the_commit(instance, tmp_path, passes):
    lake = Lake(data_root=str(tmp_path))
    write_drop(lake.inbox("macroxue") / "plain", seed=1, games=2, max_moves=60, depth=6)
    evaluate(instance, lake, "plain", game_laws="warn")
    assert [folder.name for folder in passes] == ["staging"]


def test_annotations_start_the_views_that_name_them(lake, instance):
    views = lake.inbox("views")
    views.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("one", 'pack = "a"\nannotations = "s"\n'),
        ("two", 'pack = "a"\nannotations = "other"\n'),
        ("waits", 'pack = "a"\nannotations = "s"\n'),
        ("wrong", "pack = 3\n"),
    ):
        (views / f"{name}.toml").write_text(text)
    instance.add_dynamic_partitions("macroxue_views", ["one", "two", "wrong"])
    (inbox,) = (each for each in FAMILY.inboxes if each.folder == "annotations")
    assert inbox.starts is not None
    (start,) = inbox.starts(instance, lake.inbox("annotations") / "s", {"s"})
    assert (start.partition, start.waiting) == ("one", "")
    (asset,) = start.assets
    assert asset.key.to_user_string() == "macroxue/training_view"
