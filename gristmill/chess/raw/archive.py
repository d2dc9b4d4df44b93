"""A month of the elite database into a folder: downloaded, or taken from a drop.

The folder holds `lichess_elite_<month>.pgn` and `source.json`, which says where
it came from with bytes and sha256 of the archive. Rules:
docs/formats/chess.md#archive.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gristmill.chess.config import ArchiveConfig
from gristmill.chess.format.names import SOURCE, pgn_name
from gristmill.chess.raw.download import Fetched, fetch
from gristmill.chess.raw.months import check_month
from gristmill.chess.raw.unpack import unpack_pgn, unpack_zip, unpack_zst
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.run.parts import PartStore


@dataclass(frozen=True)
class ArchiveSummary(Summary):
    """What was taken: archive and PGN bytes, their sha256, requests made, bytes resumed."""

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
    return ArchiveSummary(
        files={pgn.name: FileNote(), SOURCE: FileNote(payload=False)},
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
) -> ArchiveSummary:
    """Download a month's archive and unpack its PGN into the folder `out`.

    With `parts`, what a killed or failed download got stays in its folder, and
    the next one goes on from there if the server still has the same file.

    Raises NotPublished where the server has no such month (yet), DownloadError
    when attempts are used up, BadInput for a file that is no good archive.
    """
    url = config.url_template.format(month=check_month(month))
    out.mkdir()
    # Under the name of a part, which is kept when an attempt fails.
    partial = (parts.folder if parts else out) / "archive.zip.part"
    fetched = fetch(url, partial, config.fetch, sleep)
    try:
        archive = (partial.stat().st_size, sha256_file(partial))
        unpack_zip(partial, out / pgn_name(month), config.limits)
    finally:
        # Good or bad, a whole archive is not resumed: a bad one is fetched anew.
        partial.unlink()
        partial.with_suffix(".json").unlink(missing_ok=True)
    return _finish(out, month, url, archive, fetched)


def take_drop(
    drop: Path,
    out: Path,
    month: str,
    config: ArchiveConfig = ArchiveConfig(),
) -> ArchiveSummary:
    """Unpack the PGN of a `.zip`, `.pgn` or `.pgn.zst` drop into the folder `out`.

    Raises BadInput for another kind of file, and for one that is no good archive.
    """
    check_month(month)
    name = drop.name.lower()
    kinds = ((".zip", unpack_zip), (".pgn.zst", unpack_zst), (".pgn", unpack_pgn))
    unpack = next((function for ending, function in kinds if name.endswith(ending)), None)
    if unpack is None:
        raise BadInput(drop, "is neither .zip nor .pgn nor .pgn.zst")
    out.mkdir()
    unpack(drop, out / pgn_name(month), config.limits)
    return _finish(out, month, drop.name, (drop.stat().st_size, sha256_file(drop)), None)
