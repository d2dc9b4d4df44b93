"""Drops of the reasoning family: which files hold records, and which split each belongs to.

Source: `docs/formats/reasoning.md#drops`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.inbox.sample_mark import not_samples
from gristmill.reasoning.format.corpora import CORPORA, Corpus
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import list_files

AUDITS: Final = "audits"
"""A folder of the inbox that is no drop."""
FORMATS: Final = ("jsonl", "ndjson", "json", "parquet", "csv", "tsv")
"""Endings of files that hold records."""
PACKED: Final = ("gz", "zst", "bz2", "xz")
"""Endings of compressed files, after that of the format; Parquet has its own compression."""
SPLIT_WORDS: Final = {
    **dict.fromkeys(("train", "training", "trainset"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("valset", "devset"), "validation"),
    **dict.fromkeys(("test", "testing", "testset"), "test"),
}
"""The split that a word of a file name names."""
_OWN_SPLITS: Final = {"reveal": {"eval": "test", "open": "validation"}}
"""Words of one corpus alone."""
_UNCLEAR: Final = {"eval", "evals", "evalset", "evaluation"}
"""Words that say that records are not for training, but not which split they are."""
_OTHER_FILES: Final = ("dataset_info.json", "dataset_infos.json", "state.json")
"""Files of known tools that hold no records."""
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ENDINGS: Final = re.compile(
    rf"\.(?:{'|'.join(FORMATS)})(?:\.(?:{'|'.join(PACKED)}))?$", re.IGNORECASE
)


def kind(name: str) -> tuple[str, str] | None:
    """Format and compression of a data file, None for another file.

    name: of the file; upper and lower case are equal in its endings.

    Returns one of `FORMATS`, and one of `PACKED` or "".
    """
    if name.startswith(".") or name.lower() in _OTHER_FILES:
        return None
    stem, _, ending = name.lower().rpartition(".")
    packed = ""
    if ending in PACKED:
        packed = ending
        stem, _, ending = stem.rpartition(".")
    if not stem or ending not in FORMATS or (packed and ending == "parquet"):
        return None
    return ending, packed


def words(name: str) -> list[str]:
    """The words of a file name in lower case, without its endings.

    name: `ClozeDev.json` gives cloze and dev, `test-00000-of-00001.parquet` gives test, 00000,
        of and 00001, `gsm8k.test.jsonl.gz` gives gsm, 8, k and test.

    Source: `docs/formats/reasoning.md#drops`.
    """
    return [word.lower() for word in _WORD.findall(_ENDINGS.sub("", name))]


def named_splits(name: str, corpus: Corpus) -> list[str]:
    """The splits that a file name names, each once.

    name: of a data file.
    corpus: whose drop it is in; a corpus may have words of its own.
    """
    known = SPLIT_WORDS | _OWN_SPLITS.get(corpus.name, {})
    return list(dict.fromkeys(known[word] for word in words(name) if word in known))


def corpus_of(drop: Path) -> Corpus:
    """The corpus of a drop: its folder has its name. Raises BadInput for an unknown one."""
    if drop.name not in CORPORA:
        raise BadInput(drop, f"is no known corpus: name the folder one of {', '.join(CORPORA)}")
    return CORPORA[drop.name]


def splits(drop: Path, corpus: Corpus, links: LinkRule = REFUSE_LINKS) -> dict[str, list[Path]]:
    """The data files of a drop by split, in the order of the corpus; files sorted by name.

    drop: the folder. Its subfolders are not read.
    corpus: whose records it holds.
    links: what happens to files that are links; default: they are refused.

    A file whose name names no split belongs to the first split of the corpus, if no other file
    names a split. Raises BadInput for a link, pipe, socket or device with the name of a data
    file, for a name with two splits or with one that the corpus does not have, for one that says
    evaluation without a split, for a name without a split beside names with one, and for two
    names that differ in their endings alone. Source: `docs/formats/reasoning.md#drops`.
    """
    return assigned(_data_files(drop, links), corpus)


def assigned(paths: Iterable[Path], corpus: Corpus) -> dict[str, list[Path]]:
    """Data files by split, by their names alone.

    paths: sorted by name; they need not exist.
    corpus: whose records they hold.

    Errors as `splits`.
    """
    found: dict[str, list[Path]] = {split: [] for split in corpus.splits}
    nameless: list[Path] = []
    named: Path | None = None
    by_stem: dict[str, Path] = {}
    for path in paths:
        other = by_stem.setdefault(_ENDINGS.sub("", str(path)), path)
        if other is not path:
            rule = f"has the name of {other.name} but for the ending: its records would count twice"
            raise BadInput(path, f"{rule}: take one out, or rename it if the records differ")
        names = named_splits(path.name, corpus)
        if not names:
            if unclear := _UNCLEAR.intersection(words(path.name)):
                rule = f"its name has {min(unclear)}, which says no split: rename it so that it has"
                raise BadInput(path, f"{rule} one of {', '.join(corpus.splits)}")
            nameless.append(path)
            continue
        if len(names) > 1:
            rule = f"its name names the splits {' and '.join(names)}: rename it so that it has one"
            raise BadInput(path, rule)
        if names[0] not in found:
            known = ", ".join(corpus.splits)
            rule = f"its name names the split {names[0]}; {corpus.name} has {known}"
            raise BadInput(path, f"{rule}: rename it or take it out")
        named = path
        found[names[0]].append(path)
    if nameless and named is not None:
        rule = (
            f"its name names no split, while {named.name} does: rename it so that it has one of "
            f"{', '.join(corpus.splits)}"
        )
        raise BadInput(nameless[0], rule)
    found[corpus.splits[0]] += nameless
    return {split: paths for split, paths in found.items() if paths}


def _data_files(drop: Path, links: LinkRule) -> list[Path]:
    paths = []
    try:
        for entry in list_files(drop, root=drop, links=links, deep=False):
            if kind(entry.name) is None:
                continue
            if entry.refusal is not None:
                raise BadInput(drop / entry.name, entry.refusal)
            if entry.stat.st_mode:
                paths.append(drop / entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadInput(drop, f"cannot be read: {error.strerror}") from error
    left = not_samples(drop, (path.name for path in paths))
    return sorted(path for path in paths if path.name not in left)


def split_files(
    drop: Path, corpus: Corpus, split: str, links: LinkRule = REFUSE_LINKS
) -> list[Path]:
    """The data files of one split, sorted by name; none where the drop lacks it.

    Arguments and errors as for `splits`; ValueError for a split that the corpus does not have.
    """
    if split not in corpus.splits:
        raise ValueError(f"{corpus.name} has no split {split!r}: {', '.join(corpus.splits)}")
    return splits(drop, corpus, links).get(split, [])


def splits_of(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[str]:
    """The splits that a drop has, in the order of its corpus.

    drop: a folder with the name of a corpus. Errors as `corpus_of` and `splits`.
    """
    return list(splits(drop, corpus_of(drop), links))


def refusal(drop: Path, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Why nothing can be built from a drop, None where something can.

    drop: a folder of the inbox. links: as for `splits`.

    Source: `docs/formats/reasoning.md#drops`.
    """
    try:
        if splits_of(drop, links):
            return None
    except BadInput as error:
        return str(error)
    endings = ", ".join(f".{ending}" for ending in FORMATS)
    return (
        f"{drop}: holds no data file: put files with an ending {endings} into the folder itself, "
        f"plain or packed as {', '.join(f'.{ending}' for ending in PACKED)}"
    )
