"""A file that is opened when it is read is of the version that was opened, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.provenance import RECORD
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import opened
from gristmill.reading.generation import Generation
from gristmill.reasoning.read.shard_files import reopened
from tests.paths import open_below
from tests.reading.tiny import Tiny, tiny

__all__ = ["tiny"]


def known(folder: Path) -> Generation:
    _, found = opened(lambda opening: opening.folder(folder).check("a.bin"), "sizes")
    return found[(folder, RECORD)]


def read(generation: Generation, level: Verify = "sizes") -> bytes:
    with reopened(generation, RECORD, "a.bin", level) as path:
        return path.read_bytes()


def test_a_file_is_read_after_a_rebuild_with_an_equal_payload_and_no_other(tiny: Tiny) -> None:
    generation, descriptors = known(tiny.folder), open_below(tiny.root)
    assert read(generation) == b"0000"
    tiny.publish(1)
    with pytest.raises(StaleDataset, match=r"tiny/p: was rebuilt .*; now there is data version"):
        read(generation)
    tiny.publish(0)
    assert read(generation, "hash") == b"0000"
    (tiny.folder / "a.bin").write_bytes(b"0001")
    with pytest.raises(BadInput, match=r"a\.bin: does not have the sha256"):
        read(generation, "hash")
    (tiny.folder / "a.bin").unlink()
    with pytest.raises(BadInput, match=r"a\.bin: is missing: build the artifact again"):
        read(generation)
    assert open_below(tiny.root) == descriptors


def test_without_a_record_it_is_the_same_file(tiny: Tiny) -> None:
    (tiny.folder / RECORD).unlink()
    generation = known(tiny.folder)
    assert read(generation) == b"0000"
    stat = (tiny.folder / "a.bin").stat()
    os.utime(tiny.folder / "a.bin", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    with pytest.raises(StaleDataset, match=r"now a\.bin is another file"):
        read(generation)
    (tiny.folder / "a.bin").unlink()
    with pytest.raises(StaleDataset, match=r"now a\.bin is missing"):
        read(generation)


def test_errors_in_the_body_name_the_file(tiny: Tiny) -> None:
    with (
        pytest.raises(BadInput, match=r"tiny/p/a\.bin: cannot be read"),
        reopened(known(tiny.folder), RECORD, "a.bin", "sizes"),
    ):
        raise ValueError("broken")
