"""How games of a drop of chess are forgotten: each by its tags, as `--where White=...`.

Source: docs/takedowns.md#families
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from gristmill.chess.raw.pgn_text import ENDINGS, ending_in
from gristmill.contract import BadInput
from gristmill.families import Forgets, Unit
from gristmill.untrusted.files import open_file
from gristmill.untrusted.lines import lines, reads
from gristmill.untrusted.walk import unpack, visible_files

_TAG: Final = re.compile(r'\[(\w+)\s+"((?:[^"\\]|\\.)*)"\]')
_BEGINS: Final = re.compile(rb'\[(\w+)\s+"')
"""A line of a tag; others that begin with a bracket are of comments."""


def forgets() -> Forgets:
    """How games are forgotten."""
    return Forgets(_units, places=lambda file: [place for place, _ in games(file)])


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    files = {drop.name: drop} if drop.is_file() else {at: drop / at for at in visible_files(drop)}
    for name, path in files.items():
        found = games(path) if ending_in(name, ENDINGS) else ()
        for number, (_place, text) in enumerate(found, 1):
            head, _blank, moves = text.partition("\n\n")
            tags = dict(_TAG.findall(head))
            yield Unit(name, number, tags.get("Site", ""), {**tags, "moves": moves.strip()})


def games(path: Path) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield begin and end of each game in the unpacked text of a file, and its text."""
    if path.suffix.lower() == ".zip":
        raise BadInput(path, "is a ZIP, in which no game can be erased: unpack it into the drop")
    with open_file(path, root=path.parent) as file:
        ending = path.suffix.lower().removeprefix(".")
        texts = reads(file) if ending == "pgn" else unpack(file, path, ending)
        begin, at, has_moves, held, names = 0, 0, False, list[bytes](), set[bytes]()
        for line in chain(lines(texts, path), [b""]):
            tag = _BEGINS.match(line if at else line.removeprefix(BOM_UTF8))
            # Of a game without moves the names of its tags come again.
            if (has_moves or (tag[1] in names if tag else names)) and (tag or not line):
                yield (begin, at), b"".join(held).decode("utf-8", "replace").replace("\r\n", "\n")
                begin, has_moves, held, names = at, False, [], set()
            has_moves = has_moves or not (tag or line.isspace())
            names |= {tag[1]} if tag else set()
            held.append(line)
            at += len(line)
