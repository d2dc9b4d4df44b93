"""The parsers of a puzzle dataset's identifiers and of its sources."""

from __future__ import annotations

from tests.fuzz.parser import Parser, file

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


_JSON = (b'{"', b'":', b"null", b"true", b"1e999", b"-0", b"[[", b"\\u0000", b"\\ud800", b"NaN")

PARSERS = (
    Parser(
        "puzzles_identifiers",
        identifiers,
        (f"{_FORMAT}.metadata",),
        words=(*_JSON, b'"<blank>"', b'["'),
    ),
    Parser(
        "puzzles_sources",
        sources,
        (f"{_FORMAT}.metadata",),
        words=(*_JSON, b'"files": [', b'"path": ', b'"sha256": ', b'"kind": ', b'"config": {'),
    ),
)
