"""The parser of CSV files of mazes."""

from __future__ import annotations

import csv
import io

from tests.fuzz.parser import Parser, file

_WORDS = (
    *(b"source,question,answer,rating\n", b"x,S  G,So G,1\n", b'x,"S  G","So G",1\n'),
    *(b"\r\n", b"\xef\xbb\xbf", b"#", b" ", b"S", b"G", b"o", b",", b'"', b'""', b"\n"),
    *(b"SG##,SG##", b"S    #  G,So  o# oG,4"),
)


def mazes(data: bytes) -> None:
    """A CSV file: its mazes are those of Python's csv, square, with shortest paths."""
    from gristmill.puzzles.domains.maze_grid import decoded
    from gristmill.puzzles.raw.rated_csv import COLUMN_NAMES, read_mazes
    from tests.puzzles.plain_mazes import broken

    found = [
        ("".join(decoded(question)), "".join(decoded(answer)), line)
        for rows in read_mazes(file("mazes/train.csv", data))
        for question, answer, line in zip(
            rows.inputs, rows.labels, rows.lines.tolist(), strict=True
        )
    ]
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = io.StringIO(text, newline="\n").read().split("\n")
    (head,) = csv.reader([lines[0].removesuffix("\r")]) if found else ([],)
    names = [name.strip().lower() for name in head]
    places = [
        next(place for place, name in enumerate(names) if name in COLUMN_NAMES[role])
        for role in ("question", "answer")
        if found
    ]
    for question, answer, line in found:
        assert broken(question, answer) == set()
        (fields,) = csv.reader([lines[line - 1].removesuffix("\r")])
        assert [fields[place] for place in places] == [question, answer]
    filled = [line for line in lines[1:] if line.strip()]
    assert len(found) == len(filled)
    assert len({len(question) for question, _, _ in found}) <= 1


PARSERS = (
    Parser(
        "puzzles_maze_csv",
        mazes,
        ("gristmill.puzzles.raw.rated_csv", "gristmill.puzzles.raw.rated_csv"),
        covers=("gristmill.puzzles.domains.maze_grid",),
        words=_WORDS,
    ),
)
