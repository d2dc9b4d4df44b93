"""Fetching raw puzzles from a local server that answers as a dataset hub does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.inbox.hub import HubError
from gristmill.puzzles.raw import hub
from gristmill.puzzles.raw.recipes import BUILT_IN
from tests.reasoning.raw.test_hub import COMMIT, Hub, corpora_server

__all__ = ["corpora_server"]  # a fixture

MAZES = "sapientinc/maze-30x30-hard-1k"
ROWS = b"source,question,answer,rating\n"


@pytest.fixture
def server(corpora_server: Hub) -> Hub:
    """The server with the two files of the mazes, one of them large enough for a sha256."""
    corpora_server.repositories[MAZES] = {
        "README.md": b"# mazes",
        "train.csv": ROWS * 100,
        "test.csv": ROWS,
        "data/train.csv": b"not this one",
    }
    return corpora_server


def test_the_two_tables_become_a_drop(server: Hub, tmp_path: Path) -> None:
    place = hub.reached(MAZES, endpoint=server.address)
    assert place.source.revision == COMMIT
    assert place.bytes == 101 * len(ROWS)
    drop = tmp_path / "mazes"
    fetched = hub.fetch(drop, place)
    assert fetched.downloaded == 2
    assert {path.name: path.read_bytes() for path in fetched.files} == {
        "test.csv": ROWS,
        "train.csv": ROWS * 100,
    }
    origin = json.loads((drop / ".source.json").read_text())
    assert (origin["repository"], origin["revision"]) == (MAZES, COMMIT)
    assert origin["files"]["test.csv"]["bytes"] == len(ROWS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mazes"]


def test_files_that_are_there_are_kept_and_changed_ones_are_replaced(
    server: Hub, tmp_path: Path
) -> None:
    place = hub.reached(MAZES, endpoint=server.address)
    hub.fetch(tmp_path / "mazes", place)
    assert hub.fetch(tmp_path / "mazes", place).downloaded == 0
    (tmp_path / "mazes" / "test.csv").write_bytes(b"other")
    assert hub.fetch(tmp_path / "mazes", place).downloaded == 1
    assert (tmp_path / "mazes" / "test.csv").read_bytes() == ROWS


def test_nothing_is_moved_into_the_drop_before_all_files_are_there(
    server: Hub, tmp_path: Path
) -> None:
    place = hub.reached(MAZES, endpoint=server.address)
    server.broken = True
    with pytest.raises(HubError, match="fetch again"):
        hub.fetch(tmp_path / "mazes", place)
    assert not (tmp_path / "mazes").exists()


def test_a_repository_without_one_of_the_tables_is_refused(server: Hub) -> None:
    del server.repositories[MAZES]["test.csv"]
    with pytest.raises(HubError, match=r"has no file test\.csv"):
        hub.reached(MAZES, endpoint=server.address)


def test_every_drop_that_can_be_fetched_has_a_recipe() -> None:
    sources = {source for recipe in BUILT_IN.values() for source in recipe.sources}
    assert set(hub.SOURCES) <= sources
