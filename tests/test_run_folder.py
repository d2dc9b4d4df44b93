"""The folder of a run: made by one worker, whatever the others do meanwhile."""

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.run_folder import FOLDER, RunFolder, take_named


def _ask(run: RunFolder) -> None:
    def make(folder: Path) -> None:
        (folder / "half").touch()
        time.sleep(0.2)
        with (folder / "makers").open("a") as file:
            file.write("made\n")

    assert (run.once("shared", make) / "makers").read_text() == "made\n"


def test_a_folder_is_made_once_and_given_when_it_is_whole(tmp_path: Path) -> None:
    run, fork = RunFolder(tmp_path), multiprocessing.get_context("fork")
    processes = [fork.Process(target=_ask, args=(run,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_a_folder_that_could_not_be_made_is_made_by_the_next(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("the disk is full")

    run = RunFolder(tmp_path)
    with pytest.raises(OSError, match="the disk is full"):
        run.once("shared", fail)
    made = run.once("shared", lambda folder: (folder / "whole").touch())
    assert [path.name for path in made.iterdir()] == ["whole"]


def test_a_folder_that_is_named_is_that_of_the_run_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    class Config:
        stash = pytest.Stash()

    config: Any = Config()
    monkeypatch.setenv(FOLDER, str(tmp_path))
    take_named(config)
    assert RunFolder.of(config, tmp_path_factory).path == tmp_path
    assert FOLDER not in os.environ


def test_the_workers_of_a_run_have_one_folder(
    run_folder: RunFolder, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp()
    if run_folder.path not in (base, base.parent):
        return  # GRISTMILL_RUN_FOLDER names it
    worker = getattr(request.config, "workerinput", {}).get("workerid")
    assert base == (run_folder.path if worker is None else run_folder.path / f"popen-{worker}")
