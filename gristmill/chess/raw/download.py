"""A month of the Lichess elite database in a folder, from the network or from a drop.

An archive is streamed, resumed where it stopped, and retried with longer waits. An unfinished
download is its bytes and, in a second file with the suffix .json, the server's validators: they
tell whether a later range belongs to the same file. `drops.py` judges the bytes.
Source: docs/formats/chess.md#archive and docs/formats/chess.md#download
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from gristmill.chess.config import ArchiveConfig, FetchConfig
from gristmill.chess.format.folders import SOURCE, pgn_name
from gristmill.chess.raw.drops import unpack_pgn
from gristmill.chess.raw.pgn_text import check_month, ending_of, snippet
from gristmill.contract import FileNote, GristmillError, NothingToBuild, Summary
from gristmill.hashing import sha256_file, sha256_of
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file

_READ_BYTES = 1 << 20
_LONGEST_WAIT = 60.0
_SHORTEST_PATIENCE = 0.1
_MOST_DIGITS = 12
_NOT_PUBLISHED = (404, 410)
_TRY_AGAIN = (408, 425, 429)


class DownloadError(GristmillError):
    """The archive could not be downloaded; the text says why and what to do."""


class NotPublished(NothingToBuild):
    """The server has no such archive: HTTP status 404 or 410. It may not be published yet."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url}: not published (HTTP {status}); try again later")
        self.url, self.status = url, status

    def __reduce__(self) -> tuple[type[NotPublished], tuple[str, int]]:
        return NotPublished, (self.url, self.status)


class _TryAgain(Exception):
    """This attempt failed, and another one may succeed."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True)
class Fetched:
    """The facts of a download; resumed_bytes: the size from which the last request continued."""

    url: str
    bytes: int
    etag: str
    last_modified: str
    requests: int
    resumed_bytes: int


def range_validator(state: dict[str, str]) -> str:
    """The validator for `If-Range`: the ETag unless it is weak, else Last-Modified, else empty."""
    etag = state.get("etag", "")
    return etag if etag and not etag.startswith("W/") else state.get("last_modified", "")


def _validators(headers: Any) -> dict[str, str]:
    """What an answer names to tell its file from another; it need not name any."""
    return {"etag": headers.get("ETag", ""), "last_modified": headers.get("Last-Modified", "")}


def load_state(part_file: Path, url: str) -> dict[str, str]:
    """The recorded `url`, `etag` and `last_modified`; empty if they belong to another URL."""
    try:
        state = json.loads(part_file.with_suffix(".json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(state, dict) or state.get("url") != url:
        return {}
    return {name: str(state.get(name, "")) for name in ("url", "etag", "last_modified")}


def _append_body(
    answer: Any,
    part_file: Path,
    have: int,
    expected: int | None,
    max_bytes: int,
    deadline: float,
    stage: Stage,
) -> int:
    """Write the body of an answer behind the first `have` bytes; return the bytes written."""
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
                rule = f"is larger than {max_bytes} bytes; look at the address"
                raise DownloadError(f"{answer.url}: {rule}")
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            if time.monotonic() > deadline:
                rule = f"took more time than allowed; run again to go on from byte {have + written}"
                raise DownloadError(f"{answer.url}: {rule}")
    return written


def _asked_wait(retry_after: str) -> float:
    """Seconds that a `Retry-After` asks for, as a number or a date; 0 for any other text."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:_MOST_DIGITS])
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    # A date without a zone is in UTC.
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _open(
    url: str, part_file: Path, have: int, state: dict[str, str], config: FetchConfig, timeout: float
) -> Any:
    """The answer of the server, or None where the stored bytes are complete."""
    request = urllib.request.Request(url, headers={"User-Agent": config.user_agent})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", range_validator(state))
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            headers = error.headers
            if error.code in _NOT_PUBLISHED:
                raise NotPublished(url, error.code) from error
            if error.code == 416:
                # If-Range was sent, so the size is that of the file that we have begun.
                if have and headers.get("Content-Range", "") == f"bytes */{have}":
                    return None
                # We have more bytes than the server, or it does not name its size.
                part_file.unlink(missing_ok=True)
                raise _TryAgain("the server has no bytes after those we have") from error
            if error.code in _TRY_AGAIN or error.code >= 500:
                wait = _asked_wait(headers.get("Retry-After", ""))
                raise _TryAgain(f"HTTP {error.code}", wait) from error
            rule = f"HTTP {error.code} {error.reason}; look at the address"
            raise DownloadError(f"{url}: {rule}") from error


