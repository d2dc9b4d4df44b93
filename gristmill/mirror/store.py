"""One store behind a URL, by obstore: objects that are written whole, read by pieces and listed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Without TLS only where the endpoint that a person set begins with http://.
_CLIENT: Final = {"timeout": "5min", "connect_timeout": "10s", "allow_http": True}
_RETRIES: Final = {"max_retries": 6}
_LISTINGS: Final = 3
PIECE: Final = 8 << 20
"""Bytes that are read and sent at once; in a bucket a larger file is sent in so many parts."""
_MOST_PARTS: Final = 9_000
MOST: Final = 64 << 20
"""Most bytes of a record in a mirror."""
HUB_SCHEME: Final = "hf://"
"""Begins the URL of a dataset repository, which is no mirror: see `hub.py`."""


class MirrorError(GristmillError):
    """A mirror that cannot be reached, or holds something else than it should."""


class Store:
    """The objects of one mirror. Safe to use from several threads.

    url: a folder, as a path or `file://...`, or `s3://bucket/prefix`, `gs://...`, `az://...`.
        Credentials and the endpoint come from the environment, as those clouds name them.
    make: whether a folder that is missing is made; default True. Who only reads makes none: it may
        be a wrong path, or below a disk that is not mounted.

    Raises MirrorError where the extra `mirror` is missing, no store has such a URL, or the folder
    is missing.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = url
        self.folder = _folder(url)
        self._objects = _opened(url, self.folder, make)

    def size(self, key: str) -> int | None:
        """The size of an object in bytes; None where there is none, or no regular file."""
        import obstore

        try:
            with self._errors(key):
                # The library would wait for who writes into a pipe, and follow a link out of here.
                if self.folder and not stat.S_ISREG(Path(self.folder, key).lstat().st_mode):
                    return None
                return int(obstore.head(self._objects, key)["size"])
        except FileNotFoundError:
            return None

    def holds(self, key: str, size: int, sha256: str) -> bool:
        """Whether there is an object of this size; in a folder, also whether it has the sha256.

        A bucket compares what it receives; a power loss leaves other bytes in a folder.
        """
        if self.size(key) != size:
            return False
        return self.folder is None or sha256_file(self.folder / key) == sha256

    def read(self, key: str) -> bytes:
        """The bytes of an object. Raises MirrorError where there is none, or more than 64 MiB."""
        size = self.size(key)
        if size is None or size > MOST:
            what = "is gone" if size is None else f"has {size:,} bytes, and {MOST:,} are read"
            raise MirrorError(f"{self.url}: {key}: {what}")
        return b"".join(self.pieces(key, size))

    def pieces(self, key: str, size: int, start: int = 0) -> Iterator[memoryview]:
        """The bytes of an object from `start` to `size`, 8 MiB at a time, and no more.

        Raises MirrorError where it is gone, or shorter.
        """
        import obstore

        if self.folder is not None and self.size(key) is None:
            raise MirrorError(f"{self.url}: {key}: is gone, or no regular file")
        for at in range(start, size, PIECE):
            end = min(size, at + PIECE)
            try:
                with self._errors(key):
                    yield memoryview(obstore.get_range(self._objects, key, start=at, end=end))
            except FileNotFoundError as error:
                raise MirrorError(f"{self.url}: {key}: is gone") from error

    def write(self, key: str, pieces: Iterable[bytes | memoryview], size: int) -> None:
        """Write an object whole, over one that is there; nothing where `pieces` raise an error."""
        import obstore

        is_small = size <= PIECE
        with self._errors(key):
            obstore.put(
                self._objects,
                key,
                b"".join(pieces) if is_small else iter(pieces),
                use_multipart=not is_small,
                chunk_size=max(PIECE, size // _MOST_PARTS),
                max_concurrency=2,
            )

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects below `prefix`, a path without a final slash."""
        import obstore

        with self._errors(prefix):
            for left in reversed(range(_LISTINGS)):
                try:
                    listed = obstore.list(self._objects, prefix=prefix, chunk_size=1000)
                    return [str(item["path"]) for some in listed for item in some]
                except obstore.exceptions.GenericError:
                    # obstore makes no request again whose answer was cut off in its middle.
                    if not left:
                        raise
        raise AssertionError

    def flush(self, keys: Iterable[str]) -> None:
        """Make objects of a folder survive a power loss; other stores do so by themselves."""
        if self.folder is None:
            return
        files = [self.folder / key for key in keys]
        above = {folder for file in files for folder in file.parents}
        inside = sorted((each for each in above if each.is_relative_to(self.folder)), reverse=True)
        for path in (*files, *inside):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def _errors(self, key: str) -> Generator[None]:
        """Name mirror and object in an error; let through that there is none."""
        import obstore

        try:
            yield
        except FileNotFoundError:
            raise
        except (obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise MirrorError(f"{self.url}: {key}: {_reason(error)}") from error


def _folder(url: str) -> Path | None:
    """The folder that a URL names, None for a URL of another kind. Raises MirrorError for none."""
    if not url.removeprefix("file://"):  # it would be the current folder
        raise MirrorError(f"the URL of the mirror is {url!r}: name a folder, or s3://bucket/prefix")
    if url.startswith("file://"):
        return Path(url.removeprefix("file://")).absolute()
    return None if "://" in url else Path(url).absolute()


def _opened(url: str, folder: Path | None, make: bool) -> ObjectStore:
    if url.startswith(HUB_SCHEME):
        repository = url.removeprefix(f"{HUB_SCHEME}datasets/")
        raise MirrorError(
            f"{url}: a dataset repository takes a push, and is no mirror to read: call `hf "
            f"download --repo-type dataset {repository} --local-dir ROOT`, then `gristmill verify "
            "--no-inputs ROOT`"
        )
    try:
        from obstore.store import LocalStore, from_url
    except ModuleNotFoundError as error:
        raise MirrorError(
            f"{url}: a mirror needs the extra `mirror`: pip install 'gristmill[mirror]' ({error})"
        ) from error
    import obstore

    if folder is not None and not make and not folder.is_dir():
        raise MirrorError(f"{url}: there is no such folder: a push makes one")
    try:
        if folder is not None:
            return LocalStore(folder, mkdir=make)
        # An S3 server compares each object with the sha256 that the client sends with it.
        s3 = {"checksum_algorithm": "SHA256"} if url.startswith(("s3://", "s3a://")) else {}
        options: dict[str, Any] = {"client_options": _CLIENT, "retry_config": _RETRIES, **s3}
        return from_url(url, **options)
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise MirrorError(
            f"{url}: no mirror can be here: name a folder, s3://bucket/prefix, gs://bucket/prefix "
            f"or az://account/container/prefix ({_reason(error)})"
        ) from error


def _reason(error: Exception) -> str:
    """The text of an error on one line, without the debug text that obstore adds."""
    return " ".join(str(error).partition("Debug source")[0].split())[:500]
