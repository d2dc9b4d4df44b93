"""One running instance for the tests of a module, which build on each other."""

from collections.abc import Iterator

import pytest

from tests.e2e.live_instance import Mill


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """Variables that the instance and the commands get beside the data root."""
    return {}


@pytest.fixture(scope="module")
def mill(tmp_path_factory: pytest.TempPathFactory, surroundings: dict[str, str]) -> Iterator[Mill]:
    made = Mill(tmp_path_factory.mktemp("mill").resolve(), surroundings)
    yield made
    made.server.stop()
