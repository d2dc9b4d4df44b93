"""What the code of an older version left is opened by the code of now.

The older code comes out of the history, and runs in the libraries of now. What it builds:
`old_world.py`, and `states.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import dagster as dg
import pytest

from gristmill import families
from gristmill.provenance import Record
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot
from tests.upgrade.old_world import BROKEN, MEMBERS, POOL

pytestmark = pytest.mark.slow

OLD: Final = "e219d7e6200d2150281c9cbdc7171875067f60c1"
"""The commit of the older code."""

BUILT_AGAIN: Final[frozenset[tuple[str, str]]] = frozenset()
"""Each asset that is built again, and why, as `reason` says it. A line here is a line of
`CHANGELOG.md`."""

_HERE = Path(__file__).parent


def python(code: Path, *words: object) -> str:
    """Run Python with the code of a checkout and return what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=code,
        env=os.environ | {"PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def old_code(folder: Path) -> Path:
    """Unpack the older code below a folder."""
    folder.mkdir()
    packed = folder.with_suffix(".tar")
    done = subprocess.run(
        ["git", "archive", "-o", packed, OLD], cwd=CHECKOUT, capture_output=True, check=False
    )
    if done.returncode:
        pytest.fail(f"commit {OLD} is needed: git fetch --unshallow ({done.stderr.decode()})")
    subprocess.run(["tar", "-x", "-f", packed, "-C", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """A folder with what the older code left: `data`, `home`, `mirror`, `states.json`."""
    folder = tmp_path_factory.mktemp("upgrade")
    old, left = old_code(folder / "old"), folder / "left"
    python(old, _HERE / "old_world.py", left, vocabulary_root)
    python(old, _HERE / "states.py", "write", left / "data", left / "states.json")
    return left


@pytest.fixture(scope="module")
def root(world: Path) -> SampleRoot:
    return SampleRoot.of(world)


def records(root: SampleRoot) -> dict[tuple[str, str | None], Record]:
    return {(item.asset, item.partition): item for _, item in root.records()}


def reason(before: Record | None, after: Record) -> str:
    """Why something was built again, from both records."""
    if before is None:
        return "new"
    found = [
        f"code version {before.code_version} -> {after.code_version}"
        if before.code_version != after.code_version
        else "",
        "config" if before.config_sha256 != after.config_sha256 else "",
        "input" if _inputs(before) != _inputs(after) else "",
        "libraries" if before.libraries != after.libraries else "",
    ]
    return ", ".join(filter(None, found)) or "code"


def _inputs(record: Record) -> object:
    return record.tokenizer, sorted(each.identity for each in record.inputs), record.inputs_file


def test_all_kinds_are_there_listed_and_verified(root: SampleRoot) -> None:
    kinds = {kind.asset for catalog in families.catalogs() for kind in catalog.kinds}
    old = records(root)
    assert kinds <= {asset for asset, _ in old}
    pool = old["macroxue/pool", POOL]
    assert pool.deleted_inputs == [f"macroxue/packs/{name}" for name in MEMBERS]
    lines = root.command("ls").splitlines()
    for asset, partition in old:
        (line,) = [each for each in lines if each.split()[:2] == [asset, partition or "manifest"]]
        is_left = asset == "macroxue/values" and partition in MEMBERS
        assert ("input gone" in line) if is_left else line.endswith(" current"), line
    assert f"{len(old)} artifacts are as their records say" in root.command(
        "verify", str(root.data)
    )


def test_states_go_on_with_the_batches_of_the_older_code(world: Path) -> None:
    states = _HERE / "states.py"
    assert python(CHECKOUT, states, "resume", world / "data", world / "states.json") == ""


def test_a_mirror_is_pulled(world: Path, root: SampleRoot, tmp_path: Path) -> None:
    root.command("pull", str(world / "mirror"), "--data-root", str(tmp_path))
    pulled = records(SampleRoot(tmp_path, root.home))
    assert pulled == records(root)


def test_only_what_the_table_says_is_built_again(
    root: SampleRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = records(root)
    with pytest.raises(AssertionError) as failed:
        root.command("materialize", "--all")
    said = str(failed.value)
    assert f"failed macroxue/pack {BROKEN}" in said
    assert " 1 failed" in said
    after = records(root)
    assert after.keys() >= before.keys()
    built = {
        (key[0], reason(before.get(key), record))
        for key, record in after.items()
        if key not in before or before[key].digest != record.digest
    }
    assert built == BUILT_AGAIN, said
    monkeypatch.setenv("DAGSTER_HOME", str(root.home))
    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
    assert len(runs) == 2
