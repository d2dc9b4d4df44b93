"""Which files of a repository of puzzles become a drop."""

from __future__ import annotations

import pytest

from gristmill.inbox.hub import HubError
from gristmill.puzzles.raw import hub
from gristmill.puzzles.raw.recipes import BUILT_IN
from tests.hub_server import COMMIT, Hub, server

__all__ = ["server"]  # a fixture

MAZES = "sapientinc/maze-30x30-hard-1k"


def test_the_two_tables_are_reached_and_a_repository_without_one_is_refused(server: Hub) -> None:
    tables = {"train.csv": b"x" * 3000, "test.csv": b"x", "data/train.csv": b"x", "a.md": b"x"}
    server.repositories[MAZES] = tables
    place = hub.reached(MAZES, endpoint=server.address)
    assert (place.source.revision, place.bytes) == (COMMIT, 3001)
    assert sorted(place.files) == ["test.csv", "train.csv"]
    del tables["test.csv"]
    with pytest.raises(HubError, match=r"has no file test\.csv"):
        hub.reached(MAZES, endpoint=server.address)


def test_every_drop_that_can_be_fetched_has_a_recipe() -> None:
    sources = {source for recipe in BUILT_IN.values() for source in recipe.sources}
    assert set(hub.SOURCES) <= sources
