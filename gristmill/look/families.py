"""Which family reads files as they are, by asking each; what others want to be; games of chess.

Source: `docs/formats/reasoning.md#a-look`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.chess.raw.endings import ending_in
from gristmill.chess.raw.unpack import opened_pgn
from gristmill.contract import GristmillError
from gristmill.families import inboxes
from gristmill.look.columns import LIST, OBJECTS, Columns
from gristmill.look.reading import TOKENIZER, Reading
from gristmill.macroxue.raw.step_files import INBOX as GAMES
from gristmill.macroxue.raw.step_files import STEPS
from gristmill.macroxue.raw.step_files import proposal as steps_proposal
from gristmill.printable import command
from gristmill.puzzles.raw.drops import INBOX as PUZZLES
from gristmill.puzzles.raw.drops import proposal
from gristmill.synth.raw.files import TEXTS
from gristmill.untrusted.files import LinkRule, read_file

_MOST: Final = 3
_MOST_TASK: Final = 1 << 20
"""Bytes of a file that is looked at for a task."""


@dataclass(frozen=True)
class Taker:
    """An inbox whose family reads the files as they are.

    path: the drop. lines: its account. recipe: the file to write so that something is built of it;
    empty where none is needed. beside: its name where it belongs into the drop itself.
    """

    inbox: str
    path: Path
    lines: Sequence[str]
    recipe: str = ""
    beside: str = ""

    @property
    def command(self) -> str:
        """What to type."""
        return command(f"drop --family {self.inbox}", str(self.path))


def asked(found: Reading, links: LinkRule) -> tuple[list[Taker], dict[str, str]]:
    """The inboxes that take what was looked at, and why each other one does not.

    A folder is asked for as a whole, and its files by the inboxes of files.
    """
    files = [*found.others, *(file.name for file in found.files)]
    taken: list[Taker] = []
    refused: dict[str, str] = {}
    for inbox, drop in inboxes().items():
        if found.path.is_dir() and (drop.shape.folders or not drop.shape.endings):
            paths = [found.path]
        elif not drop.shape.endings:
            paths = []
        else:
            fitting = [name for name in files if drop.shape.ending_of(name) not in ("", ".toml")]
            paths = [found.root / name for name in fitting[:_MOST]]
        for path in paths:
            try:
                account = drop.account(path, links)
                recipe = proposal(path, links) if inbox == PUZZLES and account.taken else ""
            except (GristmillError, OSError) as error:
                refused[inbox] = str(error)
                if inbox == GAMES and (recipe := steps_proposal(path, links)):
                    taken.append(Taker(inbox, path, ["steps of 2048"], recipe, STEPS))
                continue
            if account.taken:
                lines = [*account.lines, *account.notes]
                taken.append(Taker(inbox, path, lines, recipe))
    return taken, refused


def fits(taker: Taker, columns: Columns, found: Reading) -> bool:
    """Whether the rows are what an inbox takes, whose account looks at names of files alone.

    columns: of the rows; none where they were not read.
    """
    names = {*columns.by_name}
    if not names or taker.inbox not in ("synth", "puzzles"):
        return True
    is_task = {"train", "test"} <= names or _is_grid_row(columns)
    is_task |= any(_is_collected(file.name) for file in found.files)
    cells = [column for column in columns.by_name.values() if column.is_grid]
    return {*TEXTS} <= names if taker.inbox == "synth" else is_task or len(cells) >= 2


def task_hint(found: Reading, refused: Mapping[str, str], links: LinkRule) -> str:
    """Why no recipe of puzzles reads files that are tasks of ARC; empty where none is one."""
    if PUZZLES not in refused:
        return ""
    tasks = (file for file in found.files if file.name.lower().endswith(".json"))
    first = min(tasks, key=lambda file: file.size, default=None)
    if first is None or first.size > _MOST_TASK:
        return ""
    try:
        octets = read_file(found.root / first.name, root=found.root, most=_MOST_TASK, links=links)
        task = json.loads(octets)
        is_task = all("input" in pair for key in ("train", "test") for pair in task[key])
    except (GristmillError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return f"tasks of ARC, which `puzzles` does not read: {refused[PUZZLES]}" if is_task else ""


def hints(found: Reading, columns: Columns) -> Iterator[str]:
    """Yield what files are that no family reads in this form, and the form that one reads."""
    for is_form, hint in _FORMS:
        if is_form(found, columns):
            yield hint


def _is_collected(name: str) -> bool:
    return re.search(r"[-_](challenges|solutions)\.json$", name) is not None


def _is_kaggle(found: Reading, columns: Columns) -> bool:
    return any(_is_collected(file.name) for file in found.files)


def _is_sudoku(found: Reading, columns: Columns) -> bool:
    cells = [c for c in columns.by_name.values() if c.is_grid and 81 <= c.mean < 82]
    return len(cells) >= 2 and not {"question", "answer", "rating"} <= {*columns.by_name}


def _is_grid(found: Reading, columns: Columns) -> bool:
    return _is_grid_row(columns)


def _is_grid_row(columns: Columns) -> bool:
    by_name = columns.by_name
    return {"input", "output"} <= {*by_name} and all(
        by_name[name].kind in (LIST, OBJECTS) for name in ("input", "output")
    )


def _is_game(found: Reading, columns: Columns) -> bool:
    names = [*found.others, *(file.name for file in found.files)]
    return any(
        re.search(r"\.pgn(?:\.zst|\.bz2|\.gz)?$|\.pgn\.zip$", name.lower()) for name in names
    )


def _is_tokenizer(found: Reading, columns: Columns) -> bool:
    names = [*found.others, *(file.name for file in found.files)]
    endings = (".tiktoken", ".model", "tokenizer.json")
    is_named = any(name.lower().endswith(endings) for name in names)
    return is_named or {*TOKENIZER, "model.vocab"} <= {*columns.by_name}


def _is_packed(found: Reading, columns: Columns) -> bool:
    return any(
        re.search(r"\.(?:zip|tar|tgz|tar\.\w+|7z|rar)$", name.lower()) for name in found.others
    )


def _is_arrow(found: Reading, columns: Columns) -> bool:
    return any(name.lower().endswith((".arrow", ".feather")) for name in found.others)


def _is_sheet(found: Reading, columns: Columns) -> bool:
    return any(
        re.search(r"\.(?:xlsx?|ods|pkl|pickle|npy|npz|pt)$", n.lower()) for n in found.others
    )


def _is_prose(found: Reading, columns: Columns) -> bool:
    return not found.files and any(re.search(r"\.(?:txt|md|rst|tex)$", n) for n in found.others)


def _is_log(found: Reading, columns: Columns) -> bool:
    return {"board", "move"} <= {*columns.by_name} or {"state", "action"} <= {*columns.by_name}


Fits = Callable[[Reading, Columns], bool]
_FORMS: Final[Sequence[tuple[Fits, str]]] = (
    (
        _is_kaggle,
        "tasks of ARC in one file: `puzzles` reads NAME_SUBSET_challenges.json with its "
        "NAME_SUBSET_solutions.json in the folder itself",
    ),
    (
        _is_sudoku,
        "Sudokus of 81 cells: `puzzles` reads CSV files with one column of questions (question, "
        "quizzes, puzzle) and one of answers (answer, solution, solutions)",
    ),
    (
        _is_grid,
        "grids as lists: `puzzles` reads *.jsonl, whose rows have input, output, group, puzzle and "
        "set alone",
    ),
    (
        _is_game,
        "games of chess: `chess` reads one file a month, with the month in its name, as "
        "games_2024-01.pgn: `gristmill drop FILE --family chess`, and any PGNs in a folder of "
        "their own: `gristmill drop FOLDER --family chess`",
    ),
    (
        _is_tokenizer,
        "a tokenizer: `gristmill tokenizers FILE --name NAME --eod TEXT`, with the text that ends "
        "a document",
    ),
    (_is_packed, "archives: unpack them, and look again"),
    (
        _is_arrow,
        "Arrow, as `Dataset.save_to_disk` writes it: write Parquet, with "
        '`datasets.load_from_disk("folder").to_parquet("train.parquet")`',
    ),
    (_is_sheet, "tables of other tools: save them as CSV, JSON lines or Parquet"),
    (
        _is_prose,
        'plain text: write a JSON object a line, as {"text": "..."}, with texts = "{text}"',
    ),
    (_is_log, "steps of a game: `macroxue` reads the games that its player writes"),
)
"""What tells a form that no family reads, and what to say of it."""


MOST_BYTES: Final = 16 << 20
"""Bytes of text that are read, of all files together."""
_TAG: Final = re.compile(
    rb'^[ \t]*\[[ \t]*(Event|Result|(?:White|Black)(?:Elo|Title))[ \t]+"([^"\r\n]*)"', re.MULTILINE
)
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


class _Games:
    """The tags of games in some files.

    tags: how often each came. finished: games with a result. left: bytes that may still be read.
    """

    def __init__(self) -> None:
        self.tags, self.titles = Counter[str](), Counter[str]()
        self.finished, self.left, self.is_cut = 0, MOST_BYTES, False
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
                whole, end, rest = (rest + octets).rpartition(b"\n")
                self._add(whole + end)
        self._add(rest)

    def _add(self, text: bytes) -> None:
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
