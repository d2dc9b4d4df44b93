"""A look: what is in a folder or a file, what its columns mean, and the recipe that reads it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gristmill.chess.laws.incoming import file_notes, rows_note
from gristmill.contract import GristmillError
from gristmill.corpora import trial
from gristmill.corpora.account import Head, columns_of_recipe, counted, value_at
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.chat.marks import turns_of
from gristmill.corpora.raw.chat.messages import chat_of
from gristmill.corpora.raw.chat.recipe import Chat
from gristmill.corpora.raw.drops import CORPUS, matches
from gristmill.corpora.trial import Trial, globs_of, said_by, splits_of
from gristmill.families import inboxes, tables
from gristmill.inbox.listing import UNFINISHED, column_lines, unfit_name
from gristmill.keys import refusal
from gristmill.leaks.texts import EVALS
from gristmill.look import proposal as recipes
from gristmill.look.proposal import chat_offers
from gristmill.look.reading import FILES, TOKENIZER, FileLook, Reading, listed, read_rows, shortened
from gristmill.look.roles import CHAT, PLAIN, Guess, meant
from gristmill.macroxue.raw.step_files import INBOX as GAMES
from gristmill.macroxue.raw.step_files import NPY, STEPS, board_hints
from gristmill.macroxue.raw.step_files import proposal as steps_proposal
from gristmill.printable import command
from gristmill.puzzles.builds import takes
from gristmill.puzzles.raw.drops import INBOX as PUZZLES
from gristmill.puzzles.raw.drops import proposal as grids
from gristmill.puzzles.raw.drops import tasks_in
from gristmill.puzzles.raw.fitness import FLAT, fitness, is_bank, puzzle_hints
from gristmill.settings.tables import FILE, read_drop
from gristmill.synth.raw import TEXTS as SYNTH_TEXTS
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file

_ASKED: Final = 3
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
            paths = [found.root / each for each in fitting[:_ASKED]] if shape.endings else []
        for path in paths:
            stem = path.name.removesuffix("" if path.is_dir() else shape.ending_of(path.name))
            # A name that no drop may have gets another one.
            own = re.sub(r"[^A-Za-z0-9-]+", "_", stem).strip("_")[:_LONGEST] or "drop"
            name = "" if refusal(stem) is None else own
            try:
                account = drop.account(path, links)
                if os.path.lexists(path / FILE):
                    read_drop(path / FILE, inbox, tables(), links)
                recipe = grids(path, links, name) if inbox == PUZZLES and account.taken else ""
            except (GristmillError, OSError) as error:
                refused[inbox] = str(error)
                with suppress(GristmillError, OSError):
                    if inbox == GAMES and (recipe := steps_proposal(path, links)):
                        taken.append(Taker(inbox, path, name, ["steps of 2048"], recipe, STEPS))
                continue
            if account.taken:
                said, least = list[str](), list[str]()
                with suppress(GristmillError, OSError):
                    said += column_lines(drop.column_states(path, links, account, {}))
                    least += [takes(path, recipe, links)] if recipe else []
                becomes = [*account.lines, *least]
                taken.append(Taker(inbox, path, name, becomes, recipe, columns=said))
    return taken, refused


def fits(taker: Taker, found: Reading, links: LinkRule) -> bool:
    """Whether the rows are what an inbox takes, whose account looks at names of files alone."""
    names = {*found.columns.by_name}
    is_read = names or (taker.inbox == PUZZLES and any(file.damage for file in found.files))
    if not is_read or taker.inbox not in ("synth", PUZZLES):
        return True
    if taker.inbox == "synth":
        return {*SYNTH_TEXTS} <= names
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
    for name in [name for name in found.others if not name.lower().endswith(endings)][:_ASKED]:
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
        "games_2024-01.pgn, and any PGNs in a folder of their own"
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


OWN: Final = "reasoning"
TALKS: Final = "chat"
"""The inboxes whose drops a recipe reads."""
_OF_RECIPES: Final[Mapping[str, Any]] = {OWN: drops.corpus_of, TALKS: chat_of}
_MOST_PARTS: Final = 8
_MOST: Final = 0.8


@dataclass
class Look:
    """What was found. name: of the corpus. licence: identifier, and the file that says so.

    parts: rows with the same columns, and what these mean. takers: families that read the files
    as they are. refused: why others do not, by inbox. hints: what else the files are. columns:
    what a recipe makes of each. alone: what takes a file in a folder of its own.
    """

    reading: Reading
    name: str
    splits: Mapping[str, Sequence[str]]
    parts: Sequence[recipes.Part]
    licence: tuple[str, str]
    takers: Sequence[Taker]
    refused: Mapping[str, str]
    hints: Sequence[str]
    notes: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    proposal: Trial = field(default_factory=Trial)
    alone: Sequence[Taker] = ()


def look(
    path: Path, links: LinkRule = REFUSE_LINKS, *, is_all: bool = False, name: str | None = None
) -> Look:
    """Look at a folder or a file; nothing is written. Raises GristmillError for none.

    links: what happens to links; default: they are refused. is_all: whether every row is read;
    default False: see `reading.read_rows`. name: of the corpus; default None: of the folder.
    """
    path = path.resolve()
    reading = listed(path, links)
    taken, refused = asked(reading, links)
    tasks = task_hint(reading, refused, links)
    endings = {(drops.kind(file.name.rpartition("/")[2]) or ("",))[0] for file in reading.files}
    # Files of a table families take by their names.
    is_table = bool(endings & {"csv", "tsv", "parquet"})
    is_wanted = is_all or is_table or {each.inbox for each in taken} <= {OWN, TALKS}
    if is_wanted and not tasks:  # their pairs are no rows
        read_rows(reading, links, is_all=is_all)
    taken = [each for each in taken if fits(each, reading, links)]
    parts = _parts(reading.files)
    refused_by = _refusals(taken, parts, links)
    games = ""
    if least := min(reading.files, key=lambda each: (each.size, each.name), default=None):
        games = rows_note(reading.root, least.name, (least.sample or [{}])[0], links)
    pgns = file_notes(reading.root, reading.others, links)
    corpora = [drops.corpus_of(taker.path, links) for taker in taken if taker.inbox == OWN]
    samples = {file.name: file.sample for file in reading.files if file.sample}
    lacking = (rule for corpus in corpora for rule in trial.lacked(corpus, samples))
    notes = [*refused_by, *lacking, *pgns]
    taken = [] if any(refused_by.values()) else taken
    said = [tasks] if tasks else [] if taken else list(hints(reading, links))
    said += filter(None, [games])
    named = name or trial.name_of(path.name if path.is_dir() else path.name.partition(".")[0])
    splits = splits_of([file.name for file in reading.files])
    licence = trial.licence_of(reading.root, reading.others, links)
    found = Look(reading, named, splits, parts, licence, taken, refused, said, notes)
    found.notes += _notes(found)
    if not games:
        _propose(found, links)
    found.notes += _same_questions(found)
    return found


def alone(
    found: Look, scratch: Path, links: LinkRule = REFUSE_LINKS, name: str | None = None
) -> tuple[Look, LinkRule]:
    """Look at a file that nothing reads in a folder of its own, as at games of no month.

    scratch: gets it, with a link to the file. Returns the look, and the rule for the link.
    """
    path = found.reading.path
    if not path.is_file() or found.takers or found.proposal.good:
        return found, links
    folder = scratch / found.name
    folder.mkdir()
    (folder / path.name).symlink_to(path)
    links = replace(links, follow=True, roots=(*links.roots, str(path.parent)))
    own = look(folder, links, name=name)
    found.alone = own.takers
    return own, links


def _propose(found: Look, links: LinkRule) -> None:
    """Give what was found its recipe, and the notes on what that recipe leaves.

    Of all recipes that were tried the strongest counts. What reads a conversation comes first, and
    where it reads none it says why: another one would lose what the messages say.
    """
    reading, parts = found.reading, found.parts
    # What another family's notes say is no corpus, and a tree would lose its branches.
    rows = [row for part in parts for row in part.sample]
    if is_bank(rows) or is_nested_tree(reading.columns.by_name):
        return
    whole = recipes.Whole(found.name, found.licence, sum(file.size for file in reading.files))
    talks, left = _talks(found, whole)
    if talks is None:
        unread = [part for part in parts if not part.form[0]]
        left = {name: str(part.guess) for part in unread for name in part.files}
        found.notes += (note for part in parts for note in recipes.record_notes(part))
    found.proposal = talks or _records(found, whole, left)
    if found.takers or not found.proposal.text or not found.proposal.rows:
        return
    found.notes += shortened([f"{name}: {rule}: {drops.LEFT}" for name, rule in left.items()])
    if left:
        found.notes.append("for a recipe of what is in `leave`, move it to a folder of its own")
    recipe = trial.read_recipe(found.proposal.text)
    corpus = recipe.corpus if isinstance(recipe, Chat) else recipe
    read = [f for f in reading.files if f.name not in left and not matches(f.name, corpus.leave)]
    try:
        if reading.path == reading.root and len(read) <= FILES:
            notes = drops.account_of(reading.root, corpus, links).notes
        else:  # bytes are not compared
            taken = drops.assigned([file.name for file in read], corpus, reading.root).values()
            notes = [note for names in taken for note in drops.name_notes(names)]
        found.notes += (note for note in notes if not note.startswith("the terms are unknown"))
    except (GristmillError, OSError) as error:
        found.notes.append(f"a drop with this recipe is refused: {error}")
    split_of = {name: split for split, names in found.splits.items() for name in names}
    heads = [Head(split_of[each.name], each.sample) for each in read]
    found.columns += column_lines(columns_of_recipe(tomllib.loads(found.proposal.text), heads))


def _talks(found: Look, whole: recipes.Whole) -> tuple[Trial | None, dict[str, str]]:
    """The recipe of conversations, where all files or most of the bytes have them; the others."""
    sizes = {file.name: file.size for file in found.reading.files}
    made = trial.strongest(chat_offers(whole, found.parts, [*sizes])) if found.parts else None
    own = [part for part in found.parts if part.guess.form == CHAT]
    if made is not None or not own or len(found.parts) < 2:
        return made, {}
    if len(own) == len(found.parts):
        columns = " and ".join(str(part.guess.messages) for part in own)
        cure = "make a folder of each for whole conversations, or write them into one column"
        found.notes.append(f"conversations are in {columns}: {cure}")
    taken = sorted(name for part in own for name in part.files)
    others = dict.fromkeys([name for name in sizes if name not in taken], "holds no conversations")
    if not others or sum(map(sizes.__getitem__, taken)) < _MOST * whole.size:
        return None, {}
    return trial.strongest(chat_offers(whole, own, taken, [*others])), others


def _records(found: Look, whole: recipes.Whole, left: dict[str, str]) -> Trial:
    """The recipe of a corpus. left: files that it leaves, and why; others of these are added.

    A file of which no row gives a record is as that of a public test.
    """
    parts = [part for part in found.parts if part.files[0] not in left]
    while parts:
        parts = _of_one_meaning(parts, left)
        files = [file for file in found.reading.files if file.name not in left]
        globs = globs_of(splits_of([file.name for file in files]), [*left])
        made = recipes.proposal(whole, parts, globs, [*left])
        lost: dict[str, str] = {}
        for file in files if 0 < made.good < made.rows else ():
            own = trial.tried(trial.read_recipe(made.text), file.sample)
            if own.rows and not own.good:
                rule = (own.refused + own.left_out).most_common(1)[0][0]
                lost[file.name] = f"no row gives a record ({rule})"
        if not lost:
            return made
        left |= lost
        parts = _parts([file for file in files if file.name not in lost])
    return Trial()


def _of_one_meaning(parts: Sequence[recipes.Part], left: dict[str, str]) -> list[recipes.Part]:
    """The parts whose answer the first one does not have in another column; others are `left`."""
    parts = sorted(parts, key=lambda part: -part.columns.rows)
    for part in parts[1:]:
        pair, of = (parts[0], part), parts[0].files[0]
        forms, both = [e.guess.form for e in pair], [e.guess.answer for e in pair]
        if forms[0] != forms[1] and PLAIN in forms:
            left |= dict.fromkeys(part.files, f"its rows are {forms[1]}, those of {of} {forms[0]}")
        elif both[0] != both[1] and any({*both} <= {*each.columns.by_name} for each in pair):
            rule = f"its answers are in {both[1]}, those of {of} in {both[0]}, and both are columns"
            left |= dict.fromkeys(part.files, f"{rule} of one of them")
    return [part for part in parts if part.files[0] not in left]


def refused_rows(path: Path, links: LinkRule = REFUSE_LINKS) -> list[str]:
    """Which rows of a drop its recipe refuses, of those that a look reads. Errors as `look`."""
    reading = listed(path, links)
    read_rows(reading, links)
    taken, _ = asked(reading, links)
    return [*_refusals(taken, _parts(reading.files), links)]


def _refusals(
    taken: Sequence[Taker], parts: Sequence[recipes.Part], links: LinkRule
) -> dict[str, bool]:
    """Notes on rows that the recipes of drops refuse, and whether these read none of a part."""
    own = [taker for taker in taken if taker.inbox in _OF_RECIPES]
    known = [_OF_RECIPES[taker.inbox](taker.path, links) for taker in own]
    groups = [(part.files, part.sample) for part in parts]
    return dict(note for recipe in known for note in trial.refusals(recipe, groups))


def write(found: Look, data_root: Path = Path("data")) -> Path:
    """Write the recipe where its family reads it, and return its path. Raises GristmillError.

    data_root: below which the recipes of puzzles are; others stand beside the files.
    """
    taker = next((taker for taker in found.takers if taker.recipe), None)
    place = found.reading.root / CORPUS if taker is None else recipe_place(found, taker, data_root)
    reason = "the recipe reads no row that was looked at" * (not found.proposal.good)
    reason = reason if found.proposal.text else "no recipe reads what was found"
    reason = f"{found.takers[0].inbox} reads the files as they are" if found.takers else reason
    if taker is None and reason and not place.exists():
        raise GristmillError(f"{place}: is not written: {reason}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as file:
            file.write(found.proposal.text if taker is None else taker.recipe)
    except FileExistsError as error:
        raise GristmillError(f"{place}: is there already: move it away first") from error
    return place


def recipe_place(found: Look, taker: Taker, data_root: Path) -> Path:
    """Where the recipe stands that a family needs to read the files."""
    if taker.beside:
        return found.reading.root / taker.beside
    return data_root / "drops" / taker.inbox / "recipes" / f"{found.name}.toml"


def _parts(files: Sequence[FileLook]) -> list[recipes.Part]:
    """The rows by what their columns mean: files with the same columns are guessed together."""
    by_columns: dict[tuple[str, ...], list[FileLook]] = {}
    for file in files:
        if file.sample:
            names = tuple(sorted({name for row in file.sample for name in row}))
            by_columns.setdefault(names, []).append(file)
    by_guess: dict[Guess, list[FileLook]] = {}
    for alike in by_columns.values():
        rows = [row for file in alike for row in file.sample]
        by_guess.setdefault(meant(counted(rows), rows), []).extend(alike)
    choices = {said.choices for said in by_guess} - {None}
    for said in [each for each in by_guess if each.answer in choices]:
        # Of the same choices another file says the right one; this one does not, as of a test.
        alike = by_guess.pop(said)
        by_guess.setdefault(replace(said, choices=said.answer, answer=None), []).extend(alike)
    made = []
    for said, alike in list(by_guess.items())[:_MOST_PARTS]:
        rows = [row for file in alike for row in file.sample]
        bare = next((file.headerless for file in alike if file.headerless), {})
        made.append(recipes.Part(said, [file.name for file in alike], counted(rows), rows, bare))
    return made


def _notes(found: Look) -> list[str]:
    notes = list(found.reading.notes)
    every = [*found.reading.others, *(file.name for file in found.reading.files)]
    if unfit := unfit_name(every):
        notes.append(f"a drop with it is refused: {unfit[0]}: {unfit[1]}")
    if found.reading.path.name in CORPORA and OWN in found.refused:
        notes.append(f"not read by {OWN}: {found.refused[OWN]}")
    if len(found.parts) > 1:
        rest = [f"{part.files[0]} ({len(part.files):,}): {part.guess}" for part in found.parts]
        folders = {name.rpartition("/")[0] for part in found.parts for name in part.files[:1]}
        rule = "; in folders of their own they may be configurations of one dataset: put all but"
        cure = f"{rule} one into `leave`" if len(folders) == len(found.parts) else ""
        notes.append(f"files have other columns: {'; '.join(rest)}{cure}")
    return notes + [note for part in found.parts for note in recipes.part_notes(part)]


def _same_questions(found: Look) -> list[str]:
    """Notes on questions in two splits, from one on, and on files that share most of theirs."""
    leave = tomllib.loads(found.proposal.text).get("leave", [])
    own = {name: split for split, names in found.splits.items() for name in names}
    guesses = {name: part.guess for part in found.parts for name in part.files}
    asked: dict[str, dict[str, int]] = {}
    for file in [file for file in found.reading.files if file.name in guesses]:
        # What is held out by its name is not to be in train, either.
        if said_by(file.name) not in (set(), {"train"}) or not matches(file.name, leave):
            texts = (_asked_of(row, guesses[file.name]) for row in file.sample)
            places = [*zip(texts, file.numbers, strict=True)]
            asked[file.name] = {text: number for text, number in reversed(places) if text}
    return shortened([*trial.same_questions(asked, own)])


def _asked_of(row: Mapping[str, Any], guess: Guess) -> str:
    """What a row asks: its question, or the first message of a user; empty for none."""
    if turns := turns_of(value_at(row, guess.messages or "")):
        said = next((text for role, text in turns if role == "user"), None)
        return said if isinstance(said, str) else ""
    # Of one question on another text another answer is right.
    beside = [value_at(row, name) for name in (guess.context, guess.choices) if name]
    said = value_at(row, guess.question or "")
    return f"{said}{beside or ''}" if isinstance(said, str) else ""
