"""What each family publishes goes through an S3 server and back, with kills on the way."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.families import FAMILIES
from gristmill.mirror.store import Store
from gristmill.mirror.versions import listed
from tests import budget
from tests.mirror.roots import files
from tests.mirror.s3 import S3, served
from tests.paths import CHECKOUT
from tests.publish.tiny import garbage
from tests.sample_root import SampleRoot

pytestmark = [pytest.mark.engines, pytest.mark.slow]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with served() as server:
        yield server


def _once(word: str, root: Path, url: str, *names: str) -> int:
    """Push or pull once, killed where the word says so. Returns its steps, 0 after a kill."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mirror.kill_server", "once", word, str(root), url, *names],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return int(done.stdout) if done.returncode == 0 else 0


def some(steps: int) -> range:
    """Six steps from the first to the last."""
    return range(1, steps, max(1, steps // 6))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_push_and_a_pull_that_are_killed(
    family: str, s3: S3, sample_root: SampleRoot, tmp_path: Path
) -> None:
    """Every version that is there is whole, and the next push or pull ends what was begun."""
    root, url = sample_root.data, f"{s3.url}/{family}"
    asset = f"{family}/"
    names = sorted(
        {item.artifact for _, item in sample_root.records() if item.asset.startswith(asset)}
    )
    expected = {
        path: data
        for path, data in files(root).items()
        if any(path.startswith(f"{name}/") for name in names)
    }
    steps = _once("push:0", root, f"{url}/whole", *names)
    for number in budget.sample(f"mirror push {family}", some(steps), 1 / 10, least=2):
        there = f"{url}/{number}"
        assert not _once(f"push:{number}", root, there, *names)
        if listed(Store(there)):
            assert _once("pull:0", tmp_path / "seen", there)
            assert provenance.verify(tmp_path / "seen", check_inputs=False, check_laws=False) == []
            shutil.rmtree(tmp_path / "seen")
        assert _once("push:0", root, there, *names)
        assert _once("pull:0", tmp_path / "got", there) and files(tmp_path / "got") == expected
        shutil.rmtree(tmp_path / "got")
    steps = _once("pull:0", tmp_path / "b", f"{url}/whole")
    assert files(tmp_path / "b") == expected
    for number in budget.sample(f"mirror pull {family}", some(steps), 1 / 10, least=2):
        got = tmp_path / str(number)
        assert not _once(f"pull:{number}", got, f"{url}/whole")
        if files(got):  # an early kill leaves nothing
            assert provenance.verify(got, check_inputs=False, check_laws=False) == []
        assert _once("pull:0", got, f"{url}/whole")
        assert files(got) == expected and garbage(got) == []
        shutil.rmtree(got)
