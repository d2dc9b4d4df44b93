"""The parsers of a puzzle dataset's identifiers and of its sources."""

from __future__ import annotations

from tests.fuzz.parser import JSON, Parser, file

_FORMAT = "gristmill.puzzles.format"


def identifiers(data: bytes) -> None:
    """`identifiers.json`: a list of texts."""
    from gristmill.puzzles.format.metadata import read_identifiers

    assert all(isinstance(name, str) for name in read_identifiers(file("identifiers.json", data)))


def sources(data: bytes) -> None:
    """`trace/sources.json`: it is written as it was read."""
    from gristmill.puzzles.format.metadata import read_sources

    read = read_sources(file("sources.json", data))
    again = read_sources(file("sources.json", read.text().encode()))
    assert repr(again) == repr(read)


PARSERS = (
    Parser(
        "puzzles_identifiers",
        identifiers,
        (f"{_FORMAT}.metadata",),
        words=(*JSON, b'"<blank>"', b'["'),
    ),
    Parser(
        "puzzles_sources",
        sources,
        (f"{_FORMAT}.metadata",),
        words=(*JSON, b'"files": [', b'"path": ', b'"sha256": ', b'"kind": ', b'"config": {'),
    ),
)
