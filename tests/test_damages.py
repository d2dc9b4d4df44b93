"""Damages of an artifact of every asset, and what finds each: a hash, a law, or building again."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from gristmill import families, provenance
from gristmill.provenance import Output, find_artifacts
from gristmill.provenance.find_artifacts import Artifact
from gristmill.rebuilt import rebuilt
from tests.sample_root import SampleRoot

ASSETS = [kind.asset for each in families.catalogs() for kind in each.kinds]


BY_LAWS: Final = {
    "synth/harmony_manifest": "readable",
    "synth/kd_manifest": "inventory",
    "synth_smoke/kd_manifest": "inventory",
    "reasoning/raw_manifest": "files",
    "reasoning/qc_report": "totals",
}
"""Files with the time of their build, which building again cannot compare, and the law that finds a
wrong number. A wrong byte of any other asset is found by `rebuilt`, whatever its laws look at."""


@pytest.fixture(scope="module")
def artifacts(
    sample_root: SampleRoot, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Artifact]:
    """The first artifact of each asset, in a copy of the sample root."""
    return _first(sample_root.copy(tmp_path_factory.mktemp("damages")).data)


def _first(root: Path) -> dict[str, Artifact]:
    found = [*find_artifacts.artifacts(root)]
    return {provenance.read_record(item.record_path).asset: item for item in reversed(found)}


def _largest(item: Artifact) -> Output:
    record = provenance.read_record(item.record_path)
    return max((each for each in record.outputs if each.payload), key=lambda each: each.bytes)


@contextmanager
def _changed(item: Artifact) -> Iterator[Path]:
    """Change a byte of the largest file: a digit of a number in JSON, else a bit in the middle."""
    path = item.folder / _largest(item).path
    before, times = path.read_bytes(), path.stat()
    numbers = [each.start(1) for each in re.finditer(rb'": ?([0-8])[0-9]*[,\n}]', before)]
    is_json = numbers and path.suffix.startswith(".json")
    at = numbers[len(numbers) // 2] if is_json else len(before) // 2
    path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
    try:
        yield path
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@contextmanager
def _forged(item: Artifact) -> Iterator[None]:
    """Change a byte, and have the record say that it was so: no hash finds it."""
    sealed, record = item.record_path.read_bytes(), provenance.read_record(item.record_path)
    with _changed(item) as path:
        made = {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "mtime_ns": path.stat().st_mtime_ns,
        }
        outputs = [
            each.model_copy(update=made if item.folder / each.path == path else {})
            for each in record.outputs
        ]
        version = provenance.data_version(outputs)
        forged = record.model_copy(update={"outputs": outputs, "data_version": version})
        item.record_path.write_bytes(forged.sealed().to_bytes())
        try:
            yield
        finally:
            item.record_path.write_bytes(sealed)


def _laws(item: Artifact, check_laws: bool = False) -> set[str]:
    found = provenance.verify(item.folder, check_inputs=False, check_laws=check_laws)
    return {each.law for each in found}


@pytest.mark.parametrize("asset", ASSETS)
def test_other_bytes_a_missing_file_and_one_too_many_are_found_by_the_record(artifacts, asset):
    item = artifacts[asset]
    with _changed(item) as path:
        assert _laws(item) == {"output"}
        path.unlink()
        assert _laws(item) == {"output"}
    path.with_name("more").touch()
    assert _laws(item) == {"unlisted"}
    path.with_name("more").unlink()
    assert _laws(item) == set()


@pytest.mark.slow
@pytest.mark.parametrize("asset", ASSETS)
def test_a_row_that_the_record_was_forged_to_fit_is_found(artifacts, asset):
    item = artifacts[asset]
    with _forged(item):
        assert _laws(item) == set()
        (again,) = rebuilt([item])
        found = {each.law for each in again.violations}
        found |= {BY_LAWS[asset]} & _laws(item, check_laws=True) if asset in BY_LAWS else set()
    assert again.not_judged == ""
    assert found == {BY_LAWS.get(asset, "rebuilt")}
    (again,) = rebuilt([item])
    assert (again.violations, again.not_judged) == ([], "")
