"""Which family reads files as they are, by asking each; what others want to be."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from gristmill.chess.format.folders import VALID
from gristmill.chess.format.rows import LOSSES
from gristmill.chess.raw.drops import opened_pgn
from gristmill.chess.raw.pgn_text import ending_in, month_in
from gristmill.contract import GristmillError
from gristmill.families import inboxes, tables
from gristmill.inbox.columns import column_lines
from gristmill.inbox.listing import UNFINISHED
from gristmill.keys import refusal
from gristmill.leaks.texts import EVALS
from gristmill.look.columns import LIST, OBJECTS, TEXT, Column, Columns
from gristmill.look.reading import TOKENIZER, Reading
from gristmill.macroxue.raw.step_files import INBOX as GAMES
from gristmill.macroxue.raw.step_files import STEPS
from gristmill.macroxue.raw.step_files import proposal as steps_proposal
from gristmill.printable import command
from gristmill.puzzles.builds import takes
from gristmill.puzzles.raw.drops import INBOX as PUZZLES
from gristmill.puzzles.raw.drops import proposal, tasks_in
from gristmill.puzzles.raw.fitness import fitness
from gristmill.settings.tables import FILE, read_drop
from gristmill.synth.raw import TEXTS
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import jq, way_to

_MOST: Final = 3
_LONGEST: Final = 40
"""Letters of a name that is made up."""
_DIGITS: Final = {*"123456789"}
_CELLS, _PAIR = 81, 2
_HEAD: Final = 1 << 20
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Taker:
    """An inbox whose family reads the files as they are.

    path: the drop. name: what to call it; empty where its own name will do. lines: its account.
    columns: what becomes of them, and what a build takes, as a drop says it.
    recipe: the file to write so that something is built of it; empty where none is needed.
    """

    inbox: str
    path: Path
    name: str
    lines: Sequence[str]
    recipe: str = ""
    beside: str = ""
    columns: Sequence[str] = ()

    @property
    def command(self) -> str:
        """What to type."""
        named = f" --name {self.name}" if self.name else ""
        return command(f"drop --family {self.inbox}{named}", str(self.path))


def asked(found: Reading, links: LinkRule) -> tuple[list[Taker], dict[str, str]]:
    """The inboxes that take what was looked at, and why each other one does not.

    A folder is asked for as a whole, and its files by the inboxes of files.
    """
    files = [*found.others, *(file.name for file in found.files)]
    taken: list[Taker] = []
    refused: dict[str, str] = {}
    for inbox, drop in inboxes().items():
        if inbox == EVALS:
            continue  # any text would do: a person alone knows what a model is asked
        if found.path.is_dir() and (drop.shape.folders or not drop.shape.endings):
            paths = [found.path]
        elif not drop.shape.endings:
            paths = []
        else:
            fitting = [name for name in files if drop.shape.ending_of(name) not in ("", ".toml")]
            paths = [found.root / name for name in fitting[:_MOST]]
        for path in paths:
            ending = "" if path.is_dir() else drop.shape.ending_of(path.name)
            stem = path.name.removesuffix(ending)
            # A name that no drop may have gets another one.
            own = re.sub(r"[^A-Za-z0-9-]+", "_", stem).strip("_")[:_LONGEST] or "drop"
            name = "" if refusal(stem) is None else own
            try:
                account = drop.account(path, links)
                if os.path.lexists(path / FILE):
                    read_drop(path / FILE, inbox, tables(), links)
                is_puzzle = inbox == PUZZLES and account.taken
                recipe = proposal(path, links, name) if is_puzzle else ""
            except (GristmillError, OSError) as error:
                refused[inbox] = str(error)
                with suppress(GristmillError, OSError):
                    if inbox == GAMES and (recipe := steps_proposal(path, links)):
                        taken.append(Taker(inbox, path, name, ["steps of 2048"], recipe, STEPS))
                continue
            if account.taken:
                said: list[str] = []
                with suppress(GristmillError, OSError):
                    said += column_lines(drop.column_states(path, links, account, {}))
                    said += [takes(path, recipe, links)] if recipe else []
                taken.append(Taker(inbox, path, name, account.lines, recipe, columns=said))
    return taken, refused


def fits(taker: Taker, columns: Columns, found: Reading, links: LinkRule) -> bool:
    """Whether the rows are what an inbox takes, whose account looks at names of files alone."""
    names = {*columns.by_name}
    if not names or taker.inbox not in ("synth", PUZZLES):
        return True
    if taker.inbox == "synth":
        return {*TEXTS} <= names
    collected = (re.search(r"[-_](challenges|solutions)\.json$", f.name) for f in found.files)
    if {"train", "test"} <= names or any(collected):
        return True
    places = {(found.root / file.name).parent for file in found.files}
    with suppress(GristmillError, OSError):
        judged = (
            fitness(place, links) for place in (places if taker.path.is_dir() else [taker.path])
        )
        return any(each is not None and each.wins for each in judged)
    return False


def task_hint(found: Reading, refused: Mapping[str, str], links: LinkRule) -> str:
    """Why no recipe of puzzles reads files that are tasks of ARC; empty where none is one."""
    sizes = {file.name: file.size for file in found.files}
    tasks = tasks_in(found.root, sizes, links) if PUZZLES in refused else None
    if tasks is None or (not tasks.way and "/" not in tasks.file):
        return _FLAT if tasks else ""
    return f"tasks of ARC, which `puzzles` does not read: {refused[PUZZLES]}"


def hints(found: Reading, columns: Columns, links: LinkRule) -> Iterator[str]:
    """Yield what files are that no family reads in this form, and the form that one reads."""
    endings = (".json", *UNFINISHED)
    for name in [name for name in found.others if not name.lower().endswith(endings)][:_MOST]:
        with suppress(GristmillError, OSError, ValueError):
            with open_file(found.root / name, root=found.root, links=links) as file:
                is_row = isinstance(json.loads(file.readline(_HEAD)), dict)
            if is_row:
                yield f"{name}: JSON lines, by what it holds: rename it to {name}.jsonl"
    if is_bank(columns):
        yield _BANK + _no_bank(found, columns, links)
    names = [name.lower() for name in (*found.others, *(file.name for file in found.files))]
    for form, hint in _ENDINGS.items():
        if any(re.search(rf"(?:{form})$", name) for name in names):
            yield hint
    rows = [row for file in found.files for row in file.sample]
    for is_form, hint in _FORMS:
        if is_form(columns.by_name, rows):
            yield hint
    if not found.files and any(re.search(r"\.(?:txt|md|rst|tex)$", name) for name in names):
        yield 'plain text: write a JSON object a line, as {"text": "..."}, with texts = "{text}"'


def _boards(columns: Columns) -> list[Column]:
    return [
        column
        for column in columns.by_name.values()
        if column.kind == TEXT and abs(column.mean - _CELLS) < 1 and " " not in column.example
    ]


def is_bank(columns: Columns) -> bool:
    """Whether rows are Sudokus with their solutions, which no recipe of texts is to read."""
    return len(_boards(columns)) == _PAIR


def _no_bank(found: Reading, columns: Columns, links: LinkRule) -> str:
    """What is wrong with a table of Sudokus, or what makes one of JSON lines; else empty."""
    name = found.files[0].name
    with suppress(GristmillError, OSError):
        judged = fitness(found.root / name, links, kind="sudoku")
        if judged is not None and judged.first is not None:
            return f": {judged.line if judged.rows else judged.first.rule}"
    boards = sorted(_boards(columns), key=lambda column: {*column.example} <= _DIGITS)
    keys = ", ".join(f".{json.dumps(column.name)}" for column in boards)
    lines = f"(echo question,answer; jq -r '[{keys}] | @csv' {quote(name)}) > sudoku.csv"
    return f": `{lines}` makes one" if name.endswith((".jsonl", ".ndjson")) else ""


def is_nested_tree(names: Collection[str]) -> bool:
    """Whether messages hold their replies, of which a conversation is one branch."""
    return any(name.rpartition(".")[2] == "replies" for name in names)


def _is_boards(known: Mapping[str, Column], rows: Rows) -> bool:
    """Whether each row has the cells of a board of 2048, with at most a few numbers beside them."""
    for row in rows:
        words = re.findall(r"[^]\s,;:(){}'\"[]+", " ".join(map(str, row.values())))
        runs = [len([*own]) for is_cell, own in groupby(words, _RANKS.__contains__) if is_cell]
        if not any(16 <= length < 24 for length in runs):
            return False
    return bool(rows)


_FLAT: Final = (
    "tasks of ARC in the folder itself: `puzzles` reads them in a folder of it: move them, as to "
    "training/TASK.json"
)
_STEPS: Final = (
    "`macroxue` reads them from steps*.npy, whose rows have named columns, and ranks for cells "
    "(1 is the tile 2), as "
    '`np.save("steps.npy", np.array(rows, [("game", "u4"), ("exps", "u1", 16), ("move", "u1")]))` '
    "writes them, beside a steps.toml that says which column is run_id and which is board, as "
    'schema = 1, kind = "steps", [fields] run_id = "game", board = "exps"'
)
_RANKS: Final = {*map(str, range(18)), *(str(1 << rank) for rank in range(18))}
"""Cells of a board, as ranks or as tiles."""
_BANK: Final = (
    "Sudokus of 81 cells: `puzzles` reads CSV files, not packed and with commas, whose first "
    "line names one column of questions (question, quizzes, puzzle) and one of answers "
    "(answer, solution, solutions)"
)
_TOKENIZER: Final = (
    "a tokenizer: `gristmill tokenizers FILE --name NAME --eod TEXT`, with the text that ends a "
    "document"
)
_ENDINGS: Final = {
    r"\.pgn(?:\.(?:zst|bz2|gz|zip))?": (
        "games of chess: `chess` reads one file a month, with the month in its name, as "
        "games_2024-01.pgn: `gristmill drop FILE --family chess`, and any PGNs in a folder of "
        "their own: `gristmill drop FOLDER --family chess`"
    ),
    r"\.tiktoken|\.model|tokenizer\.json": _TOKENIZER,
    r"\.(?:zip|tar|tgz|tar\.\w+|7z|rar)": "archives: unpack them, and look again",
    r"\.arrow|\.feather": (
        "Arrow, as `Dataset.save_to_disk` writes it: write Parquet of each folder with such files, "
        'with `datasets.load_from_disk("folder/train").to_parquet("train.parquet")`'
    ),
    r"\.np[yz]": f"arrays of NumPy; if they are boards of 2048, {_STEPS}",
    r"\.(?:xlsx?|ods|pkl|pickle|pt)": (
        "tables of other tools: save them as CSV, JSON lines or Parquet"
    ),
}
"""What to say of a file that no family reads, by the end of its name."""
_FORMS: Final[Sequence[tuple[Callable[[Mapping[str, Column], Rows], bool], str]]] = (
    (
        lambda known, _: all(
            name in known and known[name].kind in (LIST, OBJECTS) for name in ("input", "output")
        ),
        "grids as lists: `puzzles` reads *.jsonl, whose rows have input, output, group, puzzle and "
        "set alone",
    ),
    (lambda known, _: {*TOKENIZER, "model.vocab"} <= {*known}, _TOKENIZER),
    (
        lambda known, _: is_nested_tree(known),
        "trees of messages in one object: bring the file with a row a message, which has "
        "message_id and parent_id, or write a row for each with these",
    ),
    (_is_boards, f"boards of 2048, by the 16 cells of each row: {_STEPS}"),
    (
        lambda known, _: {"board", "move"} <= {*known} or {"state", "action"} <= {*known},
        "steps of a game: `macroxue` reads the games that its player writes",
    ),
)
"""What tells rows that no family reads in this form, and what to say of them."""


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
_AS_LINES: Final = (
    "python3 -c 'import csv, json, sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin)]'"
)
_AS_ROWS: Final = (
    "python3 -c 'import json, sys, pyarrow.parquet as p; [print(json.dumps(r, default=str)) for b "
    "in p.ParquetFile(sys.argv[1]).iter_batches() for r in b.to_pylist()]'"
)
_ROWS: Final = "games of chess in rows"
_SIDES: Final = ("White", "Black")
_MOST_TITLES: Final = 8


def game_notes(reading: Reading, links: LinkRule) -> Iterator[str]:
    """Yield how many games there are, how many ended, ratings and titles, and what is not read."""
    names, left, texts = [name for name in reading.others if ending_in(name)], MOST_BYTES, [b""]
    for name in names:
        path, ending = reading.root / name, ending_in(name)
        try:
            with opened_pgn(path, root=reading.root, links=links, ending=ending) as packed:
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
    if made := _from_rows(reading, links):
        yield (
            f"{_ROWS}; `chess` reads PGN: `{made} > games.pgn`, and then `gristmill "
            "drop FOLDER --family chess` of a folder with it"
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