def _attempt(
    url: str, part_file: Path, config: FetchConfig, deadline: float, stage: Stage
) -> tuple[int, dict[str, str]]:
    """Make one request and store what it gives: (bytes it resumed from, validators)."""
    state = load_state(part_file, url)
    have = part_file.stat().st_size if part_file.exists() and range_validator(state) else 0
    # A stalled server must not keep us after the deadline.
    timeout = max(_SHORTEST_PATIENCE, min(config.timeout, deadline - time.monotonic()))
    answer = _open(url, part_file, have, state, config, timeout)
    if answer is None:
        return have, state
    with answer:
        length = answer.headers.get("Content-Length", "")
        expected = int(length) if length.isdigit() else None
        if answer.status == 206:
            content_range, why = answer.headers.get("Content-Range", ""), ""
            named = _validators(answer.headers).items()
            if not content_range.startswith(f"bytes {have}-"):
                why = f"the server answered with another range ({content_range!r})"
            elif any(value and state.get(name, value) not in ("", value) for name, value in named):
                # A server that does not know If-Range sends the end of another file.
                why = "the file changed on the server"
            if why:
                part_file.unlink(missing_ok=True)
                raise _TryAgain(why)
        else:
            have = 0
        if "html" in answer.headers.get("Content-Type", "").lower():
            head = answer.read1(512)
            if not head.startswith(b"PK") and not have:
                rule = f"the server sent HTML, not ZIP: {snippet(head)!r}; look at the address"
                raise DownloadError(f"{url}: {rule}")
            raise _TryAgain("the server named another type for the same file")
        if not have:
            # In this order: new validators must never describe old bytes.
            part_file.write_bytes(b"")
            state = {"url": url, **_validators(answer.headers)}
            part_file.with_suffix(".json").write_text(json.dumps(state))
        most = config.max_bytes
        written = _append_body(answer, part_file, have, expected, most, deadline, stage)
        if expected is not None and written < expected:
            bytes_of = f"{have + written} of {have + expected} bytes"
            raise _TryAgain(f"the connection ended after {bytes_of}")
        return have, state


