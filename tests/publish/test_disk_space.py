"""A full disk: a clear error, the old artifact intact, nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

import definitions
from gristmill import provenance
from gristmill.contract import FileFailed, Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import find_artifacts
from gristmill.publish import storage
from gristmill.publish.build import Attempt, DiskFull, bytes_of, check_space, is_disk_full, shutil
from gristmill.publish.publish import publish
from gristmill.run.parts import run_parts
from gristmill.untrusted.files import opened
from tests.paths import CHECKOUT
from tests.publish.killing import FORMS, State
from tests.publish.tiny import TinyConfig, garbage, tiny_build
from tests.requirements import cannot_run
from tests.run import tiny_work
from tests.sample_root import SampleRoot


def _write(attempt: Attempt, mebibytes: int) -> Summary:
    attempt.out.mkdir()
    with (attempt.out / "big").open("xb", buffering=0) as file:
        for _ in range(mebibytes):
            file.write(bytes(1 << 20))
    return Summary(files={})


def _fill(attempt: Attempt) -> Summary:
    return _write(attempt, 1000)


def _fill_from_workers(attempt: Attempt) -> Summary:
    tasks = [(f"fill-{index}", tiny_work.Task(1, index, 1000)) for index in range(4)]
    list(run_parts(tiny_work.fill, tasks, attempt.parts, 2, scratch=attempt.out.parent))
    return Summary(files={})


def _fill_database(attempt: Attempt) -> Summary:
    attempt.out.mkdir()
    with closing(sqlite3.connect(attempt.out / "metadata.db")) as connection:
        connection.execute("create table rows (data blob)")
        for _ in range(1000):
            connection.execute("insert into rows values (zeroblob(1048576))")
            connection.commit()
    return Summary(files={})


FILLERS: dict[str, Callable[[Attempt], Summary]] = {
    "file": _fill,
    "workers": _fill_from_workers,
    "database": _fill_database,
}


@pytest.fixture(autouse=True, params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of publishing, or that of the seed."""
    monkeypatch.setenv(storage.VARIABLE, request.param)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MiB: what a build keeps spare, and some room."""
    root = tmp_path / "small"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "gristmill-test", str(root)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        cannot_run("mount", "there is no mount command here")
    if done.returncode != 0:
        cannot_run("mount", f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield root
    subprocess.run(["umount", str(root)], check=True)


@pytest.mark.parametrize("filler", FILLERS)
def test_a_disk_that_fills_up(small_disk: Path, filler: str) -> None:
    publish(tiny_build(small_disk))
    before = State.of(small_disk)
    build = tiny_build(small_disk, config=TinyConfig(seed=2), make=FILLERS[filler])
    with pytest.raises(DiskFull, match=r"family/tiny: .*: make room in .* before is untouched"):
        publish(build)
    assert State.of(small_disk) == before
    assert provenance.verify(small_disk) == []
    assert garbage(small_disk) == []
    assert publish(tiny_build(small_disk, config=TinyConfig(seed=2))).rebuilt


def test_a_build_that_cannot_fit_is_not_begun(small_disk: Path) -> None:
    publish(tiny_build(small_disk))
    before = State.of(small_disk)
    build = tiny_build(small_disk, config=TinyConfig(seed=2), make=_fill, space=100 << 20)
    with pytest.raises(DiskFull, match=r"needs about 105,906,176 bytes in .*, [\d,]+ are free"):
        publish(build)
    assert State.of(small_disk) == before
    assert garbage(small_disk) == []


def test_a_disk_that_is_full_already(small_disk: Path) -> None:
    publish(tiny_build(small_disk))
    before = State.of(small_disk)
    with pytest.raises(OSError, match="No space"), (small_disk / "full").open("wb", 0) as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(DiskFull, match=r"make room"):
        publish(tiny_build(small_disk, config=TinyConfig(seed=2)))
    (small_disk / "full").unlink()
    assert State.of(small_disk) == before
    assert garbage(small_disk) == []


def build_under_limit(root: str, filler: str) -> None:
    """Runs in a process of its own, whose files may not pass 1 MiB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    build = tiny_build(Path(root), config=TinyConfig(seed=2), make=FILLERS[filler])
    try:
        publish(build)
    except DiskFull as error:
        sys.stdout.write(str(error))
        sys.exit(3)


