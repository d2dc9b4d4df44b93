"""Puzzles through Dagster: recipes to datasets, with their records and checks."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dagster as dg
import numpy as np
import pytest

import definitions
from assets.puzzles import BUILT_IN_KEYS, FAMILY
from gristmill import provenance
from gristmill.contract import FileNote, NothingToBuild, Summary
from gristmill.puzzles import PuzzleExamples, builds
from gristmill.puzzles.raw import drops
from resources import Lake
from tests.assets.helpers import built, built_by, failure, materialized, metadata, not_built
from tests.assets.puzzles.drops import put_recipe, put_tasks

Build = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Build:
    """Materialize a recipe, with the checks of its asset."""

    def materialize(kind: str, name: str, **config: object) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions(f"puzzles_{kind}_recipes", [name])
        assets = [*FAMILY.assets, *FAMILY.checks]
        return materialized(built(f"puzzles/{kind}"), assets, lake, instance, name, **config)

    return materialize


def record(lake: Lake, name: str) -> provenance.Record:
    return provenance.read_record(lake.root / "puzzles" / name / provenance.RECORD)


def test_equal_tasks_are_noteworthy_and_named_in_the_event(build, lake):
    folder = put_tasks(lake, "tasks")
    (task,) = (folder / "training").iterdir()
    shutil.copy(task, folder / "training" / "again.json")
    put_recipe(lake, "mine", "arc", ["tasks"], num_aug=1)
    result = build("arc", "mine")
    assert result.success, failure(result)
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert {name for name, check in checks.items() if not check.passed} == {"noteworthy"}
    assert checks["noteworthy"].severity == dg.AssetCheckSeverity.WARN
    assert "1 tasks have the pairs of an earlier one" in str(checks["noteworthy"].metadata)
    assert record(lake, "mine").counts["equal_tasks"] == 1


def test_a_recipe_of_games_becomes_a_dataset_with_record_and_checks(build, lake):
    put_recipe(lake, "games", "domino", num_games=20, num_aug=1)
    result = build("domino", "games")
    assert result.success, failure(result)
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert {name: check.passed for name, check in checks.items()} == {
        "built": True,
        "intact": True,
        "lawful": True,
        "noteworthy": True,
    }
    shown = metadata(result)
    assert "picture" in shown
    assert shown["dagster/row_count"] == sum(
        record(lake, "games").counts[f"examples/{split}"] for split in ("train", "test")
    )
    assert all(output.payload for output in record(lake, "games").outputs)
    assert record(lake, "games").config["num_games"] == 20
    assert provenance.verify(lake.root) == []
    assert metadata(build("domino", "games"))["status"] == "unchanged"


@pytest.mark.slow
def test_a_dataset_of_before_with_a_report_is_intact_and_read(build, lake, monkeypatch):
    """Versions up to 0.9 wrote `report.html`, which is no payload."""

    def with_report(*args: Any) -> Summary:
        summary: Summary = make(*args)
        (args[2].out / "report.html").write_text("<p>of before</p>")
        files = {**summary.files, "report.html": FileNote(payload=False)}
        return replace(summary, files=files)

    put_recipe(lake, "games", "domino", num_games=20)
    make = builds._make
    with monkeypatch.context() as patch:
        patch.setattr(builds, "_make", with_report)
        assert build("domino", "games").success
    folder = lake.root / "puzzles/games"
    assert provenance.verify(folder, data_root=lake.root) == []
    assert PuzzleExamples(folder)[0]["inputs"].shape == (72,)
    assert metadata(build("domino", "games"))["status"] == "unchanged"
    assert (folder / "report.html").exists()


def test_the_launchpad_comes_before_the_recipe_and_that_before_the_data_root(build, lake):
    put_recipe(lake, "games", "domino", num_games=20)
    (lake.root / "gristmill.toml").write_text(
        '[puzzles.domino]\nnum_games = 5\nnum_aug = 1\ndtype = "uint8"\n'
    )
    result = build("domino", "games", dtype="int32")
    assert result.success, failure(result)
    config = record(lake, "games").config
    assert (config["num_games"], config["num_aug"], config["dtype"]) == (20, 1, "int32")
    inputs = np.load(lake.root / "puzzles/games/train/all__inputs.npy")
    assert inputs.dtype == np.int32


def test_the_files_of_all_sources_are_inputs_of_the_record(build, lake):
    put_tasks(lake, "one")
    put_tasks(lake, "two/corpus")
    (lake.inbox("puzzles") / "two/corpus/README.md").write_text("no task")
    put_recipe(lake, "both", "arc", ["one", "two/corpus"], num_aug=2)
    result = build("arc", "both")
    assert result.success, failure(result)
    assert [(item.partition, item.path) for item in record(lake, "both").inputs] == [
        ("one", "drops/puzzles/one/evaluation/onee.json"),
        ("one", "drops/puzzles/one/training/onet0.json"),
        ("two", "drops/puzzles/two/corpus/evaluation/two-corpuse.json"),
        ("two", "drops/puzzles/two/corpus/training/two-corpust0.json"),
    ]
    first = record(lake, "both").data_version
    put_tasks(lake, "one", number=2)
    assert build("arc", "both").success
    assert record(lake, "both").data_version != first


def test_a_task_that_comes_while_its_drop_is_read_is_not_built_unseen(build, lake, monkeypatch):
    put_tasks(lake, "tasks")
    put_recipe(lake, "mine", "arc", ["tasks"], num_aug=0)
    real = builds._make

    def late(*arguments: object) -> object:
        put_tasks(lake, "tasks", number=2)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(builds, "_make", late)
    assert "files were added or removed while they were read" in failure(build("arc", "mine"))
    assert not (lake.root / "puzzles/mine").exists()


def test_a_recipe_without_its_drop_or_the_room_on_the_disk_is_not_begun(build, lake):
    reason = not_built(build("arc", "arc-aug-1000"))
    assert "waits for drops/puzzles/arc_agi, drops/puzzles/concept_arc/corpus" in reason
    with pytest.raises(NothingToBuild, match="drops/puzzles/sudoku-extreme"):
        definitions.build_of("puzzles/sudoku", lake, "sudoku-extreme-full")
    assert drops.INBOX == "puzzles"
    put_recipe(lake, "games", "domino", num_games=10**8, num_aug=10**6)
    assert "games: needs about" in failure(build("domino", "games"))
    assert not (lake.root / "puzzles/games").exists()


def test_a_published_name_is_not_given_to_another_kind(build, lake):
    put_tasks(lake, "tasks")
    put_recipe(lake, "mine", "domino", num_games=5)
    assert build("domino", "mine").success
    before = record(lake, "mine")
    put_recipe(lake, "mine", "arc", ["tasks"])
    assert "has published a dataset of the name mine" in failure(build("arc", "mine"))
    assert record(lake, "mine") == before


def test_names_of_built_in_recipes_are_partitions_of_their_kind_alone():
    every = [name for names in BUILT_IN_KEYS.values() for name in names]
    assert len(every) == len(set(every))
    assert set(BUILT_IN_KEYS) == {each.partitions_def.name for each in built_by("puzzles").values()}
