"""sha256 of files, of those that are read and of those that are being written."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_READ_BYTES = 1 << 20
_MOST_KEPT: Final = 64
_KEPT: Final[dict[tuple[object, ...], Any]] = {}
_Found = TypeVar("_Found")


def kept(read: Callable[..., _Found], path: Path, *facts: object) -> _Found:
    """What `read` gives of a file, read once a process while the file does not change.

    A change of the file's inode, size or times is a change. The last 64 are kept.

    facts: further arguments, which `repr` tells apart.
    """
    try:
        found = path.stat()
    except OSError:
        return read(path, *facts)  # which says so in its words
    stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    key = (read, path, stamp, repr(facts))
    if key in _KEPT:
        return cast("_Found", _KEPT[key])
    made = read(path, *facts)
    while len(_KEPT) >= _MOST_KEPT:
        _KEPT.pop(next(iter(list(_KEPT))), None)
    _KEPT[key] = made
    return made


class NamedFile(FileIO):
    """An unbuffered file whose errors of reading and writing name it, as those of opening do.

    descriptor: of the open file; default None: it is opened.
    """

    def __init__(self, path: Path, mode: str = "rb", descriptor: int | None = None) -> None:
        super().__init__(path if descriptor is None else descriptor, mode)
        self._path = path

    def read(self, size: int | None = -1, /) -> bytes:
        """As FileIO."""
        with named_errors(self._path):
            return super().read(-1 if size is None else size)

    def readall(self) -> bytes:
        """As FileIO."""
        with named_errors(self._path):
            return super().readall()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """As FileIO."""
        with named_errors(self._path):
            return super().readinto(buffer)

    def write(self, data: ReadableBuffer, /) -> int:
        """As FileIO."""
        with named_errors(self._path):
            return super().write(data)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Raise each OSError within with the path of its file, as reading and flushing do not."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def named_reader(descriptor: int, path: Path, buffering: int = -1) -> BinaryIO:
    """A file that is open for reading, and closes the descriptor; its errors name it."""
    file = NamedFile(path, "rb", descriptor)
    return cast(BinaryIO, BufferedReader(file) if buffering else file)


def sha256_file(path: Path, advance: Callable[[int], None] | None = None) -> str:
    """Hex sha256 of a file's bytes, read 1 MiB at a time.

    advance: called with the bytes read, for progress; default None.

    Raises OSError where it is something else: reading a pipe or device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with named_reader(descriptor, path, buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return sha256_of(file, advance)


def sha256_sources(folder: Path) -> str:
    """Hex sha256 of the names and bytes of all Python sources of a package."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def sha256_of(file: BinaryIO | RawIOBase, advance: Callable[[int], None] | None = None) -> str:
    """Hex sha256 of the bytes of an open file from its position on, read 1 MiB at a time."""
    digest = hashlib.sha256()
    while data := file.read(_READ_BYTES):
        digest.update(data)
        if advance is not None:
            advance(len(data))
    return digest.hexdigest()


class HashedFile:
    """A new file that is written from its beginning to its end, and hashed meanwhile.

    Give `sha256` and `bytes` to the file's note: the publisher need not read the
    file again. Use it as a context manager, or as the sink of a library that only
    appends. Raises FileExistsError where there is a file, OSError as writing does.
    """

    def __init__(self, path: Path) -> None:
        self._file = NamedFile(path, "xb")
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append all of `data`; return its size in bytes."""
        view = memoryview(data)
        size = view.nbytes
        if not size:
            return 0  # a view of no items cannot be cast
        view = view.cast("B")
        self._digest.update(view)
        while view:
            view = view[self._file.write(view) :]
        self.bytes += size
        return size

    @property
    def sha256(self) -> str:
        """Hex sha256 of what was written so far."""
        return self._digest.hexdigest()

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file.closed

    def tell(self) -> int:
        """How many bytes were written."""
        return self.bytes

    def flush(self) -> None:
        """Nothing waits: every write reaches the system at once."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
