"""Shards that the tests of laws change copies of."""

from pathlib import Path

import pytest

from tests.reasoning import shard_folders
from tests.reasoning.shard_folders import SmallShards


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> SmallShards:
    return shard_folders.build(tmp_path_factory.mktemp("built"), vocabulary_root)


@pytest.fixture
def copied(built: SmallShards, tmp_path: Path) -> SmallShards:
    return built.copied(tmp_path)
