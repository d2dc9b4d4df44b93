"""One running instance for the tests of a module, which build on each other."""

from collections.abc import Iterator

import pytest

from tests.e2e.live_instance import LiveInstance


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """Variables that the instance and the commands get beside the data root."""
    return {}


@pytest.fixture(scope="module")
def history() -> str | None:
    """Address of the instance in Postgres; None: it is in files."""
    return None


@pytest.fixture(scope="module")
def live_instance(
    tmp_path_factory: pytest.TempPathFactory, surroundings: dict[str, str], history: str | None
) -> Iterator[LiveInstance]:
    folder = tmp_path_factory.mktemp("live_instance").resolve()
    started = LiveInstance(folder, surroundings, history=history)
    yield started
    started.server.stop()
