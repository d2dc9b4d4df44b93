"""One folder through one handle: files of one version, compared with the record."""

import errno
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.provenance import RECORD, read_record
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import (
    LEVELS,
    FileIdentity,
    Generation,
    OpenFolder,
    Opening,
    damage_named,
    made_from_another,
    refuse_other,
    verify_level,
)
from gristmill.reading.folder import opened as together
from tests.paths import open_below
from tests.reading.tiny import tiny

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


def test_files_stay_those_of_the_version_that_was_opened(tiny):
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


def test_a_folder_that_is_gone_is_replaced(tiny):
    folder = opened(tiny.folder)
    tiny.folder.rename(tiny.root / "elsewhere")
    assert folder.replaced()
    with pytest.raises(BadInput, match="tiny/p: there is no such folder"):
        opened(tiny.folder)
    with pytest.raises(StaleDataset, match="now there is no such folder"):
        opened(tiny.folder, known=folder.generation())


def test_sizes_and_hashes_are_those_of_the_record(tiny):
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


def test_an_unlisted_file_and_a_changed_record_are_refused_from_sizes_on(tiny):
    (tiny.folder / "c.bin").write_bytes(b"x")
    assert opened(tiny.folder, "none").file("c.bin").read_bytes() == b"x"
    with pytest.raises(BadInput, match=r"c\.bin: is not in the provenance record"):
        opened(tiny.folder).file("c.bin")
    path = tiny.folder / RECORD
    path.write_bytes(read_record(path).model_copy(update={"asset": "other"}).to_bytes())
    assert opened(tiny.folder, "none").record is not None
    with pytest.raises(BadInput, match=r"provenance\.json: was changed after it was written"):
        opened(tiny.folder)


def test_pipes_and_folders_are_no_files(tiny):
    os.mkfifo(tiny.folder / "pipe")
    (tiny.folder / "sub").mkdir()
    folder = opened(tiny.folder, "none")
    for name in ("pipe", "sub"):
        with pytest.raises(BadInput, match=f"{name}: is not a file"):
            folder.file(name)
    assert folder.has("sub")
    assert not folder.has("a.bin/x")
    assert not folder.has("nothing")


def test_a_known_file_is_hashed_again_only_if_it_is_another(tiny):
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


def test_another_record_of_the_known_payload_is_proven_before_it_is_trusted(tiny):
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


def test_without_a_record_the_files_are_the_generation(tiny):
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


def test_an_artifact_knows_whether_it_was_made_from_another_version(tiny):
    derived = opened(tiny.derive())
    source = opened(tiny.folder)
    assert not made_from_another(derived, source)
    assert not made_from_another(source, derived)
    tiny.publish(1)
    assert made_from_another(derived, opened(tiny.folder))
    (tiny.folder / RECORD).unlink()
    assert not made_from_another(derived, opened(tiny.folder))


NAMES = {7: Path("data/p/a.npy"), 71: Path("data/p/b.npy")}


def raised(error: BaseException) -> BaseException:
    kind = type(error) if isinstance(error, GristmillError) else BadInput
    with pytest.raises(kind) as caught, damage_named(lambda: Path("data/p/now"), lambda: NAMES):
        raise error
    return caught.value


def test_descriptors_become_real_paths_and_errors_of_the_system_keep_their_reason():
    error = raised(BadInput("/proc/self/fd/71/x", "not as /proc/self/fd/7", 3))
    assert isinstance(error, BadInput)
    assert (error.file, error.rule, error.row) == ("data/p/b.npy/x", "not as data/p/a.npy", 3)
    assert str(error) == "data/p/b.npy/x:3: not as data/p/a.npy"
    assert str(raised(GristmillError("/proc/self/fd/8: no"))) == "/proc/self/fd/8: no"
    error = raised(OSError(errno.EIO, "Input/output error", "/proc/self/fd/7"))
    assert str(error).startswith("data/p/a.npy: cannot be read (Input/output error)")
    assert str(raised(OSError("strange"))).startswith(
        "data/p/now: cannot be read (OSError('strange')"
    )


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), IndexError(), sqlite3.DatabaseError("x"), struct.error("x"), EOFError()],
)
def test_errors_of_libraries_name_the_file_that_was_opened_last(error):
    assert str(raised(error)).startswith("data/p/now: cannot be read, it is damaged (")


