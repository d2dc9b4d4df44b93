"""Generations are compared by their records, and named in errors."""

import os
from pathlib import Path

import pytest

from gristmill.reading.generation import (
    LEVELS,
    FileIdentity,
    Generation,
    StaleDataset,
    refuse_other,
    verify_level,
)


def generation(digest: str | None, version: str | None = "v" * 64) -> Generation:
    return Generation(Path("data/p"), digest, version if digest else None, {})


def test_another_payload_is_refused_by_name_and_another_record_of_it_is_not():
    refuse_other(generation("a" * 64), generation("a" * 64))
    refuse_other(generation("a" * 64), generation("b" * 64))
    refuse_other(generation(None), generation(None))
    with pytest.raises(StaleDataset) as caught:
        refuse_other(generation("a" * 64, "1" * 64), generation("b" * 64, "2" * 64))
    assert str(caught.value) == (
        "data/p: was rebuilt or changed after this dataset was opened: it was opened on data"
        " version 111111111111, record aaaaaaaaaaaa; now there is data version 222222222222,"
        " record bbbbbbbbbbbb: open the dataset again"
    )


def test_a_record_that_came_or_went_is_another_generation():
    for one, other in (("a" * 64, None), (None, "a" * 64)):
        with pytest.raises(StaleDataset, match="files without a record"):
            refuse_other(generation(one), generation(other))


def test_a_file_is_known_by_place_size_and_time(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"one")
    first = FileIdentity.of(file.stat())
    assert first == FileIdentity.of(file.stat())
    os.utime(file, ns=(0, first.mtime_ns + 1))
    assert FileIdentity.of(file.stat()) == first._replace(mtime_ns=first.mtime_ns + 1)
    assert (first.size, first.inode, first.device) == (3, file.stat().st_ino, file.stat().st_dev)


def test_levels_stay_and_truth_values_have_one():
    assert [verify_level(level) for level in LEVELS] == ["none", "sizes", "hash"]
    assert (verify_level(True), verify_level(False)) == ("hash", "sizes")


@pytest.mark.parametrize("value", ["", "Hash", "size", 1, None])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="verify must be one of 'none', 'sizes', 'hash', not"):
        verify_level(value)  # type: ignore[arg-type]
