"""Games of chess in the files of a look, by the tags in the first megabytes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Final

from gristmill.chess.format.rows import LOSSES
from gristmill.chess.raw.drops import opened_pgn
from gristmill.chess.raw.pgn_text import ending_in, month_in
from gristmill.contract import GristmillError
from gristmill.look.reading import Reading
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import jq, way_to

MOST_BYTES: Final = 16 << 20
"""Bytes of text that are read, of all files together."""
_TAG: Final = re.compile(
    rb'(?:^|\])[ \t]*\[[ \t]*(Event|Result|(?:White|Black)(?:Elo|Title))[ \t]*"([^"\r\n]*)"',
    re.MULTILINE,
)
_FOREIGN: Final = re.compile(rb"(?<![^\s.])[ACDFGHLSTVW][a-h]?[1-8]?x?[a-h][1-8](?![^\s+#!?])")
"""A move as Sf3, as German and others write it."""
_PGN: Final = re.compile(rb'"\s*\[[A-Z]\w* +\\"')
_MOVE: Final = rb"(?:(?:[KQRBN][a-h]?[1-8]?x?|(?:[a-h]x)?)[a-h][1-8](?:=[QRBN])?|O-O(?:-O)?)[+#!?]*"
_MOVES: Final = re.compile(rb'"\s*(?:(?:[0-9]+\.+\s*)?' + _MOVE + rb"\s+){3}")
"""Texts of JSON that begin a game: with a tag, or with three moves at least."""
_TO_PGN: Final = (
    '({white: "1-0", black: "0-1", draw: "1/2-1/2", stalemate: "1/2-1/2"} as $of | (.winner // '
    '.result // .Result // .status // "*") | $of[.] // if test("^(1-0|0-1|1/2-1/2)$") then . else '
    '"*" end) as $r | (.moves | sub(" *(1-0|0-1|1/2-1/2|\\\\*)? *$"; "")) as $m | '
    '"[Event \\"?\\"]\\n[Result \\"\\($r)\\"]\\n\\n\\($m) \\($r)\\n"'
)
"""The filter of jq that makes a PGN of a row with moves, and perhaps a result."""
_AS_LINES: Final = (
    "python3 -c 'import csv, json, sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin)]'"
)
_AS_ROWS: Final = (
    "python3 -c 'import json, sys, pyarrow.parquet as p; [print(json.dumps(r, default=str)) for b "
    "in p.ParquetFile(sys.argv[1]).iter_batches() for r in b.to_pylist()]'"
)
_HEAD: Final = 1 << 20
_ROWS: Final = "games of chess in rows"
_FINISHED: Final = (b"1-0", b"0-1", b"1/2-1/2")
_MOST_TITLES: Final = 8


def game_notes(reading: Reading, links: LinkRule) -> Iterator[str]:
    """Yield how many games there are, how many ended, ratings and titles, and what is not read."""
    found = _Games()
    names = [name for name in reading.others if ending_in(name)]
    for name in names:
        try:
            found.read(reading, name, links)
        except (GristmillError, OSError, EOFError, ValueError) as error:
            if ".pgn" in name.lower():  # another ZIP holds no games
                yield f"{name}: {error}"
    if found.tags["Event"] or found.tags["Result"]:
        yield found.line()
        months = {month_in(name) or "" for name in names}
        yield from _losses(found, months.pop() if len(months) == 1 else "")
    if made := _from_rows(reading, links):
        yield (
            f"{_ROWS}; `chess` reads PGN: `{made} > games.pgn`, and then `gristmill "
            "drop FOLDER --family chess` of a folder with it"
        )
    if found.foreign > found.tags["Event"]:
        yield (
            f"{found.foreign:,} moves name pieces by letters of another language; their games are "
            "rejected: write K, Q, R, B and N"
        )


def is_game(note: str) -> bool:
    """Whether a note says that rows are games."""
    return note.startswith(_ROWS)


def _from_rows(reading: Reading, links: LinkRule) -> str:
    """What makes a PGN of the smallest data file, whose rows are games; empty for other rows."""
    file = min(reading.files, key=lambda each: (each.size, each.name), default=None)
    name, text, read = file.name if file else "", b"", "jq -r {} {}"
    if file and name.endswith(".csv"):
        text = json.dumps(file.sample[0]).encode() if file.sample else b""
        read = f"{_AS_LINES} < {{1}} | jq -r {{0}}"
    elif file and name.endswith(".parquet"):
        text = json.dumps(file.sample[0], default=str).encode() if file.sample else b""
        read = f"{_AS_ROWS} {{1}} | jq -r {{0}}"
    elif name.endswith((".json", ".jsonl", ".ndjson")):
        root = reading.root
        with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as f:
            text = f.read(_HEAD)
    for begin in (_PGN, _MOVES):
        if way := way_to(text, lambda _, value: begin.match(value) is not None):  # noqa: B023
            moves = f"{jq(way[:-1])} | {_TO_PGN.replace('.moves', jq(way[-1:]))}"
            return read.format(quote(jq(way) if begin is _PGN else moves), quote(name))
    return ""


def _losses(found: _Games, month: str) -> Iterator[str]:
    """Yield what a build would say: games twice, of another month, with moves that may be lost.

    month: that all games should be of; empty for any.
    """
    from gristmill.chess.builders.validate import validate  # it loads numba
    from gristmill.chess.config import ValidateConfig
    from gristmill.chess.laws.games import validated_notes

    text = b"".join(found.texts)
    if found.is_cut:  # the last game is not whole
        text = text[: max(text.rfind(end + b"[Event ") for end in (b"\n", b"\r")) + 1]
    with TemporaryDirectory(prefix="gristmill-") as folder:
        (pgn := Path(folder, f"games_{month}.pgn")).write_bytes(text)
        try:
            flags = validate([pgn], out := Path(folder, "out"), ValidateConfig(min_plies=0)).flags
            for note in validated_notes(out):
                yield f"{note.law}: {note.found}"
        except GristmillError as error:
            yield f"not looked at for lost moves: {error}".replace(str(pgn), "its games")
            return
    counts = [f"{flags[name]:,} {name}" for name in LOSSES.values() if flags.get(name)]
    if counts:
        kept = "which are kept unless a setting drops them"
        yield f"games that may have lost moves, {kept}: {', '.join(counts)}"


class _Games:
    """The tags of games in some files."""

    def __init__(self) -> None:
        self.tags, self.titles = Counter[str](), Counter[str]()
        self.finished, self.foreign, self.left = 0, 0, MOST_BYTES
        self.texts: list[bytes] = []
        self.is_cut = False
        self._ratings: list[int] = []

    def read(self, reading: Reading, name: str, links: LinkRule) -> None:
        """Read the text of a file while bytes are left."""
        if self.left <= 0:
            self.is_cut = True
            return
        path, rest = reading.root / name, b""
        with opened_pgn(path, root=reading.root, links=links, ending=ending_in(name)) as packed:
            for octets in packed.reads:
                if self.left <= 0:
                    self.is_cut = True
                    break
                self.left -= len(octets)
                self.texts.append(octets)
                # Lines may end in CR alone.
                whole, end, rest = (rest + octets.replace(b"\r", b"\n")).rpartition(b"\n")
                self._add(whole + end)
        self._add(rest)
        self.texts.append(b"\n\n")

    def _add(self, text: bytes) -> None:
        self.foreign += len(_FOREIGN.findall(text))
        for tag, value in _TAG.findall(text):
            name = tag.decode()
            self.tags[name] += 1
            self.finished += name == "Result" and value in _FINISHED
            if name.endswith("Elo") and value.isdigit() and len(value) < 6 and int(value):
                self._ratings.append(int(value))
            if name.endswith("Title") and value not in (b"", b"-", b"?"):
                self.titles[value.decode("utf-8", "replace").upper()] += 1

    def line(self) -> str:
        """What was found, in one line."""
        games = max(self.tags["Event"], self.tags["Result"])
        parts = [
            f"{games:,} games by their tags, {self.finished:,} ({self.finished / games:.0%}) ended"
        ]
        if self._ratings:
            parts.append(f"ratings {min(self._ratings):,} to {max(self._ratings):,}")
        if self.titles:
            listed = self.titles.most_common(_MOST_TITLES)
            parts.append(f"players by title: {', '.join(f'{n:,} {title}' for title, n in listed)}")
        where = f"in the first {MOST_BYTES >> 20} MiB of text: " if self.is_cut else ""
        return where + "; ".join(parts)
