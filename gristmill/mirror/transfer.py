"""Moving the files of an artifact to a mirror and back, each hashed on its way."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

from gristmill.contract import BadInput
from gristmill.hashing import named_reader
from gristmill.mirror.published import damaged
from gristmill.mirror.store import PIECE, MirrorError, Store
from gristmill.mirror.versions import Version, again, files_of
from gristmill.provenance import Output, Record
from gristmill.reading.folder import OpenFolder
from gristmill.run.progress import Stage

T = TypeVar("T")

_TRIES: Final = 3
_AT_ONCE, _ARTIFACTS = 1_000, 4
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def transferring(
    store: Store, parallel: int, stage: Stage
) -> Iterator[tuple[Transfer, ThreadPoolExecutor]]:
    """A transfer of so many files at once, and the threads of the artifacts that share it.

    After an interrupt no thread begins a file, or goes on with one.
    """
    with ThreadPoolExecutor(parallel) as files, ThreadPoolExecutor(_ARTIFACTS) as artifacts:
        transfer = Transfer(store, files, stage)
        try:
            yield transfer, artifacts
        except BaseException:
            transfer.stopped.set()
            files.shutdown(wait=False, cancel_futures=True)
            artifacts.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class Transfer:
    """What moves files between one mirror and this host.

    threads: each takes one file at a time.
    stage: advanced by the bytes of what is at its end.
    stopped: set where no thread shall go on with its file.
    """

    store: Store
    threads: Executor
    stage: Stage
    stopped: Event = field(default_factory=Event)

    def send(self, folder: OpenFolder, record: Record, version: Version) -> int:
        """Make the mirror have the files of an open artifact; returns the bytes that it lacked.

        Raises BadInput where a file is not what the record says, MirrorError as the store.
        """
        return sum(self._each(lambda file: self._send(folder, version, file), files_of(record)))

    def _send(self, folder: OpenFolder, version: Version, file: Output) -> int:
        key = version.file(file)
        if self.store.holds(key, file.bytes, file.sha256):
            self._advance(file.bytes)
            return 0
        self.store.write(key, self._right(folder, file), file.bytes)
        return file.bytes

    def _right(self, folder: OpenFolder, file: Output) -> Iterator[bytes]:
        """The bytes of a file. Raises BadInput before its end where they are others."""
        shown, digest = folder.path / file.path, hashlib.sha256()
        try:
            descriptor = os.open(folder.inside / file.path, _FILE)
        except OSError as error:
            raise BadInput(shown, f"cannot be sent: {error.strerror}") from error
        with named_reader(descriptor, shown, buffering=0) as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise damaged(shown)
            while data := opened.read(PIECE):
                digest.update(data)
                self._advance(len(data))
                yield data
        if digest.hexdigest() != file.sha256:
            raise damaged(shown)

    def fetch(self, version: Version, record: Record, out: Path) -> None:
        """Fetch the files of a version into a folder; what a stopped pull left there is kept.

        Raises MirrorError where the mirror lacks a file, or gives other bytes three times.
        """
        self._each(lambda file: self._fetch(version, file, out / file.path), files_of(record))

    def _fetch(self, version: Version, file: Output, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        key = version.file(file)
        for _ in range(_TRIES):
            digest, size = hashlib.sha256(), 0
            with path.open("a+b") as target:
                target.seek(0)
                while data := target.read(PIECE):
                    digest.update(data)
                    size += len(data)
                self._advance(min(size, file.bytes))
                for piece in self.store.pieces(key, file.bytes, size):
                    digest.update(piece)
                    target.write(piece)
                    self._advance(len(piece))
            if digest.hexdigest() == file.sha256:
                os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
                return
            path.unlink()
        raise MirrorError(
            f"{self.store.url}: {key} has other bytes than its name says, {_TRIES} times: "
            f"{again(version)}"
        )

    def _advance(self, size: int) -> None:
        if self.stopped.is_set():
            raise MirrorError(f"{self.store.url}: was interrupted: do it again to go on")
        self.stage.advance(size)

    def _each(self, work: Callable[[Output], T], files: Sequence[Output]) -> list[T]:
        """What `work` returns of each file; no thread is at work on any when this ends."""
        done: list[T] = []
        for at in range(0, len(files), _AT_ONCE):
            begun = [self.threads.submit(work, file) for file in files[at : at + _AT_ONCE]]
            try:
                done += [each.result() for each in begun]
            finally:
                for each in begun:
                    each.cancel()
                wait(begun)
        return done