@pytest.mark.parametrize("filler", FILLERS)
def test_a_limit_on_the_size_of_files(tmp_path: Path, filler: str) -> None:
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    code = (
        "import sys; from tests.publish.test_disk_space import *; build_under_limit(*sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), filler],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "make room in" in done.stdout
    assert State.of(tmp_path) == before
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_other_errors_are_not_reported_as_a_full_disk(tmp_path: Path) -> None:
    def deny(attempt: Attempt) -> Summary:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "drops/a")

    def misuse(attempt: Attempt) -> Summary:
        sqlite3.connect(":memory:").execute("select 1 from absent")
        raise AssertionError

    with pytest.raises(PermissionError):
        publish(tiny_build(tmp_path, make=deny))
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        publish(tiny_build(tmp_path, make=misuse))
    assert not is_disk_full(sqlite3.OperationalError("raised by no call of SQLite"))


def _read(path: Path, _: Path) -> None:
    with opened(path) as file:
        file.read(1)


def _fail_without_a_name(_: Path, __: Path) -> None:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _fail_in_sqlite(_: Path, __: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    raise error


def _fail_to_flush(_: Path, out: Path) -> None:
    (out / "file").write_bytes(b"x")


MACHINE: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "read": (_read, "family/tiny: /proc/self/mem: Input/output error: the disk or the network "),
    "nameless": (_fail_without_a_name, "family/tiny: a file in {root}: Stale file handle: the "),
    "database": (_fail_in_sqlite, "family/tiny: a file in {root}: disk I/O error: the disk or "),
    "flush": (_fail_to_flush, "family/.gristmill/slots/tiny/"),
}


@pytest.mark.parametrize("how", MACHINE)
def test_an_error_of_the_disk_names_the_file_and_a_cure(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    fail, says = MACHINE[how]

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        if how == "flush":
            monkeypatch.setattr(os, "fsync", _broken)
        fail(Path("/proc/self/mem"), attempt.out)  # a regular file that Linux does not let be read
        return Summary(files={})

    with pytest.raises(FileFailed, match=re.escape(says.format(root=tmp_path))) as failed:
        publish(tiny_build(tmp_path, config=TinyConfig(seed=2), make=make))
    assert str(failed.value).endswith("; what was published before is untouched")
    monkeypatch.undo()
    assert State.of(tmp_path) == before
    assert garbage(tmp_path) == []


def _broken(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_bytes_of_files_and_folders_count_nothing_for_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, size in (("a", 3), ("b", 5), ("deep/c", 7)):
        (tmp_path / name).write_bytes(bytes(size))
    assert bytes_of(tmp_path, tmp_path / "a", tmp_path / "none") == 3 + 5 + 3
    assert bytes_of(tmp_path / "deep/c") == 7


@pytest.mark.parametrize(("missing", "fits"), [(0, True), (1, False)])
def test_a_build_needs_its_own_space_and_1_mib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int, fits: bool
) -> None:
    free = 1000 + (1 << 20) - missing
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    build = tiny_build(tmp_path, space=1000)
    if fits:
        check_space(build, tmp_path)
    else:
        with pytest.raises(DiskFull, match=r"needs about 1,049,576 bytes"):
            check_space(build, tmp_path)


def test_what_a_build_needs_fits_what_it_makes(sample_root: SampleRoot) -> None:
    """Manifests, reports and samples of samples need what is spare."""
    checked = Counter[str]()
    for item in find_artifacts.artifacts(sample_root.data):
        record = provenance.read_record(item.record_path)
        build = definitions.build_of(record.asset, DataRoot(sample_root.data), record.partition)
        assert build is not None
        # Files of TRM are links to those of HRM.
        stats = [(build.folder / each.path).stat() for each in record.outputs]
        made = sum({stat.st_ino: stat.st_size for stat in stats}.values())
        assert made <= build.space + (1 << 20) <= 8 * made + (2 << 20), build.title
        checked[record.asset] += build.space > 0
    assert len(+checked) > 20
