"""An unfinished download on disk: its bytes, and the server's validators in a second file.

The validators have the name of the part file with the suffix .json. They tell
whether a later range belongs to the same file.
Rules: docs/formats/chess.md#partial-downloads
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from gristmill.contract import GristmillError
from gristmill.run.progress import Stage

_READ_BYTES = 1 << 20


class DownloadError(GristmillError):
    """The archive could not be downloaded; the text says why and what to do."""


def range_validator(state: dict[str, str]) -> str:
    """The validator for `If-Range`: the ETag unless it is weak, else Last-Modified, else empty."""
    etag = state.get("etag", "")
    return etag if etag and not etag.startswith("W/") else state.get("last_modified", "")


def is_other_file(state: dict[str, str], headers: Any) -> bool:
    """Whether an answer names other validators than the recorded ones; it need not name any."""
    named = {"etag": headers.get("ETag", ""), "last_modified": headers.get("Last-Modified", "")}
    return any(state.get(name) and value and state[name] != value for name, value in named.items())


def load_state(part_file: Path, url: str) -> dict[str, str]:
    """The recorded `url`, `etag` and `last_modified`; empty if they belong to another URL.

    part_file: the bytes of the unfinished download.
    url: the address that is to be fetched.
    """
    try:
        state = json.loads(part_file.with_suffix(".json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(state, dict) or state.get("url") != url:
        return {}
    return {name: str(state.get(name, "")) for name in ("url", "etag", "last_modified")}


def start_over(part_file: Path, url: str, headers: Any) -> dict[str, str]:
    """Empty the part file and record the validators of an answer.

    Returns the state as `load_state` will.
    """
    # In this order: new validators must never describe old bytes.
    part_file.write_bytes(b"")
    state = {
        "url": url,
        "etag": headers.get("ETag", ""),
        "last_modified": headers.get("Last-Modified", ""),
    }
    part_file.with_suffix(".json").write_text(json.dumps(state))
    return state


def append_body(
    answer: Any,
    part_file: Path,
    have: int,
    expected: int | None,
    max_bytes: int,
    deadline: float,
    stage: Stage,
) -> int:
    """Write the body of an answer after the bytes that the part file has.

    expected: bytes of the body, None where the server does not say.

    Returns the bytes written.
    Raises DownloadError where the file would be larger than `max_bytes`, and after
    the deadline.
    """
    written = 0
    with part_file.open("r+b", buffering=0) as file:
        file.seek(have)
        while expected is None or written < expected:
            # What one read of the socket gave is written before the next read, so
            # that a timeout loses nothing.
            data = answer.read1(_READ_BYTES)
            if not data:
                break
            written += len(data)
            stage.move_to(have + written, None if expected is None else have + expected)
            if have + written > max_bytes:
                raise DownloadError(
                    f"{answer.url}: is larger than {max_bytes} bytes; look at the address"
                )
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            if time.monotonic() > deadline:
                raise DownloadError(
                    f"{answer.url}: took more time than allowed; run again to go on from byte "
                    f"{have + written}"
                )
    return written
