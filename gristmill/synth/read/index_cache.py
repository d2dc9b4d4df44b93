"""Where Megatron's index of a dataset is kept: it is made apart, and appears whole.

This module imports neither torch nor Megatron. Source: `docs/formats/synth.md#index-cache`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from gristmill.publish.atomic_fs import flush_all

FILES: Final = ("description.txt", "document_index.npy", "sample_index.npy", "shuffle_index.npy")


@contextmanager
def folder_of(cache: Path, key: str, files: Sequence[str] = FILES) -> Iterator[Path]:
    """Yield the cache where the index of a key is there, else an empty folder to make it in.

    cache: the folder of indices; made where it does not exist.
    key: what the names of the files begin with.
    files: how their names end; default: those of a dataset.

    The second process waits for the first. Where the body ends without an error, the files that it
    made are flushed and renamed into the cache. On a file system without locks several processes
    make the same files, and rename them over each other.
    """
    names = [f"{key}-{name}" for name in files]

    def is_whole() -> bool:
        return all((cache / name).is_file() for name in names)

    if is_whole():
        yield cache
        return
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f".{key}.lock") as is_alone:
        if is_whole():
            yield cache
            return
        begins = f".{key}-{socket.gethostname()}-"
        for left in list(cache.iterdir()) if is_alone else ():
            if left.name.startswith(begins):
                shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
        private = Path(tempfile.mkdtemp(prefix=begins, dir=cache))
        try:
            yield private
            flush_all([private / name for name in names])
            for name in names:
                (private / name).replace(cache / name)
        finally:
            shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Hold a lock file, which is removed at the end; False where there are no locks."""
    held = False
    with suppress(OSError), ExitStack() as stack:
        while not held:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            held = _leads_to(lock, descriptor)  # else its holder has removed it meanwhile
        closing = stack.pop_all()
    if not held:
        with suppress(OSError):
            lock.unlink()
        yield False
        return
    with closing:
        try:
            yield True
        finally:
            with suppress(OSError):
                lock.unlink()


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
