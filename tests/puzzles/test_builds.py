"""Builds of puzzles by recipes, and what the family declares."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.lights_out import LightsOutConfig, build_lights_out
from gristmill import dispatch
from gristmill.data_root import DataRoot
from gristmill.families import Misuse, Request
from gristmill.inbox.listing import column_lines
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.builds import (
    RECIPES_INBOX,
    Estimate,
    drop_account,
    drop_columns,
    estimate,
    place_of,
    settings_of,
)
from gristmill.puzzles.config import BUILT_IN, KINDS, ArcConfig, DominoConfig, SudokuConfig
from gristmill.puzzles.family import CATALOG
from gristmill.run.parts import PartStore
from gristmill.samples import show, trace
from gristmill.settings.tables import Settings
from gristmill.untrusted.files import REFUSE_LINKS
from tests.puzzles import arc_tasks
from tests.puzzles.kinds import built, config_of

OWN = 'kind = "maze"\nsources = ["here"]\n[settings]\naug = true\n'


@pytest.mark.parametrize(
    ("key", "field", "source", "target"),
    [
        ("maze-sample", "aug", "the built-in recipe maze-sample", "[settings] in OWN, a recipe"),
        ("maze-sample", "seed", "FILE", "[puzzles.maze] in FILE"),
        ("maze-sample", "dtype", "the default", "[puzzles.maze] in FILE"),
        ("mine", "aug", "OWN", "[settings] in OWN"),
        ("mine", "dtype", "the default", "[settings] in OWN"),
    ],
)
def test_a_value_is_written_where_it_counts_for_the_dataset_of_this_recipe(
    tmp_path, key, field, source, target
):
    lake = DataRoot(tmp_path)
    file, own = tmp_path / "gristmill.toml", lake.inbox(RECIPES_INBOX) / f"{key}.toml"
    file.write_text("[puzzles.maze]\nseed = 3\n")
    own.parent.mkdir(parents=True)
    (own.parent / "mine.toml").write_text(OWN)
    gives, takes = place_of(lake, key, field, settings_of("maze", lake, key))
    assert gives == source.replace("OWN", str(own)).replace("FILE", str(file))
    assert takes.startswith(target.replace("OWN", str(own)).replace("FILE", str(file)))


def test_the_table_of_a_recipe_that_is_gone_has_no_name(tmp_path):
    file = tmp_path / "gristmill.toml"
    found = place_of(DataRoot(tmp_path), "gone", "seed", Settings({}, file=file))
    assert found == ("the default", f"its table in {file}")


def _files(*folders: Path) -> list[tuple[str, int]]:
    return [
        (path.as_posix(), path.stat().st_size)
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    ]


@pytest.mark.parametrize(
    ("kind", "settings", "most"),
    [
        *(
            ("sudoku", {"num_aug": num_aug, "dtype": dtype}, 1.6)
            for num_aug in (0, 9)
            for dtype in ("int32", "uint8")
        ),
        *(("maze", {"aug": aug}, 2) for aug in (False, True)),
        *(("domino", {"num_aug": 3, "subsample_size": size}, 1.5) for size in (None, 100)),
    ],
)
def test_a_build_takes_no_more_than_is_said_of_it_and_not_much_less(tmp_path, kind, settings, most):
    out = built(kind, tmp_path, PartStore(tmp_path / "kept/parts"), **settings)
    taken = sum(
        size for path, size in _files(out, tmp_path / "kept") if path.endswith((".npy", ".part"))
    )
    headers = 16 * 128 if kind == "maze" else 0  # they count in a dataset as small as this
    said = estimate(config_of(kind, **settings), _files(tmp_path / "drop")).bytes
    assert taken - headers <= said <= most * taken


def test_only_the_chosen_sudokus_of_training_count():
    files = [("a/train.csv", 162_000), ("a/test.csv", 1620)]
    assert estimate(SudokuConfig(num_aug=1), files).bytes == 162 * 1010 + (2000 + 10) * (
        162 * 5 + 40
    )
    chosen = SudokuConfig(num_aug=1, subsample_size=100)
    assert estimate(chosen, files).bytes == 162 * 1010 + (200 + 10) * (162 * 5 + 40)
    assert estimate(SudokuConfig(), [("bank.txt", 810)]).bytes == 162 * 10 + 10 * (162 * 5 + 40)


@pytest.mark.parametrize("indent", [None, 2])
def test_arc_counts_pairs_by_their_grids(tmp_path, indent):
    tasks = {f"training/{n}": arc_tasks.task(n, train=3, test=n) for n in range(1, 5)}
    drop = arc_tasks.write(tmp_path / "arc", tasks)
    for path in drop.rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=indent))
    files = [(f"arc/{name}.json", (drop / f"{name}.json").stat().st_size) for name in tasks]
    assert estimate(ArcConfig(num_aug=0), files, tmp_path).bytes == 22 * (1800 * 5 + 40)
    config = ArcConfig(num_aug=9, dtype="uint8")
    assert estimate(config, files, tmp_path).bytes == 22 * 10 * (1800 * 2 + 40)
    assert (
        0.9 < estimate(config, files * 99, tmp_path).bytes / (22 * 10 * (1800 * 2 + 40) * 99) < 1.1
    )


def test_a_config_of_no_kind_needs_nothing_that_is_known():
    assert estimate(object(), [("a", 10)]) == Estimate()


def test_the_columns_of_a_table_are_those_that_its_recipe_names_and_others(tmp_path):
    drop, recipes = tmp_path / "drops/puzzles/mine", tmp_path / "drops/puzzles/recipes"
    drop.mkdir(parents=True)
    recipes.mkdir()
    board = "53" + "." * 79
    header = "\ufeffId,Puzzle,Solution,Rating,Clues,Note\n"
    (drop / "own.csv").write_text(header + f"x1,{board},{'1' * 81},3,2,so\n" * 3)

    def lines() -> list[str]:
        account = drop_account(drop, REFUSE_LINKS)
        return column_lines(drop_columns(drop, REFUSE_LINKS, account, {}))

    assert lines() == [
        "read: Puzzle (question), Solution (answer), Rating (rating)",
        'not read: Id (as "x1"), Clues (as "2"), Note (as "so")',
    ]
    (recipes / "own.toml").write_text(
        'kind = "sudoku"\nsources = ["mine"]\n[settings]\nanswer_column = "note"\n'
    )
    assert lines()[0] == "read: Puzzle (question), Rating (rating), Note (answer)"
    most = csv.field_size_limit(9)
    try:
        assert lines() == []
    finally:
        csv.field_size_limit(most)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dataset without a record."""
    folder = tmp_path_factory.mktemp("family") / "games"
    build_domino(folder, DominoConfig(num_games=20))
    return folder


