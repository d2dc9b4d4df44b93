"""Training loops of every family, killed for real and started again at another number of ranks."""

import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gristmill.loading.state import _digest
from tests import budget
from tests.loading import training_run
from tests.loading.test_mix_file import SOURCES
from tests.loading.training_run import DONE, STATE, STEPS, Run

pytestmark = pytest.mark.slow
KILLS = 100
# One kill, about, where the machine does nothing else.
SECONDS = 0.3


def mix(path: str, seed: int) -> str:
    """A mix file of one artifact."""
    return f'seed = {seed}\n[source.one]\npath = "{path}"\nepochs = 4\n{SOURCES[path]}\n'


def written_run(folder: Path, data: Path, text: str) -> Run:
    """A run by the text of a mix file that has not begun."""
    folder.mkdir()
    (folder / "mix.toml").write_text(text)
    return Run(folder, data)


def killed(run: Run, world: int, after: int) -> bool:
    """Go on with a run and kill it after so many steps more; whether it was alive then."""
    steps = run.folder / STEPS
    before = steps.read_bytes().count(b"\n") if steps.exists() else 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([training_run.__name__])
    process = context.Process(
        target=training_run.train, args=(str(run.folder), str(run.data), world)
    )
    process.start()
    try:
        while process.is_alive():
            # What the state did not know is cut off first, and written again.
            if steps.exists() and steps.read_bytes().count(b"\n") >= before + after:
                os.kill(process.pid or 0, signal.SIGKILL)
                break
            time.sleep(0.002)
    finally:
        process.join()
    return process.exitcode == -signal.SIGKILL


def is_as_without_kills(run: Run, text: str, data: Path) -> bool:
    """Whether a run has the steps of a run without kills: all, or the first ones if it was killed.

    A kill can cut the last line short.
    """
    given = (run.folder / STEPS).read_text().splitlines(keepends=True)
    whole = written_run(run.folder.with_name(f"{run.folder.name} whole"), data, text).lines(1)
    if (run.folder / DONE).exists():
        return given == [line for line, _ in whole]
    lines = [line for line in given if line.endswith("\n")]
    return lines == [line for line, _ in itertools.islice(whole, len(lines))]


@pytest.mark.parametrize("path", SOURCES)
def test_a_killed_run_gives_each_step_once(sample_root, tmp_path, path):
    kills = budget.count(KILLS, 1 / (SECONDS * len(SOURCES)))
    dice, done = random.Random(path), 0
    for seed in itertools.count():
        text = mix(path, seed)
        run = written_run(tmp_path / str(seed), sample_root.data, text)
        while done < kills and not (run.folder / DONE).exists():
            done += killed(run, dice.choice((1, 2, 3)), dice.randrange(1, 6))
        assert is_as_without_kills(run, text, sample_root.data)
        if done >= kills:
            return


@pytest.mark.parametrize("steps", [-1, 1])
def test_a_state_of_another_step_is_found(sample_root, tmp_path, monkeypatch, steps):
    """A state that is saved too early or too late gives a step twice or never."""
    (path,) = (each for each in SOURCES if "pools" in each)
    text = mix(path, 0)
    run = written_run(tmp_path / "run", sample_root.data, text)

    def shifted(self: Run, state: Mapping[str, Any], kept: int) -> None:
        moved = {
            **state,
            "position": state["position"] + steps * training_run.BATCH,
            "step": state["step"] + steps,
        }
        moved["sha256"] = _digest(moved)
        (self.folder / STATE).write_text(json.dumps({"loader": moved, "kept": kept}))

    stopped = itertools.islice(run.lines(1), 5)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "save", shifted)
        patched.setattr(Run, "lines", lambda self, world: stopped)
        run.train(1)
    (run.folder / DONE).unlink()
    run.train(2)
    assert not is_as_without_kills(run, text, sample_root.data)
