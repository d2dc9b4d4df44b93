"""Loaded code is known to be what the disk has, or it is not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from commands.serving.loaded_files import LoadedFiles

SECOND = 1_000_000_000
MODULE = "a_module_of_this_test"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a module of this process was loaded from, an hour old."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"{MODULE}.py"
    file.write_text("VALUE = 1\n")
    an_hour_ago = time.time() - 3600
    os.utime(file, (an_hour_ago, an_hour_ago))
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__(MODULE)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.setitem(sys.modules, MODULE, type(sys)(MODULE))
    sys.modules[MODULE].__file__ = str(file)
    return file


def test_nothing_has_changed(module: Path) -> None:
    assert LoadedFiles(time.time_ns()).changed() is None


def test_a_file_with_other_contents_of_the_same_time_has_changed(module: Path) -> None:
    loaded = LoadedFiles(time.time_ns())
    was = module.stat()
    module.write_text("VALUE = 20\n")
    os.utime(module, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert loaded.changed() == module


def test_another_file_in_its_place_has_changed(module: Path) -> None:
    loaded = LoadedFiles(time.time_ns())
    was = module.stat()
    other = module.with_suffix(".new")
    other.write_text("VALUE = 2\n")
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.rename(module)
    # Its folder has changed, too.
    assert loaded.changed() in (module, module.parent)
    assert loaded.changed() is not None


def test_a_later_time_alone_has_changed(module: Path) -> None:
    loaded = LoadedFiles(time.time_ns())
    os.utime(module)
    assert loaded.changed() == module


def test_a_file_that_is_gone_has_changed(module: Path) -> None:
    loaded = LoadedFiles(time.time_ns())
    module.unlink()
    assert loaded.changed() in (module, module.parent)


def test_a_module_beside_it_is_a_change(module: Path) -> None:
    loaded = LoadedFiles(time.time_ns())
    module.with_name("another.py").write_text("")
    assert loaded.changed() == module.parent


def test_folders_elsewhere_do_not_count(
    module: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    loaded = LoadedFiles(time.time_ns())
    module.with_name("another.py").write_text("")
    assert loaded.changed() is None


@pytest.mark.parametrize(("earlier", "is_clear"), [(2 * SECOND, True), (SECOND // 20, False)])
def test_a_file_that_was_written_while_code_was_loaded_is_unclear(
    module: Path, earlier: int, is_clear: bool
) -> None:
    """The clock of a file system may be behind by a tick."""
    written = time.time_ns()
    os.utime(module, ns=(written, written))
    changed = LoadedFiles(written + earlier).changed()
    assert changed == (None if is_clear else module)


def test_a_file_of_a_time_to_come_is_as_clear_as_others(module: Path) -> None:
    """Else code that was copied from a machine with another clock would be loaded twice a run."""
    ahead = time.time_ns() + 3600 * SECOND
    os.utime(module, ns=(ahead, ahead))
    loaded = LoadedFiles(time.time_ns())
    assert loaded.changed() is None
    module.write_text("VALUE = 2\n")
    assert loaded.changed() == module


def test_files_beside_the_code_count_whether_they_exist_or_not(module: Path) -> None:
    missing = module.with_name(".env")
    loaded = LoadedFiles(time.time_ns(), (missing,))
    assert loaded.changed() is None
    missing.write_text("A=1\n")
    assert loaded.changed() in (missing, module.parent)
    loaded = LoadedFiles(time.time_ns() + SECOND, (missing,))
    missing.unlink()
    assert loaded.changed() in (missing, module.parent)
