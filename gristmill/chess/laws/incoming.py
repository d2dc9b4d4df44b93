"""What a build says of games in files of which nothing was built, and what makes a PGN of rows.

Source: `docs/corpora.md`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from gristmill.chess.format.folders import VALID
from gristmill.chess.format.rows import LOSSES
from gristmill.chess.raw.drops import opened_pgn
from gristmill.chess.raw.pgn_text import ending_in, month_in
from gristmill.contract import GristmillError
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import jq, way_to

MOST_BYTES: Final = 16 << 20
"""Bytes of text that are read, of all files together."""
_TAG: Final = re.compile(rb'\[[ \t]*(?:Event|Result)[ \t]*"')
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
_TABLES: Final = {
    ".csv": (
        "python3 -c 'import csv, json, sys; "
        "[print(json.dumps(r)) for r in csv.DictReader(sys.stdin)]' < {1} | jq -r {0}"
    ),
    ".parquet": (
        "python3 -c 'import json, sys, pyarrow.parquet as p; [print(json.dumps(r, default=str)) "
        "for b in p.ParquetFile(sys.argv[1]).iter_batches() for r in b.to_pylist()]' {1} | "
        "jq -r {0}"
    ),
}
"""What makes JSON lines of the rows of a table, by the end of its name."""
_HEAD: Final = 1 << 20
_SIDES: Final = ("White", "Black")
_MOST_TITLES: Final = 8


def file_notes(root: Path, every: Iterable[str], links: LinkRule) -> Iterator[str]:
    """Yield how many games files hold, how many ended, ratings and titles, and what is not read.

    root: the folder. every: names of files in it; those that hold no PGN say nothing.
    """
    names, left, texts = [name for name in every if ending_in(name)], MOST_BYTES, [b""]
    for name in names:
        try:
            ending = ending_in(name)
            with opened_pgn(root / name, root=root, links=links, ending=ending) as packed:
                for octets in packed.reads:
                    if left <= 0:
                        break
                    left -= len(octets)
                    texts.append(octets)
        except (GristmillError, OSError, EOFError, ValueError) as error:
            if ".pgn" in name.lower():  # another ZIP holds no games
                yield f"{name}: {error}"
        texts.append(b"\n\n")
    text = b"".join(texts)
    if left <= 0:  # the last game may not be whole
        text = text[: max(text.rfind(end + b"[Event ") for end in (b"\n", b"\r")) + 1]
    if _TAG.search(text):
        months = {month_in(name) or "" for name in names}
        where = f"in the first {MOST_BYTES >> 20} MiB of text: " if left <= 0 else ""
        yield from _built(text, where, months.pop() if len(months) == 1 else "")


def rows_note(root: Path, name: str, row: Mapping[str, Any], links: LinkRule) -> str:
    """What makes a PGN of a data file whose rows are games; empty for other rows.

    root: the folder of the file. row: the first one of a table; one of JSON is not needed.
    """
    read = next((way for end, way in _TABLES.items() if name.endswith(end)), "jq -r {} {}")
    text = b""
    if "jq -r {0}" in read:
        text = json.dumps(row, default=str).encode()
    elif name.endswith((".json", ".jsonl", ".ndjson")):
        with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as f:
            text = f.read(_HEAD)
    for begin in (_PGN, _MOVES):
        if way := way_to(text, lambda _, value: begin.match(value) is not None):  # noqa: B023
            moves = f"{jq(way[:-1])} | {_TO_PGN.replace('.moves', jq(way[-1:]))}"
            made = read.format(quote(jq(way) if begin is _PGN else moves), quote(name))
            return (
                f"games of chess in rows; `chess` reads PGN: `{made} > games.pgn`, and then "
                "`gristmill drop FOLDER --family chess` of a folder with it"
            )
    return ""


def _built(text: bytes, where: str, month: str) -> Iterator[str]:
    """Yield what a build says of games: how many, of another month, twice, with moves lost.

    where: what the line of the numbers begins with. month: of all games; empty for any.
    """
    from gristmill.chess.builders.validate import validate  # it loads numba
    from gristmill.chess.config import ValidateConfig
    from gristmill.chess.laws.games import validated_notes

    with TemporaryDirectory(prefix="gristmill-") as folder:
        (pgn := Path(folder, f"games_{month}.pgn")).write_bytes(text)
        try:
            made = validate([pgn], out := Path(folder, "out"), ValidateConfig(min_plies=0))
        except GristmillError as error:
            yield f"not looked at for lost moves: {error}".replace(str(pgn), "its games")
            return
        ended = made.white_wins + made.black_wins + made.draws
        said = f"{made.total_games:,} games, of which a build reads {made.valid_games:,}"
        tags = [orjson.loads(line)["headers"] for line in (out / VALID).read_bytes().splitlines()]
        yield "; ".join([f"{where}{said}, and {ended:,} ended", *_players(tags)])
        for note in validated_notes(out):
            yield f"{note.law}: {note.found}"
    if (foreign := len(_FOREIGN.findall(text))) > made.total_games:
        yield (
            f"{foreign:,} moves name pieces by letters of another language; their games are "
            "rejected: write K, Q, R, B and N"
        )
    counts = [f"{made.flags[name]:,} {name}" for name in LOSSES.values() if made.flags.get(name)]
    if counts:
        kept = "which are kept unless a setting drops them"
        yield f"games that may have lost moves, {kept}: {', '.join(counts)}"


def _players(games: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the ratings and the titles that tags of games name."""
    elos = (tags.get(f"{side}Elo", "") for tags in games for side in _SIDES)
    if ratings := [int(elo) for elo in elos if re.fullmatch("[0-9]{1,5}", elo) and int(elo)]:
        yield f"ratings {min(ratings):,} to {max(ratings):,}"
    said = (tags.get(f"{side}Title", "").upper() for tags in games for side in _SIDES)
    titles = Counter(title for title in said if title not in ("", "-", "?"))
    if titles:
        most = titles.most_common(_MOST_TITLES)
        yield f"players by title: {', '.join(f'{n:,} {title}' for title, n in most)}"
