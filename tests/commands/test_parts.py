"""`gristmill parts`: shares of a partition as an array job runs them, and who has none."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands import build as parts
from gristmill import provenance
from gristmill.macroxue.builders import pack as pack_builder
from gristmill.macroxue.samples import write_drop
from gristmill.provenance import SHARED_RECORDS
from gristmill.publish.build import Slot
from gristmill.publish.remove import at_path, remove_published
from resources import Lake
from tests.commands.drops import DROPS, PACKS, Command, printed
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

ASSET, GAMES = "macroxue/pack", 6
_COMMAND = """
import os, signal, sys
from commands.build import parts
from gristmill.macroxue.builders import pack as pack_builder
from gristmill.run.parts import Share
pack_builder.PART_BYTES = 1  # as in the fixture `drop`
chosen = Share.chosen

def stopping(self, tasks):
    for number, task in enumerate(chosen(self, tasks)):
        if number == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        yield task

if "STOPS" in os.environ:
    Share.chosen = stopping
assert sys.argv.pop(1) == "parts"
parts()
"""


def _parts(*words: str) -> Result:
    return CliRunner().invoke(parts.parts, words)


@pytest.fixture
def drop(data: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A drop of several runs, each of which is a part."""
    monkeypatch.setattr(pack_builder, "PART_BYTES", 1)
    write_drop(data / DROPS / "d6", seed=1, games=GAMES, max_moves=30, depth=6)
    return data / DROPS / "d6"


def test_shares_are_made_and_a_run_takes_them_over(run, data, drop):
    first = printed(_parts("1", "2", ASSET, "d6"))
    assert f"share 1 of 2: 3 parts made, 0 were there; {GAMES} in all shares" in first
    assert "0 parts made, 3 were there" in _parts("1", "2", ASSET, "d6").output
    assert not (data / PACKS / "d6").exists()
    assert "takes over 3 finished parts" in printed(run("materialize", ASSET, "--partition", "d6"))
    assert "nothing to do: the partition is published" in _parts("2", "2", ASSET, "d6").output


@pytest.mark.parametrize(
    ("asset", "settings", "reason"),
    [
        ("synth/harmony", {"workers": 1}, "set workers = 2 or more"),
        ("synth/harmony", {"workers": 2}, None),
        ("macroxue/pack", {"workers": 1}, None),
        ("reasoning/gpt2_shards", {"capped": True, "workers": 2}, "under a cap on rows or tokens"),
        ("reasoning/gpt2_shards", {"capped": False, "workers": 2}, None),
    ],
)
def test_parts_that_depend_on_those_before_are_made_by_no_share(asset, settings, reason):
    build: Any = SimpleNamespace(asset=asset, config=SimpleNamespace(**settings))
    found = parts._indivisible(build)
    assert found == reason if reason is None else reason in str(found)


def test_every_listed_asset_is_built_and_every_other_is_refused(data):
    assert len(parts.in_parts()) == 19
    for asset in ("macroxue/values", "no/asset"):
        assert f"'{asset}' is not one of macroxue/pack, " in printed(
            _parts("1", "2", asset, "d6"), 2
        )


@pytest.mark.parametrize("words", [("0", "2"), ("3", "2"), ("1", "0"), ("x", "2")])
def test_a_share_that_is_none_is_refused(data, words):
    assert _parts(*words, ASSET, "d6").exit_code == 2


@pytest.mark.parametrize("words", [(), ("",)])
def test_a_share_without_a_partition_names_those_that_exist(run, data, words):
    for asset, known in (("chess/game_dataset", "2020-06, 2020-07 … "), ("macroxue/pack", "none")):
        said = printed(_parts("2", "3", asset, *words), 2)
        assert f"{asset} needs a partition; its partitions: {known}" in said


def _script(tmp_path: Path) -> list[str]:
    """The script of the documentation, and a folder for PATH where `gristmill` is this checkout."""
    page = (CHECKOUT / "docs/clusters.md").read_text()
    script = tmp_path / "parts.sh"
    found = re.search(r"```sh\n(#!/bin/bash\n.*?)```", page, re.DOTALL)
    assert found
    script.write_text(found[1])
    shim = tmp_path / "bin/gristmill"
    shim.parent.mkdir()
    shim.write_text(f"#!{sys.executable}\n{_COMMAND}")
    shim.chmod(0o755)
    return ["bash", str(script)]


@pytest.mark.slow
def test_the_documented_script_runs_as_processes_and_one_is_killed(run, data, drop, tmp_path):
    script = _script(tmp_path)

    def start(number: int, **more: str) -> subprocess.Popen[bytes]:
        array = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "3"}
        names = {"ASSET": ASSET, "PARTITION": "d6", "PYTHONPATH": str(CHECKOUT)}
        path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        return subprocess.Popen(script, env={**os.environ, **array, **names, **path, **more})

    killed, other = start(1, STOPS="at its second part"), start(2)  # the third share never runs
    build = parts.described(Lake(), ASSET, "d6")
    shares = (Slot.of(build).work / "parts" / build.parts_key).parents[1] / "shares"
    assert os.waitid(os.P_PID, killed.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    assert (killed.wait(), other.wait()) == (-signal.SIGKILL, 0)
    assert list(shares.glob("share1-*"))
    assert start(1).wait() == 0
    assert "takes over 4 finished parts" in printed(run("materialize", ASSET, "--partition", "d6"))
    shared = provenance.read_record(data / PACKS / "d6/provenance.json")
    again = printed(run("materialize", ASSET, "--partition", "d6", "--rebuild"))
    plain = provenance.read_record(data / PACKS / "d6/provenance.json")
    assert "takes over" not in again
    assert (plain.data_version, plain.fingerprint) == (shared.data_version, shared.fingerprint)


INDIVISIBLE = {"synth/harmony": "with one worker", "synth_smoke/kd_shards": "under a cap"}
"""The assets whose parts, as the sample root is built, depend on those before, and why."""


def _share(share: int, asset: str, partition: str) -> str:
    return printed(CliRunner().invoke(parts.parts, [str(share), "2", asset, partition]))


@pytest.mark.slow
@pytest.mark.parametrize("asset", sorted(parts.in_parts()))
def test_two_shares_and_a_run_give_what_one_build_gives(sample_root, run, data, asset):
    folder, before = sample_root.record(asset)
    shutil.rmtree(data)
    shutil.copytree(sample_root.data, data, symlinks=True)
    assert before.partition is not None
    partition = before.partition if (folder / SHARED_RECORDS).is_dir() else None
    _, entry = at_path(data / folder.relative_to(sample_root.data), partition)
    remove_published(data, entry)
    said = [_share(share, asset, before.partition) for share in (1, 2)]
    if asset in INDIVISIBLE:
        assert all(f"no share: {INDIVISIBLE[asset]}" in each for each in said)
        return
    found = [re.search(r"(\d+) parts made, 0 were there; (\d+) in all", each) for each in said]
    made = [(int(each[1]), int(each[2])) for each in found if each]
    assert len(made) == 2 and made[0][0] + made[1][0] == made[0][1] == made[1][1] > 0
    done = printed(run("materialize", asset, "--partition", before.partition))
    assert re.search(rf"takes over {made[0][1]} finished parts?\b", done), done
    after = next(
        record
        for where, record in SampleRoot(data, data).records()
        if (record.asset, record.partition) == (asset, before.partition)
    )
    assert (after.data_version, after.fingerprint) == (before.data_version, before.fingerprint)
