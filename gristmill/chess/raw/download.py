"""One archive over HTTP: streamed, resumed where it broke off, retried with backoff.

What the bytes must be is decided by `unpack`; here only that the server's
answer is whole, is no web page, and is of one and the same file.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.chess.config import FetchConfig
from gristmill.chess.raw.partial_download import (
    DownloadError,
    append,
    changed,
    if_range,
    load,
    note,
)
from gristmill.chess.raw.unpack import snippet
from gristmill.contract import NothingToBuild

__all__ = ["DownloadError", "Fetched", "NotPublished", "fetch"]


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
class Fetched:
    """How a download went."""

    url: str
    bytes: int
    etag: str
    last_modified: str
    requests: int
    resumed_bytes: int


_LONGEST_WAIT = 60.0


def _open(
    url: str, partial: Path, have: int, state: dict[str, str], config: FetchConfig, patience: float
) -> Any:
    """The server's answer, or None where it says that what we have is all there is."""
    request = urllib.request.Request(url, headers={"User-Agent": config.user_agent})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", if_range(state))
    try:
        return urllib.request.urlopen(request, timeout=patience)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (404, 410):
                raise NotPublished(url, error.code) from error
            if error.code == 416:
                # If-Range holds: it is the file that we began with, and we have it all.
                if have and error.headers.get("Content-Range", "") == f"bytes */{have}":
                    return None
                # More than there is, or the server does not say: begin anew.
                partial.unlink(missing_ok=True)
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
    state = load(partial, url)
    have = partial.stat().st_size if partial.exists() and if_range(state) else 0
    # A stalled server is not waited for beyond the deadline.
    patience = max(0.1, min(config.timeout, deadline - time.monotonic()))
    answer = _open(url, partial, have, state, config, patience)
    if answer is None:
        return have, state
    with answer:
        expected = _length(answer.headers)
        if answer.status == 206:
            told = answer.headers.get("Content-Range", "")
            if not told.startswith(f"bytes {have}-"):
                partial.unlink(missing_ok=True)
                raise _Again(f"the server answered with another range ({told!r})")
            if changed(state, answer.headers):
                # A server that knows no If-Range sends the end of another file.
                partial.unlink(missing_ok=True)
                raise _Again("the file changed on the server")
        else:
            have = 0
        if "html" in answer.headers.get("Content-Type", "").lower():
            head = answer.read1(512)
            if not head.startswith(b"PK") and not have:
                raise DownloadError(
                    f"{url}: the server sent HTML, not ZIP: {snippet(head)!r}; look at the address"
                )
            raise _Again("the server changed its mind about the type of the file")
        if not have:
            state = note(partial, url, answer.headers)
        got = append(answer, partial, have, expected, config.max_bytes, deadline)
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
