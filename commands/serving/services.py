"""Runs what serves the instance: code servers, web server, daemon; and ends all of them.

The lock of an instance keeps a second `gristmill ui` away. A `dagster dev` does not take it, and
its daemon outlives it where somebody kills it: the heartbeats that daemons leave tell of it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final, NamedTuple

import click
import dagster as dg
import yaml

from commands.serving import keeper
from gristmill.printable import plain
from resources import CHECKOUT

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_LINE: Final = re.compile(
    r"\S+ (?P<time>\S+) \S+ - (?P<logger>dagster\S*) - (?P<level>[A-Z]+) - (?P<text>.*)"
)
_EVENT: Final = re.compile(r"\S+ - (?P<run>[0-9a-f]{8}-[0-9a-f-]{27}) - \d+ - (?P<text>.*)")
_ENDS: Final = {
    "RUN_SUCCESS": "succeeded",
    "RUN_FAILURE": "failed",
    "RUN_CANCELED": "was stopped",
}
_MESSAGE: Final = re.compile(r"\S+ - (?P<run>[0-9a-f]{8}-[0-9a-f-]{27}) - (?P<text>.*)")
_PUBLISHED: Final = re.compile(r"(?P<step>\S+) - ASSET_MATERIALIZATION - ")
# What Dagster says of each new instance, of steps after one that failed, and what a sensor says
# that found nothing.
_EXPECTED: Final = re.compile(r"No cursor for event type|.* - Dependencies for step \S+ .*")
_SLOW: Final = re.compile(r"DagsterUserCodeUnreachableError|Timed out waiting for gRPC server")
_WAIT: Final = "the code of the checkout does not answer yet: a busy machine loads it in a minute"
_NO_NEWS: Final = (
    "no new drop",
    "every check shows what it last found",
    "no run failed",
    "no webhook in [alerts] of gristmill.toml",
)
_MOST_NAMED: Final = 3
_SKIPPED: Final = re.compile(r"Sensor (?P<sensor>\S+) skipped: (?P<reason>.*)")
_ADDED: Final = re.compile(
    r"Added partition keys to dynamic partitions definition '(?P<name>\w+)': \[(?P<keys>.*)\]"
)


class ShortLog:
    """Chooses from the lines of one program that Dagster started."""

    def __init__(self) -> None:
        self._is_shown = True
        """Whether lines without a head of their own, as of a stack trace, are shown."""
        self._published: dict[str, list[str]] = {}
        """The assets that a run published, by its id."""
        self._reasons: dict[str, str] = {}
        """The last reason of each sensor."""

    def lines(self, line: str) -> Iterator[str]:
        """Yield what is shown of a line."""
        bare = _COLOURS.sub("", line)
        found = _LINE.fullmatch(bare)
        if _SLOW.search(bare):  # its stack says nothing more
            if self._is_shown:
                yield f"{found['time']} {_WAIT}" if found else _WAIT
            self._is_shown = False
            return
        if found is None:
            if self._is_shown and bare.strip():
                yield plain(bare)
            return
        event = _EVENT.fullmatch(found["text"])
        if found["logger"] == "dagster" and event is not None:
            shown = self._of_run(event["run"], event["text"])
            self._is_shown = False
        else:
            self._is_shown = is_problem = self._is_problem(found["level"], found["text"])
            shown = _of_its_run(found["text"]) if is_problem else self._news(found["text"])
        if shown:
            yield plain(f"{found['time']} {shown}")

    def _is_problem(self, level: str, text: str) -> bool:
        return level in ("WARNING", "ERROR", "CRITICAL") and not _EXPECTED.match(text)

    def _of_run(self, run: str, text: str) -> str:
        """The line of a run that ended; empty for its other events."""
        if found := _PUBLISHED.match(text):
            asset = found["step"].replace("__", "/")
            names = self._published.setdefault(run, [])
            if asset not in names:
                names.append(asset)
        end = next((word for kind, word in _ENDS.items() if text.startswith(f"{kind} - ")), None)
        if end is None:
            return ""
        names = self._published.pop(run, [])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        published = f": {', '.join(names[:_MOST_NAMED])}{more}" if names else ""
        page = f", see /runs/{run}" if end == "failed" else ""
        return f"run {run[:8]} {end}{published}{page}"

    def _news(self, text: str) -> str:
        """What a sensor found that it did not say before; empty for anything else."""
        if added := _ADDED.fullmatch(text):
            return f"{added['name']}: new {added['keys'].replace(chr(39), '')}"
        skipped = _SKIPPED.fullmatch(text)
        if skipped is None or self._reasons.get(skipped["sensor"]) == skipped["reason"]:
            return ""
        self._reasons[skipped["sensor"]] = skipped["reason"]
        is_news = skipped["reason"] not in _NO_NEWS
        return f"{skipped['sensor']}: {skipped['reason']}" if is_news else ""


def _of_its_run(text: str) -> str:
    """A message, with the short id of the run that it is of, if it is of one."""
    found = _MESSAGE.fullmatch(text)
    return f"run {found['run'][:8]} {found['text']}" if found else text


_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.2
# A run under way is cancelled first, and a step may need a while to notice.
_PATIENCE_SECONDS = 30.0
# Runs under way are asked after the services in front, so that these have less time.
_FRONT_SECONDS = 5.0
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DAGSTER = (sys.executable, "-m", "dagster")
_DAEMON = (sys.executable, str(Path(sys.executable).parent / "dagster-daemon"))


class Service(NamedTuple):
    """A program that runs as long as the others, and what it is called in messages."""

    name: str
    words: Sequence[str]


def serve(checkout: Path, address: str, port: int, lock: int, *, is_verbose: bool = False) -> None:
    """Run the services until a signal asks to stop, or one of them ends.

    Raises click.ClickException where a service ended by itself.
    """
    folder = tempfile.mkdtemp(prefix="gristmill-ui-")
    with _Group(folder, lock, is_verbose) as group, _stop_signals() as asked_to_stop:
        workspace, code_servers = split_workspace(checkout / "workspace.yaml", Path(folder))
        for service, listens_on in code_servers:
            group.start(service)
            group.wait(partial(_is_any, listens_on.exists, asked_to_stop.__len__))
        if not asked_to_stop:
            for service in _front(workspace, address, port):
                group.start(service, is_front=True)

            def answers() -> bool:
                with suppress(OSError), socket.create_connection((address, port), _POLL_SECONDS):
                    return True
                return False

            group.wait(partial(_is_any, answers, asked_to_stop.__len__))
        if not asked_to_stop:
            click.echo(f"open http://{address}:{port} (Ctrl-C stops it)")
            group.wait(partial(_is_any, asked_to_stop.__len__))


@contextmanager
def instance_lock(path: Path) -> Iterator[int]:
    """Hold the lock of an instance; gives its descriptor."""
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise click.ClickException(
            f"{path}: cannot be written ({error.strerror}): set DAGSTER_HOME to an empty folder of "
            "your own"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("ascii", "replace").strip()
            raise click.ClickException(
                f"process {holder or 'of another `gristmill ui`'} serves this instance already "
                f"({path}): use that one, or stop it first"
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def split_workspace(file: Path, folder: Path) -> tuple[Path, list[tuple[Service, Path]]]:
    """Returns a workspace that names sockets, and the code servers that listen on them."""
    locations: list[dict[str, Any]] = yaml.safe_load(file.read_text())["load_from"]
    servers: list[tuple[Service, Path]] = []
    for number, location in enumerate(locations):
        if "python_file" not in location:
            continue
        named = location["python_file"]
        listens_on, name = folder / f"code-{number}.sock", named["location_name"]
        words = [*_DAGSTER, "code-server", "start", "--socket", str(listens_on)]
        words += ["--location-name", name, "--log-level", "warning"]
        words += ["--use-python-environment-entry-point", "--inject-env-vars-from-instance"]
        words += ["--python-file", str(file.parent / named["relative_path"])]
        words += ["--working-directory", str(file.parent / named.get("working_directory", "."))]
        servers.append((Service(f"the code server of {name}", words), listens_on))
        locations[number] = {"grpc_server": {"location_name": name, "socket": str(listens_on)}}
    workspace = folder / "workspace.yaml"
    workspace.write_text(yaml.safe_dump({"load_from": locations}))
    return workspace, servers


def _front(workspace: Path, address: str, port: int) -> tuple[Service, Service]:
    web = [sys.executable, "-m", "commands.serving.web_server", "-w", str(workspace)]
    return (
        Service("the web server", [*web, "-h", address, "-p", str(port)]),
        Service("the daemon", [*_DAEMON, "run", "-w", str(workspace)]),
    )


class _Group:
    """Processes that end together: with this one, with the first that ends, or by a signal."""

    def __init__(self, folder: str, lock: int, is_verbose: bool) -> None:
        self._is_verbose = is_verbose
        self._logs: dict[IO[bytes], tuple[bytearray, ShortLog]] = {}
        """The logs that are read: what came of the last line, and what is chosen from them."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._front: list[subprocess.Popen[bytes]] = []
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, folder],
            stdin=subprocess.PIPE,
            pass_fds=[lock],
            process_group=0,
        )

    def __enter__(self) -> _Group:
        return self

    def __exit__(self, *_: object) -> None:
        if self._front:  # before, no run can be under way
            self._end_front()
            self._interrupt()
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        for _name, process in self._running:
            process.kill()  # where somebody killed the keeper
            process.wait()
        self._keeper.wait()
        self._show_logs(0)

    def start(self, service: Service, is_front: bool = False) -> None:
        """Start a service; one in front asks the code servers, so that it ends before them."""
        process = subprocess.Popen(
            service.words,
            stdin=subprocess.DEVNULL,
            stdout=None if self._is_verbose else subprocess.PIPE,
            stderr=None if self._is_verbose else subprocess.STDOUT,
            env=_environment(),
            process_group=self._keeper.pid,
            preexec_fn=lambda: self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509  this process has one thread
        )
        self._running.append((service.name, process))
        if process.stdout is not None:
            self._logs[process.stdout] = (bytearray(), ShortLog())
        if is_front:
            self._front.append(process)

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds`; raises click.ClickException where a service ends before."""
        while not holds():
            for name, process in self._running:
                if process.poll() is not None:
                    self._show_logs(0)
                    raise click.ClickException(
                        f"{name} ended ({_how(process.returncode)}), so that all were stopped: "
                        "the lines above say why"
                    )
            self._show_logs(_POLL_SECONDS)

    def _show_logs(self, seconds: float) -> None:
        """Show what the services log within some seconds."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = select.select(list(self._logs), [], [], left)[0]
            for log in ready:
                self._show(log, os.read(log.fileno(), 1 << 16))
            if not ready:
                return

    def _show(self, log: IO[bytes], came: bytes) -> None:
        """Show the whole lines of a log, and what is left of it at its end."""
        begun, chosen = self._logs[log]
        *lines, rest = bytes(begun + came).split(b"\n")
        begun[:] = rest
        if not came:
            del self._logs[log]
            lines.append(rest)
        for line in lines:
            for shown in chosen.lines(line.decode("utf-8", "replace")):
                click.echo(shown, err=True)

    def _end_front(self) -> None:
        """Ask the services in front to stop; those that still load their code are killed."""
        for process in self._front:
            if process.poll() is None:
                process.send_signal(signal.SIGINT if is_ready(process.pid) else signal.SIGKILL)
        deadline = time.monotonic() + _FRONT_SECONDS
        while any(process.poll() is None for process in self._front):
            if time.monotonic() > deadline:
                return
            self._show_logs(_POLL_SECONDS)

    def _interrupt(self) -> None:
        """Ask the whole group to stop, runs included, and wait until the services have."""
        with suppress(ProcessLookupError):
            os.killpg(self._keeper.pid, signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while any(process.poll() is None for _, process in self._running):
            if time.monotonic() > deadline:
                click.echo("some processes do not stop: they are killed", err=True)
                return
            self._show_logs(_POLL_SECONDS)


def is_ready(process: int) -> bool:
    """Returns whether a service has loaded its code: it handles SIGTERM then."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "")
    return not caught or bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect the signals that ask to stop; a second one ends this process at once."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in _STOPPING}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _environment() -> dict[str, str]:
    """The variables of the services: each can import the launcher that dagster.yaml names."""
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _is_any(*questions: Callable[[], object]) -> bool:
    return any(question() for question in questions)


def _how(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"


# A daemon writes one every 30 seconds.
RECENT_SECONDS = 60.0
WAIT_SECONDS = 35.0
_LOOK_SECONDS = 0.5


def refuse_other_daemons(
    instance: dg.DagsterInstance,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait, where heartbeats are recent, whether one is renewed."""
    before = _heartbeats(instance)
    newest = max(before.values(), default=0.0)
    if time.time() - newest > RECENT_SECONDS:
        return
    say(
        f"a daemon worked on this instance {time.time() - newest:.0f} seconds ago and did not end "
        f"in order: waiting up to {WAIT_SECONDS:.0f} seconds to see that it is gone"
    )
    for _ in range(round(WAIT_SECONDS / _LOOK_SECONDS)):
        if any(at > before.get(name, 0.0) for name, at in _heartbeats(instance).items()):
            named = "; ".join(daemons()) or "`ps aux | grep dagster` lists candidates"
            raise click.ClickException(
                "another Dagster daemon works on this instance, as one of `dagster dev` or of "
                f"`dagster-daemon`: stop it first ({named})"
            )
        sleep(_LOOK_SECONDS)


def forget_heartbeats(instance: dg.DagsterInstance) -> None:
    """Remove the heartbeats of daemons that have ended, so that the next start need not wait."""
    instance.wipe_daemon_heartbeats()


def daemons(processes: Path = Path("/proc")) -> Iterator[str]:
    """Yields the processes of this machine that look like a Dagster daemon, as `process 12: …`."""
    for folder in sorted(processes.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        line = " ".join(filter(None, words))
        is_daemon = "dagster-daemon" in line or "dagster._daemon" in line
        if (is_daemon or "dagster dev" in line) and int(folder.name) != os.getpid():
            yield f"process {folder.name}: {line[:80]}"


def _heartbeats(instance: dg.DagsterInstance) -> dict[str, float]:
    """When each daemon of the instance last said that it works, in seconds since 1970."""
    found = instance.get_daemon_heartbeats().values()
    return {f"{one.daemon_type} {one.daemon_id}": one.timestamp for one in found}
