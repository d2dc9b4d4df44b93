"""Sending the files of one artifact to a mirror: part by part, each hashed before it is sent."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore, Lock

from gristmill.contract import BadInput
from gristmill.mirror.layout import File, object_key, sha256_of
from gristmill.mirror.published import damaged
from gristmill.mirror.store import MirrorError, Store, WrongObject
from gristmill.run.progress import Stage

_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Source:
    """A file that is sent: where it is read, its path for messages, and what its record says."""

    opened: Path
    shown: Path
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Known:
    """What an earlier version of an artifact lists.

    files: by sha256, cut into parts of the same size, which need not be computed again.
    """

    files: Mapping[str, File] = field(default_factory=dict)
    parts: Collection[str] = ()


@dataclass(frozen=True)
class _Object:
    """A part on its way: see `Sender.place`."""

    sha256: str
    size: int
    read: Callable[[], bytes]
    known: Collection[str]


@dataclass
class Sent:
    """What sending an artifact did: bytes that the mirror did not have, and keys it needs."""

    bytes: int = 0
    keys: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def note(self, key: str, sent: int) -> None:
        """Count one object."""
        with self.lock:
            self.keys.append(key)
            self.bytes += sent


class Sender:
    """Sends parts by threads, which many artifacts share.

    threads: how many parts are sent at once, and with the part size the memory that is taken.
    part_bytes: bytes of a part.
    read_back: read each object after it was found or written, and compare its sha256. Else this is
        done once for those that were found, and that the newest version does not name.
    stage: advanced by the bytes of each part that is there.
    """

    def __init__(
        self, store: Store, threads: int, part_bytes: int, read_back: bool, stage: Stage
    ) -> None:
        self.store, self.part_bytes, self.read_back = store, part_bytes, read_back
        self._stage = stage
        self._right: set[str] = set()  # compared, or written, by this sender
        self._turns: dict[str, Lock] = {}  # files may have parts in common: each is sent once
        self._pool = ThreadPoolExecutor(threads)
        # A part is in memory only while it has one of these, from before it is read.
        self._room = BoundedSemaphore(threads)

    def close(self) -> None:
        """Wait for the threads to end."""
        self._pool.shutdown(cancel_futures=True)

    def send(self, sources: Sequence[Source], known: Known, sent: Sent) -> Iterator[File]:
        """Send files that lie in one open folder, and yield how the manifest lists them.

        Raises BadInput where a file is not what its record says, MirrorError as the store. When
        this ends, in either way, no thread reads any of the files.
        """
        waiting: list[Future[None]] = []
        files = []
        try:
            for source in sources:
                files.append(self._send(source, known, sent, waiting))
                waiting = [future for future in waiting if not _is_done(future)]
            for future in waiting:
                future.result()
        finally:
            for future in waiting:
                future.cancel() or future.exception()
        yield from files

    def _send(self, source: Source, known: Known, sent: Sent, waiting: list[Future[None]]) -> File:
        def listed(parts: list[str]) -> File:
            return File(path=source.path, bytes=source.size, sha256=source.sha256, parts=parts)

        if 0 < source.size <= self.part_bytes:
            # Its only part has its name: the file is read only where the mirror lacks it.
            self._room.acquire()
            place = _Object(source.sha256, source.size, lambda: _whole(source), known.parts)
            waiting.append(self._run(place, sent))
            return listed([source.sha256])
        same = known.files.get(source.sha256)
        if same is not None and self._has(listed(same.parts), sent):
            return listed(same.parts)
        parts, digest = [], hashlib.sha256()
        with _opened(source) as descriptor:
            for start in range(0, source.size, self.part_bytes):
                self._room.acquire()
                data = _part(descriptor, start, min(self.part_bytes, source.size - start), source)
                digest.update(data)
                parts.append(sha256_of(data))
                place = _Object(parts[-1], len(data), _giving(data), known.parts)
                waiting.append(self._run(place, sent))
        if digest.hexdigest() != source.sha256:
            raise damaged(source.shown)
        return listed(parts)

    def _has(self, file: File, sent: Sent) -> bool:
        """Whether the mirror has all parts of a file that an earlier version lists."""
        sizes = list(file.sizes(self.part_bytes))
        if self.read_back or len(sizes) != -(-file.bytes // self.part_bytes):
            return False
        there = self._pool.map(lambda part: self.store.size(object_key(part[2])), sizes)
        if [size for _, size, _ in sizes] != list(there):
            return False
        for _, size, sha256 in sizes:
            sent.note(object_key(sha256), 0)
            self._stage.advance(size)
        return True

    def _run(self, item: _Object, sent: Sent) -> Future[None]:
        """Give an object to a thread; the room that the caller took is free after it."""
        future = self._pool.submit(self.place, item.sha256, item.size, item.read, sent, item.known)
        future.add_done_callback(lambda _: self._room.release())
        return future

    def place(
        self,
        sha256: str,
        size: int,
        read: Callable[[], bytes],
        sent: Sent,
        known: Collection[str] = (),
    ) -> None:
        """Make the mirror have one object.

        `read` is called only where the mirror lacks it or has another. Objects that are `known` are
        not compared where they are found. Raises MirrorError where the mirror gives other bytes
        back, and what `read` raises.
        """
        key = object_key(sha256)
        with self._turns.setdefault(sha256, Lock()):
            there = sha256 in self._right or (
                self.store.size(key) == size
                and ((sha256 in known and not self.read_back) or not self._differs(sha256, size))
            )
            if not there:
                self.store.write(key, read())
                if self.read_back and self._differs(sha256, size):
                    raise MirrorError(f"{self.store.url}: {key}: gives other bytes than were sent")
            self._right.add(sha256)
        sent.note(key, 0 if there else size)
        self._stage.advance(size)

    def gives(self, sha256: str, size: int) -> bool:
        """Whether the mirror gives the bytes of an object of this size."""
        return not self._differs(sha256, size)

    def _differs(self, sha256: str, size: int) -> bool:
        try:
            data = self.store.read(object_key(sha256), size)
        except WrongObject:
            return True
        return data is None or sha256_of(data) != sha256


def _giving(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _is_done(future: Future[None]) -> bool:
    """Whether a part is there. Raises what sending it raised."""
    if not future.done():
        return False
    future.result()
    return True


@contextmanager
def _opened(source: Source) -> Iterator[int]:
    try:
        descriptor = os.open(source.opened, _FILE)
    except OSError as error:
        raise BadInput(source.shown, f"cannot be sent: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size != source.size:
            raise damaged(source.shown)
        yield descriptor
    finally:
        os.close(descriptor)


def _whole(source: Source) -> bytes:
    with _opened(source) as descriptor:
        data = _part(descriptor, 0, source.size, source)
    if sha256_of(data) != source.sha256:
        raise damaged(source.shown)
    return data


def _part(descriptor: int, start: int, size: int, source: Source) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = os.pread(descriptor, size, start)
        if not piece:
            raise damaged(source.shown)
        pieces.append(piece)
        start, size = start + len(piece), size - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