def fetch(
    url: str,
    part_file: Path,
    config: FetchConfig,
    sleep: Callable[[float], None] = time.sleep,
    *,
    progress: Progress = SILENT,
) -> Fetched:
    """Download a file whole, and continue from the bytes of an earlier attempt.

    Raises NotPublished for the status 404 and 410, DownloadError where the attempts or
    the time are used up and for every final answer of the server.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https addresses are fetched")
    deadline = time.monotonic() + config.total_seconds
    failures = requests = 0
    longest = part_file.stat().st_size if part_file.exists() else 0
    with progress.stage("download", unit="bytes") as stage:
        while True:
            requests += 1
            try:
                have, state = _attempt(url, part_file, config, deadline, stage)
                size = part_file.stat().st_size
                stage.move_to(size, size)
                return Fetched(url, size, state["etag"], state["last_modified"], requests, have)
            except (_TryAgain, OSError, http.client.HTTPException) as error:
                # Only bytes beyond the longest state are progress: a server that names a
                # wrong length must not hold the download for ever.
                size = part_file.stat().st_size if part_file.exists() else 0
                failures = 1 if size > longest else failures + 1
                longest = max(longest, size)
                if failures >= config.attempts or time.monotonic() > deadline:
                    rule = f"{error}, after {requests} requests; try again later"
                    raise DownloadError(f"{url}: {rule}") from error
                wait = min(config.backoff * 2 ** (failures - 1), _LONGEST_WAIT)
                wait = max(wait, error.wait if isinstance(error, _TryAgain) else 0.0)
                if time.monotonic() + wait > deadline:
                    rule = f"{error}, and the next request is due in {wait:.0f} s, after the "
                    rule += f"{config.total_seconds:.0f} s of a download: run again then"
                    raise DownloadError(f"{url}: {rule}") from error
                stage.say(f"{error}: request {requests + 1} from byte {size:,} in {wait:.0f} s")
                sleep(wait)


@dataclass(frozen=True)
class ArchiveSummary(Summary):
    """The facts of a raw month.

    origin: the URL, or the name of the drop. The sha256 are of the archive and of the PGN.
    """

    origin: str
    archive_bytes: int
    archive_sha256: str
    pgn_bytes: int
    pgn_sha256: str
    requests: int
    resumed_bytes: int


def _finish(
    out: Path,
    pgn: FileNote,
    month: str,
    origin: str,
    archive: tuple[int, str],
    fetched: Fetched | None,
) -> ArchiveSummary:
    record: dict[str, Any] = {
        "month": month,
        "origin": origin,
        "archive": {"bytes": archive[0], "sha256": archive[1]},
        "pgn": {"name": pgn_name(month), "bytes": pgn.bytes, "sha256": pgn.sha256},
    }
    if fetched:
        record["http"] = asdict(fetched)
    (out / SOURCE).write_text(json.dumps(record, indent=2))
    return ArchiveSummary(
        files={pgn_name(month): pgn, SOURCE: FileNote(payload=False)},
        origin=origin,
        archive_bytes=archive[0],
        archive_sha256=archive[1],
        pgn_bytes=record["pgn"]["bytes"],
        pgn_sha256=record["pgn"]["sha256"],
        requests=fetched.requests if fetched else 0,
        resumed_bytes=fetched.resumed_bytes if fetched else 0,
    )


def fetch_month(
    month: str,
    out: Path,
    config: ArchiveConfig = ArchiveConfig(),
    *,
    parts: PartStore | None = None,
    sleep: Callable[[float], None] = time.sleep,
    progress: Progress = SILENT,
) -> ArchiveSummary:
    """Download the archive of a month and unpack its PGN.

    month: `YYYY-MM`, from 2020-06 on.
    out: the folder to make.
    config: address, timeouts and limits.
    parts: where an unfinished download stays, so that the next attempt continues from
        it; None (the default) keeps nothing.
    sleep: waits so many seconds; `time.sleep` by default.
    progress: gets the stages "download" and "unpack", in bytes.

    Raises NotPublished where the server does not have the month, DownloadError where
    the download fails, BadInput for a wrong month or an archive that is refused.
    """
    url = config.url_template.format(month=check_month(month))
    out.mkdir()
    # The store of parts keeps a file with this suffix when the build fails.
    part_file = (parts.folder if parts else out) / "archive.zip.part"
    fetched = fetch(url, part_file, config.fetch, sleep, progress=progress)
    try:
        archive = (part_file.stat().st_size, sha256_file(part_file))
        pgn = unpack_pgn(
            part_file,
            out / pgn_name(month),
            config.limits,
            ending=".zip",
            month=month,
            progress=progress,
        )
    finally:
        # A complete archive is never resumed, also not one that was refused.
        part_file.unlink()
        part_file.with_suffix(".json").unlink(missing_ok=True)
    return _finish(out, pgn, month, url, archive, fetched)


def take_drop(
    drop: Path,
    out: Path,
    month: str,
    config: ArchiveConfig = ArchiveConfig(),
    *,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
) -> ArchiveSummary:
    """Unpack the PGN of a drop.

    drop: a `.zip`, `.pgn` or `.pgn.zst` file.
    out: the folder to make.
    month: `YYYY-MM`, from 2020-06 on.
    config: the limits count.
    links: what happens if the drop is a link; default: it is refused.
    progress: gets the stage "unpack", in bytes; how many is not known for zstd.

    Raises BadInput for a wrong month, another kind of file, a link, pipe or device, or a file
    that is refused.
    """
    check_month(month)
    ending = ending_of(drop)
    out.mkdir()
    pgn = unpack_pgn(
        drop,
        out / pgn_name(month),
        config.limits,
        links=links,
        ending=ending,
        month=month,
        progress=progress,
    )
    with open_file(drop, root=drop.parent, links=links, buffering=0) as file:
        digest, size = sha256_of(file), file.tell()
    return _finish(out, pgn, month, drop.name, (size, digest), None)
