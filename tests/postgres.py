"""A Postgres server for tests: Debian's, as the user nobody, gone with the test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.requirements import cannot_run

_USER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
_QUICK = "-c listen_addresses= -c fsync=off -c max_connections=60"


def use_in(home: Path, address: str) -> None:
    """Let the `dagster.yaml` of a folder keep its history at an address, with its other blocks."""
    file = home / "dagster.yaml"
    blocks = yaml.safe_load(file.read_text()) if file.exists() else {}
    blocks["storage"] = {"postgres": {"postgres_url": address}}
    file.write_text(yaml.safe_dump(blocks))


@dataclass(frozen=True)
class Postgres:
    """A server that listens on a socket alone."""

    folder: Path
    binaries: Path

    def start(self) -> None:
        options = f"-k {self.folder} {_QUICK}"
        log = str(self.folder / "log")
        self._do("pg_ctl", "-D", self._data, "-w", "-s", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """As by a crash: nothing is written on the way."""
        self._do("pg_ctl", "-D", self._data, "-s", "-m", "immediate", "stop")

    def database(self, name: str) -> str:
        """Make a database, and return its address for SQLAlchemy, which names the driver."""
        self._do("createdb", "-h", str(self.folder), "-U", "dagster", name)
        return f"postgresql+psycopg2://dagster@/{name}?host={self.folder}"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def make(self) -> None:
        words = ("-A", "trust", "-U", "dagster", "-E", "UTF8", "--locale=C", "--no-sync")
        self._do("initdb", "-D", self._data, *words)

    def _do(self, program: str, *words: str) -> None:
        # initdb and the server refuse root.
        user = _USER if os.geteuid() == 0 else ()
        log = self.folder / "commands.log"
        with log.open("ab") as out:
            subprocess.run(
                [*user, str(self.binaries / program), *words],
                cwd="/",
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                check=True,
            )


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server; the test is skipped where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        cannot_run("postgres", "no Postgres server is installed: apt-get install postgresql")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        cannot_run("postgres", "Postgres refuses root, and there is no setpriv")
    try:
        import dagster_postgres  # noqa: F401
        import psycopg2  # noqa: F401
    except ImportError as error:
        cannot_run("postgres", f"{error}: make engines")
    # Not below pytest's folder, which only its user may enter; a socket's path is short, too.
    folder = Path(tempfile.mkdtemp(prefix="gristmill-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        server = Postgres(folder, found[-1].parent)
        server.make()
        server.start()
        try:
            yield server
        finally:
            if (folder / "data/postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(folder)
