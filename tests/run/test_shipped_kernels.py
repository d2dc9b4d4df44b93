"""Kernels that come with the package: taken where they fit, compiled where they do not."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from gristmill.run import kernels
from gristmill.run.kernels import CACHE_DIR
from tests.run.ship_kernels import pack
from tests.run.test_kernels import CALL, MODULE, code, home_cache, machine_code, put_code, python

__all__ = ["code"]

pytestmark = pytest.mark.skipif(
    not kernels._runs_here(), reason="the archive is for x86-64-v3 on Linux"
)

_NAME, _FEATURES = kernels.PROCESSOR
_WITH = """
from pathlib import Path
from gristmill.run import kernels
kernels.ARCHIVE = Path({archive!r})
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of `code`, compiled for the processor of an archive."""
    code = put_code(tmp_path_factory.mktemp("shipped"))
    folder = code / "compiled"
    folder.mkdir(mode=0o700)
    variables = {CACHE_DIR: folder, "NUMBA_CPU_NAME": _NAME, "NUMBA_CPU_FEATURES": _FEATURES}
    assert python(code, CALL.format(value=5), **variables) == "17 Counter()"
    return folder


@pytest.fixture
def archive(code: Path, compiled: Path) -> Path:
    assert pack(compiled, code / "kernels.zip") == 3
    return code / "kernels.zip"


def _call(code: Path, archive: Path, **variables: str | Path) -> str:
    return python(code, _WITH.format(archive=str(archive)) + CALL.format(value=5), **variables)


def test_a_shipped_kernel_is_not_compiled(code: Path, archive: Path) -> None:
    assert _call(code, archive) == "17 Counter({(int64,): 1})"
    assert machine_code(home_cache(code)) == []


def test_the_archive_is_the_same_for_the_same_kernels(
    code: Path, compiled: Path, archive: Path
) -> None:
    assert pack(compiled, code / "again.zip") == 3
    assert (code / "again.zip").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [("FACTOR = 3", "FACTOR = 4", 22), ("inner(number) + 1", "inner(number) + 2", 18)],
)
def test_another_kernel_is_compiled(
    code: Path, archive: Path, old: str, new: str, result: int
) -> None:
    (code / "code/family/kernels/code.py").write_text(MODULE.replace(old, new))
    assert _call(code, archive) == f"{result} Counter()"
    assert machine_code(home_cache(code)) != []


def test_a_signature_that_is_not_shipped_is_compiled(code: Path, archive: Path) -> None:
    text = _WITH.format(archive=str(archive)) + CALL.format(value=5.0)
    assert python(code, text) == "17.0 Counter()"


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2]])
def test_a_damaged_archive_is_no_reason_to_stop(code: Path, archive: Path, damage: object) -> None:
    archive.write_bytes(damage(archive.read_bytes()))  # type: ignore[operator]
    assert _call(code, archive) == "17 Counter()"


def test_an_entry_with_a_wrong_byte_is_compiled(code: Path, archive: Path) -> None:
    octets = bytearray(archive.read_bytes())
    middle = len(octets) // 2
    octets[middle : middle + 64] = bytes(64)
    archive.write_bytes(octets)
    assert _call(code, archive).startswith("17 ")


def test_another_processor_gets_nothing(code: Path, archive: Path) -> None:
    assert _call(code, archive, NUMBA_CPU_NAME="generic") == "17 Counter()"


def test_a_machine_that_lacks_an_instruction_gets_nothing(code: Path, archive: Path) -> None:
    lacking = 'kernels._FEATURES = ("no-such-feature",)\n'
    text = _WITH.format(archive=str(archive)) + lacking + CALL.format(value=5)
    assert python(code, text) == "17 Counter()"


def test_the_archive_of_the_package_holds_kernels() -> None:
    with zipfile.ZipFile(kernels.ARCHIVE) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) > 30
