"""One message a tick about failed runs, whatever the webhook does; checks without a verdict."""

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import definitions
from assets.checking.verdicts import Verdict, opened
from assets.macroxue import FAMILY
from gristmill.contract import BadInput
from gristmill.macroxue.samples import write_drop
from resources import Lake
from sensors import after_runs
from sensors.after_runs import MOST_NAMED, check_states, message, without_secrets
from tests.assets.helpers import built, materialized

PACK = dg.AssetKey(["macroxue", "pack"])


@dataclass
class Hook:
    """A web server on 127.0.0.1 that keeps what was posted. answer: status; how: of the body."""

    status: int = 200
    how: str = ""
    taken: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook, done = Hook(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.paths.append(self.path)
            if hook.how == "silent":
                done.wait(60)
                return
            self.send_response(hook.status)
            if 300 <= hook.status < 400:
                self.send_header("Location", "/other")
            self.end_headers()
            if hook.how == "drip":
                done.wait(60)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hook.address = f"http://127.0.0.1:{server.server_address[1]}/hooks/s3cretpath"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield hook
    done.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def lake(tmp_path: Path, hook: Hook) -> Lake:
    ui = 'ui = "https://mill.example/"'
    (tmp_path / "gristmill.toml").write_text(f'[alerts]\nwebhook = "{hook.address}"\n{ui}\n')
    return Lake(data_root=str(tmp_path))


class Ticks:
    """Ticks of the sensor with the cursor of the one before."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake, cursor: str | None = None) -> None:
        self.instance, self.lake, self.cursor = instance, lake, cursor

    def __call__(self) -> str:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"lake": self.lake}
        )
        result = after_runs.alerts(context)
        assert isinstance(result, dg.SensorResult) and result.skip_reason is not None
        self.cursor = result.cursor
        return str(result.skip_reason.skip_message)

    def fail(self, *keys: str) -> list[str]:
        """Runs without a process that failed, as the monitoring of runs closes them."""
        job = definitions.build_defs().resolve_implicit_global_asset_job_def()
        subset = job.get_subset(asset_selection={PACK})
        ids = []
        for key in keys:
            run = self.instance.create_run_for_job(
                subset, asset_selection=frozenset([PACK]), tags={"dagster/partition": key}
            )
            self.instance.report_run_failed(run, "its process is gone")
            ids.append(run.run_id)
        return ids


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake: Lake) -> Ticks:
    """Ticks, of which the first one was before any run failed."""
    ticks = Ticks(instance, lake)
    ticks()
    return ticks


@dg.asset(key=PACK, partitions_def=dg.DynamicPartitionsDefinition(name="drops"))
def failing() -> None:
    raise dg.Failure("drop.txt: line 3: no board\nWhat to do: correct it", allow_retries=False)


@pytest.mark.parametrize(
    ("cursor", "after"),
    [
        ("", None),
        ("yesterday", None),
        ("7", None),
        ('{"after": "x"}', None),
        ('{"after": Infinity}', None),
        ('{"after": 7, "tries": 2, "not_before": 3.5, "lost": 1}', 7),  # of 0.9
    ],
)
def test_a_cursor_that_a_person_typed_counts_as_none(cursor, after):
    assert after_runs._after(cursor) == after


def test_a_failed_run_is_reported_once(instance, lake, hook):
    tick = Ticks(instance, lake)
    tick.fail("before")
    assert tick() == "failures from now on are reported"
    assert tick() == "no run failed" and hook.taken == []
    (run,) = tick.fail("d1")
    assert tick() == "reported 1 failed runs"
    assert tick() == "no run failed"
    (sent,) = hook.taken
    link = f"https://mill.example/runs/{run}"
    assert sent["failed"] == 1
    (said,) = sent["runs"]
    assert (said["run"], said["assets"], said["partition"]) == (run, "macroxue/pack", "d1")
    assert "its process is gone" in said["reason"] and said["link"] == link
    assert f"macroxue/pack d1: {said['reason']} ({link})" in sent["text"]


def test_the_reason_is_the_first_line_of_the_failed_step(instance):
    instance.add_dynamic_partitions("drops", ["d1"])
    done = dg.materialize([failing], instance=instance, partition_key="d1", raise_on_error=False)
    assert not done.success
    (said,) = message(instance, [done.run_id], "http://ui", environment={})["runs"]
    assert said["reason"] == "drop.txt: line 3: no board"
    assert (said["assets"], said["partition"]) == ("macroxue/pack", "d1")


@pytest.mark.slow
def test_many_failures_are_one_message_with_counts(tick, hook):
    tick.fail(*(f"d{number}" for number in range(40)))
    tick()
    (sent,) = hook.taken
    assert sent["failed"] == 40 and len(sent["runs"]) == MOST_NAMED
    assert sent["runs"][0]["partition"] == "d0"
    assert "and 30 more: https://mill.example/runs?q[0]=status:FAILURE" in sent["text"]


@pytest.mark.parametrize(
    ("status", "how", "said"),
    [
        (500, "", "it answered 500;"),
        (404, "", "it answered 404;"),
        (302, "", "it answered 302: a redirect, which is not followed;"),
        (307, "", "it answered 307: a redirect, which is not followed;"),
        (200, "silent", "not reached: TimeoutError;"),
    ],
)
def test_what_is_not_taken_is_sent_again_unlost(tick, hook, monkeypatch, status, how, said):
    monkeypatch.setattr(after_runs, "SECONDS", 0.3)
    hook.status, hook.how = status, how
    for key in ("d1", "d2", "d3"):
        tick.fail(key)
        with pytest.raises(after_runs.NotSent) as raised:
            tick()
        assert said in str(raised.value) and "s3cretpath" not in str(raised.value)
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
    monkeypatch.setattr(after_runs, "SECONDS", 60.0)
    hook.status, hook.how = 200, ""
    tick.fail("d4")
    assert tick() == "reported 4 failed runs"
    assert tick() == "no run failed"
    assert [sent["failed"] for sent in hook.taken] == [1, 2, 3, 4]
    assert set(hook.paths) == {"/hooks/s3cretpath"}  # a redirect is not followed


def test_the_body_of_the_answer_is_not_waited_for(tick, hook):
    hook.how = "drip"
    tick.fail("d1")
    assert tick() == "reported 1 failed runs"


def test_nobody_may_listen_secrets_are_not_shown_and_the_sensor_runs_by_itself():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(after_runs.NotSent, match="not reached: ConnectionRefusedError") as raised:
        after_runs._post(f"http://127.0.0.1:{port}/s3cretpath", {})
    assert "s3cretpath" not in str(raised.value)
    text = (
        "postgresql://me:pa55word@host/db https://s3/x?X-Amz-Signature=abcdef&b=1 token=t0ken99 "
        "Bearer abcdefgh12 hf_abcdefghij and v4lue-of-it at once"
    )
    shown = without_secrets(text, {"MY_SECRET": "v4lue-of-it", "PATH": "once"})
    for secret in ("pa55word", "abcdef", "t0ken99", "v4lue-of-it", "abcdefgh12", "hf_abc"):
        assert secret not in shown
    assert "host/db" in shown and "at once" in shown
    sensor = definitions.build_defs().get_repository_def().get_sensor_def("check_states")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('webhook = "ftp://h/s3cret"', "[alerts] webhook: must be an address"),
        ('webhook = "https:///s3cret"', "[alerts] webhook: must be an address"),
        ('webhook = "https://u:s3cret@h/"', "[alerts] webhook: must be an address"),
        ('webhook = "https://h:99999/s3cret"', "[alerts] webhook: must be an address"),
        ('webhook = "https://h/s3cret x"', "[alerts] webhook: must be an address"),
        ('webhook = "https://h/"\nui = "mill"', "[alerts] ui: must be an address"),
        ('ui = "https://h/"', "[alerts] needs either webhook or webhook_env"),
        ('webhok = "https://h/"', "[alerts] webhok: unknown key: did you mean webhook?"),
        ('webhook_env = "NOT_SET_HERE"', "webhook_env: the variable NOT_SET_HERE is not set"),
        ('webhook_env = "A-B"', "webhook_env: must be the name of an environment variable"),
    ],
)
def test_wrong_settings_name_file_and_key_and_no_secret(tick, lake, line, said):
    file = lake.root / "gristmill.toml"
    file.write_text(f"[alerts]\n{line}\n")
    with pytest.raises(BadInput) as raised:
        tick()
    assert str(file) in str(raised.value) and said in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_the_address_may_be_in_the_environment(tick, lake, hook, monkeypatch):
    monkeypatch.setenv("HOOK", hook.address)
    (lake.root / "gristmill.toml").write_text('[alerts]\nwebhook_env = "HOOK"\n')
    tick.fail("d1")
    assert tick() == "reported 1 failed runs"
    assert hook.taken[0]["runs"][0]["link"].startswith("http://127.0.0.1:3000/runs/")


def test_without_a_webhook_nothing_is_reported_later(tick, lake, hook):
    file = lake.root / "gristmill.toml"
    given = file.read_text()
    for text in ("[inbox]\nsettle_seconds = 1\n", "[alerts]\n"):
        file.write_text(text)
        tick.fail("d1")
        assert tick() == "no webhook in [alerts] of gristmill.toml"
    file.write_text(given)
    assert tick() == "failures from now on are reported"
    assert tick() == "no run failed" and hook.taken == []
    assert after_runs.alerts in (definitions.build_defs().sensors or ())


def test_a_message_is_small(instance):
    @dg.asset(name="loud")
    def loud() -> None:
        raise dg.Failure("x" * 100_000)

    done = dg.materialize([loud], instance=instance, raise_on_error=False)
    sent = message(instance, [done.run_id] * 1, "http://ui", environment={})
    assert "more characters" in sent["text"] and len(json.dumps(sent)) < 5000


pack, pool = built("macroxue/pack"), built("macroxue/pool")
MEMBERS = dg.AssetCheckKey(pool.key, "pool_members_current")
TRUE = "every check shows what it last found"
NOTEWORTHY = dg.AssetCheckKey(PACK, "noteworthy")


def looked(instance: dg.DagsterInstance, lake: Lake, cursor: str | None) -> tuple[str, str]:
    """What a look of the sensor says, and its next cursor."""
    context = dg.build_sensor_context(instance=instance, resources={"lake": lake}, cursor=cursor)
    result = check_states(context)
    assert isinstance(result, dg.SkipReason)
    return str(result.skip_message), str(context.cursor)


def said_of_checks(instance: dg.DagsterInstance, lake: Lake, cursor: str | None = None) -> str:
    return looked(instance, lake, cursor)[0]


@pytest.mark.parametrize("cursor", ["yesterday", "[]", "7", "null", "[" * 100_000])
def test_a_typed_cursor_of_the_checks_counts_as_none(instance, tmp_path, cursor):
    assert said_of_checks(instance, Lake(data_root=str(tmp_path)), cursor) == TRUE


def test_checks_of_a_killed_run_show_what_stood(instance, tmp_path):
    lake = Lake(data_root=str(tmp_path))
    instance.add_dynamic_partitions("macroxue_drops", ["d1", "d2"])
    with opened(tmp_path) as verdicts:
        verdicts.register_all("macroxue/pack", {})
        verdicts.keep("macroxue/pack", "noteworthy", [Verdict("d1", "", "odd", "know it")])
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={PACK}), tags={"dagster/partition": "d2"}
    )
    assert said_of_checks(instance, lake) == TRUE  # it is under way
    instance.report_run_failed(run)
    said = said_of_checks(instance, lake)
    assert "reported again: " in said
    assert "macroxue/pack:noteworthy" in said
    storage = instance.event_log_storage
    shown = storage.get_latest_asset_check_execution_by_key([NOTEWORTHY])[NOTEWORTHY].evaluation
    assert shown is not None
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert said_of_checks(instance, lake) == TRUE
    instance.delete_dynamic_partition("macroxue_drops", "d1")
    assert said_of_checks(instance, lake) == "reported again: macroxue/pack:noteworthy"


class Pools:
    """A pool `p` of the packs `d1` and `d2`, another pack `d3`, and a sensor with its cursor."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.lake, self.instance, self.cursor = Lake(data_root=str(root)), instance, ""
        for number, key in enumerate(("d1", "d2", "d3")):
            self.build(key, number)
        file = self.lake.inbox("pools") / "p.toml"
        file.parent.mkdir(parents=True)
        file.write_text('members = ["d1", "d2"]\n')
        self.materialize(pool, "p")

    def build(self, key: str, seed: int) -> None:
        """Build the pack of a drop that is exchanged for the games of a seed."""
        folder = self.lake.inbox("macroxue") / key
        shutil.rmtree(folder, ignore_errors=True)
        write_drop(folder, seed=seed, games=1, max_moves=30, depth=6)
        self.materialize(pack, key)

    def materialize(self, asset: dg.AssetsDefinition, key: str) -> None:
        self.instance.add_dynamic_partitions(str(asset.partitions_def.name), [key])  # type: ignore[union-attr]
        assert materialized(asset, FAMILY.assets, self.lake, self.instance, key).success

    def tick(self) -> str:
        said, self.cursor = looked(self.instance, self.lake, self.cursor)
        return said

    def shown(self) -> dg.AssetCheckEvaluation | None:
        storage = self.instance.event_log_storage
        records = storage.get_latest_asset_check_execution_by_key([MEMBERS])
        return records[MEMBERS].evaluation if MEMBERS in records else None


def test_pools_are_checked_without_a_run_after_a_pack_was_built(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    assert [pools.tick(), pools.tick()] == [TRUE, TRUE]
    pools.build("d3", 7)
    assert pools.tick() == TRUE  # no pool has it
    assert pools.shown() is None
    pools.build("d1", 8)
    runs = instance.get_runs_count()
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
    shown = pools.shown()
    assert shown is not None
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert shown.description == "1 of 1 partition (p): p/d1: member: was rebuilt"
    assert pools.tick() == TRUE
    assert instance.get_runs_count() == runs
    pools.build("d1", 0)
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
    shown = pools.shown()
    assert shown is not None and shown.passed


def test_what_the_pools_check_found_while_a_run_was_to_evaluate_it_is_kept(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    pools.tick()
    pools.build("d1", 8)
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={pool.key}), tags={"dagster/partition": "another"}
    )
    assert pools.tick() == TRUE
    instance.report_run_failed(run)
    assert "macroxue/pool:pool_members_current" in pools.tick()
    shown = pools.shown()
    assert shown is not None and not shown.passed


def test_a_data_root_that_is_gone_has_lost_no_artifacts(instance, tmp_path):
    pools = Pools(tmp_path, instance)
    pools.tick()
    pools.build("d1", 8)
    said = said_of_checks(instance, Lake(data_root=str(tmp_path / "unmounted")))
    assert said.startswith(f"{tmp_path}/unmounted: the data root is not there: ")
    assert not (tmp_path / "unmounted").exists()
    assert pools.tick() == "reported again: macroxue/pool:pool_members_current"
