"""Laws of an archived month.

Source: docs/formats/chess.md#archive-laws
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill.chess.format.names import SOURCE
from gristmill.chess.laws.files import difference, law, read_json
from gristmill.contract import Violation
from gristmill.hashing import sha256_file


@law
def archive_laws(path: Path, has_source: bool = True) -> Iterator[Violation]:
    """Check a month's folder: it has one PGN, and source.json names its size and SHA-256.

    path: folder of the artifact `chess/elite_pgn`.
    has_source: False where another program wrote no source.json; True by default.

    Yields the violations.
    """
    source, faults = read_json(path / SOURCE) if has_source else ({}, [])
    yield from faults
    pgns = sorted(path.glob("*.pgn"))
    if len(pgns) != 1:
        yield Violation("one_pgn", str(path), f"{len(pgns)} PGN files")
    elif source:
        pgn = pgns[0]
        found = {"name": pgn.name, "bytes": pgn.stat().st_size, "sha256": sha256_file(pgn)}
        yield from difference("pgn_as_recorded", pgn, found, source["pgn"])
