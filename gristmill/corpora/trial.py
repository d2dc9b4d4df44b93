"""Recipes that no drop has yet: text, licence, splits by the names of files, and what they read.

What a recipe makes of rows is said by the laws of a build.

Source: `docs/corpora.md`.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import CORPORA, NAME, Corpus
from gristmill.corpora.raw.chat.lists import Trees
from gristmill.corpora.raw.chat.messages import CHAT_CURES, THINK, Messages, Talk
from gristmill.corpora.raw.chat.recipe import Chat, chat_of_table
from gristmill.corpora.raw.corpus_file import absent, checked
from gristmill.corpora.raw.drops import (
    CORPUS,
    SPLIT_WORDS,
    UNCLEAR,
    assigned,
    matches,
    stem,
    words,
)
from gristmill.corpora.raw.reader import Reader, emptiness, with_columns
from gristmill.corpora.raw.rules import Rules
from gristmill.corpora.raw.texts import Unfit, is_left_out
from gristmill.printable import cut
from gristmill.settings.fields import toml_value
from gristmill.untrusted.files import LinkRule, open_file

Row = Mapping[str, Any]
_SEVERAL: Final = 3
_SAME: Final = 0.5
_PAIRS: Final = 64
_SHOWN: Final = 40
_TOKEN: Final = re.compile(r"<[|｜][^<>|｜\n]{1,40}[|｜]>")
_FACTS: Final = {"type", "id", "uuid", "status", "name", "timestamp", "created_at", "create_time"}
"""Keys of messages that say what a message is, and nothing of its text."""


@dataclass
class Trial:
    """What a recipe makes of some rows.

    text: of the recipe, where one was written. inbox: whose drops have such a recipe.
    refused: how many of the rows that are not good broke which rule; left_out: those that the
    recipe leaves out. unread: in how many good rows what is not read.
    """

    text: str = ""
    rows: int = 0
    good: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    inbox: str = "reasoning"


def read_recipe(text: str) -> Corpus | Chat:
    """What the text of a recipe says. Raises ValueError for a value that is wrong."""
    raw = tomllib.loads(text)
    return chat_of_table(raw) if raw.get("kind") == "chat" else checked(raw, raw["name"])


def tried(corpus: Corpus | Chat, rows: Iterable[Row]) -> Trial:
    """What becomes of the rows that were looked at, by the laws of a build; without its text.

    Raises ValueError for a value of the corpus that is wrong.
    """
    made, answers = Trial(), Counter[str]()
    read = _talks(corpus, made) if isinstance(corpus, Chat) else _records(corpus, made, answers)
    for place, row in enumerate(rows, 1):
        made.rows += 1
        try:
            read(row, place)
            made.good += 1
        except Unfit as unfit:
            rule = unfit.rule
            if isinstance(corpus, Chat):
                cure = CHAT_CURES.get(unfit.reason, "")
            else:
                rule, cure = with_columns(unfit, corpus, row).rule, ""
                if unfit.reason == "question" and (name := corpus.question_column) in row:
                    keep = f"keep = [{{ column = {toml_value(name)}, present = true }}]"
                    cure = f"{keep} leaves such rows out"
            rule = f"{rule}: {cure}" if cure else rule
            (made.left_out if is_left_out(unfit.reason) else made.refused)[rule] += 1
    if len(answers) == 1 and made.good >= _SEVERAL and (answer := answers.most_common(1)[0][0]):
        made.unread[f"one and the same answer, {toml_value(cut(answer, _SHOWN))}"] = made.good
    made.unread += Counter()  # without what was not there
    return made


Read = Callable[[Row, int], None]


def _records(corpus: Corpus, made: Trial, answers: Counter[str]) -> Read:
    """What reads a row as a record, and counts what it gives."""
    reader, rules, is_empty = Reader(corpus), Rules(corpus, None), emptiness(corpus)

    def read(row: Row, place: int) -> None:
        rules.check_row(row)
        if (record := reader.read(row, (0, place))) is not None:
            made.unread["no text, which are kept"] += is_empty(record)
            is_thought = bool(record.cot) and not record.answer.strip()
            made.unread["a thought and an empty answer, which are kept"] += is_thought
            rules.check(record, row)
            answers[record.answer] += 1

    return read


def _talks(chat: Chat, made: Trial) -> Read:
    """What reads a row as a conversation, or as a message of a tree, and counts what it gives."""
    reader = Messages(chat)
    trees = None if chat.tree is None else Trees(chat)

    def read(row: Row, place: int) -> None:
        if trees is not None:
            trees.add(row, (0, place))
            return
        talk = reader.read(row)
        _ = talk.json
        made.unread.update({*_unread(talk)})

    return read


def _unread(talk: Talk) -> Iterator[str]:
    """Yield what of a conversation is not read as it may be meant."""
    for key in talk.ignored:
        if key not in _FACTS:
            yield f"messages whose key {key} nothing reads: name it in `keys` if it is one of these"
    for each in talk.messages:
        if token := _TOKEN.search(each.content):
            yield f"{token[0]} in a message, which stays text: `marks` name what is none"
        if each.channel == "final" and any(tag in each.content for tag in THINK):
            yield f"{THINK[0]} or {THINK[1]} inside an answer, which stays text"


def refusals(
    recipe: Corpus | Chat, groups: Iterable[tuple[Sequence[str], Sequence[Row]]]
) -> Iterator[tuple[str, bool]]:
    """Yield a note on each group with rows that a recipe refuses, and whether it reads none.

    groups: names of files, and rows of theirs that were looked at.
    """
    corpus = recipe.corpus if isinstance(recipe, Chat) else recipe
    for names, rows in groups:
        if all(matches(name, corpus.leave) for name in names):
            continue
        if (made := tried(recipe, rows)).good and not made.refused:
            continue
        (rule, _), *_ = (made.refused or made.left_out).most_common(1) or [("", 0)]
        if made.good:
            count = f"{made.refused.total():,} of {made.rows:,} rows tried are refused"
            yield f"{names[0]}: {count}: {rule}", False
        elif made.rows:
            yield (
                f"{names[0]}: the corpus {corpus.name} reads none of {made.rows:,} rows: {rule}",
                True,
            )


def lacked(corpus: Corpus, samples: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the columns that a recipe names and no row of a split has. samples: rows by file."""
    forms = [] if corpus.is_built_in else Reader(corpus).forms
    rules: dict[str, str] = {}
    for split, names in assigned(samples, corpus).items() if forms else ():
        if rows := [row for name in names for row in samples[name]]:
            took = {next((each.form.name for each in forms if each.fits(row)), "") for row in rows}
            rules[split] = absent(corpus, took, {name for row in rows for name in row})
    for rule in dict.fromkeys(filter(None, rules.values())):
        own = [split for split in rules if rules[split] == rule]
        yield f"{CORPUS}: {'' if len(own) == len(rules) else f'{own[0]}: '}{rule}"


