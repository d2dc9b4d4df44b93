"""Fetching the files of one version into a staging folder, and comparing every byte of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.mirror.layout import AGAIN, File, Manifest, object_key, sha256_of
from gristmill.mirror.store import MirrorError, Store, WrongObject
from gristmill.run.progress import Stage

_TRIES: Final = 3
_FILES: Final = 4
_NEW = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Fetcher:
    """Fetches parts by threads, which many artifacts share.

    threads: how many parts are fetched at once, and with the part size the memory that is taken.
    stage: advanced by the bytes of each part that is there.
    """

    def __init__(self, store: Store, threads: int, stage: Stage) -> None:
        self.store, self._stage = store, stage
        self._pool = ThreadPoolExecutor(threads)
        self._room = BoundedSemaphore(2 * threads)

    def close(self) -> None:
        """Wait for the threads to end."""
        self._pool.shutdown(cancel_futures=True)

    def fetch(self, manifest: Manifest, out: Path) -> None:
        """Make `out` hold the files of a manifest and nothing else.

        Raises MirrorError where the mirror lacks an object or gives other bytes three times,
        GristmillError where a file on the disk is not what was written.
        """
        out.mkdir(parents=True, exist_ok=True)
        _clear(out, manifest)
        with ThreadPoolExecutor(_FILES) as files:
            fetched = [
                files.submit(self._fetch, file, manifest.part_bytes, out / file.path)
                for file in manifest.files
            ]
            try:
                for future in fetched:
                    future.result()
            except BaseException:
                files.shutdown(cancel_futures=True)
                raise

    def _fetch(self, file: File, part_bytes: int, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _NEW, 0o644)
        waiting: list[Future[None]] = []
        try:
            old = os.fstat(descriptor).st_size
            if old != file.bytes:
                os.truncate(descriptor, file.bytes)
            for start, size, sha256 in file.sizes(part_bytes):
                self._room.acquire()
                kept = old > start
                future = self._pool.submit(self._part, descriptor, start, size, sha256, kept)
                future.add_done_callback(lambda _: self._room.release())
                waiting.append(future)
            for future in waiting:
                future.result()
        finally:
            for future in waiting:  # no thread writes to the descriptor after it is closed
                future.cancel() or future.exception()
            os.close(descriptor)
        # One part has been compared. Of several, the order and the number have not.
        if len(file.parts) != 1 or file.parts[0] != file.sha256:
            found = sha256_file(path)
            if found != file.sha256:
                path.unlink()
                raise GristmillError(
                    f"{path}: sha256 {found} after it was fetched, {file.sha256} by its manifest"
                )

    def _part(self, descriptor: int, start: int, size: int, sha256: str, kept: bool) -> None:
        if not (kept and sha256_of(os.pread(descriptor, size, start)) == sha256):
            data = self.object(sha256, size)
            view = memoryview(data)
            while view:
                written = os.pwrite(descriptor, view, start)
                view, start = view[written:], start + written
        self._stage.advance(size)

    def object(self, sha256: str, size: int) -> bytes:
        """The bytes of one object, as they should be.

        Raises MirrorError where it is gone or larger, or other bytes come three times.
        """
        key = object_key(sha256)
        for _ in range(_TRIES):
            try:
                data = self.store.read(key, size)
            except WrongObject as error:
                raise MirrorError(f"{error}: {AGAIN}") from error
            if data is None:
                raise MirrorError(f"{self.store.url}: {key} is gone: {AGAIN}")
            if len(data) == size and sha256_of(data) == sha256:
                return data
        raise MirrorError(
            f"{self.store.url}: {key} has other bytes than its name says, {_TRIES} times: {AGAIN}"
        )


def _clear(out: Path, manifest: Manifest) -> None:
    """Remove what is no file of the manifest, as of another version or a killed build."""
    wanted = {out / file.path for file in manifest.files}
    folders = {folder for path in wanted for folder in path.parents}
    for path in list(_below(out)):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and path not in folders:
            shutil.rmtree(path)
        elif not is_folder and (path not in wanted or not _is_regular(path)):
            path.unlink(missing_ok=True)


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, each folder before what is in it."""
    for entry in sorted(folder.iterdir()):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _below(entry)


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
