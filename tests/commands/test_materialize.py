"""`gristmill materialize`: what it builds, prints and refuses."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

import definitions
from assets import worker
from assets.versions import DATA_VERSION
from commands import checkout, graph, materialize, selection
from commands.graph import Graph
from commands.outcomes import Outcome
from gristmill import provenance
from gristmill.contract import Violation
from gristmill.publish import input_proof
from gristmill.publish import publish as publishing
from gristmill.publish.build import Build, Published, lock_of_folder, slot_of_folder
from gristmill.run import amounts, locks
from gristmill.synth.samples import write_drop as write_raw
from resources import CHECKOUT, Lake
from tests.commands.drops import DROPS, PACKS, land, printed, spoil
from tests.leaks.plants import prose
from tests.macroxue.games import play
from tests.macroxue.step_drops import save, self_play
from tests.publish.held import release_when_awaited
from tests.publish.tiny import tiny_build


@pytest.mark.slow
def test_all_that_the_drops_give_is_built_and_listed(run, data, vocabulary_root):
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    _write_pool(data)
    done = run("materialize", "--all")
    assert (done.exit_code, done.exception) == (0, None), done.output
    lines = done.stdout.splitlines()
    record = provenance.read_record(data / PACKS / "one/provenance.json")
    size = amounts.size(sum(output.bytes for output in record.outputs))
    row = lines[lines.index("macroxue/pack") + 1].split()
    assert row[:6] == ["one", "built", f"{record.counts['rows']:,}", "rows", *size.split()]
    assert f"    data/{PACKS}/one" in lines
    assert {"tokenizers/gpt2", "tokenizers/o200k_harmony"} <= set(lines)
    # Two vocabularies, two packs, two sidecars, and the pool that waited for the packs. The
    # built-in recipes of Domino need no drop, and nobody asked for them.
    assert lines[lines.index("macroxue/pool") + 2].split()[:2] == ["both", "built"]
    assert "7 built in" in done.output

    assert "nothing needed doing (7 artifacts" in printed(run("materialize", "--all"))


def test_rows_of_training_that_ask_what_a_set_asks_are_left_out_and_the_set_is_watched(run, data):
    asked, others = prose(3, 4), prose(4, 6)
    rows = [json.dumps({"question": text, "answer": "1"}) + "\n" for text in (*others, asked[1])]
    for name, several in (("train", rows), ("test", rows[-1:])):
        path = data / f"drops/reasoning/gsm8k/{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(several))
    (data / "drops/evals/mine").mkdir(parents=True)
    (data / "drops/evals/mine/a.txt").write_text(asked[2])
    (data / "gristmill.toml").write_text('[leaks]\ndrop = ["gsm8k__test", "mine"]\n')
    assert "1 left out (1 leak)" in printed(run("materialize", "reasoning/normalized"))
    assert "nothing needed doing" in printed(run("materialize", "reasoning/normalized"))
    (data / "drops/evals/mine/a.txt").write_text(others[3])
    said = printed(run("materialize", "reasoning/normalized"))
    assert "2 left out (2 leak)" in said and "1 built" in said and "1 unchanged" in said
    (data / "gristmill.toml").write_text('[leaks]\ndrop = ["nine"]\n')
    said = printed(run("materialize", "reasoning/normalized"), 1)
    assert 'no evaluation set is "nine": did you mean mine?' in said
    assert "1 unchanged" in said


@pytest.mark.slow
def test_a_vocabulary_that_no_drop_needs_is_not_asked_for(run, data):
    land(data, "one")
    assert "tokenizers/gpt2" not in printed(run("materialize", "--all"))
    (data / "drops/reasoning/gsm8k").mkdir(parents=True)
    said = printed(run("materialize", "--all"), 1)
    assert "failed tokenizers/gpt2: " in said
    assert "failed tokenizers/o200k_harmony: " not in said
    assert "run `gristmill tokenizers" in printed(run("materialize", "tokenizers/o200k_harmony"), 1)


@pytest.mark.slow
def test_a_dry_run_builds_nothing_and_names_each_build_with_its_reason(run, data):
    land(data, "one"), land(data, "two", seed=5)
    chosen = ("macroxue/pack", "macroxue/values")
    dry = printed(run("materialize", *chosen, "--dry-run"))
    assert "to build macroxue/pack one, two: not published" in dry
    assert "may follow macroxue/values one, two: macroxue/pack is built before it" in dry
    assert "dry run: 2 to build, 2 may follow (" in dry
    assert not (data / PACKS).exists()
    run("materialize", *chosen)
    assert "nothing needed doing (4 artifacts" in run("materialize", *chosen, "--dry-run").output
    again = run("materialize", *chosen, "--dry-run", "--rebuild")
    assert "to build macroxue/values one, two: --rebuild" in again.output
    (data / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    dry = run("materialize", *chosen, "--dry-run")
    why = "config changed (shard_rows 0 -> 5)"
    assert f"to build macroxue/pack one, two: {why}" in dry.output
    built = run("materialize", "macroxue/pack", "--partition", "two")
    assert f"builds macroxue/pack two: {why}" in built.output
    spoil(data / DROPS / "one")
    wrong = run("materialize", *chosen, "--dry-run", "--partition", "one")
    assert f"to build macroxue/pack one: {why}; input changed (drops/" in wrong.output


@pytest.mark.slow
def test_a_command_waits_for_a_build_of_another_one_unless_it_may_not(run, data, monkeypatch):
    land(data, "one")
    lock, held = lock_of_folder(data / PACKS / "one"), ExitStack()
    held.enter_context(locks.locked(lock, "it"))
    stopped = printed(run("materialize", "macroxue/pack", "--no-wait"), 1)
    assert "failed macroxue/pack one: macroxue/packs/one is already being built" in stopped
    assert f"by process {os.getpid()} on host" in stopped
    release_when_awaited(held, monkeypatch)
    waited = run("materialize", "macroxue/pack")
    assert waited.exit_code == 0, waited.output
    assert "1 built in" in waited.output
    assert f"macroxue/pack one: waits for process {os.getpid()} on host" in waited.stderr


@pytest.mark.slow
def test_given_settings_last_for_one_call_and_a_note_says_how_they_stay(run, data):
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    said = printed(
        run("materialize", "macroxue/pack", "--set", "layout=packed46", "--set", "shard_rows=9")
    )
    record = data / PACKS / "one/provenance.json"
    config = provenance.read_record(record).config
    assert (config["layout"], config["shard_rows"]) == ("packed46", 9)
    file = data / "gristmill.toml"
    assert (
        'note: built with layout = "packed46", and the default gives "aligned48", which the next '
        'build takes. To keep "packed46", write `layout = "packed46"` under [macroxue.pack] in '
        f"{file}\nnote: built with shard_rows = 9," in said
    )
    without = run("materialize", "macroxue/pack")
    assert "1 built in" in without.output and "note: " not in without.output
    assert provenance.read_record(record).config["layout"] == "aligned48"


def test_a_wrong_file_of_the_data_root_is_refused_before_any_work(run, data, monkeypatch):
    land(data, "one")
    (data / "gristmill.toml").write_text(
        "[macroxue.pack]\nshard_rows = -1\n[chess.month]\ntrain_ratio = 0.95\n"
    )
    monkeypatch.setattr(Graph, "materialize", lambda *_, **__: pytest.fail("a build started"))
    said = printed(run("materialize", "--all"), 1)
    assert "[macroxue.pack] shard_rows = -1: must be a whole number, 0 or more" in said
    assert "[chess.month] train_ratio 0.95 and val_ratio 0.1 must sum to 0 .. 1" in said


def test_a_wrong_table_of_another_asset_stops_no_build(run, data):
    land(data, "one")
    (data / "gristmill.toml").write_text("[chess.month]\nseed = -1\n")
    assert run("materialize", "macroxue/pack").exit_code == 0


def test_a_vocabulary_that_is_not_there_says_what_to_do(run, data):
    said = printed(run("materialize", "tokenizers/gpt2"), 1)
    assert f"run `gristmill tokenizers --data-root {data}` to download it" in said


@pytest.mark.slow
def test_a_partition_that_fails_is_named_with_its_reason_and_the_others_stand(run, data, instance):
    for number, key in enumerate(("a", "b", "c", "d")):
        land(data, key, seed=number)
    file = spoil(data / DROPS / "c")
    said = printed(run("materialize", "macroxue/pack"), 1)
    (made,) = instance.get_runs()
    assert made.tags["dagster/asset_partition_range_start"] == "a"
    assert made.tags["dagster/asset_partition_range_end"] == "d"
    failed = [line for line in said.splitlines() if line.startswith("failed ")]
    assert len(failed) == 1 and failed[0].startswith(f"failed macroxue/pack c: {file}:2: not JSON")
    assert "3 built in" in said and ", 1 failed" in said
    pack = dg.AssetKey(["macroxue", "pack"])
    assert instance.get_materialized_partitions(pack) == {"a", "b", "d"}
    assert provenance.verify(data / PACKS) == [] and not (data / PACKS / "c").exists()
    shutil.rmtree(data / DROPS / "c")
    land(data, "c", seed=2)
    again = printed(run("materialize", "macroxue/pack"))
    assert "1 built in" in again and "3 unchanged" in again
    assert instance.get_runs_count() == 2


def test_a_build_that_fails_needs_no_run_of_what_waits_for_it(run, data, instance):
    land(data, "one")
    spoil(data / DROPS / "one")
    done = run("materialize", "macroxue/pack", "macroxue/values")
    assert "not built macroxue/values one: waits for macroxue/pack one" in done.output
    assert "0 built in" in done.output and "1 not built, 1 failed" in done.output
    (made,) = instance.get_runs()
    assert made.asset_selection == {dg.AssetKey(["macroxue", "pack"])}


def test_only_refusals_of_the_named_partitions_are_shown(run, data):
    land(data, "one")
    for name in ("empty", "void"):
        (data / DROPS / name).mkdir()
        (data / DROPS / name / "note.txt").write_text("nothing here")
    assert "refused" not in printed(run("materialize", "macroxue/pack", "--partition", "one"))
    assert run("materialize", "macroxue/values").output.count("refused macroxue/") == 2


def test_a_target_whose_drop_is_refused_is_counted_once(run, data):
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "note.txt").write_text("nothing here")
    done = run("materialize", "macroxue/pack", "--partition", "one")
    assert done.exit_code == 1
    lines = [line for line in done.stdout.splitlines() if "macroxue/" in line and ": " in line]
    assert len([line for line in lines if line.startswith(("failed ", "refused "))]) == 1
    assert ", 1 failed" in done.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "give either the names of assets, or --all"),
        (["--all", "macroxue/pack"], "give either the names of assets, or --all"),
        (["--all", "--partition", "one"], "--partition goes with the name of an asset"),
        (["macroxue/pakc"], "is not an asset that can be built: did you mean macroxue/pack?"),
        (["qqq"], "qqq is not an asset that can be built; these are: "),
        (["macroxue/raw_drop"], "macroxue/raw_drop is not an asset that can be built"),
        (
            ["macroxue/pack", "--partition", "tow"],
            "macroxue/pack has no partition 'tow'; its partitions: one",
        ),
        (["tokenizers/gpt2", "--partition", "one"], "tokenizers/gpt2 has no partitions"),
        (["macroxue/pack", "tokenizers/gpt2", "--partition", "one"], "gpt2 has no partitions"),
        (["--all", "--replace-differing"], "--replace-differing goes with --rebuild"),
        (["--all", "--data-root", os.fsdecode(b"/\xff")], "is not UTF-8: rename the folder"),
        (["--all", "--set", "seed=1"], "--set goes with the name of one asset"),
        (["macroxue/pack", "macroxue/values", "--set", "a=1"], "--set goes with the name of one"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_and_nothing_is_built(run, data, words, expected):
    land(data, "one")
    assert expected in " ".join(printed(run("materialize", *words), 2).split())
    assert not (data / PACKS).exists()


@pytest.mark.slow
def test_a_list_of_partitions_is_built_by_one_command(run, data, tmp_path):
    for key in ("one", "two", "three"):
        land(data, key)
    keys = tmp_path / "keys.txt"
    printed(run("materialize", "macroxue/pack", "--partition", "two", "--partition", "one"))
    assert sorted(path.name for path in (data / PACKS).glob("[!.]*")) == ["one", "two"]
    keys.write_text("# two of them\ntwo\ndrops/macroxue/three\n")
    said = printed(run("materialize", "macroxue/pack", "--list", str(keys), "--partition", "one"))
    assert "1 built in" in said and "2 unchanged" in said
    keys.write_text("one\nfour\n")
    said = printed(run("materialize", "macroxue/pack", "--list", str(keys)), 2)
    assert "has no partition 'four'" in said
    keys.write_text("one\n\nno key\n")
    said = printed(run("materialize", "macroxue/pack", "--list", str(keys)), 1)
    assert "keys.txt:3: the name 'no key'" in " ".join(said.split())
    said = printed(run("materialize", "--all", "--list", str(keys)), 2)
    assert "--list goes with the name of an asset" in said


def test_a_partition_that_is_unknown_yet_fails_with_the_state_of_its_drop(run, data):
    land(data, "one")
    (data / DROPS / "two").mkdir()
    (land(data, "three") / ".incomplete").touch()
    (data / "drops/pools").mkdir()
    for pool in ("both", "three"):
        (data / f"drops/pools/{pool}.toml").write_text('members = ["three", "four"]')
    recipes = data / "drops/puzzles/recipes"
    recipes.mkdir(parents=True)
    (recipes / "mine.toml").write_bytes(b'\xef\xbb\xbfkind = "domino"\n')
    (recipes / "other.toml").write_text('kind = "tarot"\n')
    for asset, keys, expected in (
        ("puzzles/domino", ["mine"], "refused puzzles/recipes/mine: "),
        ("macroxue/values", ["one", "two"], "refused macroxue/two: the folder holds no file"),
        ("macroxue/pack", ["three"], "arriving macroxue/three: "),
        ("macroxue/pool", ["both"], "ready pools/both: "),
    ):
        words = [word for key in keys for word in ("--partition", key)]
        said = printed(run("materialize", asset, *words), 1)
        assert f"Error: {asset} has no partition {keys[-1]!r} yet: {expected}" in said
        assert said.count(" yet: ") == 1 and "tarot" not in said
    said = printed(
        run("materialize", "macroxue/pack", "--partition", "two", "--partition", "tow"), 2
    )
    assert "macroxue/pack has no partition 'tow'; its partitions: one" in said
    assert not (data / PACKS).exists()


def test_an_empty_data_root_says_what_to_do(run, data):
    said = printed(run("materialize", "macroxue/pack"))
    assert f"there is no drop: copy one into {data / DROPS}, or" in said
    assert f"gristmill samples {data}" in said
    assert "built" not in said


@pytest.mark.slow
def test_partitions_that_wait_share_a_run_and_one_that_fails_has_its_own(run, data, instance):
    drops = [land(data, key) for key in ("a", "b", "c")]
    run("materialize", "macroxue/pack")
    before = {each.run_id for each in instance.get_runs()}
    for gone in drops[:2]:
        shutil.rmtree(gone)
    for file in drops[2].glob("*.gz"):
        file.unlink()
    said = printed(run("materialize", "macroxue/pack"), 1)
    assert "2 not built, 1 failed" in said
    assert all(f"not built macroxue/pack {key}: " in said for key in "ab"), said
    new = [each for each in instance.get_runs() if each.run_id not in before]
    assert sorted(each.is_success for each in new) == [False, True]


@pytest.mark.slow
def test_assets_without_a_drop_are_left_alone(run, data, vocabulary_root):
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    land(data, "one")
    write_raw(data / "drops/synth/half", files=4, rows=2, done=False)
    done = run("materialize", "--all")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit), done.output
    assert "refused synth/half: " in done.output
    assert "4 Parquet files of 500" in done.output
    assert "failed" not in done.output
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("not built")]
    waiting = [part.split() for part in line.partition(": ")[2].split("; ")]
    assert [first for first, *_ in waiting] == [
        "tokenizers/placed",
        "macroxue/pool",
        "macroxue/training_view",
        "synth/harmony",
        "chess/elite_pgn",
        "reasoning/normalized",
        "chat/conversations",
        "reasoning/tokens",
        "audits/leaks",
        *(f"puzzles/{name}" for name in ("arc", "sudoku", "maze", "domino", "grid")),
    ]
    assert waiting[3] == ["synth/harmony", "00,", "01,", "02,", "03"]
    assert not (data / "synth_harmony").exists()
    # Named outright it is tried, and says what it lacks.
    said = printed(run("materialize", "synth/harmony", "--partition", "00"), 1)
    assert "failed synth/harmony 00: " in said


def test_a_manifest_is_left_alone_where_only_other_assets_of_its_family_have_a_drop(
    run, data, vocabulary_root
):
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    talks = data / "drops/chat/talks"
    talks.mkdir(parents=True)
    recipe = 'schema = 1\nkind = "chat"\nname = "talks"\nmessages = "messages"\n'
    (talks / "corpus.toml").write_text(recipe)
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    (talks / "train.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    done = printed(run("materialize", "--all", "--dry-run"))
    assert "chat/kd_shards" in done
    assert "manifest" not in done


@pytest.mark.slow
def test_a_damaged_pack_whose_check_failed_is_run_and_is_rebuilt_when_asked_for(
    run, data, instance
):
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    steps = data / PACKS / "one/steps.npy"
    times = steps.stat()
    octets = bytearray(steps.read_bytes())
    octets[-1] ^= 1
    steps.write_bytes(octets)
    os.utime(steps, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "nothing needed doing" in run("materialize", "macroxue/pack").output
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    pack = dg.AssetKey(["macroxue", "pack"])
    checks = {dg.AssetCheckKey(pack, name) for name in ("intact", "lawful")}
    job.get_subset(asset_check_selection=checks).execute_in_process(instance=instance)
    said = printed(run("materialize", "macroxue/pack"), 1)
    assert "check intact: " in said
    assert "materialize macroxue/pack --partition one --rebuild" in said
    assert run("materialize", "macroxue/pack", "--rebuild").exit_code == 0
    assert provenance.verify(data / PACKS) == []
    assert "nothing needed doing" in run("materialize", "macroxue/pack").output


def _write_pool(data: Path, more: str = "") -> Path:
    land(data, "one"), land(data, "two", seed=5)
    pool = data / "drops/pools/both.toml"
    pool.parent.mkdir(parents=True)
    pool.write_text(f'members = ["one", "two"]\n{more}')
    return data / "macroxue/pools/both"


def _rename_a_valuation(data: Path) -> None:
    names = data / PACKS / "two/valuation_types.json"
    text = names.read_bytes()
    assert b"search" in text
    names.write_bytes(text.replace(b"search", b"SEARCH"))


@pytest.mark.slow
def test_a_pool_that_was_made_of_a_damaged_pack_is_repaired_on_purpose(run, data, monkeypatch):
    pool = _write_pool(data)
    assert run("materialize", "macroxue/pack").exit_code == 0
    _rename_a_valuation(data)
    with monkeypatch.context() as patch:
        patch.setattr(input_proof.InputProof, "before", lambda _: None)
        patch.setattr(input_proof.InputProof, "after", lambda _: None)
        assert run("materialize", "macroxue/pool").exit_code == 0
    wrong = provenance.read_record(pool / "provenance.json")
    assert run("materialize", "macroxue/pack", "--partition", "two", "--rebuild").exit_code == 0
    assert "nothing needed doing" in run("materialize", "macroxue/pool").output
    assert wrong.data_version in printed(run("materialize", "macroxue/pool", "--rebuild"), 1)
    assert provenance.read_record(pool / "provenance.json") == wrong
    printed(run("materialize", "macroxue/pool", "--rebuild", "--replace-differing"))
    right = provenance.read_record(pool / "provenance.json")
    assert right.replaced is not None and right.replaced.data_version == wrong.data_version
    assert b"SEARCH" not in (pool / "valuation_types.json").read_bytes()
    assert run("materialize", "macroxue/pool", "--rebuild").exit_code == 0
    assert provenance.verify(data / "macroxue") == []


@pytest.mark.slow
def test_values_are_built_before_a_pool_deletes_their_packs(run, data):
    _write_pool(data, "delete_members = true\n")
    for _ in range(2):
        said = printed(run("materialize", "macroxue/pack", "macroxue/values", "macroxue/pool"))
    assert not (data / PACKS / "one").exists()
    assert (data / "macroxue/values/one/values.npy").exists()
    assert "one is a member of the pool both" in said


def test_runs_of_this_command_are_signed_from_the_start(run, data, instance, monkeypatch):
    monkeypatch.setattr(worker, "sign", lambda context: None)
    land(data, "one")
    run("materialize", "macroxue/pack")
    (made,) = instance.get_runs()
    assert made.tags[worker.TAG] == worker.identity(os.getpid())


def test_a_key_may_begin_with_a_hyphen(run, data):
    land(data, "-x")
    assert run("materialize", "macroxue/pack", "--partition", "-x").exit_code == 0
    assert (data / PACKS / "-x/steps.npy").exists()
    (data / DROPS / "-x").rename(data / "archived")
    assert run("retire", "--", "-x").exit_code == 0


@pytest.mark.slow
def test_a_key_that_no_drop_can_have_fails_alone_and_in_our_words(run, data, instance):
    """The web server takes any text as a partition key."""
    land(data, "one")
    instance.add_dynamic_partitions("macroxue_drops", ["../../x", "a\x00b"])
    said = printed(run("materialize", "macroxue/pack"), 1)
    assert (data / PACKS / "one/steps.npy").exists()
    assert "failed macroxue/pack ../../x: the name '../../x' may hold only" in said
    assert "\x00" not in said
    assert "Traceback" not in said
    assert run("retire", "../../x").exit_code == 0
    assert not instance.has_dynamic_partition("macroxue_drops", "../../x")


@pytest.mark.slow
def test_hostile_drops_fail_alone_or_are_refused_and_the_good_one_is_built(run, data):
    land(data, "good")
    (land(data, "toml", seed=2) / "gristmill.toml").write_text("a = " + "[" * 100_000)
    (land(data, "linked", seed=3) / "extra.jsonl.gz").symlink_to("/dev/zero")
    (nested,) = land(data, "nested", seed=4).glob("*.jsonl.gz")
    nested.write_bytes(gzip.compress(b'{"board":' + b"[" * 100_000 + b"\n"))
    (bomb,) = land(data, "bomb", seed=5).glob("*.jsonl.gz")
    bomb.write_bytes(gzip.compress(bytes(32 << 20)))
    (data / DROPS / "whole").symlink_to("/etc")
    for file in sorted(land(data, "bytes", seed=6).iterdir()):
        file.rename(file.with_name(os.fsdecode(b"\xfe") + file.name))
    (data / DROPS / "no games").mkdir()
    (data / DROPS / "gameless").mkdir()
    (data / DROPS / "gameless/note.txt").write_text("nothing here")
    (data / "drops/pools").mkdir()
    (data / "drops/pools/deep.toml").write_text("members = " + "[" * 100_000)
    (data / "drops/synth/deep").mkdir(parents=True)
    (data / "drops/synth/deep/gristmill.toml").write_text("[" + "a." * 100_000 + "b]")
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert provenance.verify(data / PACKS / "good") == []
    assert [path.name for path in (data / PACKS).glob("[!.]*")] == ["good"]
    for text in (
        f"refused macroxue/toml: {data / DROPS}/toml/gristmill.toml:1: nested deeper",
        f"failed macroxue/pack nested: {nested}:1: nested deeper than 256 levels",
        f"failed macroxue/pack bomb: {bomb}: unpacks to more than 200 times its size",
        f"refused macroxue/linked: {data / DROPS}/linked/extra.jsonl.gz: is a link",
        "refused macroxue/whole: is a link",
        "refused macroxue/bytes: ",
        "refused macroxue/no games: the name 'no games' may hold only",
        "gameless: no game in it: it needs a `.meta.json`",
    ):
        assert text in done.output, done.output
    assert "Traceback" not in done.output
    assert "refused pools/" not in done.output and "refused synth/" not in done.output
    pool = run("materialize", "macroxue/pool").output
    assert f"refused pools/deep: {data}/drops/pools/deep.toml:1: nested deeper" in pool
    assert "no drop" not in pool
    shards = run("materialize", "synth/harmony").output
    assert "refused synth/deep: " in shards and "a key of more than 32 parts" in shards
    assert "refused macroxue/" not in pool + shards


def test_a_data_root_that_is_not_there_is_no_root_without_drops(run, data, instance, tmp_path):
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    before = instance.get_runs_count()
    done = run("materialize", "--all", "--data-root", "not-mounted/gristmill")
    assert done.exit_code == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {tmp_path}/not-mounted/gristmill: the data root is not there")
    assert instance.get_runs_count() == before
    assert not (tmp_path / "not-mounted").exists()


LAST = "interrupted; what stood is untouched; run the same command again"


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True])
def test_an_interrupt_ends_the_command_whoever_handles_it(
    run, data, instance, monkeypatch, is_lost
):
    land(data, "one"), land(data, "two", seed=5)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    asked: list[str | None] = []

    def publish(build: Build, **options: Any) -> Published:
        asked.append(build.partition)
        # A library between here and the command may drop the exception.
        with suppress(*[BaseException] if is_lost else []):
            os.kill(os.getpid(), signal.SIGINT)
        return publishing.publish(build, **options)

    with monkeypatch.context() as patch:
        patch.setattr("assets.publishing.publish", publish)
        done = run("materialize", "macroxue/pack")
    signal.signal(signal.SIGINT, before)
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == LAST
    assert "failed" not in done.output
    assert "Traceback" not in done.output
    assert asked == ["one"]
    assert (data / PACKS / "one").exists() is is_lost
    assert all(each.is_finished for each in instance.get_runs())
    assert f"{1 if is_lost else 2} built in" in printed(run("materialize", "macroxue/pack"))
    assert provenance.verify(data / PACKS) == []


@pytest.mark.slow
def test_steps_of_another_program_go_from_a_folder_to_a_pack_that_is_traced(run, data, tmp_path):
    games = [play(seed, 40) for seed in (1, 2)]
    pool = save(tmp_path / "pool", self_play(games, [70, 5]), shards=3)
    (pool / "steps.toml").unlink()
    assert 'board = "exps"' in printed(run("drop", str(pool), "--family", "macroxue"), 1)
    assert run("look", "--write", str(pool)).output.endswith(f"written: {pool / 'steps.toml'}\n")
    printed(run("drop", str(pool), "--family", "macroxue", "--replace"))
    printed(run("materialize", "macroxue/pack", "macroxue/values", "--partition", "pool"))
    traced = run("trace", str(data / PACKS / "pool"), "1", "--step", "7")
    rows = np.concatenate([np.load(file) for file in sorted(pool.glob("*.npy"))])
    at = int(np.flatnonzero((rows["run_id"] == 70) & (rows["step_idx"] == 7))[0])
    size = len(np.load(pool / "steps-000001.npy"))
    assert "raw_run: 70\n" in traced.output
    assert f"raw_row: {at % size + 1}\n" in traced.output
    assert f"steps-{at // size + 1:06d}.npy" in traced.output
    assert run("verify", str(data / "macroxue")).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asset", "places"),
    [
        ("macroxue/pack", {"one": f"{PACKS}/one"}),
        ("macroxue/pack", {"one": f"{PACKS}/one", "two": f"{PACKS}/two"}),
        ("tokenizers/gpt2", {"": "tokenizer@gpt2"}),
    ],
)
def test_what_is_not_in_the_mirror_fails_until_a_run_has_pushed_it(
    run, data, vocabulary_root, asset, places
):
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    for seed, key in enumerate(filter(None, places), 1):
        land(data, key, seed=seed)
    (data / "gristmill.toml").write_text('[mirror]\npush = "../mirror"\n')
    mirror = data.parent / "mirror"
    mirror.write_text("a file is no folder")
    first = next(iter(places))
    for _ in range(2):
        missed = printed(run("materialize", asset), 1)
        name = f"{asset} {first}".rstrip()
        assert f"failed {name}: published, but the push failed: " in missed
        assert f"What to do: `gristmill push {mirror} {places[first]}`" in missed
        assert "0 built in" in missed and f"{len(places)} failed" in missed
        assert all((data / place.replace("@", "/")).exists() for place in places.values())
    mirror.unlink()
    pushed = run("materialize", asset)
    assert pushed.exit_code == 0, pushed.output
    assert f"{len(places)} new versions" in pushed.stderr
    again = run("materialize", asset).output
    assert "nothing needed doing" in again and "mirror" not in again


def test_what_is_unusual_in_what_was_built_is_said_and_cut(tmp_path):
    found = [Violation(f"law{number}", f"run {number}", "odd") for number in range(7)]
    folder = publishing.publish(replace(tiny_build(tmp_path), noted=[found[0], *found])).folder
    outcome = Outcome("test/tiny", "p1", "built", place=str(folder))
    lake = Lake(data_root=str(tmp_path))
    said = list(selection._notes(lake, [outcome], is_named=False))
    assert said[0] == "test/tiny p1: law0: run 0: odd (and 1 more)"
    assert said[-1] == "test/tiny p1: 2 more: `gristmill verify` lists them"
    assert len(said) == 6
    unchanged = replace(outcome, status="unchanged")
    assert list(selection._notes(lake, [unchanged], is_named=False)) == []
    assert list(selection._notes(lake, [unchanged], is_named=True)) == said


def _answer(monkeypatch: pytest.MonkeyPatch, *words: str, **options: Any) -> Any:
    """The answer that a process without Dagster gives again; None where Dagster must look."""
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "dagster")
        return materialize.Call(words, **options).standing_answer()


@pytest.mark.slow
def test_after_each_reason_to_build_or_to_report_dagster_looks_again(
    run, data, instance, monkeypatch
):
    drop, pack = land(data, "one"), data / PACKS / "one"
    (drop / ".done").touch()
    assets = data.parent / "assets"
    assets.mkdir()
    assert _answer(monkeypatch) is None
    assert "2 built in" in printed(run("materialize", "--all"))
    answer = _answer(monkeypatch)  # of the call that built
    assert answer is not None
    assert answer == selection.answer_of(materialize.Call())
    assert {item.status for item in answer.outcomes} == {"unchanged"}

    left, steps = slot_of_folder(pack) / "staging", pack / "steps.npy"
    record, key = pack / "provenance.json", dg.AssetKey(["macroxue", "pack"])
    event = dg.AssetMaterialization(key, partition="one", tags={DATA_VERSION: "other"})
    failed = dg.AssetCheckEvaluation(asset_key=key, check_name="intact", passed=False)
    reasons = (
        lambda: steps.write_bytes(steps.read_bytes()[:-1] + b"x"),
        lambda: os.utime(steps),
        steps.unlink,
        lambda: record.write_text(record.read_text().replace("0", "1")),
        record.unlink,
        (data / "macroxue/values/one/provenance.json").unlink,
        lambda: left.mkdir(parents=True),
        lambda: (data / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n'),
        lambda: (assets / "family.py").write_text("code"),
        (drop / ".done").unlink,
        lambda: (drop / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n'),
        lambda: land(data, "two", seed=5),
        (data / DROPS / "recipes").mkdir,
        lambda: shutil.rmtree(drop),
        lambda: instance.report_runless_asset_event(event),
        lambda: instance.report_runless_asset_event(failed),
        lambda: instance.wipe_assets([key]),
        lambda: instance.add_dynamic_partitions("macroxue_drops", ["three"]),
        lambda: (checkout.CHECKOUT / "dagster.yaml").write_text("storage: {}"),
    )
    call = materialize.Call()
    stamps = [call.stamp()]
    for reason in reasons:
        reason()
        assert _answer(monkeypatch) is None
        stamps.append(call.stamp())
    assert len(set(stamps)) == len(stamps) and stamps[-1] is None


@pytest.mark.slow
def test_no_answer_is_kept_or_given_of_what_may_change_without_a_file(
    run, data, instance, monkeypatch
):
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    assert _answer(monkeypatch, "macroxue/pack") is None  # it built
    assert "nothing needed doing" in printed(run("materialize", "macroxue/pack"))
    assert _answer(monkeypatch, "macroxue/pack") is not None
    instance.run_storage.set_cursor_values({"of a daemon": "heartbeat"})
    assert _answer(monkeypatch, "macroxue/pack") is not None
    assert materialize.Call(("macroxue/pack",)).standing_answer() is None  # Dagster is there
    assert _answer(monkeypatch) is None
    for options in (
        {"partitions": ("one",)}, {"listed": data}, {"words": ("layout=packed46",)},
        {"rebuild": True}, {"dry_run": True},
    ):  # fmt: skip
        assert _answer(monkeypatch, "macroxue/pack", **options) is None
    half = land(data, "half")
    (half / ".incomplete").touch()
    assert "arriving macroxue/half" in printed(run("materialize", "macroxue/pack"))
    assert _answer(monkeypatch, "macroxue/pack") is None
    (half / ".incomplete").unlink()
    (half / "gristmill.toml").write_text("[")
    assert "refused macroxue/half" in printed(run("materialize", "macroxue/pack"), 1)
    assert _answer(monkeypatch, "macroxue/pack") is None
    shutil.rmtree(half)

    def fails(lake: Lake) -> list[str]:
        raise RuntimeError

    monkeypatch.setitem(graph._AVAILABLE, dg.AssetKey(["macroxue", "pack"]), fails)
    assert run("materialize", "macroxue/pack").exit_code == 0
    assert _answer(monkeypatch, "macroxue/pack") is None


@pytest.mark.slow
def test_a_call_with_nothing_to_do_says_it_again_without_dagster(data):
    land(data, "one")
    home = data.parent / "home"
    home.mkdir()
    texts = []
    for before in ("pass", "import dagster", "pass"):  # builds; looks; gives the answer again
        code = f"import sys; {before}; from gristmill.cli import main; "
        code += "main(['materialize', '--all'], standalone_mode=False); "
        code += "print('dagster' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": str(CHECKOUT)},
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        texts.append(re.sub(r"[0-9.]+ s([;)])", r"s\1", done.stdout).splitlines())
    built, looked, again = texts
    assert "2 built" in " ".join(built)
    assert looked[:-1] == again[:-1] and "nothing needed doing" in " ".join(again)
    assert (looked[-1], again[-1]) == ("True", "False")
