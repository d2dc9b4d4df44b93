"""Publishing the partitions of a run: their events, failures, and the push to a mirror."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg
import pytest
from dagster._serdes import serialize_value

from assets import choices, publishing, versions, worker
from assets.publishing import BATCH, FAILS_ALONE, publish_asset
from gristmill import families, provenance
from gristmill.contract import FileNote, GristmillError, NothingToBuild, Summary
from gristmill.mirror import pull
from gristmill.mirror.store import Store
from gristmill.publish.build import Attempt, Build
from gristmill.run.progress import Progress, Report
from gristmill.settings.tables import MIRROR, RUN, MirrorSettings, Table, resolve
from resources import Lake
from tests.mirror.roots import clean

KEYS = [f"k{number:02}" for number in range(8)]
partitions = dg.StaticPartitionsDefinition(KEYS)
MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION


@dataclass(frozen=True)
class Config:
    times: int = 2
    word: str = "grist"
    workers: int = 0


@dataclass(frozen=True)
class Counts(Summary):
    rows: int


def build(lake: Lake, key: str | None, config: Config, asset: str) -> Build:
    if (lake.root / f"bad-{key}").exists():
        raise GristmillError(f"{key}: the input is broken")
    if (lake.root / f"bug-{key}").exists():
        raise ZeroDivisionError("division by zero")
    if (lake.root / f"none-{key}").exists():
        raise NothingToBuild(f"{key}: not there yet")

    def make(attempt: Attempt) -> Counts:
        attempt.out.mkdir()
        text = f"{key} {config.word}\n" * config.times
        (attempt.out / "words.txt").write_text(text)
        return Counts(files={"words.txt": FileNote(rows=config.times)}, rows=config.times)

    return Build(
        root=lake.root,
        artifact=f"{asset}/{key or 'whole'}",
        asset=asset,
        partition=key,
        code_version="7",
        config=config,
        inputs=[],
        make=make,
    )


ConfigRun = choices.launchpad(Config)
source = dg.AssetSpec("source", partitions_def=partitions)
settled = dg.AssetSpec("settled")


@dg.asset(
    deps=[source, settled],
    partitions_def=partitions,
    code_version="7",
    backfill_policy=BATCH,
    output_required=False,
)
def first(
    context: dg.AssetExecutionContext,
    config: ConfigRun,  # type: ignore[valid-type]
    lake: Lake,
) -> Iterator[Any]:
    resolved = resolve(Config, lake.settings("first"), choices.chosen_values(config))
    yield from publish_asset(context, lambda key: build(lake, key, resolved, "first"))


@dg.asset(
    deps=[first],
    partitions_def=partitions,
    code_version="7",
    backfill_policy=BATCH,
    output_required=False,
)
def second(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    def build_of(key: str | None) -> Build:
        lake.published(f"first/{key}", "first", key)
        return build(lake, key, Config(), "second")

    yield from publish_asset(context, build_of)


@dg.asset(code_version="7", output_required=False)
def alone(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(context, lambda key: build(lake, key, Config(), "alone"))


@pytest.fixture(autouse=True)
def known_table(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = (Table("first", Config), RUN, MIRROR)
    monkeypatch.setattr(families, "tables", lambda: {table.name: table for table in tables})


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        for key in KEYS:
            made.report_runless_asset_event(
                dg.AssetMaterialization(
                    "source", partition=key, tags={"dagster/data_version": f"source-{key}"}
                )
            )
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def run(instance: dg.DagsterInstance, root: Path) -> Any:
    def materialize(
        *assets: Any,
        keys: list[str] | None = None,
        config: dict[str, Any] | None = None,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [source, settled, first, second, alone],
            selection=list(assets),
            instance=instance,
            resources={"lake": Lake(data_root=str(root))},
            tags={**tags, **versions.run_tags(keys or [None])},
            run_config={"ops": {"first": {"config": config}}} if config else None,
            raise_on_error=False,
        )

    return materialize


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """The failure of the run's step as its raiser describes it."""
    return result.get_step_failure_events()[0].step_failure_data.user_failure_data


def latest(instance: dg.DagsterInstance, asset: str, key: str | None) -> dg.AssetMaterialization:
    wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[key] if key else None)
    event = instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization
    assert event is not None
    return event


def version_tags(event: dg.AssetMaterialization) -> dict[str, str]:
    return {
        name: value for name, value in (event.tags or {}).items() if name.startswith("dagster/")
    }


