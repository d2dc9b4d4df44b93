"""The configs of the chess archive and of collections: address, download, limits, encoding."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from gristmill.settings.fields import NO_EFFECT, Checked, Ge, Gt, Help, Positive

# Where the Lichess elite database is.
URL_TEMPLATE = "https://database.nikonoel.fr/lichess_elite_{month}.zip"
VARIABLE = "GRISTMILL_ELITE_ARCHIVE"
"""The environment variable with the folder of another server."""
COLLECTIONS: Final = "chess_collections"
"""The dynamic partitions of chess: the months of the archive, and a key for each collection."""


@dataclass(frozen=True)
class FetchConfig(Checked):
    """Timeouts and limits of a download (docs/formats/chess.md#download)."""

    timeout: Annotated[float, Gt(0), Help("Seconds for one read.")] = 30.0
    attempts: Annotated[Positive, Help("Attempts in a row without a new byte.")] = 5
    backoff: Annotated[
        float, Ge(0), Help("Seconds to wait after a failure, doubled each time.")
    ] = 1.0
    total_seconds: Annotated[float, Gt(0), Help("Seconds for the whole download.")] = 6 * 3600.0
    max_bytes: Annotated[Positive, Help("Bytes of the archive at most.")] = 16 << 30
    user_agent: Annotated[str, Help("The header User-Agent.")] = "gristmill-archive/1.0"


@dataclass(frozen=True)
class Limits(Checked):
    """How large the PGN of an archive may be (docs/formats/chess.md#zip-rules)."""

    pgn_bytes: Annotated[Positive, Help("Bytes of the PGN at most.")] = 64 << 30
    ratio: Annotated[Positive, Help("Bytes of the PGN for each packed byte at most.")] = 100


_FETCH, _LIMITS = FetchConfig(), Limits()


@dataclass(frozen=True)
class ArchiveConfig(Checked):
    """The address of the archives and the limits for them (docs/formats/chess.md#archive).

    Raises ValueError also for an address without `{month}`.
    """

    # No field counts for the fingerprint: timeouts and limits cannot change the bytes of
    # a good archive, and a month must stay when its server moves (`source.json` has the
    # address it came from).

    CODE_VERSION: ClassVar = "1"

    url_template: Annotated[str, NO_EFFECT, Help("Address of an archive, with {month} in it.")] = (
        URL_TEMPLATE
    )
    fetch: Annotated[FetchConfig, NO_EFFECT, Help("Timeouts and limits of a download.")] = _FETCH
    limits: Annotated[Limits, NO_EFFECT, Help("How large a PGN may be.")] = _LIMITS

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{month}" not in self.url_template:
            raise ValueError(f"url_template must contain {{month}}: {self.url_template!r}")


@dataclass(frozen=True)
class CollectionConfig(Checked):
    """How the files of a collection become PGNs (docs/formats/chess.md#collections)."""

    encoding: Annotated[
        Literal["utf-8", "latin-1", "cp1252"],
        Help("What the PGNs are written in: 'latin-1', and 'cp1252' of Windows, become UTF-8."),
    ] = "utf-8"
    CODE_VERSION: ClassVar[str] = "1"


def archive_config(
    base_address: str = "",
    timeout_seconds: float = _FETCH.timeout,
    attempts: int = _FETCH.attempts,
    backoff_seconds: float = _FETCH.backoff,
) -> ArchiveConfig:
    """The config of a download; each call reads the variable."""
    folder, _, name = URL_TEMPLATE.rpartition("/")
    base = base_address or os.environ.get(VARIABLE) or folder
    fetch = FetchConfig(timeout=timeout_seconds, attempts=attempts, backoff=backoff_seconds)
    return ArchiveConfig(url_template=f"{base.rstrip('/')}/{name}", fetch=fetch)
