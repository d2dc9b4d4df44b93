"""The graph of assets: which partitions need no run, months of a calendar, and arrivals."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import Result

import definitions
from assets.inbox import Inbox
from assets.versions import RANGE
from commands.graph import INBOXES, Failures, Graph, Plan, Standing, register, strangers
from commands.outcomes import Outcome
from gristmill.chess.config import VARIABLE
from gristmill.chess.samples import write_month
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.families import catalogs
from gristmill.inbox import READY, REFUSED, present_drops
from gristmill.publish.build import slot_of_folder
from gristmill.samples import write_samples
from gristmill.synth.samples import write_drop as write_raw
from resources import Lake, NotBuilt
from tests.archive_server import ArchiveServer
from tests.commands.drops import PACKS, Command, land, printed, spoil
from tests.macroxue.annotated import write_annotations
from tests.macroxue.games import play, write_pack
from tests.sample_root import write_talks
from tests.tiny_tokenizer import put_recipe, put_tiny
from tests.toy_inbox import asked

PACK, VALUES = dg.AssetKey(["macroxue", "pack"]), dg.AssetKey(["macroxue", "values"])


@pytest.fixture
def packs(run: Command, data: Path) -> None:
    """Two drops whose packs are built."""
    land(data, "one"), land(data, "two", seed=5)
    assert run("materialize", "macroxue/pack").exit_code == 0


@pytest.fixture
def plan(instance: dg.DagsterInstance):
    """The plan for packs, or another asset, as a new call of the command makes it."""

    def of(*keys: str, asset: dg.AssetKey = PACK) -> Plan:
        lake = Lake()
        return Standing(instance, lake, Graph(instance, lake)).plan(asset, keys)

    return of


def test_every_asset_that_can_be_built_says_its_build():
    graph = Graph(dg.DagsterInstance.ephemeral(), Lake())
    assert set(definitions.declared()) == {asset.to_user_string() for asset in graph.select(())}


def test_a_current_pack_that_the_instance_knows_needs_no_run(run, data, plan, instance):
    land(data, "one"), land(data, "two", seed=5)
    assert plan("one", "two").together == ["one", "two"]
    assert run("materialize", "macroxue/pack").exit_code == 0
    runs = instance.get_runs_count()
    found = plan("one", "two")
    assert (found.together, found.alone) == ([], {})
    assert [item.status for item in found.standing.values()] == ["unchanged", "unchanged"]
    outcome = found.standing["one"]
    assert (outcome.rows, outcome.place) == (18, str(data / PACKS / "one"))
    assert "nothing needed doing (2 artifacts" in run("materialize", "macroxue/pack").output
    assert instance.get_runs_count() == runs


@pytest.mark.slow
def test_a_changed_file_a_missing_one_and_a_killed_build_need_a_run(run, data, plan):
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    steps = data / PACKS / "one/steps.npy"
    whole, times = steps.read_bytes(), steps.stat()
    steps.write_bytes(whole + b"x")
    assert plan("one").together == ["one"]
    steps.write_bytes(whole)
    assert plan("one").together == ["one"]  # another time
    os.utime(steps, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert plan("one").together == []
    left = slot_of_folder(data / PACKS / "one") / "staging"
    left.mkdir(parents=True)
    assert plan("one").together == ["one"]
    shutil.rmtree(left.parent)
    (data / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    assert plan("one").together == ["one"]
    (data / "gristmill.toml").unlink()
    assert plan("one").together == []
    shutil.rmtree(folder)
    land(data, "one", seed=9)
    assert plan("one").together == ["one"]


@pytest.mark.slow
def test_an_instance_that_does_not_know_a_current_pack_gets_an_event(run, data, plan, instance):
    land(data, "one")
    run("materialize", "macroxue/pack")
    instance.wipe_assets([PACK])
    assert plan("one").together == ["one"]
    done = run("materialize", "macroxue/pack")
    assert "nothing needed doing (1 artifact" in done.output
    assert instance.get_latest_materialization_event(PACK) is not None
    assert plan("one").together == []


@pytest.mark.slow
def test_a_pack_that_the_page_calls_stale_gets_an_event(run, data, plan):
    """The same bytes with another time are another arrival, and the same pack."""
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    for file in folder.iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    run("materialize", "macroxue/pool")  # reports the arrival
    assert plan("one").together == ["one"]
    run("materialize", "macroxue/pack")
    assert plan("one").together == []


def test_a_build_that_cannot_be_described_is_run_alone_with_its_error(run, data, plan):
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    assert plan("one", asset=VALUES).together == ["one"]
    shutil.rmtree(data / PACKS / "one")
    assert isinstance(plan("one", asset=VALUES).alone["one"], NotBuilt)
    shutil.rmtree(folder)
    error = plan("one").alone["one"]
    assert isinstance(error, GristmillError) and "bring it back" in str(error)


def test_what_is_not_built_on_purpose_is_observed_once(run, data, plan, instance):
    report = dg.AssetKey(["reasoning", "qc_report"])
    day = "2026-01-02"
    found = plan(day, asset=report)
    assert isinstance(found.alone[day], NothingToBuild)
    reason = str(found.alone[day])
    instance.report_runless_asset_event(
        dg.AssetObservation(report, partition=day, metadata={"reason": reason})
    )
    again = plan(day, asset=report)
    assert again.alone == {} and again.standing[day].reason == reason
    instance.report_runless_asset_event(
        dg.AssetObservation(report, partition=day, metadata={"reason": "another"})
    )
    assert day in plan(day, asset=report).alone


def test_a_failed_check_needs_a_run_of_what_it_names(run, packs, plan, instance):

    def evaluate(
        passed: bool, severity: dg.AssetCheckSeverity, *named: str, count: int = 0
    ) -> list[str | None]:
        schema = dg.TableSchema(columns=[dg.TableColumn("partition"), dg.TableColumn("problem")])
        rows = [dg.TableRecord({"partition": key, "problem": "bad"}) for key in named]
        table = {"failures": dg.TableMetadataValue(rows, schema), "problems": count or 1}
        metadata = table if named else {}
        event = dg.AssetCheckEvaluation(
            asset_key=PACK, check_name="intact", passed=passed, severity=severity, metadata=metadata
        )
        instance.report_runless_asset_event(event)
        return plan("one", "two").together

    error, warning = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
    assert evaluate(False, error, "two") == ["two"]
    assert evaluate(False, error, "gone") == []
    assert evaluate(False, error, "two", count=900) == ["one", "two"]  # the table is cut
    assert evaluate(False, error) == ["one", "two"]
    assert evaluate(False, warning) == []
    assert evaluate(True, error) == []


def test_a_run_of_many_partitions_that_left_a_check_makes_all_of_them_wanted(
    run, packs, plan, instance
):
    key = dg.AssetCheckKey(PACK, "intact")
    lake = Lake()
    for tags, expected in (
        ({"dagster/partition": "two"}, ["two"]),
        ({RANGE[0]: "one", RANGE[1]: "two"}, ["one", "two"]),
        ({}, ["one", "two"]),
    ):
        fail_a_run(instance, PACK, tags, asset_check_selection={key})
        assert plan("one", "two").together == expected, tags
    standing = Standing(instance, lake, Graph(instance, lake))
    assert standing._keys_of_run("a run that was deleted", ["one"]) == {"one"}


def fail_a_run(
    instance: dg.DagsterInstance, asset: dg.AssetKey, tags: dict[str, str], **checks: Any
) -> None:
    """A run that ends before it says anything of its asset, as by a kill."""
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    subset = job.get_subset(asset_selection={asset}, **checks)
    left = instance.create_run_for_job(subset, asset_selection=frozenset({asset}), tags=tags)
    instance.report_run_failed(left)


def statuses(instance: dg.DagsterInstance) -> dict[str, str]:
    known = Graph(instance, Lake()).partitions(PACK)
    assert known is not None
    found = instance.get_status_by_partition(PACK, ["one", "two"], known) or {}
    return {key: one.value for key, one in found.items() if one}


@pytest.mark.slow
def test_a_run_that_failed_since_the_build_makes_its_partitions_wanted(run, packs, plan, instance):
    assert plan("one", "two").together == []
    fail_a_run(instance, PACK, {"dagster/partition": "two"})
    assert statuses(instance) == {"one": "MATERIALIZED", "two": "FAILED"}
    assert plan("one", "two").together == ["two"]
    done = run("materialize", "macroxue/pack", "--partition", "two")
    assert "nothing needed doing (1 artifact" in done.output
    assert statuses(instance) == {"one": "MATERIALIZED", "two": "MATERIALIZED"}
    assert plan("one", "two").together == []
    fail_a_run(instance, PACK, {RANGE[0]: "one", RANGE[1]: "two"})
    assert plan("one", "two").together == ["one", "two"]
    assert run("materialize", "macroxue/pack").exit_code == 0
    assert plan("one", "two").together == []


def test_the_plan_asks_once_for_the_partitions_that_failed(run, packs, plan, instance, monkeypatch):
    asked, whole = [], dg.DagsterInstance.get_status_by_partition

    def counted(self: dg.DagsterInstance, asset: dg.AssetKey, keys, partitions):
        asked.append((asset, sorted(keys)))
        return whole(self, asset, keys, partitions)

    monkeypatch.setattr(dg.DagsterInstance, "get_status_by_partition", counted)
    assert plan("one", "two").together == []
    assert asked == [(PACK, ["one", "two"])]


def test_a_run_that_failed_makes_an_asset_without_partitions_wanted(run, data, instance):
    standing = Standing(instance, Lake(), Graph(instance, Lake()))
    manifest = dg.AssetKey(["reasoning", "raw_manifest"])
    assert standing._failed(manifest, [None]) == set()
    instance.report_runless_asset_event(dg.AssetMaterialization(manifest))
    assert standing._failed(manifest, [None]) == set()
    fail_a_run(instance, manifest, {})
    assert standing._failed(manifest, [None]) == {None}
    instance.report_runless_asset_event(dg.AssetMaterialization(manifest))
    assert standing._failed(manifest, [None]) == set()


HARMONY, SHARDS, MANIFEST = "synth/harmony", "synth/kd_shards", "synth/kd_manifest"


@pytest.fixture(scope="module")
def failures_of() -> Graph:
    return Graph(dg.DagsterInstance.ephemeral(), Lake())


def _judged(failures: Failures, asset: str, partition: str, reason: str, error: str) -> Outcome:
    outcome = Outcome(asset, partition, "failed" if reason else "built", reason=reason, error=error)
    return failures.judged(dg.AssetKey.from_user_string(asset), outcome)


def test_a_target_waits_for_the_first_failure_that_it_needs(failures_of):
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
def test_an_error_of_the_build_itself_is_no_follow_on(failures_of, error):
    """An older Harmony shard stands, and a shard built from it has a bad row."""
    failures = Failures(failures_of)
    _judged(failures, HARMONY, "00", "raw.parquet:3: bad", "BadInput")
    own = _judged(failures, SHARDS, "00", "shard_00.parquet:9: bad", error)
    assert (own.status, own.reason) == ("failed", "shard_00.parquet:9: bad")


@pytest.mark.parametrize(
    ("failed", "target", "error", "waits_for"),
    [
        ("macroxue/pack 00", f"{SHARDS} 00", ("settings", "NotBuilt"), ""),
        (
            "macroxue/pack one two",
            "macroxue/pool both",
            ("macroxue/pack two is not built", "NotBuilt"),
            "macroxue/pack two",
        ),
        ("macroxue/pack one two", "macroxue/pool other", ("no pool", "NotBuilt"), ""),
        (
            f"{SHARDS} 00 01 02 03",
            f"{MANIFEST} ",
            ("rebuilt since", "NotRebuilt"),
            "synth/kd_shards 00, synth/kd_shards 01, synth/kd_shards 02 and 1 more",
        ),
    ],
)
def test_a_target_waits_for_those_that_its_error_names_and_that_it_is_built_from(
    failures_of, failed, target, error, waits_for
):
    failures = Failures(failures_of)
    above, *keys = failed.split()
    for key in keys:
        _judged(failures, above, key, "bad", "BadInput")
    asset, partition = target.split(" ")
    found = _judged(failures, asset, partition, *error)
    expected = ("not built", f"waits for {waits_for}") if waits_for else ("failed", error[0])
    assert (found.status, found.reason) == expected


@pytest.mark.slow
def test_the_own_error_of_an_asset_behind_a_failed_one_is_shown(run, data):
    """An older pack stands; that its values cannot be published is no matter of the pack."""
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    spoil(data / "drops/macroxue/one")
    (data / "macroxue/values/one").mkdir(parents=True)
    lines = printed(run("materialize", "macroxue/pack", "macroxue/values"), 1).splitlines()
    assert any(line.startswith("failed macroxue/pack one: ") for line in lines)
    (own,) = (line for line in lines if line.startswith("failed macroxue/values one: "))
    assert "has no provenance record and is not overwritten" in own


@pytest.mark.slow
@pytest.mark.parametrize("was_built", [False, True])
def test_a_manifest_waits_for_the_one_shard_that_is_not_built(run, data, was_built):
    files = write_raw(data / "drops/synth/raw", files=4)
    (data / "drops/synth/raw/.done").touch()
    chosen = ("materialize", "synth/harmony", "synth/harmony_manifest")
    assert not was_built or run(*chosen).exit_code == 0
    (data / "gristmill.toml").write_text('[synth.harmony]\nreasoning_effort = "low"\n')
    files[2].write_bytes(b"no Parquet")
    said = printed(run(*chosen), 1)
    (failed,) = (line for line in said.splitlines() if line.startswith("failed "))
    assert failed.startswith("failed synth/harmony 02: ")
    assert "not built synth/harmony_manifest: waits for synth/harmony 02" in said
    if not was_built:
        return
    alone = run("materialize", "synth/harmony_manifest")
    assert "shards 00 and 02 were built from unequal configs: reasoning_effort" in alone.output


CHAIN = ("elite_pgn", "valid_games", "game_dataset", "splice_cache", "splice_dataset")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArchiveServer]:
    made = ArchiveServer()
    monkeypatch.setenv(VARIABLE, made.address)
    yield made
    made.close()


@pytest.fixture
def materialize(run: Command, server: ArchiveServer, data: Path) -> Command:
    """`gristmill materialize`, where the archive is a local server."""
    (data / "drops/chess").mkdir()
    return lambda *words: run("materialize", *words)


def table(result: Result) -> set[tuple[str, ...]]:
    """The rows of the table: asset, partition, status. A wide table has one block an asset."""
    rows, asset = set(), ""
    for line in result.stdout.splitlines():
        words = line.split()
        if words and words[0].startswith("chess/"):
            asset = words[0]
            is_account = any(word.endswith(":") for word in words[:6])  # of a drop
            if len(words) > 1 and not is_account:
                rows.add((asset, *words[1:3]))
        elif line.startswith("  ") and len(words) > 1 and words[1] in ("built", "unchanged"):
            rows.add((asset, *words[:2]))
    return rows


@pytest.mark.slow
def test_all_takes_the_sample_months_and_no_others_and_then_finds_nothing_to_do(
    materialize, data, server
):
    write_samples(data)
    shutil.rmtree(data / "drops/macroxue")
    (data / "drops/pools/samples.toml").unlink()
    chain = [f"chess/{name}" for name in CHAIN]
    done = materialize(*chain)
    assert done.exit_code == 0, done.output
    months = ("2024-01", "2024-02")
    assert table(done) == {(name, month, "built") for name in chain for month in months}
    again = materialize(*chain)
    assert table(again) == {(name, month, "unchanged") for name in chain for month in months}
    assert "nothing needed doing" in again.output
    assert server.asked == []


def test_any_month_can_be_named_and_is_built_from_then_on(materialize, data, server, tmp_path):
    assert table(materialize("chess/elite_pgn")) == set()
    write_month(tmp_path / "x.zip", "2021-03", 30, 1)
    server.files["lichess_elite_2021-03.zip"] = (tmp_path / "x.zip").read_bytes()
    done = materialize("chess/elite_pgn", "--partition", "2021-03")
    assert table(done) == {("chess/elite_pgn", "2021-03", "built")}
    assert "there is no drop" not in done.output
    assert table(materialize("chess/elite_pgn")) == {("chess/elite_pgn", "2021-03", "unchanged")}
    assert len(server.asked) == 1


def test_a_month_that_is_not_published_is_not_built_and_one_without_a_partition_is_refused(
    materialize,
):
    done = materialize("chess/elite_pgn", "--partition", "2021-03")
    assert done.exit_code == 1
    assert "1 not built, 0 artifacts unchanged (" in done.output
    assert table(done) == set()
    assert "not built chess/elite_pgn 2021-03: " in done.output
    assert "not published (HTTP 404)" in done.output
    said = printed(materialize("chess/elite_pgn", "--partition", "2019-01"), 2)
    assert "has no partition '2019-01'; its partitions: 2020-06, 2020-07 … " in said


(DROPS,) = (inbox for inbox in INBOXES if inbox.folder == "macroxue")


def reported(instance: dg.DagsterInstance) -> int:
    return len(instance.fetch_materializations(DROPS.raw_drop, limit=100).records)


def test_a_drop_becomes_a_partition_and_is_reported_once_until_it_is_replaced(instance, data):
    land(data, "one")
    assert register(instance, Lake(), DROPS) == []
    assert instance.get_dynamic_partitions("macroxue_drops") == ["one"]
    assert reported(instance) == 1
    assert register(instance, Lake(), DROPS) == []
    assert reported(instance) == 1
    shutil.rmtree(data / "drops/macroxue/one")
    land(data, "one", seed=2)
    assert register(instance, Lake(), DROPS) == []
    assert reported(instance) == 2


def test_a_refused_drop_is_returned_and_no_partition(instance, data):
    (data / "drops/macroxue/empty").mkdir()
    (found,) = register(instance, Lake(), DROPS)
    assert (found.key, found.state) == ("empty", REFUSED)
    assert instance.get_dynamic_partitions("macroxue_drops") == []
    assert reported(instance) == 0


def _good(inbox: Inbox, data: Path) -> set[str]:
    """Bring the family's sample drops into an inbox; returns their keys."""
    for each in catalogs():
        for name, write in each.samples.items():
            path = data / "drops" / name
            if name.split("/")[0] == inbox.folder:
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path)
    if inbox.folder == "tokenizers":  # no sample of one is written
        put_tiny(data)
    if inbox.folder == "chat":
        write_talks(data)
    if inbox.folder == "reasoning/recipes":
        put_recipe(data)
    if inbox.folder == "annotations":  # of a model, so no sample is written
        pack = write_pack(data / "pack", [play(3, 9)])
        write_annotations(data / "drops/annotations/good", pack)
    if inbox.folder == "puzzles/recipes":  # all sample recipes are built in
        recipe = data / "drops/puzzles/recipes/good.toml"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        recipe.write_text('kind = "domino"\n')
    found = present_drops(data / "drops" / inbox.folder, asked(), inbox.shape)
    return {arrival.key for arrival in found.arrivals}


