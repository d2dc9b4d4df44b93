"""The command that drives the instance: what it builds, says, refuses and mends."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner, Result

import operate
from assets import worker
from bench.servers import copy_checkout, plain_environment
from gristmill import provenance
from gristmill.run.parts import PartStore
from gristmill.samples.macroxue import write_drop
from gristmill.samples.synth import write_drop as write_raw
from resources.lake import CHECKOUT

Operate = Callable[..., Result]
DROPS, PACKS = "drops/macroxue", "macroxue/packs"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "data"
    (root / DROPS).mkdir(parents=True)
    monkeypatch.setenv("GRISTMILL_DATA", str(root))
    return root


@pytest.fixture
def run(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operate:
    """`operate.py` on an instance of its own, in this process."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copy(CHECKOUT / "dagster.yaml", tmp_path)
    monkeypatch.setattr(operate, "CHECKOUT", tmp_path)
    return lambda *words: CliRunner().invoke(operate.main, words)


@pytest.fixture
def instance(run: Operate) -> Iterator[dg.DagsterInstance]:
    with operate.open_instance() as opened:
        yield opened


def land(data: Path, key: str, seed: int = 1) -> Path:
    write_drop(data / DROPS / key, seed=seed, games=1, max_moves=30, depth=6)
    return data / DROPS / key


def spoil(folder: Path) -> Path:
    """Leave out the brace that ends line 2 of the drop's game."""
    (file,) = folder.glob("*.jsonl.gz")
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    lines[1] = lines[1][:-1]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return file


def test_all_that_the_drops_give_is_built_and_ends_in_a_table(
    run: Operate, data: Path, vocabulary_root: Path
) -> None:
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    land(data, "one"), land(data, "two", seed=5)
    (data / "drops/pools").mkdir()
    (data / "drops/pools/both.toml").write_text('members = ["one", "two"]')
    done = run("materialize", "--all")
    assert (done.exit_code, done.exception) == (0, None), done.output
    rows = {tuple(line.split()[:2]): line.split() for line in done.output.splitlines()}
    record = provenance.read_record(data / PACKS / "one/provenance.json")
    size = sum(output.bytes for output in record.outputs)
    line = rows["macroxue/pack", "one"]
    assert line[2:6] == [
        "built",
        f"data/{PACKS}/one",
        f"{record.counts['rows']:,}",
        f"{size:,}",
    ]
    assert {"tokenizers/gpt2", "tokenizers/o200k_harmony"} <= {row[0] for row in rows if row}
    # Two vocabularies, two packs, two sidecars, and the pool that waited for the packs.
    assert rows["macroxue/pool", "both"][2] == "built"
    assert "7 built in" in done.output

    again = run("materialize", "--all")
    assert again.exit_code == 0, again.output
    assert "nothing needed doing (7 artifacts" in again.output


def test_a_partition_that_fails_is_named_with_its_reason_and_the_others_stand(
    run: Operate, data: Path
) -> None:
    land(data, "one"), land(data, "two", seed=5)
    file = spoil(data / DROPS / "one")
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 1
    assert f"failed macroxue/pack one: {file}:2: not JSON" in done.output
    assert "1 built in" in done.output
    assert provenance.verify(data / PACKS / "two") == []
    assert not (data / PACKS / "one").exists()


def test_brackets_in_a_reason_are_printed(run: Operate, data: Path) -> None:
    land(data, "one")
    (data / "gristmill.toml").write_text("macroxue.pack = 3\n")
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 1
    assert "[macroxue.pack] must be a table" in done.output


def test_a_vocabulary_that_is_not_there_says_what_to_do(run: Operate, data: Path) -> None:
    done = run("materialize", "tokenizers/gpt2")
    assert done.exit_code == 1
    assert "run `gristmill tokenizers` once" in done.output


