"""The splits that names of data files say, and the globs of a recipe that take them.

Source: `docs/corpora.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gristmill.corpora.raw.drops import SPLIT_WORDS, UNCLEAR, matches, stem, words

_NUMBERS: Final = re.compile(
    r"(?<![A-Za-z0-9.])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of writers of tables
    r"|\d+(?:-of-\d+)?|(?=[a-f]*\d)[0-9a-f]{8,})(?![A-Za-z0-9.])"
)
"""Numbers of a part of a table, and hashes: no words."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_DULL: Final = {"data", "default", "dataset", "main", "files", "raw", "jsonl", "json", "part"}
_EVAL: Final = "eval"
_MOST: Final = 40
_MOST_SPLITS: Final = 32
_MOST_GLOBS: Final = 8
_SHOWN: Final = 3
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
        found.setdefault(_OTHER.sub("", split)[:_MOST] or "train", []).append(name)
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
    guessed = train[:_SHOWN] if {*train} != {*found.get("train", [])} else []
    chosen = {"train": train, "validation": found.get("validation", [])}
    chosen["leave"] = [*{*names}.difference(*chosen.values())]
    return globs_of({split: sorted(own) for split, own in chosen.items() if own}), guessed
