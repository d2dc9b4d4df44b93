"""Laws of an archived month."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill.chess.format.folders import SOURCE
from gristmill.chess.laws.files import difference, law, read_json
from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.hashing import sha256_file


@law
def archive_laws(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of the PGN of a month, or those of a collection.

    Another program writes no source.json.
    """
    path = subject.folder
    has_source = not subject.missing({SOURCE: "pgn_as_recorded"})
    source, faults = read_json(path / SOURCE) if has_source else ({}, [])
    yield from faults
    pgns = sorted(path.glob("*.pgn"))
    recorded = [each["pgn"] for each in source.get("files", [source])] if source else []
    if len(pgns) != (len(recorded) or 1):
        yield Violation("one_pgn", str(path), f"{len(pgns)} PGN files")
        return
    for pgn, facts in zip(pgns, sorted(recorded, key=lambda each: str(each["name"])), strict=False):
        found = {"name": pgn.name, "bytes": pgn.stat().st_size, "sha256": sha256_file(pgn)}
        yield from difference("pgn_as_recorded", pgn, found, facts)
