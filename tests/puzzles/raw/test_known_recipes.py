"""Recipes of a data root: built in or from a file, and whether their input is there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from gristmill.contract import BadInput
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import ARRIVING, READY, REFUSED, UNREAD, WAITS
from gristmill.keys import BadKey
from gristmill.puzzles.raw import known_recipes as known
from gristmill.puzzles.raw.recipes import BUILT_IN, Recipe

ARC = 'kind = "arc"\nsources = ["tasks", "more/corpus"]\n'


@pytest.fixture
def lake(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path)


def put(lake: DataRoot, name: str, text: str) -> Path:
    path = lake.inbox("puzzles/recipes") / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_adds_a_recipe_or_takes_the_place_of_a_built_in_one(lake: DataRoot) -> None:
    assert known.recipes(lake) == dict(BUILT_IN)
    put(lake, "mine", ARC)
    put(lake, "domino-sample", 'kind = "domino"\nsettings.num_games = 7\n')
    put(lake, "broken", "kind = 3")
    put(lake, "not a key", ARC)
    every = known.recipes(lake)
    assert every["mine"] == Recipe("mine", "arc", ("tasks", "more/corpus"))
    assert every["domino-sample"].settings == {"num_games": 7}
    assert set(every) == {*BUILT_IN, "mine"}


def put_tasks(lake: DataRoot, source: str) -> Path:
    """Write a task of ARC into a source; returns its drop."""
    folder = lake.inbox("puzzles") / source / "training"
    folder.mkdir(parents=True)
    pair = {"input": [[0, 1]], "output": [[1, 0]]}
    (folder / "0.json").write_text(json.dumps({"train": [pair], "test": [pair]}))
    return lake.inbox("puzzles") / source.partition("/")[0]


def test_a_recipe_waits_until_all_its_sources_are_there(lake: DataRoot) -> None:
    path = put(lake, "mine", ARC)
    mine = known.recipes(lake)["mine"]
    assert known.missing_sources(lake, mine) == ["tasks", "more/corpus"]
    put_tasks(lake, "tasks")
    (lake.inbox("puzzles") / "more").mkdir()
    assert known.missing_sources(lake, mine) == ["more/corpus"]
    found = lake.judged("puzzles/recipes", path)
    assert found.state == READY
    assert "waits for drops/puzzles/more/corpus: bring it" in found.reason
    with pytest.raises(NotReady, match="mine waits for drops/puzzles/more/corpus") as caught:
        known.ready_sources(lake, mine)
    assert caught.value.state == WAITS
    more = put_tasks(lake, "more/corpus")
    assert lake.judged("puzzles/recipes", path).line == "ready"
    known.ready_sources(lake, mine)
    (more / ".incomplete").touch()
    assert lake.judged("puzzles/recipes", path).line.startswith("ready: ")
    with pytest.raises(NotReady, match="waits for drops/puzzles/more/corpus"):
        known.ready_sources(lake, mine)
    built_in = known.recipes(lake)["arc-aug-1000"]
    (put_tasks(lake, "arc_agi") / ".incomplete").touch()
    put_tasks(lake, "concept_arc/corpus")
    with pytest.raises(NotReady) as caught:
        known.ready_sources(lake, built_in)
    assert caught.value.state == ARRIVING
    assert known.missing_sources(lake, mine, lambda _, name: name == "more") == ["tasks"]


def test_a_drop_that_no_recipe_reads_says_which_one_to_write(lake: DataRoot) -> None:
    drop = put_tasks(lake, "tasks")
    found = lake.judged("puzzles", drop)
    assert found.state == UNREAD
    assert f"write {lake.inbox('puzzles/recipes')}/NAME.toml" in found.reason
    assert 'sources = ["tasks"]' in found.reason
    mistaken = put(lake, "mine", ARC.replace("arc", "Arc"))
    found = lake.judged("puzzles", drop)
    assert f"reads it: correct {mistaken}, which is refused, or write " in found.reason
    put(lake, "mine", ARC)
    found = lake.judged("puzzles", drop)
    assert (found.state, "the recipe mine waits for drops/puzzles/more/corpus" in found.reason) == (
        READY,
        True,
    )
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\n')
    assert lake.judged("puzzles", drop).line == "ready"


def test_a_drop_is_read_with_the_settings_of_its_builds(lake: DataRoot) -> None:
    drop = put_tasks(lake, "tasks")
    (drop / "training").rename(drop / "Evaluation")
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\n')
    assert "rename it" in lake.judged("puzzles", drop).reason
    settings = lake.root / "gristmill.toml"
    settings.write_text('[puzzles.arc]\nevaluation = ["Evaluation"]\n')
    assert lake.judged("puzzles", drop).line == "ready"
    (drop / "broken").mkdir()
    (drop / "broken/a.json").write_text("{")
    assert lake.judged("puzzles", drop).state == REFUSED
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\nsettings.subsets = ["Evaluation"]\n')
    assert lake.judged("puzzles", drop).line == "ready"
    settings.write_text("[puzzles.arc]\nevaluation = 3\n")
    assert "gristmill.toml" in lake.judged("puzzles", drop).reason


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("sudoku", ["a.txt", "sub/b.txt"]),
        ("arc", ["sub/a.json", "x_training_challenges.json", "sub/training/b.json"]),
    ],
)
def test_a_source_in_another_one_is_no_change_of_the_sources(
    lake: DataRoot, kind: str, read: list[str]
) -> None:
    path = put(lake, "mine", f'kind = "{kind}"\nsources = ["own", "own/sub"]\n')
    raw = [f"drops/puzzles/own/{name}" for name in read]
    assert known.recipe_change(path, lake.root, {}, raw) == ""
    assert known.recipe_change(path, lake.root, {}, raw[:-1]) == "the sources are now own, own/sub"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_folder_near_the_root_of_the_disk_is_no_drop_of_a_data_root(depth: int) -> None:
    folder = Path("/", *(f"no-such-{number}" for number in range(depth)))
    with pytest.raises(FileNotFoundError):
        known.drop_account(folder)


def test_a_recipe_is_wanted_by_a_drop_a_file_or_a_dataset_and_not_for_being_built_in(
    lake: DataRoot,
) -> None:
    assert known.wanted(lake) == set()
    (lake.inbox("puzzles") / "arc_agi").mkdir(parents=True)
    wanted = {name for name, recipe in BUILT_IN.items() if "arc_agi" in recipe.drops}
    assert wanted
    assert known.wanted(lake) == wanted
    put(lake, "mine", ARC)
    record = lake.root / "puzzles/domino-sample/provenance.json"
    record.parent.mkdir(parents=True)
    record.touch()
    assert known.wanted(lake) == {*wanted, "mine", "domino-sample"}


def test_a_partition_of_the_wrong_kind_names_the_right_asset(lake: DataRoot) -> None:
    put(lake, "mine", ARC)
    assert known.recipe_of(lake, "arc", "mine").kind == "arc"
    with pytest.raises(BadInput, match="mine is a recipe of the kind arc: build puzzles/arc, not"):
        known.recipe_of(lake, "sudoku", "mine")
    with pytest.raises(NotReady, match=r"never\.toml: the drop is gone: bring it back, or"):
        known.recipe_of(lake, "arc", "never")


def test_a_partition_that_is_no_key_names_no_file(lake: DataRoot) -> None:
    with pytest.raises(
        BadKey, match=r"^the name '\.\./\.\./x' may hold only ASCII letters"
    ) as caught:
        known.recipe_of(lake, "arc", "../../x")
    assert "retire" not in str(caught.value)


def test_a_name_that_a_dataset_of_another_kind_has_is_refused(
    lake: DataRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(lake, "mine", ARC)
    record = lake.root / "puzzles/mine/provenance.json"
    record.parent.mkdir(parents=True)
    record.touch()
    published = SimpleNamespace(asset="puzzles/maze")
    monkeypatch.setattr(known.provenance, "read_record", lambda _: published)
    found = lake.judged("puzzles/recipes", path)
    assert found.state == REFUSED
    assert "puzzles/maze has published a dataset of the name mine" in found.reason
    assert "mine" not in known.recipes(lake)
    with pytest.raises(BadInput, match="has published a dataset of the name mine"):
        known.recipe_of(lake, "arc", "mine")
    published.asset = "puzzles/arc"
    assert lake.judged("puzzles/recipes", path).line.startswith("ready: ")


def test_a_drop_without_a_recipe_gets_the_lines_that_fit_it(lake: DataRoot) -> None:
    board = "1" * 81
    for name, text, made in (
        ("mine/sudoku.csv", f"quizzes,solutions\n{board},{board}\n", '`kind = "sudoku"`'),
        ("own/a.jsonl", '{"input": [[1]], "output": [[2]]}\n', "`[settings]`, `values = 3`"),
    ):
        drop = lake.inbox("puzzles") / name.partition("/")[0]
        drop.mkdir(parents=True)
        (drop.parent / name).write_text(text)
        found = lake.judged("puzzles", drop)
        assert found.state == UNREAD
        assert made in found.reason and f'`sources = ["{drop.name}"]`' in found.reason
