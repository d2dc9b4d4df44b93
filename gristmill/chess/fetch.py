"""One archive over HTTP: streamed, resumed where it broke off, retried with backoff.

What the bytes must be is decided by `unpack`; here only that the server's
answer is whole, is no web page, and is of one and the same file.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.chess.unpack import snippet
from gristmill.contract import GristmillError, NothingToBuild


class DownloadError(GristmillError):
    """The archive could not be had; the text says why and what to do."""


class NotPublished(NothingToBuild):
    """The server has no such archive, as for a month that is not published yet."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url}: not published (HTTP {status}); ask again later")
        self.url, self.status = url, status

    def __reduce__(self) -> tuple[type[NotPublished], tuple[str, int]]:
        return NotPublished, (self.url, self.status)


class _Again(Exception):
    """This attempt failed in a way that another may cure."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True)
class FetchConfig:
    """Patience and bounds. Seconds and bytes.

    attempts: how many may fail in a row without a new byte. backoff: wait after
    the first failure, doubled each time, at most a minute.
    """

    timeout: float = 30.0
    attempts: int = 5
    backoff: float = 1.0
    total_seconds: float = 6 * 3600.0
    max_bytes: int = 16 << 30
    user_agent: str = "gristmill-archive/1.0"

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.max_bytes < 1:
            raise ValueError("attempts, timeout and max_bytes must be positive")


@dataclass(frozen=True)
class Fetched:
    """How a download went."""

    url: str
    bytes: int
    etag: str
    last_modified: str
    requests: int
    resumed_bytes: int


_CHUNK = 1 << 20
_LONGEST_WAIT = 60.0


def _validators(headers: Any) -> dict[str, str]:
    return {"etag": headers.get("ETag", ""), "last_modified": headers.get("Last-Modified", "")}


def _if_range(state: dict[str, str]) -> str:
    """What ties a range to the file that we began with; a weak ETag cannot."""
    etag = state.get("etag", "")
    return etag if etag and not etag.startswith("W/") else state.get("last_modified", "")


def _load(partial: Path, url: str) -> dict[str, str]:
    try:
        state = json.loads(partial.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and state.get("url") == url else {}


def _open(url: str, partial: Path, have: int, state: dict[str, str], config: FetchConfig) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": config.user_agent})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", _if_range(state))
    try:
        return urllib.request.urlopen(request, timeout=config.timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (404, 410):
                raise NotPublished(url, error.code) from error
            if error.code == 416:
                # We have all of it, or more than there is: begin anew.
                partial.unlink()
                raise _Again("the server has no bytes beyond those we have") from error
            if error.code in (408, 425, 429) or error.code >= 500:
                told = error.headers.get("Retry-After", "")
                wait = min(float(told), _LONGEST_WAIT) if told.isdigit() else 0.0
                raise _Again(f"HTTP {error.code}", wait) from error
            raise DownloadError(f"{url}: HTTP {error.code} {error.reason}") from error


def _length(headers: Any) -> int | None:
    told = headers.get("Content-Length", "")
    return int(told) if told.isdigit() else None


def _attempt(
    url: str, partial: Path, config: FetchConfig, deadline: float
) -> tuple[int, dict[str, str]]:
    """One request: append what it gives to `partial`. Returns (bytes resumed from, validators)."""
    state = _load(partial, url)
    have = partial.stat().st_size if partial.exists() and _if_range(state) else 0
    with _open(url, partial, have, state, config) as answer:
        expected = _length(answer.headers)
        if answer.status == 206:
            told = answer.headers.get("Content-Range", "")
            if not told.startswith(f"bytes {have}-"):
                partial.unlink()
                raise _Again(f"the server answered with another range ({told!r})")
        else:
            have = 0
        if "html" in answer.headers.get("Content-Type", "").lower():
            head = answer.read(512)
            if not head.startswith(b"PK") and not have:
                raise DownloadError(
                    f"{url}: the server sent HTML, not ZIP: {snippet(head)!r}; look at the address"
                )
            raise _Again("the server changed its mind about the type of the file")
        state = {"url": url, **_validators(answer.headers)}
        partial.with_suffix(".json").write_text(json.dumps(state))
        got = 0
        with partial.open("r+b" if have else "wb", buffering=0) as file:
            file.seek(have)
            while piece := answer.read(_CHUNK):
                got += len(piece)
                if have + got > config.max_bytes:
                    raise DownloadError(f"{url}: is larger than {config.max_bytes} bytes")
                if time.monotonic() > deadline:
                    raise DownloadError(f"{url}: took more than {config.total_seconds:.0f} s")
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) :]
        if expected is not None and got < expected:
            raise _Again(f"the connection ended after {have + got} of {have + expected} bytes")
        return have, state


def fetch(
    url: str, partial: Path, config: FetchConfig, sleep: Callable[[float], None] = time.sleep
) -> Fetched:
    """Get `url` whole into the file `partial`, going on from what it holds of the same file.

    Beside it, `partial` with the suffix .json keeps the server's validators.
    Raises NotPublished for 404 and 410, DownloadError for everything that
    `attempts` attempts in a row without progress could not cure.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https addresses are fetched")
    deadline = time.monotonic() + config.total_seconds
    failures = requests = 0
    most = partial.stat().st_size if partial.exists() else 0
    while True:
        requests += 1
        try:
            have, state = _attempt(url, partial, config, deadline)
            size = partial.stat().st_size
            return Fetched(url, size, state["etag"], state["last_modified"], requests, have)
        except (_Again, OSError, http.client.HTTPException) as error:
            # Only bytes that we never had before are progress: a server that lies
            # about the length must not be asked for ever.
            now = partial.stat().st_size if partial.exists() else 0
            failures = 1 if now > most else failures + 1
            most = max(most, now)
            if failures >= config.attempts or time.monotonic() > deadline:
                raise DownloadError(
                    f"{url}: {error}, after {requests} requests; try again later"
                ) from error
            wait = min(config.backoff * 2 ** (failures - 1), _LONGEST_WAIT)
            sleep(max(wait, error.wait if isinstance(error, _Again) else 0.0))
