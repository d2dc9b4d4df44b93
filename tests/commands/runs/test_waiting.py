"""Follow-on failures: a target that waits for a failed one has no error of its own."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from commands.graph import Graph
from commands.runs.table import Outcome
from commands.runs.waiting import Failures
from gristmill.synth.samples import write_drop as write_raw
from resources.lake import Lake
from tests.commands.drops import Command, land, spoil

pytestmark = pytest.mark.sampled(0.5)

HARMONY, SHARDS, MANIFEST = "synth/harmony", "synth/kd_shards", "synth/kd_manifest"


@pytest.fixture(scope="module")
def failures_of() -> Graph:
    return Graph(dg.DagsterInstance.ephemeral(), Lake())


def _judged(failures: Failures, asset: str, partition: str, reason: str, error: str) -> Outcome:
    outcome = Outcome(asset, partition, "failed" if reason else "built", reason=reason, error=error)
    return failures.judged(dg.AssetKey.from_user_string(asset), outcome)


def test_a_target_waits_for_the_first_failure_that_it_needs(failures_of: Graph) -> None:
    failures = Failures(failures_of)
    assert _judged(failures, HARMONY, "00", "x.parquet:3: bad", "BadInput").status == "failed"
    assert _judged(failures, HARMONY, "01", "", "").status == "built"
    waiting = _judged(failures, SHARDS, "00", "synth/harmony 00 is not built", "NotBuilt")
    assert (waiting.status, waiting.reason) == ("not built", "waits for synth/harmony 00")
    own = _judged(failures, SHARDS, "01", "synth/harmony 01 is not built", "NotBuilt")
    assert (own.status, own.reason) == ("failed", "synth/harmony 01 is not built")
    manifest = _judged(failures, MANIFEST, "", "synth/kd_shards 00 is not built", "NotBuilt")
    assert manifest.reason == "waits for synth/harmony 00, synth/kd_shards 01"


@pytest.mark.parametrize(
    "error", ["BadInput", "LawsBroken", "InputDamaged", "DiskFull", "GristmillError", ""]
)
def test_an_error_of_the_build_itself_is_no_follow_on(failures_of: Graph, error: str) -> None:
    """An older Harmony shard stands, and a shard built from it has a bad row."""
    failures = Failures(failures_of)
    _judged(failures, HARMONY, "00", "raw.parquet:3: bad", "BadInput")
    own = _judged(failures, SHARDS, "00", "shard_00.parquet:9: bad", error)
    assert (own.status, own.reason) == ("failed", "shard_00.parquet:9: bad")


def test_an_asset_that_is_not_built_from_the_failed_one_does_not_wait(failures_of: Graph) -> None:
    failures = Failures(failures_of)
    _judged(failures, "macroxue/pack", "00", "bad", "BadInput")
    assert _judged(failures, SHARDS, "00", "settings", "NotBuilt").status == "failed"


def test_a_pool_waits_for_the_packs_that_its_error_names(failures_of: Graph) -> None:
    failures = Failures(failures_of)
    for pack in ("one", "two"):
        _judged(failures, "macroxue/pack", pack, "bad", "BadInput")
    pool = _judged(failures, "macroxue/pool", "both", "macroxue/pack two is not built", "NotBuilt")
    assert pool.reason == "waits for macroxue/pack two"
    own = _judged(failures, "macroxue/pool", "other", "no pool", "NotBuilt")
    assert own.status == "failed"


def test_many_failures_are_counted_behind_the_first(failures_of: Graph) -> None:
    failures = Failures(failures_of)
    for shard in ("00", "01", "02", "03"):
        _judged(failures, SHARDS, shard, "bad", "BadInput")
    manifest = _judged(failures, MANIFEST, "", "rebuilt since", "NotRebuilt")
    assert manifest.reason == (
        "waits for synth/kd_shards 00, synth/kd_shards 01, synth/kd_shards 02 and 1 more"
    )


@pytest.mark.parametrize("everything", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_failing_pack_is_the_only_error_of_the_command(
    run: Command, data: Path, everything: bool
) -> None:
    land(data, "one"), land(data, "two", seed=5)
    spoil(data / "drops/macroxue/one")
    assets = ["--all"] if everything else ["macroxue/values", "macroxue/pack"]
    done = run("materialize", *assets)
    assert done.exit_code == 1
    printed = done.stdout.splitlines()
    failed = [line for line in printed if line.startswith("failed ") and "tokenizers" not in line]
    assert len(failed) == 1
    assert failed[0].startswith("failed macroxue/pack one: ")
    assert "not built macroxue/values one: waits for macroxue/pack one" in printed
    assert "not JSON" not in done.stdout.replace(failed[0], "")
    assert (data / "macroxue/packs/two").is_dir()


def test_the_own_error_of_an_asset_behind_a_failed_one_is_shown(run: Command, data: Path) -> None:
    """An older pack stands; that its values cannot be published is no matter of the pack."""
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    spoil(data / "drops/macroxue/one")
    (data / "macroxue/values/one").mkdir(parents=True)
    done = run("materialize", "macroxue/pack", "macroxue/values")
    assert done.exit_code == 1
    printed = done.output.splitlines()
    assert any(line.startswith("failed macroxue/pack one: ") for line in printed)
    (own,) = (line for line in printed if line.startswith("failed macroxue/values one: "))
    assert "has no provenance record and is not overwritten" in own


@pytest.mark.slow
def test_a_failing_shard_is_the_only_error_of_the_command(run: Command, data: Path) -> None:
    files = write_raw(data / "drops/synth/raw", files=4)
    (data / "drops/synth/raw/.done").touch()
    files[2].write_bytes(b"no Parquet")
    done = run("materialize", "synth/harmony", "synth/harmony_manifest")
    assert done.exit_code == 1
    failed = [line for line in done.output.splitlines() if line.startswith("failed ")]
    assert len(failed) == 1 and failed[0].startswith("failed synth/harmony 02: ")
    assert "not built synth/harmony_manifest: waits for synth/harmony 02" in done.output


@pytest.mark.slow
def test_a_manifest_waits_for_the_one_shard_that_was_not_built_again(
    run: Command, data: Path
) -> None:
    files = write_raw(data / "drops/synth/raw", files=4)
    (data / "drops/synth/raw/.done").touch()
    assert run("materialize", "synth/harmony", "synth/harmony_manifest").exit_code == 0
    (data / "gristmill.toml").write_text('[synth.harmony]\nreasoning_effort = "low"\n')
    files[2].write_bytes(b"no Parquet")
    done = run("materialize", "synth/harmony", "synth/harmony_manifest")
    failed = [line for line in done.output.splitlines() if line.startswith("failed ")]
    assert len(failed) == 1 and failed[0].startswith("failed synth/harmony 02: ")
    assert "not built synth/harmony_manifest: waits for synth/harmony 02" in done.output
    alone = run("materialize", "synth/harmony_manifest")
    assert "shards 00 and 02 were built from unequal configs: reasoning_effort" in alone.output
