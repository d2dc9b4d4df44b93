"""A push to a dataset repository that is killed shows nothing half, and the next one goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.mirror import push
from tests.hub_server import TOKEN, Hub
from tests.mirror.roots import built, in_repository
from tests.mirror.test_hub import URL, hub, repository
from tests.paths import CHECKOUT

__all__ = ["hub"]
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")


def _killed(hub: Hub, root: Path, moment: str, number: int) -> None:
    """Push in a process that is killed when the hub is at a moment for the n-th time."""
    seen = [0]

    def kill(*_: object) -> None:
        seen[0] += 1
        if seen[0] == number:
            child.kill()
            child.wait()
            raise ConnectionError  # the hub answers nobody

    idle = getattr(hub, moment)
    setattr(hub, moment, kill)
    environment = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.mirror.hub_once", str(root), URL],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, said = child.communicate(timeout=120)
    setattr(hub, moment, idle)
    assert child.returncode == -signal.SIGKILL, said


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("before_upload", 1),
        ("after_upload", 1),
        ("before_upload", 3),
        ("after_upload", 3),
        ("before_commit", 1),
        ("after_commit", 1),
    ],
)
def test_a_push_that_is_killed(hub, tmp_path, moment, number):
    built(tmp_path, "family/a", seed=1)
    push(tmp_path, URL)
    before, sent = repository(hub).files, len(hub.uploads)
    built(tmp_path, "family/a", seed=2)
    built(tmp_path, "family/b", seed=3)
    _killed(hub, tmp_path, moment, number)
    is_committed = moment == "after_commit"
    assert repository(hub).files == (in_repository(tmp_path) if is_committed else before)
    assert len(repository(hub).titles) == 1 + is_committed
    if moment.endswith("upload"):
        assert len(hub.uploads) == sent + number - moment.startswith("before")
    done = push(tmp_path, URL)
    assert [each.error for each in done] == [None, None]
    assert [each.created for each in done] == [not is_committed] * 2
    assert repository(hub).files == in_repository(tmp_path)
    assert len(repository(hub).titles) == 2
    # Nothing that the hub had received was sent again.
    assert len(hub.uploads) == len(hub.objects)
