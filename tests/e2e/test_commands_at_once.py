"""Commands that begin at the same moment, each a process of its own, as in several terminals.

With GRISTMILL_WHOLE (tests/budget.py) these are all rounds: 200 of first commands, 100 of others.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gristmill.macroxue.samples import write_drop
from tests import budget

pytestmark = pytest.mark.slow
PACK = ("materialize", "macroxue/pack", "--partition")
LOCK = ".gristmill/locks/a"


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `drops` of a data root, with three packs to build."""
    folder = tmp_path_factory.mktemp("at_once") / "drops"
    for seed, name in enumerate("abc"):
        write_drop(folder / "macroxue" / name, seed=seed, games=1, max_moves=30, depth=6)
    return folder


class Root:
    """A fresh data root with an empty home of Dagster."""

    def __init__(self, folder: Path, drops: Path) -> None:
        self.home, self.data = folder / "home", folder / "data"
        self.home.mkdir(parents=True)
        shutil.copytree(drops, self.data / "drops")

    def start(self, *words: str) -> subprocess.Popen[str]:
        named = {"DAGSTER_HOME": str(self.home), "GRISTMILL_DATA": str(self.data)}
        return subprocess.Popen(
            [sys.executable, "-m", "gristmill.cli", *words],
            env={**os.environ, **named},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def all_of(self, *commands: tuple[str, ...]) -> list[str]:
        """What commands say that begin at once, each of which must succeed."""
        return [_said(process) for process in [self.start(*words) for words in commands]]


def _said(process: subprocess.Popen[str]) -> str:
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    return said


def _rounds(number: int, folder: Path, drops: Path) -> Iterator[Root]:
    """A fresh root for each round, which goes away after it."""
    for place in budget.some(range(number), each=2, share=0.5):
        yield Root(folder / str(place), drops)
        shutil.rmtree(folder / str(place))


def test_three_first_commands_leave_an_instance_that_works(drops, tmp_path):
    for root in _rounds(200, tmp_path, drops):
        root.all_of(*((*PACK, name) for name in "abc"))
        databases = list(root.home.rglob("*.db"))
        assert databases
        assert [_heads(file) for file in databases] == [1] * len(databases)
        (said,) = root.all_of(("materialize", "macroxue/pack"))
        assert "nothing needed doing (3 artifacts" in said


def _heads(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("select count(*) from alembic_version").fetchone()[0])


def test_of_two_equal_commands_one_builds_and_the_other_finds_nothing_to_do(drops, tmp_path):
    for root in _rounds(100, tmp_path, drops):
        said = root.all_of((*PACK, "a"), (*PACK, "a"))
        assert sorted("pack a: built" in each for each in said) == [False, True], said
        (verified,) = root.all_of(("verify", str(root.data)))
        assert "1 artifact" in verified


def test_a_lock_file_that_is_removed_meanwhile_loses_nothing(drops, tmp_path):
    """A command that lost its lock says so and may fail: what is published is whole."""
    for root in _rounds(100, tmp_path, drops):
        lock = root.data / "macroxue/packs" / LOCK
        first = root.start(*PACK, "a")
        while first.poll() is None and not lock.exists():
            time.sleep(0.001)
        lock.unlink(missing_ok=True)
        second = root.start(*PACK, "a")
        said = [process.communicate(timeout=300)[0] for process in (first, second)]
        assert 0 in (first.returncode, second.returncode), said
        assert all("removed this lock file" in each or "Error" not in each for each in said), said
        root.all_of((*PACK, "a"), ("verify", str(root.data)))
