"""Recipes of a data root: built in or from a file, and whether their input is there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from assets.puzzles import recipes as found
from gristmill.contract import BadInput, NothingToBuild
from gristmill.keys import BadKey
from gristmill.puzzles.raw.known_recipes import (
    available,
    check_sources,
    missing_sources,
    recipe_of,
    refusal,
)
from gristmill.puzzles.raw.recipes import BUILT_IN, Recipe
from resources import Lake

ARC = 'kind = "arc"\nsources = ["tasks", "more/corpus"]\n'


def put(lake: Lake, name: str, text: str) -> Path:
    path = lake.inbox("puzzles/recipes") / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_adds_a_recipe_or_takes_the_place_of_a_built_in_one(lake: Lake) -> None:
    assert found.recipes(lake) == dict(BUILT_IN)
    put(lake, "mine", ARC)
    put(lake, "domino-sample", 'kind = "domino"\nsettings.num_games = 7\n')
    put(lake, "broken", "kind = 3")
    put(lake, "not a key", ARC)
    every = found.recipes(lake)
    assert every["mine"] == Recipe("mine", "arc", ("tasks", "more/corpus"))
    assert every["domino-sample"].settings == {"num_games": 7}
    assert set(every) == {*BUILT_IN, "mine"}


def test_a_recipe_is_available_when_all_its_sources_are_there(lake: Lake) -> None:
    put(lake, "mine", ARC)
    always = {"domino-optimal-play", "domino-sample"}
    assert available(lake) == always
    (lake.inbox("puzzles") / "tasks").mkdir()
    (lake.inbox("puzzles") / "more").mkdir()
    assert available(lake) == always
    mine = found.recipes(lake)["mine"]
    assert missing_sources(lake, mine) == ["more/corpus"]
    with pytest.raises(NothingToBuild, match="no folder drops/puzzles/more/corpus"):
        check_sources(lake, mine)
    (lake.inbox("puzzles") / "more/corpus").mkdir()
    assert available(lake) == {*always, "mine"}
    check_sources(lake, mine)
    assert missing_sources(lake, mine, known=["more"]) == ["tasks"]


def test_a_partition_of_the_wrong_kind_names_the_right_asset(lake: Lake) -> None:
    put(lake, "mine", ARC)
    assert recipe_of(lake, "arc", "mine").kind == "arc"
    with pytest.raises(BadInput, match="mine is a recipe of the kind arc: build puzzles/arc, not"):
        recipe_of(lake, "sudoku", "mine")
    with pytest.raises(BadInput, match="the recipe file is gone"):
        recipe_of(lake, "arc", "never")


def test_a_partition_that_is_no_key_names_no_file(lake: Lake) -> None:
    with pytest.raises(
        BadKey, match=r"^the name '\.\./\.\./x' may hold only ASCII letters"
    ) as caught:
        recipe_of(lake, "arc", "../../x")
    assert "retire" not in str(caught.value)


def test_a_name_that_a_dataset_of_another_kind_has_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(lake, "mine", ARC)
    record = lake.root / "puzzles/mine/provenance.json"
    record.parent.mkdir(parents=True)
    record.touch()
    published = SimpleNamespace(asset="puzzles/maze")
    monkeypatch.setattr(found.provenance, "read_record", lambda _: published)
    assert "puzzles/maze has published a dataset of the name mine" in str(refusal(path))
    assert "mine" not in found.recipes(lake)
    with pytest.raises(BadInput, match="has published a dataset of the name mine"):
        recipe_of(lake, "arc", "mine")
    published.asset = "puzzles/arc"
    assert refusal(path) is None
