"""The configs of the chess archive: its address, the download, and the limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from gristmill.chess.format.config_help import choice, machine
from gristmill.settings.fields import check_fields

# Where the Lichess elite database is.
URL_TEMPLATE = "https://database.nikonoel.fr/lichess_elite_{month}.zip"
VARIABLE = "GRISTMILL_ELITE_ARCHIVE"
"""The environment variable with the folder of another server."""


@dataclass(frozen=True)
class FetchConfig:
    """Timeouts and limits of a download (docs/formats/chess.md#download).

    timeout: seconds for one read; 30 by default.
    attempts: attempts in a row without a new byte; 5 by default.
    backoff: seconds to wait after the first failure, doubled each time up to a minute;
        1 by default.
    total_seconds: seconds for the whole download; 6 hours by default.
    max_bytes: bytes of the archive at most; 16 GiB by default.
    user_agent: the header `User-Agent`.

    Raises ValueError for a value of another type or a number out of its range.
    """

    timeout: float = choice(30.0, "Seconds for one read.", above=0)
    attempts: int = choice(5, "Attempts in a row without a new byte.", least=1)
    backoff: float = choice(1.0, "Seconds to wait after a failure, doubled each time.", least=0)
    total_seconds: float = choice(6 * 3600.0, "Seconds for the whole download.", above=0)
    max_bytes: int = choice(16 << 30, "Bytes of the archive at most.", least=1)
    user_agent: str = choice("gristmill-archive/1.0", "The header User-Agent.")

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Limits:
    """How large the PGN of an archive may be (docs/formats/chess.md#zip-rules).

    pgn_bytes: bytes of the PGN at most; 64 GiB by default.
    ratio: bytes of the PGN for each packed byte at most; 100 by default.

    Raises ValueError for a value of another type or a number below 1.
    """

    pgn_bytes: int = choice(64 << 30, "Bytes of the PGN at most.", least=1)
    ratio: int = choice(100, "Bytes of the PGN for each packed byte at most.", least=1)

    def __post_init__(self) -> None:
        check_fields(self)


_FETCH, _LIMITS = FetchConfig(), Limits()


@dataclass(frozen=True)
class ArchiveConfig:
    """The address of the archives and the limits for them (docs/formats/chess.md#archive).

    url_template: the address, with `{month}` in it.
    fetch: timeouts and limits of a download.
    limits: how large a PGN may be.

    Raises ValueError for an address without `{month}`.
    """

    # No field counts for the fingerprint: timeouts and limits cannot change the bytes of
    # a good archive, and a month must stay when its server moves (`source.json` has the
    # address it came from).

    CODE_VERSION: ClassVar = "1"

    url_template: str = machine(URL_TEMPLATE, "Address of an archive, with {month} in it.")
    fetch: FetchConfig = machine(_FETCH, "Timeouts and limits of a download.")
    limits: Limits = machine(_LIMITS, "How large a PGN may be.")

    def __post_init__(self) -> None:
        check_fields(self)
        if "{month}" not in self.url_template:
            raise ValueError(f"url_template must contain {{month}}: {self.url_template!r}")


def archive_config(
    base_address: str = "",
    timeout_seconds: float = _FETCH.timeout,
    attempts: int = _FETCH.attempts,
    backoff_seconds: float = _FETCH.backoff,
) -> ArchiveConfig:
    """The config of a download; each call reads the variable.

    base_address: folder with the archives; default: that of the variable, else the database.
    timeout_seconds, attempts, backoff_seconds: see `FetchConfig`.
    """
    folder, _, name = URL_TEMPLATE.rpartition("/")
    base = base_address or os.environ.get(VARIABLE) or folder
    fetch = FetchConfig(timeout=timeout_seconds, attempts=attempts, backoff=backoff_seconds)
    return ArchiveConfig(url_template=f"{base.rstrip('/')}/{name}", fetch=fetch)