def same_questions(
    asked: Mapping[str, Mapping[str, int]], split_of: Mapping[str, str]
) -> Iterator[str]:
    """Yield notes on questions in two splits, from one on, and on files that share most of theirs.

    asked: of each file its questions, each with the number of its row. split_of: of each file.
    """
    names = sorted(name for name in asked if asked[name])[:_PAIRS]
    for name, other in combinations(names, 2):
        same, least = asked[name].keys() & asked[other], min(len(asked[name]), len(asked[other]))
        is_one = split_of[name] == split_of[other]
        if not same or (is_one and len(same) < _SAME * least):
            continue
        text = min(same, key=asked[name].__getitem__)
        where = f"{name} row {asked[name][text]:,} and {other} row {asked[other][text]:,}"
        splits = "one split, twice" if is_one else f"{split_of[name]} and {split_of[other]}"
        yield (
            f"{name} and {other} have the same questions ({len(same):,} of {least:,}), first "
            f"{where}, in {splits}: put one file into `leave`, or take these rows out"
        )


Table = dict[str, Any]
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MOST_LEFT: Final = 100


def recipe_text(head: Table, forms: Sequence[Table], notes: Sequence[str]) -> str:
    """A recipe as its file has it. notes: its first lines."""
    lines = [f"# {note}" for note in dict.fromkeys(notes)]
    lines += [f"{key} = {toml(value)}" for key, value in head.items()]
    for form in forms:
        lines += ["", "[[form]]"] if len(forms) > 1 else []
        lines += [f"{_key(key)} = {toml(value)}" for key, value in form.items()]
    return "\n".join(lines) + "\n"


def head_of(
    begin: Table,
    licence: tuple[str, str],
    files: Mapping[str, Sequence[str]],
    leave: Iterator[str],
    notes: list[str],
) -> Table:
    """What a recipe of any kind begins with. begin: its first values. Others as of `proposal`."""
    head = dict(begin)
    if licence[0]:
        head["licence"] = {"id": licence[0]}
        notes.append(f"The licence is what {licence[1]} says: read its terms.")
    if files:
        head["files"] = {split: g[0] if len(g) == 1 else [*g] for split, g in files.items()}
    if left := [*leave][:_MOST_LEFT]:
        head["leave"] = left
    return head


_ENOUGH: Final = 0.95


