"""Fixtures for tests of the commands: a data root, an instance, and the command itself."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from commands import checkout
from gristmill.cli import main
from resources import CHECKOUT
from tests.commands.drops import DROPS, Command
from tests.publish.conftest import shim as shim
from tests.run_folder import RunFolder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root with the inbox of 2048, which GRISTMILL_DATA names."""
    root = tmp_path / "data"
    (root / DROPS).mkdir(parents=True)
    monkeypatch.setenv("GRISTMILL_DATA", str(root))
    return root


@pytest.fixture(scope="session")
def begun(run_folder: RunFolder) -> Path:
    """A folder with an instance that has just begun, which takes longer than to copy it."""

    def begin(folder: Path) -> None:
        shutil.copy(CHECKOUT / "dagster.yaml", folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("DAGSTER_HOME", raising=False)
            patch.setattr(checkout, "CHECKOUT", folder)
            with checkout.open_instance():
                pass

    return run_folder.once("begun_instance", begin)


@pytest.fixture
def run(data: Path, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`gristmill` on an instance of its own, in this process."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(checkout, "CHECKOUT", tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


@pytest.fixture
def instance(run: Command) -> Iterator[dg.DagsterInstance]:
    with checkout.open_instance() as opened:
        yield opened
