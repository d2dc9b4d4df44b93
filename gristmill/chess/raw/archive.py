"""A month of the Lichess elite database in a folder, from the network or from a drop.

Source: docs/formats/chess.md#archive
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gristmill.chess.format.folders import SOURCE, pgn_name
from gristmill.chess.raw.archive_config import ArchiveConfig
from gristmill.chess.raw.download import Fetched, fetch
from gristmill.chess.raw.endings import ending_of
from gristmill.chess.raw.months import check_month
from gristmill.chess.raw.unpack import unpack_pgn
from gristmill.contract import FileNote, Summary
from gristmill.hashing import sha256_file, sha256_of
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file


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
    out: Path, month: str, origin: str, archive: tuple[int, str], fetched: Fetched | None
) -> ArchiveSummary:
    pgn = out / pgn_name(month)
    record: dict[str, Any] = {
        "month": month,
        "origin": origin,
        "archive": {"bytes": archive[0], "sha256": archive[1]},
        "pgn": {"name": pgn.name, "bytes": pgn.stat().st_size, "sha256": sha256_file(pgn)},
    }
    if fetched:
        record["http"] = asdict(fetched)
    (out / SOURCE).write_text(json.dumps(record, indent=2))
    hashed = FileNote(sha256=record["pgn"]["sha256"], bytes=record["pgn"]["bytes"])
    return ArchiveSummary(
        files={pgn.name: hashed, SOURCE: FileNote(payload=False)},
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
    parts: where an unfinished download stays, so that the next attempt goes on from
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
        pgn = out / pgn_name(month)
        unpack_pgn(part_file, pgn, config.limits, ending=".zip", month=month, progress=progress)
    finally:
        # A complete archive is never resumed, also not one that was refused.
        part_file.unlink()
        part_file.with_suffix(".json").unlink(missing_ok=True)
    return _finish(out, month, url, archive, fetched)


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
    unpack_pgn(
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
    return _finish(out, month, drop.name, (size, digest), None)
