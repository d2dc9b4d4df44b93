"""Which family reads files as they are, by asking each; what others want to be."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.families import inboxes, tables
from gristmill.inbox.columns import column_lines
from gristmill.inbox.listing import UNFINISHED
from gristmill.keys import refusal
from gristmill.leaks.texts import EVALS
from gristmill.look.reading import TOKENIZER, Reading
from gristmill.macroxue.raw.step_files import INBOX as GAMES
from gristmill.macroxue.raw.step_files import NPY, STEPS, board_hints
from gristmill.macroxue.raw.step_files import proposal as steps_proposal
from gristmill.printable import command
from gristmill.puzzles.builds import takes
from gristmill.puzzles.raw.drops import INBOX as PUZZLES
from gristmill.puzzles.raw.drops import proposal, tasks_in
from gristmill.puzzles.raw.fitness import FLAT, fitness, puzzle_hints
from gristmill.settings.tables import FILE, read_drop
from gristmill.synth.raw import TEXTS
from gristmill.untrusted.files import LinkRule, open_file

_MOST: Final = 3
_LONGEST: Final = 40
"""Letters of a name that is made up."""
_HEAD: Final = 1 << 20


@dataclass(frozen=True)
class Taker:
    """An inbox whose family reads the files as they are. lines: its account.

    path: the drop. name: what to call it; empty where its own name will do. recipe: the file to
    write, below the data root or `beside` the files; empty where none is needed.
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
    """The inboxes that take what was looked at, or files in it, and why each other one does not."""
    files = [*found.others, *(file.name for file in found.files)]
    taken: list[Taker] = []
    refused: dict[str, str] = {}
    for inbox, drop in inboxes().items():
        if inbox == EVALS:
            continue  # any text would do: a person alone knows what a model is asked
        shape, paths = drop.shape, [found.path]
        if not found.path.is_dir() or (shape.endings and not shape.folders):
            fitting = [each for each in files if shape.ending_of(each) not in ("", ".toml")]
            paths = [found.root / each for each in fitting[:_MOST]] if shape.endings else []
        for path in paths:
            stem = path.name.removesuffix("" if path.is_dir() else shape.ending_of(path.name))
            # A name that no drop may have gets another one.
            own = re.sub(r"[^A-Za-z0-9-]+", "_", stem).strip("_")[:_LONGEST] or "drop"
            name = "" if refusal(stem) is None else own
            try:
                account = drop.account(path, links)
                if os.path.lexists(path / FILE):
                    read_drop(path / FILE, inbox, tables(), links)
                recipe = proposal(path, links, name) if inbox == PUZZLES and account.taken else ""
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


def fits(taker: Taker, found: Reading, links: LinkRule) -> bool:
    """Whether the rows are what an inbox takes, whose account looks at names of files alone."""
    names = {*found.columns.by_name}
    if not names or taker.inbox not in ("synth", PUZZLES):
        return True
    if taker.inbox == "synth":
        return {*TEXTS} <= names
    collected = (re.search(r"[-_](challenges|solutions)\.json$", f.name) for f in found.files)
    if {"train", "test"} <= names or any(collected):
        return True
    places = {(found.root / file.name).parent for file in found.files}
    places = places if taker.path.is_dir() else {taker.path}
    with suppress(GristmillError, OSError):
        judged = [fitness(each, links) for each in places]
        return any(each is not None and each.wins for each in judged)
    return False


def task_hint(found: Reading, refused: Mapping[str, str], links: LinkRule) -> str:
    """Why no recipe of puzzles reads files that are tasks of ARC; empty where none is one."""
    sizes = {file.name: file.size for file in found.files}
    tasks = tasks_in(found.root, sizes, links) if PUZZLES in refused else None
    if tasks is None or (not tasks.way and "/" not in tasks.file):
        return FLAT if tasks else ""
    return f"tasks of ARC, which `puzzles` does not read: {refused[PUZZLES]}"


def hints(found: Reading, links: LinkRule) -> Iterator[str]:
    """Yield what files are that no family reads in this form, and the form that one reads."""
    endings = (".json", *UNFINISHED)
    for name in [name for name in found.others if not name.lower().endswith(endings)][:_MOST]:
        with suppress(GristmillError, OSError, ValueError):
            with open_file(found.root / name, root=found.root, links=links) as file:
                is_row = isinstance(json.loads(file.readline(_HEAD)), dict)
            if is_row:
                yield f"{name}: JSON lines, by what it holds: rename it to {name}.jsonl"
    names = [name.lower() for name in (*found.others, *(file.name for file in found.files))]
    for form, hint in _ENDINGS.items():
        if any(re.search(rf"(?:{form})$", name) for name in names):
            yield hint
    rows = [row for file in found.files for row in file.sample]
    if found.files:
        yield from puzzle_hints(found.root / found.files[0].name, rows, links)
    yield from board_hints(rows)
    if {*TOKENIZER, "model.vocab"} <= {*found.columns.by_name}:
        yield _TOKENIZER
    if is_nested_tree(found.columns.by_name):
        yield (
            "trees of messages in one object: bring the file with a row a message, which has "
            "message_id and parent_id, or write a row for each with these"
        )
    if not found.files and any(re.search(r"\.(?:txt|md|rst|tex)$", name) for name in names):
        yield 'plain text: write a JSON object a line, as {"text": "..."}, with texts = "{text}"'


def is_nested_tree(names: Collection[str]) -> bool:
    """Whether messages hold their replies, of which a conversation is one branch."""
    return any(name.rpartition(".")[2] == "replies" for name in names)


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
    r"\.np[yz]": f"arrays of NumPy; if they are boards of 2048, {NPY}",
    r"\.(?:xlsx?|ods|pkl|pickle|pt)": (
        "tables of other tools: save them as CSV, JSON lines or Parquet"
    ),
}
"""What to say of a file that no family reads, by the end of its name."""
