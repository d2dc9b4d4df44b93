"""Builds and the records that they are current by: recipe, code digest, libraries."""

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
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest

import definitions
from gristmill import families, provenance
from gristmill.code.digest import Code
from gristmill.contract import FileFailed, Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import (
    Input,
    Record,
    Tokenizer,
    environment,
    find_artifacts,
    recorded_values,
)
from gristmill.publish import storage
from gristmill.publish.build import (
    Attempt,
    DiskFull,
    Slot,
    bytes_of,
    check_space,
    is_disk_full,
    shutil,
)
from gristmill.publish.publish import publish, reason_to_build
from gristmill.run.parts import run_parts
from gristmill.settings.fields import COUNTED_BEFORE, NO_EFFECT
from gristmill.untrusted.files import opened
from tests.paths import ran
from tests.publish.killing import FORMS, State
from tests.publish.tiny import TinyConfig, garbage, tiny_build
from tests.requirements import cannot_run
from tests.run import tiny_work

ENTRIES = ("gristmill.macroxue.builders.pool.merge",)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Sets the code of the tiny asset."""
    return monkeypatch


def _set(patch: pytest.MonkeyPatch, **fields: object) -> Code:
    values: dict[str, object] = {"entries": ENTRIES, "libraries": ("numpy",)} | fields
    code = Code(**values)  # type: ignore[arg-type]
    patch.setattr(families, "code_of_asset", lambda _: code)
    return code


def _undigested(record: Record, **changes: object) -> Record:
    fields: dict[str, object] = {"schema_version": 1, "code_digest": None, "platform": None}
    return record.model_copy(update=fields | changes).sealed()


def test_a_record_of_the_same_code_is_current(tmp_path, code):
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    assert record.code_digest == Code(ENTRIES).digest
    assert tiny_build(tmp_path).made(record)
    assert not tiny_build(tmp_path, config=TinyConfig(seed=2)).made(record)


def test_a_record_of_other_code_is_current_only_if_it_is_listed(tmp_path, code):
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    other = ("gristmill.chess.raw.download.take_drop",)
    _set(code, entries=other)
    assert not tiny_build(tmp_path).made(record)
    assert publish(tiny_build(tmp_path)).rebuilt
    _set(code, entries=other, compatible_with=(str(record.code_digest),))
    assert tiny_build(tmp_path).made(record)


def test_another_version_of_a_declared_library_is_another_fingerprint(tmp_path, code):
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    installed = environment.libraries() | {"numpy": "0.1"}
    code.setattr(environment, "libraries", lambda: installed)
    assert not tiny_build(tmp_path).made(record)
    code.setattr(environment, "libraries", lambda: installed | {"numpy": record.libraries["numpy"]})
    assert tiny_build(tmp_path).made(record)


@pytest.mark.parametrize("name", ["jinja2", "sentencepiece"])
def test_a_record_without_a_library_stays_current_until_built_again(tmp_path, code, name):
    # No fingerprint of 0.9.0 has sentencepiece.
    _set(code, libraries=("numpy", "jinja2") if name == "jinja2" else ("numpy",))
    newer = environment.libraries() | {"jinja2": "3.1", "sentencepiece": "0.2"}
    older = {each: text for each, text in newer.items() if each != name}
    code.setattr(environment, "libraries", lambda: older)
    record = publish(tiny_build(tmp_path)).record
    _set(code, libraries=("numpy", name))
    assert tiny_build(tmp_path).made(record)
    code.setattr(environment, "libraries", lambda: newer)
    assert tiny_build(tmp_path).made(record)
    assert reason_to_build(tiny_build(tmp_path, config=TinyConfig(seed=2))) == (
        "config changed (seed 1 -> 2)"
    )
    record = publish(tiny_build(tmp_path, config=TinyConfig(seed=2))).record
    code.setattr(environment, "libraries", lambda: newer | {name: "0.1"})
    assert not tiny_build(tmp_path, config=TinyConfig(seed=2)).made(record)


def test_a_record_without_a_digest_is_of_0_2_0_its_recipe_and_libraries(tmp_path, code):
    first = _set(code)
    build = tiny_build(tmp_path)
    record = _undigested(publish(build).record, fingerprint=build.recipe)
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested=first.digest)
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested="earlier", compatible_with=("earlier",))
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested="earlier")
    assert not tiny_build(tmp_path).made(record)
    _set(code)
    build = tiny_build(tmp_path)
    record = _undigested(publish(build).record, fingerprint=build.recipe)
    assert not tiny_build(tmp_path, config=TinyConfig(seed=2)).made(record)
    assert not build.made(_undigested(record, libraries=record.libraries | {"numpy": "0.1"}))
    without = {name: text for name, text in record.libraries.items() if name != "numpy"}
    assert build.made(_undigested(record, libraries=without))


def test_an_edited_builder_is_built_again(tmp_path, code):
    """The number of the code version is the same: a person forgot it."""
    _set(code)
    publish(tiny_build(tmp_path))
    assert not publish(tiny_build(tmp_path)).rebuilt
    _set(code, entries=("gristmill.macroxue.builders.values.value_sidecar",))
    again = publish(tiny_build(tmp_path))
    assert again.rebuilt and again.record.replaced is None


def test_what_differs_from_a_record_is_named(tmp_path, code):
    _set(code)
    assert reason_to_build(tiny_build(tmp_path)) == "not published"
    raw = [Input(asset="raw", path=f"drops/{name}", sha256=name) for name in ("a", "b", "c")]
    publish(tiny_build(tmp_path, inputs=raw[:2]))
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == ""
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:1])) == "input changed (drops/b)"
    other = tiny_build(tmp_path, inputs=raw[1:], config=TinyConfig(seed=2, workers=3))
    more = "input changed (drops/a and 1 more)"
    assert reason_to_build(other) == f"config changed (seed 1 -> 2); {more}"
    newer = replace(tiny_build(tmp_path, inputs=raw[:2]), code_version="2")
    assert reason_to_build(newer) == "code version 1 -> 2"
    vocabulary = Tokenizer(name="gpt2", path="x", sha256="y")
    named = replace(tiny_build(tmp_path, inputs=raw[:2]), tokenizer=vocabulary)
    assert reason_to_build(named) == "vocabulary changed"
    _set(code, entries=("gristmill.macroxue.builders.values.value_sidecar",))
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == "code changed"
    _set(code)
    installed = environment.libraries()
    code.setattr(environment, "libraries", lambda: installed | {"numpy": "0.1"})
    newest = f"libraries changed (numpy {installed['numpy']} -> 0.1)"
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == newest


def test_what_is_not_whole_is_named_and_what_is_missing_counts_no_bytes(tmp_path):
    build = tiny_build(tmp_path)
    folder = publish(build).folder
    next(folder.glob("train/*.npy")).write_bytes(b"")
    assert reason_to_build(build) == "its files are not those of its record"
    Slot.of(build).work.mkdir(parents=True)
    assert reason_to_build(build) == "a build of it was ended before its end"
    (tmp_path / "deep").mkdir()
    for name, size in (("a", 3), ("b", 5), ("deep/c", 7)):
        (tmp_path / name).write_bytes(bytes(size))
    assert bytes_of(tmp_path, tmp_path / "a", tmp_path / "none") == 3 + 5 + 3
    assert bytes_of(tmp_path / "deep/c") == 7


@dataclass(frozen=True)
class _Counted(TinyConfig):
    """A config with a field that counted, and a number that was an int."""

    bound: int = 3
    fraction: float = 1


@dataclass(frozen=True)
class _NotCounted(TinyConfig):
    """The same config since the field does not count and the number is a float."""

    bound: Annotated[int, NO_EFFECT, COUNTED_BEFORE] = 0
    fraction: float = 1.0


def test_a_field_that_no_longer_counts_or_never_did_changes_no_record(tmp_path, code):
    _set(code)
    record = publish(tiny_build(tmp_path, config=_Counted())).record
    assert record.config["fraction"] == 1
    assert tiny_build(tmp_path, config=_NotCounted()).made(record)
    assert tiny_build(tmp_path, config=_NotCounted(bound=7)).made(record)
    assert not tiny_build(tmp_path, config=_NotCounted(fraction=1.5)).made(record)
    assert not tiny_build(tmp_path, config=_NotCounted(seed=2)).made(record)
    undigested = _undigested(record, fingerprint=tiny_build(tmp_path, config=_Counted()).recipe)
    assert tiny_build(tmp_path, config=_NotCounted()).made(undigested)
    assert not publish(tiny_build(tmp_path, config=_NotCounted())).rebuilt
    config = _NotCounted(workers=2)
    recorded = {"bound": 9, "fraction": 1, "workers": 5, "gone": 1, "seed": 0, "rows": True}
    assert recorded_values(config, recorded) == {"bound": 9, "fraction": 1}


def _fill(attempt: Attempt) -> Summary:
    attempt.out.mkdir()
    with (attempt.out / "big").open("xb", buffering=0) as file:
        for _ in range(1000):
            file.write(bytes(1 << 20))
    return Summary(files={})


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


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of publishing, or that of the seed."""
    monkeypatch.setenv(storage.VARIABLE, request.param)


