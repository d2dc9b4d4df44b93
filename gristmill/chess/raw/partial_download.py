"""What a download has got so far: its bytes, and beside them the server's validators.

The bytes lie in a file, the validators in another of the same name with the
suffix .json; they are what ties a later range to the file that we began with.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from gristmill.contract import GristmillError

_CHUNK = 1 << 20


class DownloadError(GristmillError):
    """The archive could not be had; the text says why and what to do."""


def if_range(state: dict[str, str]) -> str:
    """What ties a range to the file that we began with; a weak ETag cannot."""
    etag = state.get("etag", "")
    return etag if etag and not etag.startswith("W/") else state.get("last_modified", "")


def changed(state: dict[str, str], headers: Any) -> bool:
    """Whether an answer names other validators than those noted; it need not name any."""
    named = {"etag": headers.get("ETag", ""), "last_modified": headers.get("Last-Modified", "")}
    return any(state.get(name) and told and state[name] != told for name, told in named.items())


def load(partial: Path, url: str) -> dict[str, str]:
    """The url and validators noted beside `partial`; empty if they are not of this url."""
    try:
        noted = json.loads(partial.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(noted, dict) or noted.get("url") != url:
        return {}
    return {name: str(noted.get(name, "")) for name in ("url", "etag", "last_modified")}


def note(partial: Path, url: str, headers: Any) -> dict[str, str]:
    """Begin `partial` anew, empty, with the validators of an answer; returns what `load` will."""
    # In this order: the new validators must never vouch for old bytes.
    partial.write_bytes(b"")
    state = {
        "url": url,
        "etag": headers.get("ETag", ""),
        "last_modified": headers.get("Last-Modified", ""),
    }
    partial.with_suffix(".json").write_text(json.dumps(state))
    return state


def append(
    answer: Any,
    partial: Path,
    have: int,
    expected: int | None,
    most: int,
    deadline: float,
) -> int:
    """Write the body behind the `have` bytes of `partial` as it comes in; returns its bytes.

    Each piece is what one read of the socket gave, and is written before the
    next is waited for: so a timeout loses nothing. expected: bytes of the body,
    None where the server does not say. Raises DownloadError where the file would
    have more than `most` bytes, and beyond the deadline.
    """
    got = 0
    with partial.open("r+b", buffering=0) as file:
        file.seek(have)
        while expected is None or got < expected:
            piece = answer.read1(_CHUNK)
            if not piece:
                break
            got += len(piece)
            if have + got > most:
                raise DownloadError(f"{answer.url}: is larger than {most} bytes")
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
            if time.monotonic() > deadline:
                raise DownloadError(
                    f"{answer.url}: took more time than it may; ask again to go on from byte "
                    f"{have + got}"
                )
    return got
