"""The catalog of the puzzle family: folders without a record, samples, tables."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.lights_out import LightsOutConfig, build_lights_out
from gristmill import dispatch
from gristmill.families import Misuse, Request
from gristmill.puzzles.builders.domino import build_domino
from gristmill.puzzles.config import DominoConfig
from gristmill.puzzles.family import CATALOG
from gristmill.puzzles.raw.recipes import BUILT_IN, KINDS
from gristmill.samples import show, trace


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
