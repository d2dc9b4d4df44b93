"""Whether an artifact of a data root is whole, as its record says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.mirror.standing import is_whole
from tests.mirror.roots import built


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built(tmp_path)
    return tmp_path / "family/tiny"


def test_an_artifact_is_whole_until_a_file_of_it_is_gone_or_another(folder: Path) -> None:
    record = provenance.read_record(folder / provenance.RECORD)
    assert is_whole(folder, record)
    file = folder / record.outputs[0].path
    data, times = file.read_bytes(), file.stat()
    file.unlink()
    assert not is_whole(folder, record)
    for wrong in (data[:-1], data + b"x"):
        file.write_bytes(wrong)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not is_whole(folder, record)
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert not is_whole(folder, record)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_whole(folder, record)


def test_an_artifact_whose_record_was_edited_is_not_whole(folder: Path) -> None:
    record = provenance.read_record(folder / provenance.RECORD)
    assert not is_whole(folder, record.model_copy(update={"partition": "another"}))
