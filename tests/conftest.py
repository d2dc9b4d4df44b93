"""Fixtures that several families need."""

import gc
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import dealing, later, measured, reports
from tests.kept_vocabularies import kept_vocabularies
from tests.paths import CHECKOUT, REAL_DATA, memory
from tests.requirements import missing_real_data
from tests.run_folder import RunFolder, take_named
from tests.sample_root import SampleRoot

# Times of examples say nothing where other tests run meanwhile. Each run has the same examples.
hypothesis.settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)

TESTS = CHECKOUT / "tests"

_FOLDERS_BYTES = 8 << 30
"""More than the folders of all tests take at a time."""


def pytest_configure(config: pytest.Config) -> None:
    """End at once where real data is required and is not there: many tests would skip.

    Builds flush each file: without TMPDIR, tests have their folders in memory if they fit there.
    """
    hypothesis.settings.load_profile("unhurried")
    if missing := missing_real_data(REAL_DATA):
        raise pytest.UsageError(missing)
    if "TMPDIR" not in os.environ and (place := memory(_FOLDERS_BYTES)):
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
    reports.install(config)
    measured.install(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage meanwhile: collecting makes a million objects, and they all stay.

    Later look for it less often than for the 700 objects of Python's default.
    """
    gc.disable()
    try:
        worker = getattr(session.config, "workerinput", None)
        if worker and [Path(each).resolve() for each in session.config.args] == [TESTS]:
            place = int(worker["workerid"].removeprefix("gw"))
            dealing.import_share(dealing.modules(TESTS), place, worker["workercount"])
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes long, so that no worker of `pytest -n` ends long after the other."""
    wait = {
        dealing.file_of(item.nodeid)
        for item in items
        if "sample_root" in getattr(item, "fixturenames", ())
    }
    items.sort(key=lambda item: dealing.rank(item.nodeid, dealing.file_of(item.nodeid) in wait))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what collecting has imported, before a test imports more, and the folder of the run."""
    take_named(session.config)
    session.config.stash[later.COLLECTED] = frozenset(sys.modules)


@pytest.hookimpl(tryfirst=True)  # before fixtures open an instance
def pytest_runtest_setup() -> None:
    """Keep what Dagster makes for each connection, once a test has imported it."""
    if "dagster" in sys.modules:
        from tests import dagster_caches

        dagster_caches.install()


@pytest.hookimpl(trylast=True)  # after fixtures close an instance
def pytest_runtest_teardown() -> None:
    """Close what Dagster has left open."""
    if "tests.dagster_caches" in sys.modules:
        sys.modules["tests.dagster_caches"].release()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`pytest -n 2` deals by files; another `--dist` is as pytest-xdist has it."""
    return dealing.scheduler(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session")
def run_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    """The folder that the workers of this run share."""
    return RunFolder.of(request.config, tmp_path_factory)


@pytest.fixture
def worker_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are threads, which start at once, where a process takes a second of imports."""
    monkeypatch.setattr("gristmill.run.workers._start", ThreadPoolExecutor)


@pytest.fixture(scope="session")
def vocabulary_root() -> Path:
    """A data root with both vocabularies in its drops; downloaded once, then kept."""
    return kept_vocabularies()


@pytest.fixture(scope="session")
def sample_games(run_folder: RunFolder) -> Callable[..., Any]:
    """What plays the samples of 2048, which takes most of the time of all: once in a run."""
    from gristmill.macroxue import samples

    play = samples._play_games

    @cache
    def played(*choices: int | None) -> Any:
        name = f"games_{'_'.join(map(str, choices))}"
        folder = run_folder.once(
            name, lambda folder: (folder / "games").write_bytes(pickle.dumps(play(*choices)))
        )
        return pickle.loads((folder / "games").read_bytes())

    return played


@pytest.fixture(scope="module")
def games_played_once(sample_games: Callable[..., Any]) -> Iterator[None]:
    """Let the samples of 2048 be those of `sample_games`."""
    from gristmill.macroxue import samples

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "_play_games", sample_games)
        yield


@pytest.fixture(scope="session")
def sample_drops(run_folder: RunFolder, sample_games: Callable[..., Any]) -> Path:
    """A data root with the sample drops of all families, as the command writes them."""
    from gristmill.macroxue import samples
    from gristmill.samples import write_samples

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "_play_games", sample_games)
        return run_folder.once("sample_drops", write_samples)


@pytest.fixture(scope="session")
def sample_root(run_folder: RunFolder, vocabulary_root: Path, sample_drops: Path) -> SampleRoot:
    """A data root in which every asset is built; tests that change it make a copy."""
    folder = run_folder.once(
        "sample_root", lambda folder: SampleRoot.build(folder, vocabulary_root, sample_drops)
    )
    return SampleRoot.of(folder)