def _hostile_drops(inbox: Inbox, data: Path) -> set[str]:
    """Bring drops into an inbox that would harm a careless reader; returns their names."""
    folder = data / "drops" / inbox.folder
    folder.mkdir(parents=True, exist_ok=True)
    if inbox.shape.endings:
        names = [f"lichess_elite_2021-0{number}{inbox.shape.endings[0]}" for number in range(1, 5)]
        (folder / names[0]).symlink_to("/dev/zero")
        os.mkfifo(folder / names[1])
        (folder / names[2]).symlink_to("/etc/passwd")
        (folder / names[3]).mkdir()
        return set(names)
    names = ["device", "pipe", "passwd", "deep", "toml_link", "toml_deep"]
    for name in names:
        (folder / name).mkdir()
        for file in ("a.meta.json", "a.jsonl.gz", "a.parquet", "synth_harmony_00.parquet"):
            (folder / name / file).write_bytes(b"\x00")
    (folder / "device" / "b.parquet").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe" / "manifest.json")
    (folder / "passwd" / "b.meta.json").symlink_to("/etc/passwd")
    (folder / "deep" / "/".join(["x"] * 70)).mkdir(parents=True)
    (folder / "toml_link" / "gristmill.toml").symlink_to("/dev/zero")
    (folder / "toml_deep" / "gristmill.toml").write_text("a = " + "[" * 100_000)
    (folder / "whole").symlink_to("/etc")
    return {*names, "whole"}


