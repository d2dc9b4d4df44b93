"""The inboxes of puzzles: which runs a raw drop and a recipe file start, tick by tick."""

from collections.abc import Callable

import dagster as dg
import pytest

import definitions
from assets import versions
from assets.puzzles import FAMILY
from commands.graph import register
from gristmill.inbox import REFUSED
from gristmill.puzzles.builds import wanted
from resources import Lake
from tests.assets.puzzles.drops import put_recipe, put_tasks
from tests.sensors.ticks import Ticks, partitions_of

Tick = Callable[[], list[tuple[str, str | None]]]


@pytest.fixture
def look(lake: Lake, instance: dg.DagsterInstance) -> Tick:
    """One look of both sensors: assets and partitions of the runs that they request."""
    defs = definitions.build_defs({"lake": lake})
    graph = defs.resolve_implicit_global_asset_job_def()
    ticks = [Ticks(inbox, instance, lake, defs, adds=True) for inbox in FAMILY.inboxes]

    def tick() -> list[tuple[str, str | None]]:
        found = []
        for tick_of_inbox in ticks:
            for request in tick_of_inbox().run_requests or []:
                (asset,) = request.asset_selection or []
                keys = partitions_of(request)
                found += [(asset.to_user_string(), key) for key in keys]
                job = graph.get_subset(asset_selection=frozenset({asset}))
                instance.create_run_for_job(job_def=job, tags=versions.run_tags(keys))
        return found

    return tick


def keys(instance: dg.DagsterInstance, kind: str) -> set[str]:
    return set(instance.get_dynamic_partitions(f"puzzles_{kind}_recipes"))


def test_a_drop_starts_the_recipes_whose_sources_are_then_all_there(look, lake, instance):
    put_tasks(lake, "arc_agi")
    put_recipe(lake, "alone", "arc", ["arc_agi"])
    look()
    # Each once, though two inboxes could start the first one.
    assert look() == [("puzzles/arc", "arc-1-aug-20"), ("puzzles/arc", "alone")]
    # The one that waits for another drop is a partition, and one that no drop is for is none.
    assert keys(instance, "arc") == {"alone", "arc-aug-20", "arc-1-aug-20"}
    put_tasks(lake, "concept_arc/corpus")
    look()
    assert look() == [("puzzles/arc", "arc-aug-20")]
    assert look() == []
    assert set(instance.get_dynamic_partitions("puzzles_sources")) == {"arc_agi", "concept_arc"}
    assert list(instance.get_dynamic_partitions("puzzles_recipes")) == ["alone"]


def test_a_recipe_that_comes_after_its_drop_starts(look, lake, instance):
    put_tasks(lake, "tasks")
    assert look() + look() == []
    assert list(instance.get_dynamic_partitions("puzzles_sources")) == []  # nothing reads it
    put_recipe(lake, "late", "arc", ["tasks"])
    assert look() + look() + look() == [("puzzles/arc", "late")]
    assert list(instance.get_dynamic_partitions("puzzles_sources")) == ["tasks"]
    put_recipe(lake, "late", "arc", ["tasks"], num_aug=3)
    look()
    assert look() == [("puzzles/arc", "late")]


def test_a_drop_that_is_still_arriving_starts_nothing_by_another(look, lake):
    put_tasks(lake, "arc_agi")
    look()
    put_tasks(lake, "concept_arc/corpus")
    # The corpus has been seen once: ARC is alone as yet.
    assert look() == [("puzzles/arc", "arc-1-aug-20")]
    assert look() == [("puzzles/arc", "arc-aug-20")]


def test_arc_alone_is_not_built_beside_the_dataset_that_takes_it_in(look, lake):
    for name in ("arc_agi", "concept_arc/corpus"):
        put_tasks(lake, name)
    look()
    assert look() == [("puzzles/arc", "arc-aug-20")]
    assert "arc-aug-20" in wanted(lake) and "arc-1-aug-20" not in wanted(lake)
    standing = lake.root / "puzzles" / "arc-1-aug-20"
    standing.mkdir(parents=True)
    (standing / "provenance.json").write_text('{"asset": "puzzles/arc"}')
    assert {"arc-aug-20", "arc-1-aug-20"} <= wanted(lake), "what stands is kept current"
    put_tasks(lake, "arc_agi", number=2)
    look()
    assert sorted(look()) == [("puzzles/arc", "arc-1-aug-20"), ("puzzles/arc", "arc-aug-20")]


def test_a_thousand_augmentations_are_built_for_who_asks(look, lake):
    put_tasks(lake, "arc_agi")
    look()
    assert look() == [("puzzles/arc", "arc-1-aug-20")]
    assert wanted(lake) == {"arc-1-aug-20", "arc-aug-20"}  # one waits for another drop
    standing = lake.root / "puzzles" / "arc-1-aug-1000"
    standing.mkdir(parents=True)
    (standing / "provenance.json").write_text('{"asset": "puzzles/arc"}')
    put_tasks(lake, "arc_agi", number=2)
    look()
    assert look() == [("puzzles/arc", "arc-1-aug-1000")], "what stands is current, and no try"
    assert wanted(lake) == {"arc-1-aug-1000", "arc-aug-20"}
    put_recipe(lake, "arc-aug-1000", "arc", ["arc_agi", "concept_arc/corpus"], num_aug=1000)
    assert "arc-aug-1000" in wanted(lake)


def test_a_replaced_drop_starts_its_recipes_and_games_need_none(look, lake, instance):
    put_tasks(lake, "tasks")
    put_recipe(lake, "mine", "arc", ["tasks"])
    look(), look()
    put_tasks(lake, "tasks", number=2)
    look()
    assert look() == [("puzzles/arc", "mine")]
    put_recipe(lake, "games", "domino", num_games=5)
    look()
    assert look() == [("puzzles/domino", "games")]


def test_the_command_registers_recipe_files_and_drops(lake, instance):
    put_tasks(lake, "tasks")
    put_recipe(lake, "mine", "arc", ["tasks"])
    put_recipe(lake, "arc-aug-20", "sudoku", ["tasks"])
    (lake.inbox("puzzles") / "empty").mkdir()
    empty, recipe = (drop for inbox in FAMILY.inboxes for drop in register(instance, lake, inbox))
    assert (empty.key, empty.state) == ("empty", REFUSED)
    assert "holds no file" in empty.reason
    assert (recipe.key, recipe.state) == ("arc-aug-20", REFUSED)
    assert "has the kind arc, and a name has one kind" in recipe.reason
    assert (keys(instance, "arc"), keys(instance, "sudoku")) == ({"mine"}, set())
    assert list(instance.get_dynamic_partitions("puzzles_sources")) == ["tasks"]


def test_a_drop_with_a_table_of_settings_is_refused(lake):
    folder = put_tasks(lake, "tasks")
    (folder / "gristmill.toml").write_text("[puzzles.arc]\nnum_aug = 3\n")
    found = lake.judged("puzzles", folder)
    assert found.state == REFUSED
    assert "is not read from a drop in drops/puzzles/" in found.reason
