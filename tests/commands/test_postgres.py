"""The instance in Postgres: what the embedded one does, and a server that goes away."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from assets import worker
from commands import checkout
from commands.adopt import adopt
from commands.serving import services
from commands.state import instance_state
from gristmill import provenance
from resources import CHECKOUT
from tests.commands.drops import PACKS, Command, land, printed
from tests.commands.test_prune import gone, started
from tests.postgres import Postgres, postgres, use_in

pytestmark = [pytest.mark.slow, pytest.mark.engines]
PACK = dg.AssetKey(["macroxue", "pack"])


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def on_postgres(run: Command, server: Postgres, tmp_path: Path) -> Command:
    """`gristmill` on an instance whose history is in a database of its own."""
    shutil.rmtree(tmp_path / ".dagster")  # a history that begins in files
    use_in(tmp_path, server.database(f"t{time.time_ns()}"))
    return run


def test_a_build_is_known_and_found_again(on_postgres, data, tmp_path):
    land(data, "one"), land(data, "two", seed=5)
    names = ("macroxue/pack", "macroxue/values")
    assert "4 built in" in printed(on_postgres("materialize", *names))
    assert "nothing needed doing (4 artifacts" in on_postgres("materialize", *names).output
    with checkout.open_instance() as instance:
        assert instance.get_materialized_partitions(PACK) == {"one", "two"}
        assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
    # Nothing of the history is in files of the checkout.
    assert not list(tmp_path.glob(".dagster/**/*.db"))


def test_runs_without_a_process_are_closed(on_postgres):
    with checkout.open_instance() as instance:
        alive = started(instance, {worker.TAG: str(worker.identity(os.getpid()))})
        dead = started(instance, {worker.TAG: gone()})
        done = on_postgres("prune")
        assert f"run {dead[:8]} (STARTED): its process is gone" in done.output
        after = {item.run_id: item.status.value for item in instance.get_runs()}
    assert after == {alive: "STARTED", dead: "FAILURE"}


def test_old_runs_are_removed_and_each_partition_stays(on_postgres, data, tmp_path):
    land(data, "one")
    for words in ((), ("--rebuild",)):
        printed(on_postgres("materialize", "macroxue/pack", *words))
    with checkout.open_instance() as instance:
        runs = [run.run_id for run in instance.get_runs() if run.asset_selection]
    before = len(runs)
    assert before >= 2
    words = ("--keep-runs", "0")
    assert "would be removed" in on_postgres("prune", *words, "--dry-run").output
    printed(on_postgres("prune", *words))
    with checkout.open_instance() as instance:
        left = [run.run_id for run in instance.get_runs() if run.asset_selection]
        assert 0 < len(left) < before
        assert instance.get_materialized_partitions(PACK) == {"one"}
    assert "nothing needed doing" in on_postgres("materialize", "macroxue/pack").output


def test_a_drop_that_is_gone_is_forgotten(on_postgres, data):
    folder = land(data, "one")
    assert on_postgres("materialize", "macroxue/pack").exit_code == 0
    with checkout.open_instance() as instance:
        assert instance.has_dynamic_partition("macroxue_drops", "one")
    shutil.rmtree(folder)
    printed(on_postgres("retire", "one"))
    with checkout.open_instance() as instance:
        assert not instance.has_dynamic_partition("macroxue_drops", "one")


def test_heartbeats_are_seen_and_forgotten(on_postgres):
    from dagster._daemon.types import DaemonHeartbeat

    with checkout.open_instance() as instance:
        now = time.time()
        instance.add_daemon_heartbeat(DaemonHeartbeat(now, "SENSOR", "one", []))
        said: list[str] = []
        services.refuse_other_daemons(instance, said.append, sleep=lambda _: None)
        assert len(said) == 1
        services.forget_heartbeats(instance)
        assert instance.get_daemon_heartbeats() == {}


def test_an_instance_moves_from_files_to_postgres(run, server, data, tmp_path):
    land(data, "one"), land(data, "two", seed=5)
    names = ("macroxue/pack", "macroxue/values")
    assert run("materialize", *names).exit_code == 0
    use_in(tmp_path, server.database("moved"))
    assert "4 artifacts adopted" in printed(CliRunner().invoke(adopt, ["--all"]))
    assert "nothing needed doing (4 artifacts" in run("materialize", *names).output
    with checkout.open_instance() as instance:
        assert instance.get_materialized_partitions(PACK) == {"one", "two"}
        assert instance.get_runs_count() == 0


def test_a_migrated_instance_knows_what_it_knew(on_postgres, data, tmp_path):
    land(data, "one")
    assert on_postgres("materialize", "macroxue/pack").exit_code == 0
    done = subprocess.run(
        [Path(sys.executable).with_name("dagster"), "instance", "migrate"],
        cwd=tmp_path,
        env=os.environ | {"DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing needed doing (1 artifact" in on_postgres("materialize", "macroxue/pack").output


def test_a_server_that_goes_away_during_a_run_costs_nothing_published(
    on_postgres, server, data, tmp_path
):
    """The run fails, says that the server is gone, and the next one continues."""
    land(data, "one")
    assert on_postgres("materialize", "macroxue/pack").exit_code == 0
    stood = provenance.read_record(data / PACKS / "one/provenance.json")
    land(data, "two", seed=5)
    # The server goes away in the middle of the build of `two`.
    program = tmp_path / "cut.py"
    program.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from commands import checkout\n"
        "from gristmill.cli import main\n"
        "import assets.publishing as publishing\n"
        "home, stop = sys.argv[1:]\n"
        "publish = publishing.publish\n"
        "def cut(build, **options):\n"
        "    made = publish(build, **options)\n"
        "    os.system(stop)\n"
        "    return made\n"
        "publishing.publish = cut\n"
        "checkout.CHECKOUT = Path(home)\n"
        "main(['materialize', 'macroxue/pack', '--partition', 'two'])\n"
    )
    user = "setpriv --reuid=nobody --regid=nogroup --clear-groups " if os.geteuid() == 0 else ""
    stop = f"cd / && {user}{server.binaries}/pg_ctl -D {server.folder}/data -s -m immediate stop"
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), stop],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    try:
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        assert said and "does not answer" in said[0], done.stderr[-2000:]
        assert "What was published stands" in said[0] and "gristmill prune" in said[0]
        assert provenance.verify(data / PACKS) == []
        assert provenance.read_record(data / PACKS / "one/provenance.json") == stood
        refusal = instance_refusal(tmp_path)
        assert refusal is not None and "onnect" in refusal
    finally:
        server.start()
    assert on_postgres("prune").exit_code == 0
    printed(on_postgres("materialize", "macroxue/pack"))
    with checkout.open_instance() as instance:
        assert instance.get_materialized_partitions(PACK) == {"one", "two"}


def instance_refusal(home: Path) -> str | None:
    """Why the instance of a folder does not answer, as `gristmill doctor` has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        answer = instance_state()["refusal"]
    return None if answer is None else json.dumps(answer)