def test_an_event_has_the_versions_of_the_record_and_plain_numbers(run, instance, root):
    assert run("first", keys=["k01"]).success
    event = latest(instance, "first", "k01")
    metadata = {name: value.value for name, value in event.metadata.items()}
    record = provenance.read_record(root / "first/k01/provenance.json")
    assert metadata["rows"] == 2
    assert metadata["dagster/row_count"] == 2
    assert metadata["bytes"] == len("k01 grist\n") * 2
    assert metadata["status"] == "built"
    assert event.tags["dagster/data_version"] == record.data_version
    assert event.tags["dagster/code_version"] == "7"


def test_a_batch_writes_the_tags_that_dagster_writes_for_one(run, instance):
    run("first", keys=["k01"])
    by_dagster = version_tags(latest(instance, "first", "k01"))
    run("first", keys=KEYS)
    by_us = version_tags(latest(instance, "first", "k01"))
    assert set(by_us) == set(by_dagster)
    # Of an input with partitions Dagster writes a digest of versions and the latest
    # event of any partition; ours are those of the very partition.
    upstream = {name for name in by_us if name.endswith("/source")}
    for name in set(by_us) - upstream:
        assert by_us[name] == by_dagster[name], name
    assert by_us["dagster/input_data_version/source"] == "source-k01"
    record = instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("source"), asset_partitions=["k01"]), limit=1
    ).records[0]
    assert by_us["dagster/input_event_pointer/source"] == str(record.storage_id)


def test_in_a_batch_a_bad_partition_fails_alone_and_by_name(run, instance, root):
    (root / "bad-k05").touch()
    result = run("first", "second", keys=KEYS)
    assert not result.success
    done = instance.get_materialized_partitions(dg.AssetKey("first"))
    assert done == set(KEYS) - {"k05"}
    assert stored(instance, result) == [("first", key, True) for key in KEYS if key != "k05"]
    assert "k05: the input is broken" in failure(result).description
    assert failure(result).metadata["failed"].value == {"k05": "k05: the input is broken"}


@pytest.mark.parametrize("keys", [["k05"], KEYS])
def test_a_partition_whose_files_cannot_be_shown_fails_alone(run, instance, monkeypatch, keys):
    whole = publishing.event_metadata

    def refused(published, sample):
        if published.record.partition == "k05":
            raise PermissionError(13, "Permission denied", "k05/rows")
        return whole(published, sample)

    monkeypatch.setattr(publishing, "event_metadata", refused)
    result = run("first", keys=keys)
    assert not result.success
    assert instance.get_materialized_partitions(dg.AssetKey("first")) == set(keys) - {"k05"}
    ((key, said),) = observations(result).items()
    assert (key, said.metadata["error"].value) == ("k05", "PermissionError")


def test_downstream_of_a_batch_in_the_same_run_is_built(run, instance):
    assert run("first", "second", keys=KEYS).success
    assert instance.get_materialized_partitions(dg.AssetKey("second")) == set(KEYS)
    versions = {latest(instance, "first", key).tags["dagster/data_version"] for key in KEYS}
    assert len(versions) == len(KEYS)
    for key in KEYS:
        upstream = latest(instance, "first", key)
        tags = latest(instance, "second", key).tags
        assert tags["dagster/input_data_version/first"] == upstream.tags["dagster/data_version"]
        assert upstream.metadata["status"].value == "built"


def built_by(result: dg.ExecuteInProcessResult, asset: str) -> list[str | None]:
    events = result.get_asset_materialization_events()
    found = [event.step_materialization_data.materialization for event in events]
    return [event.partition for event in found if event.asset_key == dg.AssetKey(asset)]


def test_in_a_batch_of_a_sensor_what_fails_alone_stops_no_other(run, instance, root):
    run("first", "second", keys=["k05"])
    for trouble in ("bad-k05", "bug-k06", "none-k07"):
        (root / trouble).touch()
    result = run("first", "second", keys=KEYS, tags={FAILS_ALONE: "true"})
    assert result.success
    # What was built of k05 before is not taken for an answer of this run.
    assert built_by(result, "first") == built_by(result, "second") == KEYS[:5]
    warnings = [
        entry.user_message
        for entry in instance.all_logs(result.run_id)
        if entry.user_message.endswith("\nEach of them gets a run of its own.")
    ]
    assert warnings == [
        "2 of 8 partitions failed, the others are published:\nk05: k05: the input is broken\n"
        "k06: ZeroDivisionError: division by zero\nWhat to do:\nk06: gristmill does not expect "
        "this error: report it with the stack trace of the run's log\n"
        "Each of them gets a run of its own."
    ]