@pytest.fixture
def small_disk(form: None, tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MiB: what a build keeps spare, and some room."""
    root = tmp_path / "small"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "gristmill-test", str(root)]
    try:
        done = ran(mount)
    except FileNotFoundError:
        cannot_run("mount", "there is no mount command here")
    if done.returncode != 0:
        cannot_run("mount", f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield root
    subprocess.run(["umount", str(root)], check=True)


@pytest.mark.parametrize("filler", FILLERS)
def test_a_disk_that_fills_up(small_disk, filler):
    publish(tiny_build(small_disk))
    before = State.of(small_disk)
    build = tiny_build(small_disk, config=TinyConfig(seed=2), make=FILLERS[filler])
    with pytest.raises(DiskFull, match=r"family/tiny: .*: make room in .* before is untouched"):
        publish(build)
    assert State.of(small_disk) == before
    assert provenance.verify(small_disk) == []
    assert garbage(small_disk) == []
    assert publish(tiny_build(small_disk, config=TinyConfig(seed=2))).rebuilt


def test_a_build_that_cannot_fit_or_finds_the_disk_full_is_not_begun(small_disk):
    publish(tiny_build(small_disk))
    before = State.of(small_disk)
    build = tiny_build(small_disk, config=TinyConfig(seed=2), make=_fill, space=100 << 20)
    with pytest.raises(DiskFull, match=r"needs about 105,906,176 bytes in .*, [\d,]+ are free"):
        publish(build)
    assert State.of(small_disk) == before
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


@pytest.mark.slow
@pytest.mark.parametrize("filler", FILLERS)
def test_a_limit_on_the_size_of_files(form, tmp_path, filler):
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    code = "import sys; from tests.publish.test_build import *; build_under_limit(*sys.argv[1:])"
    done = ran([sys.executable, "-c", code, str(tmp_path), filler])
    assert done.returncode == 3, done.stderr
    assert "make room in" in done.stdout
    assert State.of(tmp_path) == before
    assert provenance.verify(tmp_path) == []
    assert garbage(tmp_path) == []


def test_other_errors_are_not_reported_as_a_full_disk(tmp_path):
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
    "flush": (_fail_to_flush, "family/tiny: {root}/.gristmill/history/family/tiny/"),
}


@pytest.mark.parametrize("how", MACHINE)
def test_an_error_of_the_disk_names_the_file_and_a_cure(form, tmp_path, how, monkeypatch):
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


@pytest.mark.parametrize(("missing", "fits"), [(0, True), (1, False)])
def test_a_build_needs_its_own_space_and_1_mib(tmp_path, monkeypatch, missing, fits):
    free = 1000 + (1 << 20) - missing
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    build = tiny_build(tmp_path, space=1000)
    if fits:
        check_space(build, tmp_path)
    else:
        with pytest.raises(DiskFull, match=r"needs about 1,049,576 bytes"):
            check_space(build, tmp_path)


def test_what_a_build_needs_fits_what_it_makes(sample_root):
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