def test_a_folder_without_a_record_is_known_by_its_trace_or_its_shape(dataset, tmp_path):
    assert CATALOG.asset_of(dataset) == "puzzles/domino"
    bare = tmp_path / "original"
    shutil.copytree(dataset, bare, ignore=shutil.ignore_patterns("trace"))
    assert CATALOG.asset_of(bare) == "puzzles/domino"
    path = bare / "train/dataset.json"
    path.write_text(path.read_text().replace('"vocab_size": 8', '"vocab_size": 9'))
    assert CATALOG.asset_of(bare) == "puzzles/other"
    path.write_text("{}")
    assert CATALOG.asset_of(bare) is None
    path.unlink()
    assert CATALOG.asset_of(bare) is None


def test_every_kind_traces_its_examples(dataset):
    kinds = {kind.asset: kind for kind in CATALOG.kinds}
    assert set(kinds) == {f"puzzles/{name}" for name in KINDS}
    domino = kinds["puzzles/domino"]
    assert domino.trace is not None
    (traced,) = domino.trace(Request(dataset, "3", {"split": "test"}))
    assert traced.facts()["source"] == "generated"


def test_a_dataset_of_another_kind_is_shown_and_traced_by_the_commands(dataset, tmp_path):
    ours, foreign = tmp_path / "lights", tmp_path / "foreign"
    build_lights_out(ours, LightsOutConfig(boards=12))
    shutil.copytree(dataset, foreign, ignore=shutil.ignore_patterns("trace"))
    for split in ("train", "test"):
        path = foreign / split / "dataset.json"
        path.write_text(path.read_text().replace('"vocab_size": 8', '"vocab_size": 9'))
    for folder in (ours, foreign):
        shown = CliRunner().invoke(show, [str(folder), "2", "--split", "test"])
        assert shown.exit_code == 0, shown.output
        assert shown.output.startswith("test/all: row 2 of ")
    traced = CliRunner().invoke(trace, [str(ours), "2"])
    assert traced.exit_code == 0 and "source: generated" in traced.output
    (foreign / "identifiers.json").unlink()
    refused = CliRunner().invoke(show, [str(foreign), "2"])
    assert refused.exit_code == 2 and "is not an artifact of a known asset" in refused.output


def test_a_dataset_whose_record_names_no_known_asset_is_shown(dataset, tmp_path, monkeypatch):
    """As one of a family's own program that publishes: its files say that it keeps the contract."""
    build_lights_out(tmp_path / "lights", LightsOutConfig(boards=12))
    monkeypatch.setattr(dispatch, "recorded_assets", lambda _: {None: "mine/lights"})
    assert [kind.asset for kind in dispatch.kinds_at(tmp_path / "lights")] == ["puzzles/other"]
    with pytest.raises(Misuse, match="known asset"):
        dispatch.kinds_at(dataset)  # its kind is that of an asset, but its record says another


def test_a_dataset_counts_the_examples_of_both_splits():
    counts = {"examples/train": 3, "examples/test": 2, "identifiers": 1}
    assert {kind.rows_of(counts) for kind in CATALOG.kinds} == {5}


def test_the_samples_are_sources_of_built_in_recipes(tmp_path):
    sources = {f"puzzles/{source}" for recipe in BUILT_IN.values() for source in recipe.sources}
    recipes = {f"puzzles/recipes/{name}.toml" for name in BUILT_IN}
    assert set(CATALOG.samples) <= sources | recipes
    CATALOG.samples["puzzles/maze-sample"](tmp_path / "mazes")
    assert sorted(path.name for path in (tmp_path / "mazes").iterdir()) == ["test.csv", "train.csv"]


def test_every_kind_has_a_table_of_the_data_root_alone():
    assert {kind.table.name: tuple(kind.table.inboxes) for kind in CATALOG.kinds if kind.table} == {
        f"puzzles/{kind}": () for kind in KINDS
    }
