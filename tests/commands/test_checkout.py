"""Where a command runs, and which data root it takes."""

import errno
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import click
import dagster as dg
import pytest
import sqlalchemy.exc
from click.testing import CliRunner
from rich.text import Text

from commands import checkout
from commands import instance as instance_files
from commands.checkout import CheckoutCommand, shown_lines
from commands.checkout import shown as shown_text
from gristmill.contract import GristmillError
from gristmill.run import locks
from tests import dagster_caches
from tests.commands.drops import printed
from tests.paths import CHECKOUT
from tests.publish.held import release_when_awaited


@click.command(cls=CheckoutCommand)
@click.pass_obj
def show(started_in: Path) -> None:
    click.echo(f"{started_in}|{Path.cwd()}|{os.environ.get('GRISTMILL_DATA')}")


@click.command(cls=CheckoutCommand, needs_data_root=False)
def begin() -> None:
    click.echo("begun")


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.argument("error")
def stop(error: str) -> None:
    raise {"key": KeyboardInterrupt, "run": dg.DagsterExecutionInterruptedError}[error]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder to type the command in, and a checkout; the variable GRISTMILL_DATA is unset."""
    user, repository = tmp_path / "user", tmp_path / "checkout"
    for root in ("mine", "other"):
        (user / root).mkdir(parents=True)
    (repository / "data").mkdir(parents=True)
    monkeypatch.chdir(user)
    monkeypatch.setattr(checkout, "CHECKOUT", repository)
    monkeypatch.setattr("resources.CHECKOUT", repository)
    # Set and deleted, so that the value that the command sets goes away after the test.
    monkeypatch.setenv("GRISTMILL_DATA", "")
    monkeypatch.delenv("GRISTMILL_DATA")
    return user, repository


def shown(*words: str, **environment: str) -> list[str]:
    return printed(CliRunner().invoke(show, words, env=environment)).strip().split("|")


def test_a_command_runs_in_the_checkout_and_its_data_root_must_be_there(folders):
    user, repository = folders
    assert shown() == [str(user), str(repository), "None"]
    _, repository = folders
    (repository / "data").rmdir()
    done = CliRunner().invoke(show)
    assert f"{repository}/data: the data root is not there" in str(done.exception)
    assert list(repository.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "environment", "place"),
    [
        (["--data-root", "mine"], {}, "mine"),
        (["--data-root", "mine"], {"GRISTMILL_DATA": "other"}, "mine"),
        ([], {"GRISTMILL_DATA": "other"}, "other"),
    ],
)
def test_a_data_root_is_relative_to_where_one_typed_it(folders, words, environment, place):
    user, _ = folders
    assert shown(*words, **environment)[-1] == str(user / place)


@pytest.mark.parametrize(
    ("words", "environment"), [(("--data-root", "typo"), {}), ((), {"GRISTMILL_DATA": "typo"})]
)
def test_a_data_root_that_is_not_there_is_refused_and_not_made(folders, words, environment):
    user, _ = folders
    done = CliRunner().invoke(show, words, env=environment)
    assert isinstance(done.exception, GristmillError)
    assert str(done.exception).startswith(f"{user}/typo: the data root is not there: ")
    assert done.output == ""
    begun = CliRunner().invoke(begin, words, env=environment)
    assert begun.output == "begun\n"
    assert not (user / "typo").exists()


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("error", ["key", "run"])
def test_an_interrupt_is_one_line_and_has_a_status_of_its_own(error):
    said = printed(CliRunner().invoke(stop, error), 130)
    assert said == "interrupted; what stood is untouched; run the same command again\n"


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception, name: str = "get") -> None:
    """Let Dagster fail where it opens an instance."""

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(dg.DagsterInstance, name, fails)


@pytest.fixture
def home(folders, tmp_path, monkeypatch):
    """An empty DAGSTER_HOME beside a checkout that has its dagster.yaml."""
    _, repository = folders
    shutil.copy(CHECKOUT / "dagster.yaml", repository)
    monkeypatch.chdir(repository)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_an_empty_home_becomes_an_instance_of_its_own(home, folders, caplog):
    _, repository = folders
    with checkout.open_instance() as instance:
        assert not instance.telemetry_enabled
        assert type(instance.run_launcher).__name__ == "LocalHealthLauncher"
        assert instance.run_monitoring_enabled
        instance.add_dynamic_partitions("mine", ["one"])
    assert caplog.text == ""
    assert not (repository / ".dagster").exists()
    assert {path.name for path in home.iterdir()} >= {"dagster.yaml", "history", "schedules"}
    before = (home / "dagster.yaml").read_bytes()
    with checkout.open_instance() as instance:
        assert instance.get_dynamic_partitions("mine") == ["one"]
    assert (home / "dagster.yaml").read_bytes() == before


def test_a_look_at_an_instance_writes_no_file(home):
    with checkout.open_instance(begin=False):
        pass
    assert not (home / "dagster.yaml").exists()


OPEN = """
import sys
from pathlib import Path
from commands import checkout
checkout.CHECKOUT = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
with checkout.open_instance() as instance:
    instance.add_dynamic_partitions("mine", [sys.argv[2]])