def test_a_batch_of_a_sensor_of_which_nothing_is_built_builds_nothing_from_it(run, root):
    for trouble in ("bad-k05", "bug-k06", "none-k07"):
        (root / trouble).touch()
    result = run("first", "second", keys=KEYS[5:], tags={FAILS_ALONE: "true"})
    assert result.success
    assert built_by(result, "first") == built_by(result, "second") == []


def test_downstream_of_a_batch_is_built_for_the_partitions_that_had_something_to_build(run, root):
    (root / "none-k07").touch()
    result = run("first", "second", keys=KEYS)
    assert result.success
    assert built_by(result, "first") == built_by(result, "second") == KEYS[:7]


def test_an_error_of_the_library_fails_the_run_with_its_words_and_no_stack_trace(run, root):
    (root / "bad-k05").touch()
    event = run("first", keys=["k05"]).get_step_failure_events()[0].step_failure_data
    assert (
        event.error.message
        == "dagster._core.definitions.events.Failure: k05: the input is broken\n"
    )
    assert event.error.cause is None
    assert event.error.context is None
    assert event.user_failure_data.description == "k05: the input is broken"
    assert event.user_failure_data.metadata["error"].value == "GristmillError"


def observations(result: dg.ExecuteInProcessResult) -> dict[str | None, dg.AssetObservation]:
    found = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    return {each.partition: each for each in found}


def test_the_reason_of_a_failure_is_on_the_page_of_the_partition(run, root):
    (root / "bad-k05").touch()
    (root / "bug-k06").touch()
    for keys in (["k05"], KEYS):
        seen = observations(run("first", keys=keys))["k05"]
        assert seen.description == "failed: k05: the input is broken"
        assert {name: value.value for name, value in seen.metadata.items()} == {
            "status": "failed",
            "reason": "k05: the input is broken",
            "error": "GristmillError",
        }
    for keys in (["k06"], KEYS):
        seen = observations(run("first", keys=keys))["k06"]
        assert seen.metadata["reason"].value == "ZeroDivisionError: division by zero"
        assert "report it" in seen.metadata["cure"].value
        assert "Traceback" not in str(seen)


def test_an_error_that_the_library_does_not_expect_keeps_its_stack_trace(run, root):
    (root / "bug-k06").touch()
    event = run("first", keys=["k06"]).get_step_failure_events()[0].step_failure_data
    assert event.user_failure_data is None
    assert event.error.cause.message == "ZeroDivisionError: division by zero\n"
    assert "in build" in event.error.cause.stack[-1]


