"""What a run does about the mirror that `[mirror]` of gristmill.toml names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import mirrored, ranges
from assets.publishing import publish_asset
from gristmill import provenance
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.mirror import pull
from gristmill.mirror.store import Store
from gristmill.publish.build import Build
from gristmill.settings.root_tables import MirrorSettings
from resources import Lake
from tests.mirror.roots import clean
from tests.publish.tiny import TinyConfig, tiny_build

KEYS = ["k1", "k2", "k3"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root that pushes to the folder `mirror` beside it."""
    made = tmp_path / "data"
    made.mkdir()
    configure(made, 'push = "../mirror"')
    return made


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def configure(root: Path, lines: str) -> None:
    (root / "gristmill.toml").write_text(f"[mirror]\n{lines}\n")


def build(lake: Lake, key: str) -> Build:
    """A tiny artifact; another content after `seed` changed, and two ways to fail."""
    if (lake.root / f"bad-{key}").exists():
        raise GristmillError(f"{key}: the input is broken")
    if (lake.root / f"none-{key}").exists():
        raise NothingToBuild(f"{key}: not there yet")
    seed = (lake.root / "seed").read_text() if (lake.root / "seed").exists() else "1"
    config = TinyConfig(seed=int(seed), rows=20)
    return tiny_build(lake.root, f"tiny/{key}", config=config, asset="tiny", partition=key)


@dg.asset(
    partitions_def=dg.StaticPartitionsDefinition(KEYS),
    backfill_policy=dg.BackfillPolicy.multi_run(100),
    output_required=False,
)
def tiny(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(context, lambda key: build(lake, key or ""))


@pytest.fixture
def run(root: Path, instance: dg.DagsterInstance) -> Any:
    """Materialize one partition, or all of them in one run."""

    def materialize(key: str | None = None) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [tiny],
            instance=instance,
            resources={"lake": Lake(data_root=str(root))},
            partition_key=key,
            tags={} if key else ranges.tags(KEYS),
            raise_on_error=False,
        )

    return materialize


def versions(mirror: Path) -> list[str]:
    """The versions in the mirror, as `k1 1`."""
    counts = Counter(file.parent.parent.name for file in (mirror / "artifacts").rglob("*.json"))
    return [f"{key} {number + 1}" for key in sorted(counts) for number in range(counts[key])]


