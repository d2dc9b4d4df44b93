"""`gristmill parts` for each asset that has parts: two shares, then a run that takes them over."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import parts
from gristmill.provenance import SHARED_RECORDS
from gristmill.publish.remove import at_path, remove_published
from tests.commands.drops import Command, printed
from tests.sample_root import SampleRoot

INDIVISIBLE = {"synth/harmony": "with one worker", "synth_smoke/kd_shards": "under a cap"}
"""The assets whose parts, as the sample root is built, depend on those before, and why."""


def _share(share: int, asset: str, partition: str) -> str:
    return printed(CliRunner().invoke(parts.parts, [str(share), "2", asset, partition]))


@pytest.mark.slow
@pytest.mark.parametrize("asset", sorted(parts.in_parts()))
def test_two_shares_and_a_run_give_what_one_build_gives(
    sample_root: SampleRoot, run: Command, data: Path, asset: str
) -> None:
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