def strongest(offers: Iterable[Trial]) -> Trial | None:
    """The first recipe that reads 95 % of the rows, else the one that reads most; None of none."""
    best: Trial | None = None
    for made in offers:
        best = made if best is None or made.good > best.good else best
        if best.rows and best.good >= _ENOUGH * best.rows:
            break
    return best


def recipe(head: Table, forms: Sequence[Table], notes: Sequence[str], rows: Iterable[Row]) -> Trial:
    """A recipe, and what it reads of rows that were looked at. notes: its first lines."""
    inbox, text = head.get("kind", Trial.inbox), recipe_text(head, forms, notes)
    try:
        text.encode()  # a column's name may hold what no file can
        made = tried(read_recipe(text), rows)
        return replace(made, text=text, inbox=inbox)
    except ValueError as error:
        is_chat = inbox != Trial.inbox
        return Trial(text if is_chat else "", refused=Counter([str(error)]), inbox=inbox)


def name_of(folder: str) -> str:
    """The name of a folder as that of a corpus, which no built-in one has."""
    words = re.findall(r"[a-z0-9]+", folder.lower())
    made = "_".join(words)[:36].rstrip("_") or "corpus"
    return f"{made}_own" if made in CORPORA or NAME.fullmatch(made) is None else made


def toml(value: object) -> str:
    """A value as TOML in one line, tables included."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return toml_value(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml(key)


_HEAD: Final = 1 << 15
_FILES: Final = re.compile(r"(?:licen[cs]e|copying|readme|dataset_?card)[^/]*", re.IGNORECASE)
_SAID: Final = re.compile(r"^\s*licen[cs]e\s*:\s*([A-Za-z0-9.+-]{2,40})\s*$", re.I | re.M)
_WORDS: Final = (
    ("Apache-2.0", r"apache license,?\s+version 2|apache[- ]2\.0"),
    ("CC-BY-NC-SA-4.0", r"by-nc-sa[- ]4\.0|attribution-noncommercial-sharealike 4\.0"),
    ("CC-BY-NC-4.0", r"by-nc[- ]4\.0|attribution-noncommercial 4\.0"),
    ("CC-BY-SA-4.0", r"by-sa[- ]4\.0|attribution-sharealike 4\.0"),
    ("CC-BY-4.0", r"\bcc[- ]by[- ]4\.0|attribution 4\.0 international"),
    ("CC0-1.0", r"\bcc0\b"),
    ("MIT", r"\bmit license\b|permission is hereby granted, free of charge, to any person"),
    ("ODC-BY-1.0", r"odc-by|open data commons attribution"),
    ("GPL-3.0", r"gnu general public license\s+version 3"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms"),
)


def licence_of(root: Path, names: Collection[str], links: LinkRule) -> tuple[str, str]:
    """The licence that a file names, and that file; two empty texts where none does.

    root: the folder. names: of the files in it. The key `license` of a dataset card comes first.
    """
    texts = {}
    for name in filter(_FILES.fullmatch, sorted(names)):
        with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as f:
            texts[name] = f.read(_HEAD).decode("utf-8", "replace")
    ids = {each.lower(): each for each, _ in _WORDS}
    for name, text in texts.items():
        if found := _SAID.search(text):
            return ids.get(found[1].lower(), found[1]), name
    said = (
        (licence, name)
        for name, text in texts.items()
        for licence, form in _WORDS
        if re.search(form, text, re.IGNORECASE)
    )
    return next(said, ("", ""))


_NUMBERS: Final = re.compile(
    r"(?<![A-Za-z0-9.])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of writers of tables
    r"|\d+(?:-of-\d+)?|(?=[a-f]*\d)[0-9a-f]{8,})(?![A-Za-z0-9.])"
)
"""Numbers of a part of a table, and hashes: no words."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_DULL: Final = {"data", "default", "dataset", "main", "files", "raw", "jsonl", "json", "part"}
_EVAL: Final = "eval"
_LONGEST: Final = 40
_MOST_SPLITS: Final = 32
_MOST_GLOBS: Final = 8
_GUESSED: Final = 3
_WHOLE: Final = ("all", "default", "main")
"""Folders of a configuration that has the rows of the others."""


