"""One store behind a URL: objects that are written whole, created once, read and listed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Without TLS only where the endpoint that a person set begins with http://.
_CLIENT: Final = {"timeout": "5min", "connect_timeout": "10s", "allow_http": True}
_RETRIES: Final = {"max_retries": 6}
_LISTINGS: Final = 3
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
MOST: Final = 64 << 20
"""Most bytes of an object of which no manifest states the size: a manifest, or a version."""
HUB_SCHEME: Final = "hf://"
"""Begins the URL of a dataset repository, which is no mirror: see `hub/push.py`."""


class MirrorError(GristmillError):
    """A mirror that cannot be reached, or holds something else than it should."""


class WrongObject(MirrorError):
    """An object that is not read: it is larger than it may be, or no regular file."""


class Store:
    """The objects of one mirror. Safe to use from several threads.

    url: a folder, as a path or `file://...`, or `s3://bucket/prefix`, `gs://...`, `az://...`.
        Credentials and the endpoint come from the environment, as those clouds name them.
    client: options of the HTTP client in place of the defaults; default none.
    retries: options of its retries in place of the defaults; default none.
    make: whether a folder that is missing is made; default True. Who only reads makes none: it may
        be a wrong path, or below a disk that is not mounted.

    Raises MirrorError where the extra `mirror` is missing, no store has such a URL, or the folder
    is missing.
    """

    def __init__(
        self,
        url: str,
        *,
        client: Mapping[str, Any] | None = None,
        retries: Mapping[str, Any] | None = None,
        make: bool = True,
    ) -> None:
        self.url = url
        self.folder = _folder(url)
        self._objects = _opened(
            url, self.folder, make, {**_CLIENT, **(client or {})}, {**_RETRIES, **(retries or {})}
        )

    def read(self, key: str, most: int = MOST) -> bytes | None:
        """The bytes of an object, None where there is none.

        most: bytes that it may have; default 64 MiB.

        Raises WrongObject for a larger one, and for a link, a pipe or the like in a folder.
        """
        import obstore

        try:
            with self._errors(key):
                if self.folder is not None:
                    return self._read_file(key, most)
                found = obstore.get(self._objects, key)
                self._check_size(key, found.meta["size"], most)
                return bytes(found.bytes())
        except FileNotFoundError:
            return None

    def _read_file(self, key: str, most: int) -> bytes:
        # The library would wait for who writes into a pipe, and follow a link out of the folder.
        path = Path(str(self.folder), key)
        if stat.S_ISREG(path.lstat().st_mode):
            with open(path, "rb", opener=lambda name, _: os.open(name, _FILE)) as file:
                found = os.fstat(file.fileno())
                if stat.S_ISREG(found.st_mode):
                    self._check_size(key, found.st_size, most)
                    return file.read(most)
        raise WrongObject(f"{self.url}: {key}: is no regular file, and is not read")

    def _check_size(self, key: str, size: int, most: int) -> None:
        if size > most:
            raise WrongObject(
                f"{self.url}: {key}: has {size:,} bytes, and {most:,} at most are read"
            )

    def size(self, key: str) -> int | None:
        """The size of an object in bytes, None where there is none."""
        import obstore

        try:
            with self._errors(key):
                return int(obstore.head(self._objects, key)["size"])
        except FileNotFoundError:
            return None

    def write(self, key: str, data: bytes) -> None:
        """Write an object whole, over one that is there. Readers see the old or the new one."""
        import obstore

        with self._errors(key):
            obstore.put(self._objects, key, data, use_multipart=False)

    def create(self, key: str, data: bytes) -> bool:
        """Write an object whole where there is none; False where one is there.

        The answer may be lost after the object was written. The library then tries again and finds
        it: who creates compares what is there with what it wrote.
        """
        import obstore

        if self.folder is not None:
            with self._errors(key):
                return _created(self.folder / key, data)
        try:
            with self._errors(key):
                obstore.put(self._objects, key, data, mode="create", use_multipart=False)
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

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
        folders: set[Path] = set()
        for key in keys:
            path = self.folder / key
            _flush(path)
            folders.update(folder for folder in path.parents if folder.is_relative_to(self.folder))
        for folder in sorted(folders, reverse=True):
            _flush(folder)

    @contextmanager
    def _errors(self, key: str) -> Generator[None]:
        """Name mirror and object in an error; let through that there is one, or none."""
        import obstore

        try:
            yield
        except (FileNotFoundError, obstore.exceptions.AlreadyExistsError):
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


def _opened(
    url: str, folder: Path | None, make: bool, client: dict[str, Any], retries: dict[str, Any]
) -> ObjectStore:
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
        options: dict[str, Any] = {"client_options": client, "retry_config": retries, **s3}
        return from_url(url, **options)
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise MirrorError(
            f"{url}: no mirror can be here: name a folder, s3://bucket/prefix, gs://bucket/prefix "
            f"or az://account/container/prefix ({_reason(error)})"
        ) from error


def _reason(error: Exception) -> str:
    """The text of an error on one line, without the debug text that obstore adds."""
    return " ".join(str(error).partition("Debug source")[0].split())[:500]


def _created(path: Path, data: bytes) -> bool:
    """Create a file that survives a power loss whole, or not at all; False where one is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The ending is that of the library's unfinished files, which no listing has.
    written = path.with_name(f"{path.name}#{secrets.randbits(63)}")
    try:
        with written.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(written)
    except FileExistsError:
        return False
    finally:
        written.unlink(missing_ok=True)
    _flush(path.parent)
    return True


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
