"""What each family publishes goes through an S3 server and back, with a kill in each phase."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.families import FAMILIES
from gristmill.mirror import versions
from gristmill.mirror.layout import object_key, sha256_of
from gristmill.mirror.store import Store
from gristmill.provenance import find_artifacts
from tests import budget
from tests.mirror.roots import files
from tests.mirror.s3 import S3, served
from tests.paths import CHECKOUT
from tests.publish.tiny import garbage
from tests.sample_root import SampleRoot

pytestmark = [pytest.mark.engines, pytest.mark.slow]

PUSH = ("keys", "size", "write", "create")
"""Listing; asking what the mirror has; sending parts and manifests; creating versions."""
PULL = ("keys", "read", "pwrite", "utime", "rename", "flush_tree", "place", "remove_tree")
"""Listing, fetching, publishing, and removing what is left at either end."""
FETCHED = ("utime:1:", "flush_tree:1:")
"""All of an artifact was compared, and has not taken the name under which it is published."""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with served() as server:
        yield server


@dataclass(frozen=True)
class Did:
    """What a push or a pull did: how often it called what, and the keys that it wrote."""

    calls: dict[str, int]
    written: list[str]


def _once(how: str, step: str, root: Path, url: str, names: Iterable[str] = ()) -> Did | None:
    """Push or pull once. Returns what it did, None where it was killed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mirror.once", how, step, str(root), url, *names],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    assert (done.returncode == 0) == bool(done.stdout)
    return Did(**json.loads(done.stdout)) if done.stdout else None


def _kill(
    how: str, step: str, calls: dict[str, int], root: Path, url: str, names: Iterable[str] = ()
) -> None:
    """Push or pull once, killed at a step of those that a whole one made.

    The last step may not come: how often threads write the file of a lock depends on their order.
    """
    did = _once(how, step, root, url, names)
    name, number, _ = step.split(":")
    assert did is None or did.calls.get(name, 0) < int(number) == calls[name], step


def _steps(names: tuple[str, ...], calls: dict[str, int]) -> list[str]:
    """Kills before and after the first, the middle and the last call of each name."""
    found: dict[str, None] = {}
    for name in names:
        number = calls.get(name, 0)
        assert number, f"{name} is never called"
        for place in (1, (number + 1) // 2, number):
            found |= {f"{name}:{place}:before": None, f"{name}:{place}:after": None}
    return list(found)


def _published(root: SampleRoot, family: str) -> tuple[list[str], dict[str, bytes]]:
    """The artifacts of a family by name, and all their files."""
    names = {item.artifact for _, item in root.records() if item.asset.startswith(f"{family}/")}
    found = {
        path: data
        for path, data in files(root.data).items()
        if any(path.startswith(f"{name}/") for name in names)
    }
    return sorted(names), found


def _whole_versions(url: str) -> int:
    """How many versions another reader sees; every object of each must be there, and right."""
    store, seen, right = Store(url), 0, set[str]()
    for place, numbers in versions.numbers(store).items():
        for number in numbers:
            version = versions.read(store, place, number)
            for file in versions.read_manifest(store, place, version).files:
                for sha256 in set(file.parts) - right:
                    data = store.read(object_key(sha256))
                    assert data is not None and sha256_of(data) == sha256, file.path
                    right.add(sha256)
            seen += 1
    return seen


@pytest.mark.parametrize("family", FAMILIES)
def test_a_push_that_is_killed_in_any_phase(
    family: str, s3: S3, sample_root: SampleRoot, tmp_path: Path
) -> None:
    root = sample_root.data
    names, expected = _published(sample_root, family)
    first = f"{s3.url}/{family}/push/whole"
    whole = _once("push", "-", root, first, names)
    assert whole is not None
    objects, number_of = set(Store(first).keys("objects")), whole.calls["create"]
    steps = budget.sample(f"mirror push {family}", _steps(PUSH, whole.calls), 1 / 10, least=3)
    for number, step in enumerate(steps):
        url, got = f"{s3.url}/{family}/push/{number}", tmp_path / f"{number}"
        _kill("push", step, whole.calls, root, url, names)
        standing, seen = set(Store(url).keys("objects")), _whole_versions(url)
        # All payload is there before the first version is.
        assert seen == 0 or standing == objects, step
        again = _once("push", "-", root, url, names)
        assert again is not None and standing.isdisjoint(again.written), step
        # A request may arrive after its sender was killed.
        assert again.calls.get("create", 0) <= number_of - seen, step
        assert set(Store(url).keys("objects")) == objects, step
        assert _whole_versions(url) == number_of, step
        assert _once("pull", "-", got, url)
        assert files(got) == expected, step
        assert provenance.verify(got, check_inputs=False, check_laws=False) == []
        shutil.rmtree(got)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pull_that_is_killed_in_any_phase(
    family: str, s3: S3, sample_root: SampleRoot, tmp_path: Path
) -> None:
    url = f"{s3.url}/{family}/pull"
    names, expected = _published(sample_root, family)
    assert _once("push", "-", sample_root.data, url, names)
    whole = _once("pull", "-", tmp_path / "whole", url)
    assert whole is not None and files(tmp_path / "whole") == expected
    parts = whole.calls["object"]
    steps = budget.sample(f"mirror pull {family}", _steps(PULL, whole.calls), 1 / 10, least=3)
    for number, step in enumerate(steps):
        root = tmp_path / f"{number}"
        _kill("pull", step, whole.calls, root, url)
        if root.exists() and any(find_artifacts.artifacts(root)):  # an early kill leaves none
            assert provenance.verify(root, check_inputs=False, check_laws=False) == [], step
        again = _once("pull", "-", root, url)
        assert again is not None
        # What was fetched is not fetched again: an artifact at the least in these phases.
        assert again.calls.get("object", 0) <= parts - step.startswith(FETCHED), step
        assert files(root) == expected and garbage(root) == [], step
        assert provenance.verify(root, check_inputs=False, check_laws=False) == []
        last = _once("pull", "-", root, url)
        assert last is not None and not last.calls.get("object"), step
        shutil.rmtree(root)
