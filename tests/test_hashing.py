"""sha256 of files, and files that their errors name."""

import errno
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from gristmill.hashing import HashedFile, NamedFile, kept, named_reader, sha256_file, sha256_of

BROKEN = Path("/proc/self/mem")
"""A regular file whose first byte no read gives: Linux answers EIO."""


def test_a_file_is_hashed_in_counted_reads_and_an_endless_one_is_not(tmp_path: Path) -> None:
    octets = os.urandom((1 << 20) + 5)
    file = tmp_path / "file"
    file.write_bytes(octets)
    counts: list[int] = []
    assert sha256_file(file, counts.append) == hashlib.sha256(octets).hexdigest()
    assert counts == [1 << 20, 5]
    with file.open("rb") as opened:
        opened.seek(7)
        assert sha256_of(opened) == hashlib.sha256(octets[7:]).hexdigest()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="no regular file") as raised:
            sha256_file(path)
        assert raised.value.filename == str(path)


def test_a_file_is_hashed_while_it_is_written_or_named_as_any_other(tmp_path: Path) -> None:
    numbers = np.arange(5, dtype="<i4")
    with HashedFile(tmp_path / "file") as file:
        assert file.write(b"begin") == 5
        assert file.write(numbers.data) == 20
        assert file.write(np.zeros(0, dtype=np.uint8).data) == 0
        assert file.write(b"") == 0
        assert (file.tell(), file.bytes, file.closed) == (25, 25, False)
        file.flush()
        assert (tmp_path / "file").stat().st_size == 25
    octets = b"begin" + numbers.tobytes()
    assert (tmp_path / "file").read_bytes() == octets
    assert file.sha256 == hashlib.sha256(octets).hexdigest()
    assert file.closed
    with pytest.raises(FileExistsError):
        HashedFile(tmp_path / "file")
    octets = b"one\n" + bytes(100_000)
    (tmp_path / "file").write_bytes(octets)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with named_reader(descriptor, tmp_path / "file") as file:
        assert (file.readline(), file.read(2), file.read()) == (b"one\n", bytes(2), octets[6:])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_write_that_takes_a_part_of_the_bytes_goes_on(tmp_path: Path) -> None:
    file = HashedFile(tmp_path / "file")
    whole = file._file

    class Slow:
        closed = False

        def write(self, data: memoryview) -> int:
            return whole.write(data[:3])

        def close(self) -> None:
            whole.close()

    file._file = Slow()  # type: ignore[assignment]
    with file:
        assert file.write(b"0123456789") == 10
    assert (tmp_path / "file").read_bytes() == b"0123456789"
    assert file.sha256 == hashlib.sha256(b"0123456789").hexdigest()


def test_an_error_of_reading_names_the_file() -> None:
    with pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
        sha256_file(BROKEN)
    for buffering in (0, -1):
        with named_reader(os.open(BROKEN, os.O_RDONLY), BROKEN, buffering) as file:
            for size in (1, 1 << 20, -1):
                with pytest.raises(OSError, match="Input/output error") as raised:
                    file.read(size)
                assert (raised.value.filename, raised.value.errno) == (str(BROKEN), errno.EIO)
    with NamedFile(BROKEN) as raw, pytest.raises(OSError, match="/proc/self/mem"):
        raw.readinto(bytearray(9))


def test_an_error_of_writing_names_the_file(tmp_path: Path) -> None:
    with NamedFile(Path("/dev/full"), "wb") as full, pytest.raises(OSError, match="'/dev/full'"):
        full.write(b"x")
    with HashedFile(tmp_path / "file") as file:
        file.write(b"x")
        os.dup2(os.open("/dev/full", os.O_WRONLY), file._file.fileno())
        with pytest.raises(OSError, match="No space left on device") as raised:
            file.write(b"y")
    assert raised.value.filename == str(tmp_path / "file")
    with NamedFile(tmp_path / "file") as read, pytest.raises(OSError, match="not open for writing"):
        read.write(b"x")  # no error of the machine, and so not another one


def test_a_file_is_read_once_until_it_changes_and_64_are_kept(tmp_path: Path) -> None:
    seen: list[str] = []

    def read(path: Path, of: str = "") -> bytes:
        seen.append(path.name + of)
        return path.read_bytes()

    files = [tmp_path / str(number) for number in range(64)]
    for file in files:
        file.write_bytes(b"a")
    assert [kept(read, file) for file in files * 2] == [b"a"] * 128
    assert seen == [file.name for file in files]
    os.utime(files[-1], ns=(0, 0))
    files[-2].unlink()
    files[-2].write_bytes(b"b")
    assert [kept(read, file) for file in (*files[-2:], files[10], files[0])] == [b"b", *[b"a"] * 3]
    assert [kept(read, files[-1], "y") for _ in range(2)] == [b"a"] * 2
    assert seen[64:] == ["62", "63", "0", "63y"]
    with pytest.raises(FileNotFoundError):
        kept(read, tmp_path / "gone")