@pytest.mark.usefixtures("games_played_once")
@pytest.mark.parametrize("inbox", INBOXES, ids=lambda inbox: inbox.folder)
def test_hostile_drops_are_named_and_the_good_one_beside_them_arrives(instance, data, inbox):
    if inbox.folder == "synth_harmony":
        pytest.skip("there is no sample of a finished conversion")
    good, hostile = _good(inbox, data), _hostile_drops(inbox, data)
    assert good
    found = register(instance, Lake(), inbox)
    assert {drop.key for drop in found if drop.state == REFUSED} == hostile
    idle = {drop.key: drop.state for drop in found if drop.state != REFUSED}
    if inbox.folder in ("pools", "views", "reasoning/recipes"):
        assert idle == dict.fromkeys(good, READY)  # what the samples are made from is not built
        return
    assert idle == {}
    if inbox.dynamic:
        assert set(instance.get_dynamic_partitions(inbox.dynamic)) == good


def test_hostile_drops_in_every_inbox_leave_the_graph_of_all_families_alone(instance, data):
    for inbox in INBOXES:
        _hostile_drops(inbox, data)
        register(instance, Lake(), inbox)
    graph = Graph(instance, Lake())
    for asset in graph.select(()):
        graph.keys(asset, ())


def test_a_folder_that_is_no_inbox_is_named_with_the_inbox_that_was_meant(data):
    for name in ("macroxeu", "qqq", "tokenizers", ".hidden", "pools"):
        (data / "drops" / name).mkdir()
    (data / "drops/notes.txt").write_text("a file")
    known = ", ".join(sorted({inbox.folder.split("/")[0] for inbox in INBOXES}))
    assert list(strangers(Lake())) == [
        "drops/macroxeu is no inbox: did you mean macroxue?",
        f"drops/qqq is no inbox: the inboxes are {known}",
    ]
    shutil.rmtree(data / "drops")
    assert list(strangers(Lake())) == []


def test_wrong_settings_of_an_inbox_are_returned_without_a_key(instance, data):
    land(data, "one")
    (data / "gristmill.toml").write_text("[inbox]\nfollow_links = 3\n")
    (found,) = register(instance, Lake(), DROPS)
    assert (found.key, found.state) == ("", REFUSED)
    assert "links in drops are refused" in found.reason
    assert instance.get_dynamic_partitions("macroxue_drops") == ["one"]