def test_only_the_named_partitions_are_built(run: Operate, data: Path) -> None:
    for number, key in enumerate(("one", "two", "three")):
        land(data, key, seed=number)
    words = ("materialize", "macroxue/pack", "--partition", "two", "--partition", "three")
    assert run(*words).exit_code == 0
    assert sorted(path.name for path in (data / PACKS).glob("[!.]*")) == ["three", "two"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name assets to build, or say --all"),
        (["--all", "macroxue/pack"], "name assets to build, or say --all"),
        (["--all", "--partition", "one"], "--partition goes with the name of an asset"),
        (["macroxue/pakc"], "macroxue/pakc is not an asset that can be built; there are: "),
        (["macroxue/raw_drop"], "macroxue/raw_drop is not an asset that can be built"),
        (
            ["macroxue/pack", "--partition", "tow"],
            "macroxue/pack has no partition 'tow'; there are: one",
        ),
        (["tokenizers/gpt2", "--partition", "one"], "tokenizers/gpt2 has no partitions"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_and_nothing_is_built(
    run: Operate, data: Path, words: list[str], said: str
) -> None:
    land(data, "one")
    done = run("materialize", *words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not (data / PACKS).exists()


def test_of_several_assets_one_without_the_partition_stops_all_before_the_first(
    run: Operate, data: Path
) -> None:
    land(data, "one")
    words = ("materialize", "macroxue/pack", "tokenizers/gpt2", "--partition", "one")
    assert run(*words).exit_code == 2
    assert not (data / PACKS).exists()


def test_an_empty_data_root_says_what_to_do(run: Operate, data: Path) -> None:
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 0
    assert f"no drop is at hand: copy one into {data / DROPS}, or" in done.output
    assert f"gristmill samples {data}" in done.output
    assert "built" not in done.output


def test_refused_drops_are_named_with_the_reason(run: Operate, data: Path) -> None:
    land(data, "one")
    (data / DROPS / "no games").mkdir()
    (data / DROPS / "gameless").mkdir()
    (data / DROPS / "gameless/note.txt").write_text("nothing here")
    done = run("materialize", "macroxue/pack")
    assert "refused macroxue/no games: the name 'no games' may hold only" in done.output
    assert "refused macroxue/gameless: no game in it" in done.output
    assert (data / PACKS / "one").exists()


def test_a_drop_is_reported_once_and_again_when_it_is_replaced(
    run: Operate, data: Path, instance: dg.DagsterInstance
) -> None:
    def reported() -> int:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(["macroxue", "raw_drop"]))
        return len(instance.fetch_materializations(wanted, limit=10).records)

    folder = land(data, "one")
    run("materialize", "macroxue/pack"), run("materialize", "macroxue/pack")
    assert reported() == 1
    shutil.rmtree(folder)
    land(data, "one", seed=9)
    done = run("materialize", "macroxue/pack")
    assert reported() == 2
    assert "1 built in" in done.output


def test_a_partition_whose_drop_is_gone_fails_with_the_way_out(run: Operate, data: Path) -> None:
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    shutil.rmtree(folder)
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 1
    assert "bring it back, or retire its partition" in done.output
    assert (data / PACKS / "one").exists()


# --- from elsewhere, as a process --------------------------------------------


def test_it_works_from_any_folder_and_in_one_instance_with_and_without_dagster_home(
    tmp_path: Path,
) -> None:
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    copy_checkout(checkout)
    land(elsewhere / "data", "one")

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(checkout / "operate.py"), *words],
            cwd=elsewhere,
            # A name relative to where the command is typed.
            env={**plain_environment(), "GRISTMILL_DATA": "data", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    words = ("materialize", "macroxue/pack")
    first = run(*words, DAGSTER_HOME=str(checkout))
    assert first.returncode == 0, first.stdout + first.stderr
    assert f" data/{PACKS}/one " in first.stdout
    second = run(*words)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "nothing needed doing" in second.stdout
    assert (elsewhere / "data" / PACKS / "one/provenance.json").exists()
    # Both are in the store that dagster.yaml names, and nothing lies elsewhere.
    asked = "import dagster as dg; print(dg.DagsterInstance.from_config('.').get_runs_count())"
    counted = subprocess.run(
        [sys.executable, "-c", asked], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert counted.stdout.split()[-1] == "2"
    assert [path.name for path in elsewhere.iterdir()] == ["data"]


# --- reap --------------------------------------------------------------------


@dg.op
def nothing() -> None: ...


@dg.job
def idle() -> None:
    nothing()


def started(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    """A run that says it is under way."""
    return instance.create_run_for_job(idle, status=dg.DagsterRunStatus.STARTED, tags=tags).run_id


def gone() -> str:
    """The signature of a process that has ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        signature = worker.identity(process.pid)
        process.kill()
    assert signature is not None
    return signature


def test_reap_closes_runs_without_a_process_and_no_others(
    run: Operate, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    mine = worker.identity(os.getpid())
    server = json.dumps({"socket": str(tmp_path / "no.sock")})
    alive = started(instance, {worker.TAG: str(mine)})
    dead = {
        started(instance, {worker.TAG: gone()}): "its process is gone",
        started(instance, {".dagster/grpc_info": server}): "the code server that launched it",
        started(instance, {}): "it never reached a process of this machine",
    }

    def statuses() -> dict[str, str]:
        return {item.run_id: item.status.value for item in instance.get_runs()}

    before = statuses()
    for words in (["reap", "--dry-run"], ["reap"]):
        done = run(*words)
        assert done.exit_code == 0, done.output
        for run_id, reason in dead.items():
            assert f"run {run_id[:8]} (STARTED): {reason}" in done.output
        assert alive[:8] not in done.output
        if "--dry-run" in words:
            assert statuses() == before
    after = statuses()
    assert {after[run_id] for run_id in dead} == {"FAILURE"}
    assert after[alive] == "STARTED"
    assert run("reap").output == ""


def test_runs_of_this_command_are_signed_from_the_start(
    run: Operate, data: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "sign", lambda context: None)
    land(data, "one")
    run("materialize", "macroxue/pack")
    (made,) = instance.get_runs()
    assert made.tags[worker.TAG] == worker.identity(os.getpid())


def test_reap_sweeps_what_a_killed_build_left(run: Operate, data: Path) -> None:
    left = data / PACKS / ".gristmill/slots/one/staging"
    left.mkdir(parents=True)
    (left / "steps.npy").write_bytes(b"half")
    assert f"left by a killed build: {left.parent}" in run("reap", "--dry-run").output
    assert left.exists()
    assert run("reap").exit_code == 0
    assert not left.parent.exists()


def test_reap_keeps_finished_parts_unless_it_is_told_otherwise(run: Operate, data: Path) -> None:
    slot = data / PACKS / ".gristmill/slots/one"
    store = PartStore(slot / "parts/0123456789abcdef")
    (slot / "staging").mkdir(parents=True)
    store.folder.mkdir(parents=True)
    with store.writing("games_0") as (path, _):
        path.write_bytes(b"whole")
    kept = f"left by a killed build: {slot}; its finished parts (1) stay for the next build"
    assert kept in run("reap", "--dry-run").output
    assert (slot / "staging").exists()
    assert kept in run("reap").output
    assert not (slot / "staging").exists()
    assert store.finished("games_0") == {}
    assert f"left by a killed build: {slot}\n" in run("reap", "--parts").output
    assert not slot.exists()


# --- retire ------------------------------------------------------------------


@pytest.fixture
def retired(run: Operate, data: Path) -> Path:
    """A pack whose drop was moved away, and one that stays."""
    folder = land(data, "one")
    land(data, "two", seed=5)
    assert run("materialize", "macroxue/pack").exit_code == 0
    shutil.move(folder, data / "archived")
    return data / PACKS / "one"


def known(instance: dg.DagsterInstance) -> set[str]:
    return set(instance.get_dynamic_partitions("macroxue_drops"))


def test_retire_forgets_the_partition_and_keeps_the_pack(
    run: Operate, instance: dg.DagsterInstance, retired: Path
) -> None:
    told = run("retire", "one", "--dry-run")
    assert "macroxue_drops: forget one" in told.output
    assert f"stays: {retired}" in told.output
    assert known(instance) == {"one", "two"}
    assert run("retire", "one").exit_code == 0
    assert known(instance) == {"two"}
    assert provenance.verify(retired, check_inputs=False) == []


def test_retire_deletes_the_pack_if_told_to_and_nothing_else(
    run: Operate, data: Path, instance: dg.DagsterInstance, retired: Path
) -> None:
    stranger = data / "other/things/one"
    stranger.mkdir(parents=True)
    told = run("retire", "one", "--artifacts", "--dry-run")
    assert f"delete: {retired}" in told.output
    assert str(stranger) not in told.output
    assert retired.exists()
    assert run("retire", "one", "--artifacts").exit_code == 0
    assert not retired.exists()
    assert stranger.exists()
    assert provenance.verify(data / PACKS / "two") == []
    assert not list((data / PACKS / ".gristmill/slots").iterdir())


def test_retire_refuses_while_the_drop_is_there(
    run: Operate, data: Path, instance: dg.DagsterInstance
) -> None:
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    done = run("retire", "one", "--artifacts")
    assert done.exit_code == 2
    assert f"{folder} is still there" in "".join(done.output.split("\n"))
    assert known(instance) == {"one"}
    assert (data / PACKS / "one").exists()


def test_retire_of_an_unknown_key_is_a_usage_error(run: Operate) -> None:
    done = run("retire", "never")
    assert done.exit_code == 2
    assert "no dynamic partition is called 'never'" in done.output


@pytest.mark.parametrize("key", ["*", "..", "t*", "[a-z]*", "one/..", ".gristmill"])
def test_retire_of_a_key_that_no_drop_can_have_touches_no_file(
    run: Operate, data: Path, instance: dg.DagsterInstance, retired: Path, key: str
) -> None:
    # The instance takes anything as a key, from the UI's dialog too.
    instance.add_dynamic_partitions("macroxue_drops", [key])
    before = sorted(data.rglob("*"))
    done = run("retire", key, "--artifacts")
    assert done.exit_code == 0, done.output
    assert known(instance) == {"one", "two"}
    assert sorted(data.rglob("*")) == before


def test_assets_whose_drop_is_not_at_hand_are_left_alone(
    run: Operate, data: Path, vocabulary_root: Path
) -> None:
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    land(data, "one")
    write_raw(data / "drops/synth/half", files=4, rows=2, done=False)
    done = run("materialize", "--all")
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert "refused synth/half: " in done.output
    assert "4 Parquet files of 500" in done.output
    (told,) = [line for line in done.output.splitlines() if line.startswith("not built")]
    waiting = set(told.removeprefix("not built, since no drop is at hand for them: ").split(", "))
    assert {name for name in waiting if not name.startswith("chess/")} == {
        "macroxue/pool",
        *("synth/harmony", "synth/harmony_manifest", "synth/kd_manifest", "synth/kd_shards"),
        *("synth_smoke/kd_manifest", "synth_smoke/kd_shards"),
    }
    assert "chess/elite_pgn" in waiting
    assert not (data / "synth_harmony").exists()
    # Named outright it is tried, and says what it lacks.
    done = run("materialize", "synth/harmony", "--partition", "00")
    assert done.exit_code == 1
    assert "failed synth/harmony 00: " in done.output


@pytest.mark.slow
def test_a_synth_drop_is_built_whole_and_then_nothing_needs_doing(
    run: Operate, data: Path, vocabulary_root: Path
) -> None:
    shutil.copytree(vocabulary_root / "drops", data / "drops", dirs_exist_ok=True)
    write_raw(data / "drops/synth/first", files=4, rows=5)
    done = run("materialize", "--all")
    assert (done.exit_code, done.exception) == (0, None), done.output
    rows = [line.split()[0] for line in done.output.splitlines() if " built " in line]
    assert rows.count("synth/kd_shards") == rows.count("synth_smoke/kd_shards") == 4
    assert rows.index("synth/harmony_manifest") < rows.index("synth/kd_manifest")
    assert provenance.verify(data) == []
    done = run("materialize", "--all")
    assert done.exit_code == 0
    assert "nothing needed doing (17 artifacts" in done.output


def test_a_damaged_pack_fails_its_check_and_is_built_anew_when_asked_for(
    run: Operate, data: Path
) -> None:
    land(data, "one")
    assert run("materialize", "macroxue/pack").exit_code == 0
    steps = data / PACKS / "one/steps.npy"
    times = steps.stat()
    octets = bytearray(steps.read_bytes())
    octets[-1] ^= 1
    steps.write_bytes(octets)
    os.utime(steps, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = run("materialize", "macroxue/pack")
    assert done.exit_code == 1
    assert "check intact: " in done.output
    assert "materialize macroxue/pack --partition one --rebuild" in done.output
    assert run("materialize", "macroxue/pack", "--rebuild").exit_code == 0
    assert provenance.verify(data / PACKS) == []


def test_values_are_built_before_a_pool_deletes_their_packs(run: Operate, data: Path) -> None:
    land(data, "one"), land(data, "two", seed=5)
    pool = data / "drops/pools/both.toml"
    pool.parent.mkdir(parents=True)
    pool.write_text('members = ["one", "two"]\ndelete_members = true\n')
    for _ in range(2):
        done = run("materialize", "macroxue/pack", "macroxue/values", "macroxue/pool")
        assert done.exit_code == 0, done.output
    assert not (data / PACKS / "one").exists()
    assert (data / "macroxue/values/one/values.npy").exists()
    assert "one stands in the pool both" in done.output
