"""One folder through one handle: files of one version, compared with the record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.provenance import RECORD, read_record
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import OpenFolder, made_from_another
from gristmill.reading.generation import Generation
from tests.paths import open_below
from tests.reading.tiny import Tiny, tiny

__all__ = ["tiny"]

_OPEN: list[OpenFolder] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def opened(path: Path, level: Verify = "sizes", known: Generation | None = None) -> OpenFolder:
    folder = OpenFolder(path, level, RECORD, known)
    _OPEN.append(folder)
    folder.read_record()
    return folder


def test_files_stay_those_of_the_version_that_was_opened(tiny: Tiny) -> None:
    folder = opened(tiny.folder)
    held = folder.keep("a.bin")
    assert not folder.replaced()
    tiny.publish(1)
    assert folder.replaced()
    assert folder.file("a.bin").read_bytes() == b"0000"
    with pytest.raises(BadInput, match=r"tiny/p/b\.json: is missing"):
        folder.file("b.json")
    folder.close()
    with held.reading() as path:
        assert path.read_bytes() == b"0000"
    assert (tiny.folder / "a.bin").read_bytes() == b"1111"
    descriptors = open_below(tiny.root)
    del held
    assert open_below(tiny.root) == descriptors - 1


def test_a_folder_that_is_gone_is_replaced(tiny: Tiny) -> None:
    folder = opened(tiny.folder)
    tiny.folder.rename(tiny.root / "elsewhere")
    assert folder.replaced()
    with pytest.raises(BadInput, match="tiny/p: there is no such folder"):
        opened(tiny.folder)
    with pytest.raises(StaleDataset, match="now there is no such folder"):
        opened(tiny.folder, known=folder.generation())


def test_sizes_and_hashes_are_those_of_the_record(tiny: Tiny) -> None:
    file = tiny.folder / "a.bin"
    for octets, refusing in (
        (b"0001", {"hash"}),
        (b"00000", {"sizes", "hash"}),
        (b"000", {"none", "sizes", "hash"}),
        (b"0000", set()),
    ):
        file.write_bytes(octets)
        for level in ("none", "sizes", "hash"):
            folder = opened(tiny.folder, level)  # type: ignore[arg-type]
            if level in refusing:
                with pytest.raises(BadInput, match=r"a\.bin: (has \d bytes|does not have the sha)"):
                    folder.file("a.bin")
            else:
                assert folder.file("a.bin").read_bytes() == octets


def test_a_file_that_the_record_does_not_list_is_refused_from_sizes_on(tiny: Tiny) -> None:
    (tiny.folder / "c.bin").write_bytes(b"x")
    assert opened(tiny.folder, "none").file("c.bin").read_bytes() == b"x"
    with pytest.raises(BadInput, match=r"c\.bin: is not in the provenance record"):
        opened(tiny.folder).file("c.bin")


def test_a_record_that_was_changed_is_refused_from_sizes_on(tiny: Tiny) -> None:
    path = tiny.folder / RECORD
    path.write_bytes(read_record(path).model_copy(update={"asset": "other"}).to_bytes())
    assert opened(tiny.folder, "none").record is not None
    with pytest.raises(BadInput, match=r"provenance\.json: was changed after it was written"):
        opened(tiny.folder)


def test_pipes_and_folders_are_no_files(tiny: Tiny) -> None:
    os.mkfifo(tiny.folder / "pipe")
    (tiny.folder / "sub").mkdir()
    folder = opened(tiny.folder, "none")
    for name in ("pipe", "sub"):
        with pytest.raises(BadInput, match=f"{name}: is not a file"):
            folder.file(name)
    assert folder.has("sub")
    assert not folder.has("a.bin/x")
    assert not folder.has("nothing")


def test_a_known_file_is_hashed_again_only_if_it_is_another(tiny: Tiny) -> None:
    first = opened(tiny.folder, "hash")
    first.file("a.bin")
    known = first.finish()
    file = tiny.folder / "a.bin"
    before = file.stat()
    file.write_bytes(b"0001")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert opened(tiny.folder, "hash", known).file("a.bin").read_bytes() == b"0001"
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(BadInput, match="does not have the sha256"):
        opened(tiny.folder, "hash", known).file("a.bin")


def test_another_record_of_the_known_payload_is_proven_before_it_is_trusted(tiny: Tiny) -> None:
    first = opened(tiny.folder)
    first.file("a.bin")
    known = first.finish()
    tiny.publish(1)
    tiny.publish(0)
    again = opened(tiny.folder, "hash", known)
    assert again.file("a.bin").read_bytes() == b"0000"
    assert again.finish().digest != known.digest
    assert again.finish().data_version == known.data_version
    (tiny.folder / "b.json").write_bytes(b"[7]")
    with pytest.raises(BadInput, match=r"b\.json: does not have the sha256"):
        opened(tiny.folder, "hash", known).file("b.json")
    record = tiny.folder / RECORD
    record.write_text(record.read_text().replace('"bytes": 4', '"bytes": 3'))
    with pytest.raises(BadInput, match="was changed after it was written"):
        opened(tiny.folder, known=known)


def test_without_a_record_the_files_are_the_generation(tiny: Tiny) -> None:
    (tiny.folder / RECORD).unlink()
    folder = opened(tiny.folder)
    folder.file("a.bin")
    known = folder.finish()
    assert (known.digest, known.data_version, set(known.files)) == (None, None, {"a.bin"})
    assert folder.sha256("a.bin") is None
    again = opened(tiny.folder, known=known)
    assert again.file("a.bin").read_bytes() == b"0000"
    with pytest.raises(StaleDataset, match=r"now b\.json is another file"):
        again.file("b.json")
    (tiny.folder / "a.bin").unlink()
    with pytest.raises(StaleDataset, match=r"now a\.bin is missing"):
        opened(tiny.folder, known=known).file("a.bin")
    with pytest.raises(BadInput, match="has no provenance record"):
        opened(tiny.folder, "hash").finish()


def test_an_artifact_knows_whether_it_was_made_from_another_version(tiny: Tiny) -> None:
    derived = opened(tiny.derive())
    source = opened(tiny.folder)
    assert not made_from_another(derived, source)
    assert not made_from_another(source, derived)
    tiny.publish(1)
    assert made_from_another(derived, opened(tiny.folder))
    (tiny.folder / RECORD).unlink()
    assert not made_from_another(derived, opened(tiny.folder))