def logged(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> str:
    entries = instance.all_logs(result.run_id)
    return "\n".join(entry.user_message for entry in entries if not entry.is_dagster_event)


def observations(result: dg.ExecuteInProcessResult) -> dict[str | None, dg.AssetObservation]:
    found = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    return {each.partition: each for each in found}


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """The failure of the run's step as its raiser describes it."""
    return result.get_step_failure_events()[0].step_failure_data.user_failure_data


class Cut(Store):
    """A mirror that takes no versions of some artifacts."""

    refuses = ""

    def write(self, key: str, pieces: Iterable[bytes | memoryview], size: int) -> None:
        if self.refuses in key and key.endswith(".json"):
            raise GristmillError(f"{key}: the connection was cut")
        super().write(key, pieces, size)


def test_what_a_run_publishes_is_a_version_of_the_mirror(run, instance, mirror, tmp_path):
    result = run("k1")
    assert result.success
    assert versions(mirror) == ["k1 1"]
    assert f"{mirror}: 1 new versions, " in logged(instance, result)
    pull(tmp_path / "other", str(mirror))
    assert clean(tmp_path / "other")


def test_a_rebuild_is_the_next_version_and_a_current_artifact_is_none(run, instance, root, mirror):
    run("k1")
    result = run("k1")
    assert f"{mirror}: 0 new versions, 0 bytes sent, 1 were there" in logged(instance, result)
    assert versions(mirror) == ["k1 1"]
    (root / "seed").write_text("2")
    assert run("k1").success
    assert versions(mirror) == ["k1 1", "k1 2"]


def test_without_the_table_nothing_is_pushed(run, instance, root, mirror):
    (root / "gristmill.toml").unlink()
    result = run("k1")
    assert result.success
    assert not mirror.exists()
    assert "new versions" not in logged(instance, result)


def test_only_the_assets_that_the_table_names_are_pushed(run, root, mirror, monkeypatch):
    configure(root, 'push = "../mirror"\nassets = ["macroxue/pack", "macroxue/pool"]')
    assert run("k1").success
    assert not mirror.exists()
    settings = MirrorSettings(push=str(mirror), assets=("macroxue/pack", "tiny"))
    monkeypatch.setattr(Lake, "mirror", lambda _: settings)
    assert run("k2").success
    assert versions(mirror) == ["k2 1"]


def test_a_partition_that_is_not_built_is_not_pushed(run, root, mirror):
    (root / "none-k2").touch()
    assert run().success
    assert versions(mirror) == ["k1 1", "k3 1"]
    (root / "none-k1").touch()
    assert run("k1").success


def test_of_a_batch_that_fails_the_others_are_pushed(run, root, mirror):
    (root / "bad-k2").touch()
    result = run()
    assert not result.success
    assert "1 of 3 partitions failed" in failure(result).description
    assert versions(mirror) == ["k1 1", "k3 1"]


def test_a_mirror_that_cannot_be_reached_fails_the_run_and_keeps_what_was_published(
    run, instance, root, mirror
):
    mirror.write_text("a file is no folder")
    result = run("k1")
    assert not result.success
    assert provenance.read_record(root / "tiny/k1/provenance.json").partition == "k1"
    assert instance.get_materialized_partitions(dg.AssetKey("tiny")) == {"k1"}
    cure = f"`gristmill push {mirror} tiny/k1`; the next build of the partition pushes it, too"
    said = failure(result)
    assert said.description.startswith("published, but the push failed: ")
    assert said.description.endswith(f"What to do: {cure}")
    seen = observations(result)["k1"]
    assert seen.metadata["status"].value == mirrored.STATUS
    assert seen.metadata["cure"].value == cure
    mirror.unlink()
    assert run("k1").success
    assert versions(mirror) == ["k1 1"]


def test_of_a_batch_each_partition_that_is_missed_is_named(run, instance, mirror, monkeypatch):
    monkeypatch.setattr("gristmill.mirror.pushing.Store", Cut)
    monkeypatch.setattr(Cut, "refuses", "tiny/k2/")
    result = run()
    assert not result.success
    assert versions(mirror) == ["k1 1", "k3 1"]
    assert instance.get_materialized_partitions(dg.AssetKey("tiny")) == set(KEYS)
    lines = failure(result).description.split("\n")
    assert lines[0] == "1 of 3 partitions are not in the mirror; all of them are published:"
    assert lines[1].startswith("k2: published, but the push failed: ")
    assert lines[1].endswith("the connection was cut")
    assert lines[2:] == [
        "What to do:",
        f"k2: `gristmill push {mirror} tiny/k2`; the next build of the partition pushes it, too",
    ]
    assert set(failure(result).metadata["failed"].value) == {"k2"}
    assert set(observations(result)) == {"k2"}


def test_a_run_that_fails_twice_ends_with_the_build_and_logs_the_push(run, instance, root, mirror):
    (root / "bad-k2").touch()
    mirror.write_text("a file is no folder")
    result = run()
    assert "1 of 3 partitions failed" in failure(result).description
    assert "2 of 2 partitions are not in the mirror" in logged(instance, result)
    assert set(observations(result)) == set(KEYS)


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("push = 3", "[mirror] push = 3: "),
        ('push = "../mirror"\nparallel = 0', "[mirror] parallel = 0: "),
        ('push = "../mirror"\nparallel = 65', "[mirror] parallel = 65: "),
        ('pusch = "../mirror"', "did you mean push?"),
        ('push = "../mirror"\nassets = "macroxue/pack"', "[mirror] assets = "),
        (
            'push = "../mirror"\nassets = ["macroxue/pakc"]',
            '[mirror] assets: no asset is "macroxue/pakc": did you mean macroxue/pack?',
        ),
    ],
)
def test_a_wrong_table_is_refused_before_anything_is_built(run, root, lines, rule):
    configure(root, lines)
    result = run("k1")
    assert not result.success
    assert rule in failure(result).description
    assert not (root / "tiny").exists()


def test_a_url_that_no_store_has_fails_after_the_build_with_its_name(run, root):
    configure(root, 'push = "gopher://old/place"')
    result = run("k1")
    assert not result.success
    assert "gopher://old/place" in failure(result).description
    assert (root / "tiny/k1/provenance.json").exists()


def test_a_folder_is_relative_to_the_data_root_and_a_url_is_kept(root, tmp_path):
    lake = Lake(data_root=str(root))
    assert lake.mirror().push == str(tmp_path / "mirror")
    for url in (f"{tmp_path}/there", "s3://bucket/prefix", f"file://{tmp_path}/there"):
        configure(root, f'push = "{url}"\nparallel = 64')
        assert lake.mirror().push == url
        assert lake.mirror().parallel == 64
    (root / "gristmill.toml").unlink()
    assert lake.mirror().push == ""
    assert lake.mirror().parallel == 8


def test_the_rest_of_the_data_root_is_not_searched(run, root, mirror, monkeypatch):
    run()
    (root / "seed").write_text("2")

    def never(*_: object) -> Iterator[object]:
        raise AssertionError("a data root may hold millions of artifacts")

    monkeypatch.setattr("gristmill.provenance.find_artifacts.artifacts", never)
    listed: list[str] = []
    keys = Store.keys
    monkeypatch.setattr(Store, "keys", lambda store, at: [listed.append(at), *keys(store, at)][1:])
    assert run("k2").success
    assert listed == ["artifacts/tiny/k2"]
    listed.clear()
    assert run().success
    assert listed == ["artifacts/tiny"]


def test_a_batch_pushes_all_of_its_partitions(run, mirror):
    assert run().success
    assert versions(mirror) == ["k1 1", "k2 1", "k3 1"]