def splits_of(names: Sequence[str]) -> dict[str, list[str]]:
    """The files of a folder by the split that their names and folders say; ours are first.

    names: POSIX paths in the folder.

    A word as train, dev or test says the split. Beside files of other splits, files that differ in
    other words are splits of their own, as `trainsft` and `traingen`. Files without such a word
    are `train` where all have one name but for numbers, else each name is a split. Names with
    `eval` or with several such words are splits of their own. Of more than 32 such names the words
    alone count: files without one are `train`, or `other` beside files that have one.
    """
    labels = {name: _label(name) for name in names}
    known: dict[str, set[str]] = {}
    for label in labels.values():
        known.setdefault(_word(label), set()).add(label)
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        label = labels[name]
        word, said = _word(label), said_by(label)
        is_alone = len(known[word]) == 1 if word else known == {"": {label}}
        is_ours = (is_alone or (word and len(known) == 1)) and said in (set(), {word})
        split = word or "train" if is_ours else label
        # As the name of a split: lower case and digits, as a recipe takes it.
        found.setdefault(_OTHER.sub("", split)[:_LONGEST] or "train", []).append(name)
    if len(found) > _MOST_SPLITS:
        rest = "other" if any(map(said_by, names)) else "train"
        found = {}
        for name in sorted(names):
            found.setdefault(_word(labels[name]) or rest, []).append(name)
    order = [*dict.fromkeys(SPLIT_WORDS.values()), *sorted(found)]
    return {split: found[split] for split in dict.fromkeys(order) if split in found}


def globs_of(
    splits: Mapping[str, Sequence[str]], besides: Sequence[str] = ()
) -> dict[str, list[str]]:
    """For each split the globs that take its files and no other: numbers of a name are `*`.

    There is none for a file alone whose name says no split: a rule `split` may divide its rows.
    """
    if [len(names) for names in splits.values()] == [1] and not besides:
        ((name,),) = splits.values()
        if not said_by(name):
            return {}
    if len(splits) == 1 and not besides:
        # A file of another split may come later, and `*` would take it.
        ((split, names),) = splits.items()
        globs = [*dict.fromkeys(map(_starred, names))]
        return {split: globs if len(globs) <= _MOST_GLOBS else ["*"]}
    every = {name: split for split, names in splits.items() for name in names}
    others = dict.fromkeys(besides, "")
    made: dict[str, dict[str, None]] = {}
    taken: dict[str, set[str]] = {}
    for name, split in every.items():
        glob, own = _starred(name), literal(name)
        # What stands for one name alone is not compared with all others.
        if glob != own and glob not in taken:
            taken[glob] = {
                of for other, of in {**every, **others}.items() if matches(other, [glob])
            }
        made.setdefault(split, {})[glob if taken.get(glob) == {split} else own] = None
    return {split: list(globs) for split, globs in made.items()}


def _starred(name: str) -> str:
    """The glob of a name with `*` for numbers."""
    begin = stem(name)
    return _NUMBERS.sub("*", literal(begin)) + literal(name[len(begin) :])


def literal(name: str) -> str:
    """The glob that takes a name alone."""
    return re.sub(r"([\[*?])", r"[\1]", name)


def _label(name: str) -> str:
    """The words of a path without numbers of parts, and without words that say nothing."""
    parts = [_HUMP.sub("_", _NUMBERS.sub("", part)) for part in stem(name).split("/")]
    said = [word for part in parts for word in _OTHER.split(part.lower()) if word]
    return "_".join(w for w in said if w not in _DULL and not w.isdigit()) or "train"


def said_by(name: str) -> set[str]:
    """The splits that the words of a path say, and `eval` for a word that says another one."""
    found = words(name)
    splits = {SPLIT_WORDS[word] for word in found if word in SPLIT_WORDS}
    is_held = any(word.startswith(_EVAL) or word in UNCLEAR for word in found)
    return splits | ({_EVAL} if is_held else set())


def _word(label: str) -> str:
    """The split that the words of a label say, empty where they say none or several."""
    found = said_by(label) - {_EVAL}
    return found.pop() if len(found) == 1 else ""


def train_and_left(names: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The globs of train and validation, and of files to leave; and the first of a guessed train.

    Of several files for training those of a configuration of all rows count, or the supervised
    ones. Beside a file for training one that does not say so may be held out.
    """
    found = splits_of(names)
    if not any(map(said_by, names)) and "train" not in found:
        return {}, []
    train = [name for name in names if said_by(name) == {"train"}]
    folders = {name.partition("/")[0] for name in train if "/" in name}
    if len(folders) > 1 and (whole := [n for n in train if n.partition("/")[0] in _WHOLE]):
        train, found = whole, {}  # of no other configuration
    elif "train" not in found and any("sft" in name for name in train):
        train = [name for name in train if "sft" in name]
    train = train or found.get("train") or [name for name in names if not said_by(name)]
    guessed = train[:_GUESSED] if {*train} != {*found.get("train", [])} else []
    chosen = {"train": train, "validation": found.get("validation", [])}
    chosen["leave"] = [*{*names}.difference(*chosen.values())]
    return globs_of({split: sorted(own) for split, own in chosen.items() if own}), guessed