"""


def _start_opening(repository: Path, key: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(repository), key],
        cwd=repository,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow  # three processes; the next test looks at the lock
def test_commands_that_begin_an_instance_at_once_begin_one(home, folders):
    _, repository = folders
    keys = ["a", "b", "c"]
    started = [_start_opening(repository, key) for key in keys]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        said = process.communicate()[0]
        assert process.returncode == 0, said
    with checkout.open_instance() as instance:
        assert sorted(instance.get_dynamic_partitions("mine")) == keys
    databases = list(home.rglob("*.db"))
    assert [_heads(file) for file in databases] == [1] * len(databases)


def _heads(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("select count(*) from alembic_version").fetchone()[0])


@pytest.mark.parametrize("place", ["home", "checkout", "the checkout as home"])
def test_nobody_opens_an_instance_while_another_does(home, folders, monkeypatch, place):
    _, repository = folders
    monkeypatch.setenv("DAGSTER_HOME", str(home if place == "home" else repository))
    if place == "checkout":
        monkeypatch.delenv("DAGSTER_HOME")
    lock = home / "opening.lock" if place == "home" else repository / ".dagster/opening.lock"
    is_held = []
    for name in ("get", "from_config"):
        opened = getattr(dg.DagsterInstance, name)
        monkeypatch.setattr(
            dg.DagsterInstance,
            name,
            lambda *given, opened=opened: is_held.append(locks.is_locked(lock)) or opened(*given),
        )
    with checkout.open_instance():
        assert is_held[0]
        assert not locks.is_locked(lock)


def test_who_waits_to_open_an_instance_says_for_whom(home, monkeypatch):
    held = ExitStack()
    held.enter_context(locks.locked(home / "opening.lock", "it"))
    release_when_awaited(held, monkeypatch)
    done = CliRunner().invoke(count)
    assert done.stdout == "0\n"
    said = f"waits for process {os.getpid()} on host {socket.gethostname()} since 20"
    assert done.stderr.startswith(said)
    assert done.stderr.endswith(", which has the lock of the instance\n")


def test_a_home_that_cannot_be_written_is_opened_without_a_lock(home, monkeypatch):
    def refused(*_: object, **named: object) -> None:
        raise locks.NotWritable("no")

    with checkout.open_instance():
        pass
    monkeypatch.setattr(locks, "locked", refused)
    with checkout.open_instance() as instance:
        assert instance.get_runs_count() == 0


@click.command(cls=CheckoutCommand, needs_data_root=False)
def count() -> None:
    with checkout.open_instance() as instance:
        click.echo(instance.get_runs_count() + len(instance.all_asset_keys()))


def _executed(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def _two_heads(file: Path) -> None:
    _executed(file, "insert into alembic_version values ('5771160a95ad')")


def _no_tables(file: Path) -> None:
    _executed(file, "drop table asset_keys")


def _no_database(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}-*"):
        each.unlink()
    file.write_bytes(b"no database" * 500)
    dagster_caches.release()  # another command has another connection


@pytest.mark.parametrize("place", ["home", "checkout"])
@pytest.mark.parametrize(
    ("file", "broken", "said"),
    [
        ("runs.db", _two_heads, "has more than one head present"),
        ("runs/index.db", _no_tables, "no such table: asset_keys"),
        ("runs.db", _no_database, "file is not a database"),
    ],
)
def test_a_broken_instance_is_one_line_to_do(home, folders, monkeypatch, place, file, broken, said):
    _, repository = folders
    history, cure = home / "history", f"the folders history and schedules in {home}"
    if place == "checkout":
        monkeypatch.delenv("DAGSTER_HOME")
        history = repository / ".dagster/storage"
        cure = f"the folder {history}"
    assert CliRunner().invoke(count).output == "0\n"
    broken(next(history.rglob(file)))
    (line,) = printed(CliRunner().invoke(count), 1).splitlines()
    assert line.startswith("Error: the history of the instance is broken: ")
    assert said in line
    assert "SQL" not in line
    assert line.endswith(
        f". What was published stands. End what uses the instance, remove {cure}, and call "
        "`gristmill adopt --all`, then this command again"
    )
    for removed in ("history", "schedules"):
        shutil.rmtree(home / removed, ignore_errors=True)
    shutil.rmtree(repository / ".dagster/storage", ignore_errors=True)
    assert CliRunner().invoke(count).output == "0\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"storage: [", "while parsing a flow node"),
        (b"a: \xff", "can't decode byte 0xff"),
        (b"- a", "parse to dictionary"),
        (b"nonsense: 1", 'Received unexpected config entry "nonsense" at the root'),
        (b"telemetry:\n  enabled: perhaps", "Invalid scalar at path root:telemetry:enabled"),
        (b"run_storage:\n  module: not_there\n  class: A", "Couldn't import module not_there"),
    ],
)
def test_settings_that_dagster_does_not_take_are_one_line_with_the_file(home, folders, text, said):
    file = home / "dagster.yaml"
    file.write_bytes(text)
    with pytest.raises(GristmillError) as caught:
        checkout.open_instance()
    assert str(caught.value).startswith(f"{file}: Dagster does not take it: ")
    assert said in str(caught.value)
    assert str(caught.value).endswith(": mend it")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_other_errors_of_an_instance_are_not_called_settings(home, folders, monkeypatch):
    fail_with(monkeypatch, ZeroDivisionError("a fault"))
    with pytest.raises(ZeroDivisionError):
        checkout.open_instance()


@pytest.mark.parametrize(
    "said",
    [
        "attempt to write a readonly database",
        "unable to open database file",
        "database or disk is full",
    ],
)
def test_a_history_that_cannot_be_written_is_one_line_with_the_cure(home, monkeypatch, said):
    error = sqlalchemy.exc.OperationalError("PRAGMA x", {}, sqlite3.OperationalError(said))
    fail_with(monkeypatch, error)
    (line,) = CliRunner().invoke(count).output.splitlines()
    assert line == (
        f"Error: the history of the instance cannot be written: (sqlite3.OperationalError) {said}. "
        "What was published stands. Make room and let this user write in the folders history and "
        f"schedules in {home}, or set DAGSTER_HOME to a folder of your own"
    )


def test_a_history_that_is_locked_is_not_called_broken(home, monkeypatch):
    error = sqlalchemy.exc.OperationalError("select", {}, Exception("database is locked"))
    fail_with(monkeypatch, error)
    done = CliRunner().invoke(count)
    assert type(done.exception) is sqlalchemy.exc.OperationalError


def test_a_history_that_a_server_has_is_not_taken_over(home, folders):
    _, repository = folders
    (repository / "dagster.yaml").write_text(
        "storage: {postgres: {postgres_url: {env: PGURL}}}\ntelemetry: {enabled: false}\n"
    )
    with checkout.open_instance() as instance:
        assert "Sqlite" in type(instance.run_storage).__name__


@pytest.mark.parametrize("block", ["storage", "run_storage"])
def test_a_copy_of_the_file_of_the_checkout_is_refused(home, folders, block):
    _, repository = folders
    text = (repository / "dagster.yaml").read_text()
    if block == "run_storage":
        text = (
            "run_storage:\n  module: dagster._core.storage.runs\n  class: SqliteRunStorage\n"
            "  config: {base_dir: .dagster/storage}\n"
        )
    (home / "dagster.yaml").write_text(text)
    with pytest.raises(GristmillError) as caught:
        checkout.open_instance()
    said = f"{home}/dagster.yaml: {block}: base_dir: .dagster/storage is relative to the checkout"
    assert str(caught.value).startswith(said)
    assert f"write {home}/.dagster/storage" in str(caught.value)
    assert not (repository / ".dagster").exists()


def test_the_checkout_as_home_is_the_instance_of_the_checkout(home, folders, monkeypatch):
    _, repository = folders
    monkeypatch.setenv("DAGSTER_HOME", str(repository))
    with checkout.open_instance() as instance:
        instance.add_dynamic_partitions("mine", ["one"])
    assert (repository / ".dagster/storage").is_dir()


@pytest.mark.parametrize(
    ("home", "said"), [("no/such", "must be an absolute path"), ("/no/such", "is no folder")]
)
def test_a_home_that_is_none_is_refused(monkeypatch, home, said):
    monkeypatch.setenv("DAGSTER_HOME", home)
    with pytest.raises(GristmillError, match=f"DAGSTER_HOME={home}: {said}"):
        checkout.open_instance()


def test_a_home_may_begin_with_a_tilde_as_for_dagster(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("DAGSTER_HOME", "~/home")
    with checkout.open_instance() as instance:
        instance.add_dynamic_partitions("mine", ["one"])
    assert (home / "history").is_dir()
    assert instance_files.dagster_home() == home


def test_a_checkout_that_cannot_be_written_is_named_with_the_cure(folders, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    error = OSError(errno.EROFS, os.strerror(errno.EROFS), "here/.dagster")
    fail_with(monkeypatch, error, "from_config")
    with pytest.raises(GristmillError, match=r"\(Read-only file system\): set DAGSTER_HOME"):
        checkout.open_instance()


def test_a_hint_has_the_data_root_that_was_given(folders: tuple[Path, Path]) -> None:
    @click.command(cls=CheckoutCommand, needs_data_root=False)
    def hint() -> None:
        click.echo(Text.from_markup(checkout.called("materialize --all")).plain)

    def said(*words: str, **environment: str) -> str:
        return CliRunner().invoke(hint, words, env=environment).output.strip()

    assert said() == "gristmill materialize --all"
    assert said(GRISTMILL_DATA="other") == "gristmill materialize --all"
    assert said("--data-root", "my [red]") == ("gristmill materialize --all --data-root 'my [red]'")


def test_text_of_a_drop_cannot_steer_the_terminal_and_lines_after_the_first_are_indented() -> None:
    line = shown_text("[red]a[/]\nb\x1b[2J\x07\u202e [link=https://evil.example]x[/link]")
    plain = Text.from_markup(line).plain
    assert plain == "[red]a[/] b\ufffd[2J\ufffd\ufffd [link=https://evil.example]x[/link]"
    assert not Text.from_markup(line).spans
    assert shown_text("x" * 3000).endswith("… and 1,000 more characters")
    assert shown_lines("one\n\n   two\t[x]\r\nbuilt\x1b[2J\n") == (
        "one\n  two \\[x]\n  built\N{REPLACEMENT CHARACTER}[2J"
    )
    assert shown_lines("x" * 3000).endswith("and 1,000 more characters")