def test_an_artifact_that_is_replaced_meanwhile_is_opened_again(tiny):
    seen = []

    def read(opening: Opening) -> tuple[bytes, bytes]:
        folder = opening.folder(tiny.folder)
        first = folder.file("a.bin").read_bytes()
        seen.append(first)
        if len(seen) == 1:
            tiny.publish(1)
        return first, folder.file("b.json").read_bytes()

    descriptors = open_below(tiny.root)
    result, generations = together(read, "sizes")
    assert seen == [b"0000", b"1111"]
    assert result == (b"1111", b"[1]")
    assert open_below(tiny.root) == descriptors
    assert together(read, "sizes", generations)[0] == result
    tiny.publish(0)
    with pytest.raises(StaleDataset, match="now there is data version"):
        together(read, "sizes", generations)


def test_an_artifact_that_is_always_replaced_is_given_up(tiny):
    calls = []

    def read(opening: Opening) -> None:
        opening.folder(tiny.folder)
        calls.append(0)
        tiny.folder.rename(tiny.root / f"old{len(calls)}")
        tiny.folder.mkdir()

    with pytest.raises(StaleDataset, match=r"tiny/p.* was replaced 20 times while it was opened"):
        together(read, "none")
    assert len(calls) == 20


def test_errors_name_the_real_files_and_are_of_gristmill(tiny):
    def read(error: type[Exception]) -> None:
        def failing(opening: Opening) -> None:
            path = opening.folder(tiny.folder).file("a.bin")
            raise error(f"{path}: broken")

        together(failing, "sizes")

    for kind in (ValueError, KeyError, AssertionError, OverflowError):
        with pytest.raises(BadInput) as caught:
            read(kind)
        assert str(caught.value).startswith(f"{tiny.folder / 'a.bin'}: cannot be read")
        assert "/proc/" not in str(caught.value)
        assert caught.value.file == str(tiny.folder / "a.bin")
    with pytest.raises(KeyboardInterrupt):
        read(KeyboardInterrupt)  # type: ignore[arg-type]


def test_a_first_opening_knows_that_it_is_first(tiny):
    def read(opening: Opening) -> bool:
        opening.folder(tiny.folder)
        assert opening.folder(tiny.folder) is opening.folder(Path(tiny.folder))
        return opening.first

    first, generations = together(read, "sizes")
    again, _ = together(read, "sizes", generations)
    assert (first, again) == (True, False)


def generation(digest: str | None, version: str | None = "v" * 64) -> Generation:
    return Generation(Path("data/p"), digest, version if digest else None, {})


def test_another_payload_is_refused_by_name_and_a_record_that_came_is_another_generation():
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
    for one, other in (("a" * 64, None), (None, "a" * 64)):
        with pytest.raises(StaleDataset, match="files without a record"):
            refuse_other(generation(one), generation(other))


def test_a_file_is_known_by_place_size_and_time_and_levels_stay(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"one")
    first = FileIdentity.of(file.stat())
    assert first == FileIdentity.of(file.stat())
    os.utime(file, ns=(0, first.mtime_ns + 1))
    assert FileIdentity.of(file.stat()) == first._replace(mtime_ns=first.mtime_ns + 1)
    assert (first.size, first.inode, first.device) == (3, file.stat().st_ino, file.stat().st_dev)
    assert [verify_level(level) for level in LEVELS] == ["none", "sizes", "hash"]
    assert (verify_level(True), verify_level(False)) == ("hash", "sizes")


@pytest.mark.parametrize("value", ["", "Hash", "size", 1, None])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="verify must be one of 'none', 'sizes', 'hash', not"):
        verify_level(value)  # type: ignore[arg-type]