def logged(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> list[str]:
    return [
        entry.user_message
        for entry in instance.all_logs(result.run_id)
        if not entry.is_dagster_event
    ]


def test_in_a_batch_the_log_has_the_reason_before_the_stack_trace(run, instance, root):
    (root / "bad-k05").touch()
    (root / "bug-k06").touch()
    result = run("first", keys=KEYS)
    library, unexpected = logged(instance, result)
    assert library == "k05: k05: the input is broken"
    assert unexpected.startswith("k06: ZeroDivisionError: division by zero\nWhat to do: ")
    assert "Traceback (most recent call last)" in unexpected
    lines = failure(result).description.split("\n")
    assert lines[:3] == [
        "2 of 8 partitions failed, the others are published:",
        "k05: k05: the input is broken",
        "k06: ZeroDivisionError: division by zero",
    ]
    assert lines[3] == "What to do:"
    assert lines[4].startswith("k06: gristmill does not expect this error")


def test_the_log_says_in_one_line_what_was_built(run, instance, root):
    lines = logged(instance, run("first", keys=["k01"]))
    assert len(lines) == 1
    assert lines[0].startswith("first/k01: 20 bytes, built in 0.")
    assert lines[0].endswith(f" s, in {root}/first/k01; 2 rows")
    assert logged(instance, run("first", keys=["k01"])) == [
        f"first/k01: 20 bytes, in {root}/first/k01; 2 rows; "
        "nothing to do: same inputs, config and code"
    ]


def stored(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> list[Any]:
    """Materializations of each partition, and whether each has the numbers of what was built."""
    events = [
        event.asset_materialization
        for event in instance.all_logs(result.run_id, of_type=MATERIALIZED)
        if event.asset_materialization is not None
    ]
    return [
        (event.asset_key.to_user_string(), event.partition, "peak_memory_mb" in event.metadata)
        for event in events
    ]


def test_a_run_stores_one_event_for_each_partition_and_it_has_all_metadata(run, instance):
    for assets, keys in (
        (["first"], ["k01"]),
        (["first", "second"], KEYS[:1]),
        (["alone"], None),
        (["first"], KEYS),
        (["first", "second"], KEYS),
        (["first", "second", "alone"], KEYS[:3]),
    ):
        result = run(*assets, keys=keys)
        assert result.success
        expected = [
            (asset, key, True)
            for asset in assets
            for key in ([None] if asset == "alone" or keys is None else keys)
        ]
        assert sorted(stored(instance, result), key=str) == sorted(expected, key=str)
        bearing = [
            str(entry.dagster_event_type)
            for entry in instance.all_logs(result.run_id)
            if '"peak_memory_mb"' in serialize_value(entry)
        ]
        assert bearing == ["DagsterEventType.ASSET_MATERIALIZATION"] * len(expected)


def test_reports_of_a_run_go_to_the_terminal_that_started_it(run, instance, root):
    (root / "bad-k05").touch()
    (root / "none-k07").touch()
    reports: list[Report] = []
    with Progress(reports.append).current():
        run("first", keys=["k04"])
        run("first", keys=KEYS[5:])
        run("alone")
    assert [(report.work, report.note) for report in reports if report.moment == "end"] == [
        ("first k04", "built"),
        ("first k05", "failed: k05: the input is broken"),
        ("first k06", "built"),
        ("first k07", "not built: k07: not there yet"),
        ("alone", "built"),
    ]
    assert [report.work for report in reports if report.moment == "begin"] == [
        "first k04",
        "first k05",
        "first k06",
        "first k07",
        "alone",
    ]


def test_a_missing_upstream_is_named(run):
    assert "first/k02" in failure(run("second", keys=["k02"])).description


def test_config_comes_from_the_run_then_the_settings_then_the_default(run, instance, root):
    (root / "gristmill.toml").write_text('[first]\ntimes = 5\nword = "mill"\n')
    assert run("first", keys=["k01"], config={"word": "flour"}).success
    assert (root / "first/k01/words.txt").read_text() == "k01 flour\n" * 5


def test_a_run_is_signed_by_its_process(run, instance):
    result = run("alone")
    signature = instance.get_run_by_id(result.run_id).tags[worker.TAG]
    assert worker.is_alive(signature)
    boot, process, started = signature.split(":")
    assert not worker.is_alive(f"{boot}:{process}:{int(started) + 1}")


@pytest.mark.parametrize("keys", [["k00"], ["k00", "k01"]])
def test_a_data_root_that_is_gone_fails_the_run_and_is_not_made(run, instance, root, keys):
    moved = root.rename(root.with_name("unmounted"))
    result = run(first, keys=keys)
    assert not result.success
    assert not root.exists()
    moved.rename(root)
    assert failure(result).description.startswith(f"{root}: the data root is not there: ")
    assert run(first, keys=keys).success


MIRRORED = KEYS[1:4]


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def configure(root: Path, lines: str) -> None:
    (root / "gristmill.toml").write_text(f"[mirror]\n{lines}\n")


@pytest.fixture
def push(run: Any, root: Path) -> Any:
    """Materialize one partition, or three in one run, in a root that pushes to `mirror`."""
    configure(root, 'push = "../mirror"')
    return lambda key=None: run("first", keys=[key] if key else MIRRORED)


def pushed_versions(mirror: Path) -> list[str]:
    counts = Counter(file.parent.parent.name for file in (mirror / "artifacts").rglob("*.json"))
    return [f"{key} {number + 1}" for key in sorted(counts) for number in range(counts[key])]


class Cut(Store):
    """A mirror that takes no versions of some artifacts."""

    refuses = ""

    def write(self, key: str, pieces: Iterable[bytes | memoryview], size: int) -> None:
        if self.refuses in key and key.endswith(".json"):
            raise GristmillError(f"{key}: the connection was cut")
        super().write(key, pieces, size)


def test_what_a_run_publishes_is_a_version_of_the_mirror(push, instance, root, mirror, tmp_path):
    for said in ("1 new versions, ", "0 new versions, 0 bytes sent, 1 were there"):
        result = push("k01")
        assert result.success
        assert pushed_versions(mirror) == ["k01 1"]
        assert f"{mirror}: {said}" in "\n".join(logged(instance, result))
    pull(tmp_path / "other", str(mirror))
    assert clean(tmp_path / "other")
    configure(root, 'push = "../mirror"\n[first]\nword = "mill"')
    assert push("k01").success
    assert pushed_versions(mirror) == ["k01 1", "k01 2"]


def test_without_the_table_nothing_is_pushed(push, instance, root, mirror):
    (root / "gristmill.toml").unlink()
    result = push("k01")
    assert result.success
    assert not mirror.exists()
    assert "new versions" not in "\n".join(logged(instance, result))


def test_only_the_assets_that_the_table_names_are_pushed(push, root, mirror, monkeypatch):
    configure(root, 'push = "../mirror"\nassets = ["macroxue/pack", "macroxue/pool"]')
    assert push("k01").success
    assert not mirror.exists()
    settings = MirrorSettings(push=str(mirror), assets=("macroxue/pack", "first"))
    monkeypatch.setattr(Lake, "mirror", lambda _: settings)
    assert push("k02").success
    assert pushed_versions(mirror) == ["k02 1"]


@pytest.mark.parametrize("trouble", ["none", "bad"])
def test_of_a_batch_what_is_not_built_is_not_pushed(push, root, mirror, trouble):
    (root / f"{trouble}-k02").touch()
    result = push()
    assert result.success == (trouble == "none")
    assert result.success or "1 of 3 partitions failed" in failure(result).description
    assert pushed_versions(mirror) == ["k01 1", "k03 1"]
    (root / "none-k01").touch()
    assert push("k01").success


def test_a_mirror_out_of_reach_fails_the_run_and_loses_nothing(push, instance, root, mirror):
    mirror.write_text("a file is no folder")
    result = push("k01")
    assert not result.success
    assert provenance.read_record(root / "first/k01/provenance.json").partition == "k01"
    assert instance.get_materialized_partitions(dg.AssetKey("first")) == {"k01"}
    cure = f"`gristmill push {mirror} first/k01`; the next build of the partition pushes it, too"
    said = failure(result)
    assert said.description.startswith("published, but the push failed: ")
    assert said.description.endswith(f"What to do: {cure}")
    seen = observations(result)["k01"]
    assert seen.metadata["status"].value == publishing.STATUS
    assert seen.metadata["cure"].value == cure
    mirror.unlink()
    assert push("k01").success
    assert pushed_versions(mirror) == ["k01 1"]


def test_of_a_batch_each_partition_that_is_missed_is_named(push, instance, mirror, monkeypatch):
    monkeypatch.setattr("gristmill.mirror.transfers.Store", Cut)
    monkeypatch.setattr(Cut, "refuses", "first/k02/")
    result = push()
    assert not result.success
    assert pushed_versions(mirror) == ["k01 1", "k03 1"]
    assert instance.get_materialized_partitions(dg.AssetKey("first")) == set(MIRRORED)
    lines = failure(result).description.split("\n")
    assert lines[0] == "1 of 3 partitions are not in the mirror; all of them are published:"
    assert lines[1].startswith("k02: published, but the push failed: ")
    assert lines[1].endswith("the connection was cut")
    assert lines[2:] == [
        "What to do:",
        f"k02: `gristmill push {mirror} first/k02`; the next build of the partition pushes it, too",
    ]
    assert set(failure(result).metadata["failed"].value) == {"k02"}
    assert set(observations(result)) == {"k02"}


def test_a_run_that_fails_twice_ends_with_the_build_and_logs_the_push(push, instance, root, mirror):
    (root / "bad-k02").touch()
    mirror.write_text("a file is no folder")
    result = push()
    assert "1 of 3 partitions failed" in failure(result).description
    assert "2 of 2 partitions are not in the mirror" in "\n".join(logged(instance, result))
    assert set(observations(result)) == set(MIRRORED)


@pytest.mark.parametrize(
    ("lines", "rule", "is_built"),
    [
        ("push = 3", "[mirror] push = 3: ", False),
        ('push = "../mirror"\nparallel = 65', "[mirror] parallel = 65: ", False),
        ('push = "gopher://old/place"', "gopher://old/place", True),
    ],
)
def test_a_wrong_table_or_url_is_refused_before_or_after_a_build(push, root, lines, rule, is_built):
    configure(root, lines)
    result = push("k01")
    assert not result.success
    assert rule in failure(result).description
    assert (root / "first/k01/provenance.json").exists() == is_built
    assert (root / "first").exists() == is_built


def test_the_rest_of_the_data_root_is_not_searched(push, root, mirror, monkeypatch):
    push()
    configure(root, 'push = "../mirror"\n[first]\nword = "mill"')

    def never(*_: object) -> Iterator[object]:
        raise AssertionError("a data root may hold millions of artifacts")

    monkeypatch.setattr("gristmill.provenance.find_artifacts.artifacts", never)
    listed: list[str] = []
    keys = Store.keys
    monkeypatch.setattr(Store, "keys", lambda store, at: [listed.append(at), *keys(store, at)][1:])
    assert push("k02").success
    assert listed == ["artifacts/first/k02"]
    listed.clear()
    assert push().success
    assert listed == ["artifacts/first"]
