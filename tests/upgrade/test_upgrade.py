"""What the code of an older version left (`old_world.py`), opened by that of now.

The older code comes out of the history, and runs with the libraries of now.
"""

import json
import os
import shutil
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

BUILT_AGAIN: Final = frozenset(
    {("chess/valid_games", "code version 7 -> 8, config"), ("chess/subset", "code version 1 -> 2")}
)
"""Each asset that is built again, and why, as `reason` says it: a line of `CHANGELOG.md` each."""

_SCRIPT = Path(__file__).with_name("old_world.py")


def run(code: Path, *words: object) -> str:
    """Run a command with the code of a checkout and return what it prints."""
    env = os.environ | {"PYTHONPATH": str(code)}
    done = subprocess.run(
        [*map(str, words)], cwd=code, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """A folder with what the older code left: `data`, `home`, `mirror`, `states.json`."""
    folder = tmp_path_factory.mktemp("upgrade")
    old, left, packed = folder / "old", folder / "left", folder / "old.tar"
    old.mkdir()
    try:
        run(CHECKOUT, "git", "archive", "-o", packed, OLD)
    except AssertionError as missing:
        pytest.fail(f"the history needs commit {OLD} (git fetch --unshallow): {missing}")
    run(old, "tar", "-x", "-f", packed)
    run(old, sys.executable, _SCRIPT, "build", left, vocabulary_root)
    return left


@pytest.fixture(scope="module")
def root(world: Path) -> SampleRoot:
    return SampleRoot.of(world)


def records(root: SampleRoot) -> dict[tuple[str, str | None], Record]:
    return {(item.asset, item.partition): item for _, item in root.records()}


def reason(before: Record, after: Record) -> str:
    """Why something was built again, from both records."""
    parts = {
        f"code version {before.code_version} -> {after.code_version}": lambda of: of.code_version,
        "config": lambda of: of.config_sha256,
        "input": lambda of: (sorted(each.identity for each in of.inputs), of.inputs_file),
        "libraries": lambda of: {name: of.libraries.get(name) for name in before.libraries},
    }
    found = [name for name, part in parts.items() if part(before) != part(after)]
    return ", ".join(found) or "code"


def test_all_kinds_are_there_and_listed_and_verified(root):
    old = records(root)
    kinds = {kind.asset for catalog in families.catalogs() for kind in catalog.kinds}
    assert kinds - {asset for asset, _ in old} == {"audits/leaks"}  # the older code had none
    members = [f"macroxue/packs/{name}" for name in MEMBERS]
    assert old["macroxue/pool", POOL].deleted_inputs == members
    others = [asset for asset, _ in BUILT_AGAIN]
    listed = json.loads(root.command("ls", "--json"))
    *_, sums, broken = root.command("ls").splitlines()
    assert broken.startswith(f"drops/macroxue/{BROKEN}: ready: nothing is built of it")
    for each in listed:
        is_left = each["asset"] == "macroxue/values" and each["partition"].startswith("member_")
        state = "current (inputs gone)" if is_left else "current"
        assert each["state"] == state or each["asset"] in others, each
    assert len(listed) == len(old) and sums.startswith(f"{len(old)} artifacts, ")
    assert f"{len(old)} artifacts are as" in root.command("verify", str(root.data))


def test_states_go_on_with_the_batches_of_the_older_code(world):
    assert run(CHECKOUT, sys.executable, _SCRIPT, "resume", world) == ""


def test_a_mirror_names_the_release_that_reads_it_and_takes_new_versions(world, root, tmp_path):
    mirror, target = str(world / "mirror"), ("--data-root", str(tmp_path))
    with pytest.raises(AssertionError, match=r"Gristmill 0\.9\.0 alone reads its own"):
        root.command("pull", mirror, *target)
    root.command("push", mirror)
    root.command("pull", mirror, *target)
    assert records(SampleRoot(tmp_path, root.home)) == records(root)


def test_rows_leave_a_drop_of_which_the_older_code_built(world, root, tmp_path):
    own, rows, mirror = root.copy(tmp_path), tmp_path / "rows.txt", tmp_path / "mirror"
    rows.write_text("train.jsonl:3\n")
    shutil.copytree(world / "mirror", mirror)
    with (own.data / "gristmill.toml").open("a") as settings:
        settings.write(f'[mirror]\npush = "{mirror}"\n')
    words, before = ("forget", "reasoning/gsm8k", "--rows", str(rows), "--json"), records(own)
    plan = json.loads(own.command(*words))
    said = " ".join(plan["not_reached"])
    assert "as those of Gristmill 0.9.0" in said and records(own) == before
    report, after = json.loads(own.command(*words, "--yes")), records(own)
    assert report["not_reached"] == plan["not_reached"]
    built = {key for key in after if after[key] != before[key]}
    assert after.keys() == before.keys() and len(built) == len(plan["affected"])
    rows_of = [
        of["reasoning/normalized", "gsm8k__train"].counts["records"] for of in (before, after)
    ]
    assert rows_of[0] - rows_of[1] == 1
    assert f"{len(after)} artifacts are as" in own.command("verify", str(own.data))


def test_only_what_the_table_says_is_built_again(root, monkeypatch):
    before = records(root)
    monkeypatch.setenv("DAGSTER_HOME", str(root.home))
    failures = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE])
    with dg.DagsterInstance.get() as instance:
        assert len(instance.get_runs(failures)) == 1
    with pytest.raises(AssertionError, match=f"failed macroxue/pack {BROKEN}") as failed:
        root.command("materialize", "--all")
    after = records(root)
    assert ", 1 failed" in str(failed.value)
    assert after.keys() == before.keys()
    built = [key for key in after if after[key].digest != before[key].digest]
    assert {(key[0], reason(before[key], after[key])) for key in built} == BUILT_AGAIN
