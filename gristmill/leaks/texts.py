"""Where text is: files of artifacts and drops, their rows, and the texts of a row by column.

Evaluation sets are such files, too: `drops/evals/<name>/`, and the splits `test` and `validation`
of corpora that are built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import Corpus, corpus_of_table
from gristmill.corpora.raw.drops import CORPUS, corpus_of, kind
from gristmill.corpora.raw.texts import Unfit
from gristmill.data_root.drops import RootSettings
from gristmill.inbox.marks import FORGOTTEN, SUMS
from gristmill.layout import DROPS
from gristmill.provenance.find_artifacts import Artifact, artifacts, artifacts_in, readable
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.provenance.record import Record
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import visible_files

EVALS: Final = "evals"
"""The folder of evaluation sets below `drops/`."""
INBOXES: Final = ("reasoning", "chat", "synth")
"""Those whose drops hold text."""
ASSETS: Final = ("reasoning/normalized", "chat/conversations", "synth/harmony")
"""Those whose artifacts hold text as text."""
_NORMALIZED: Final = "reasoning/raw"
_SPLITS: Final = ("__test", "__validation")
_LIST: Final = ".txt"
_LINES: Final = (".txt", ".jsonl", ".ndjson")
QUESTIONS: Final = ("question", "problem", "prompt", "instruction", "query", "input", "text")
"""Columns that a set without a recipe may have its questions in, the first that is there."""


class Text(NamedTuple):
    """A text, the number of its row in the file, from 1, and its column, as `turns[2].content`."""

    row: int
    column: str
    text: str


@dataclass(frozen=True)
class Part:
    """A file that holds text.

    place: of its artifact or drop, as `reasoning/normalized gsm8k__train`. file: its path.
    name: the path in that place. sha256: of its bytes. corpus: that reads its rows; default None.
    """

    place: str
    file: Path
    name: str
    sha256: str
    corpus: Corpus | None = field(default=None, compare=False)
    links: LinkRule = field(default=REFUSE_LINKS, compare=False)

    def texts(self) -> Iterator[Text]:
        """Yield the texts of its rows. Raises BadInput for a file that is damaged."""
        for number, row in rows(self.file, self.corpus, self.links):
            if type(row) is dict:  # without a generator for each text: nearly all of them
                for column, value in row.items():
                    if type(value) is str:
                        yield Text(number, column, value)
                    elif value is not None:
                        yield from (Text(number, *each) for each in leaves(value, str(column)))
            else:
                yield from (Text(number, *each) for each in leaves(row))


@dataclass(frozen=True)
class EvaluationSet:
    """Questions that no training text should hold.

    name: of the split or of the folder. parts: its files. digest: of all that decides which
        questions it has. own: sha256 of files that hold them by right: its own, and what it was
        made from. recipe: whether rows are read by the corpus of a part; else by their columns.
    """

    name: str
    parts: tuple[Part, ...]
    digest: str
    own: frozenset[str]
    recipe: bool = False

    def questions(self) -> Iterator[tuple[Part, Text]]:
        """Yield its questions. Raises BadInput where a row has none."""
        for part in self.parts:
            read = partial(_by_recipe, part) if self.recipe else partial(_plain, part)
            for found in read():
                yield part, found


def leaves(value: Any, column: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with its column; a list of texts is one, line by line."""
    if isinstance(value, str):
        yield column, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if inner is not None:
                yield from leaves(inner, f"{column}.{key}" if column else str(key))
    elif isinstance(value, list) and value:
        if all(isinstance(each, str) for each in value):
            yield column, "\n".join(value)
        else:
            for at, inner in enumerate(value):
                yield from leaves(inner, f"{column}[{at}]")


def rows(
    file: Path, corpus: Corpus | None = None, links: LinkRule = REFUSE_LINKS
) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a data file, from 1; those that are refused by builds are passed over.

    corpus: that reads it, which knows of tables without a header; default None.

    A line of a text, or of JSON that is a text, is a row. Raises BadInput for a damaged file.
    """
    from gristmill.corpora.raw import parquet
    from gristmill.corpora.raw import rows as raw
    from gristmill.corpora.raw.heads import of_parquet

    if file.suffix == _LIST or _holds_texts(file, links):
        yield from _listed(file, links)
        return
    if file.suffix.lower() == ".parquet":
        footer = of_parquet(parquet.footers, [file], links)[file]
        if not isinstance(footer, tuple):
            raise footer if isinstance(footer, Exception) else BadInput(file, footer)
        found = parquet.rows(file, links, [each for each in footer[0] if each not in footer[1]])
    else:
        found = raw.rows(file, corpus or _ANY, links)
    for number, row in found:
        if not isinstance(row, Unfit):
            yield number, row


_ANY: Final = corpus_of_table(
    {
        "name": "any",
        "files": {"train": "*"},
        "form": [{"name": "any", "when": [], "question": {"constant": ""}}],
    }
)


def _holds_texts(file: Path, links: LinkRule) -> bool:
    """Whether the lines of a JSON file are texts and no objects, by the first one."""
    if not file.name.endswith(_LINES):
        return False
    return next((line for _, line in _lines(file, links)), b"").lstrip().startswith(b'"')


def _lines(file: Path, links: LinkRule) -> Iterator[tuple[int, bytes]]:
    from gristmill.corpora.raw.rows import unpacked
    from gristmill.untrusted.lines import lines

    with unpacked(file, links) as texts:
        for number, line in enumerate(lines(texts, file), 1):
            if line.strip():
                yield number, line


def _listed(file: Path, links: LinkRule) -> Iterator[tuple[int, Any]]:
    for number, line in _lines(file, links):
        try:
            yield number, line.decode().strip() if file.suffix == _LIST else orjson.loads(line)
        except ValueError as error:
            raise BadInput(file, f"is no UTF-8, or no JSON: {error}", number) from error


def _by_recipe(part: Part) -> Iterator[Text]:
    from gristmill.corpora.raw.reader import Reader

    assert part.corpus is not None
    reader = Reader(part.corpus)
    reader.begin(part.name)
    for number, row in rows(part.file, part.corpus, part.links):
        try:
            record = reader.read(row, (0, number))
        except Unfit:
            continue
        if record is not None:
            yield Text(number, part.corpus.question_column or "question", record.question)
    for (_, number), record in reader.rest():
        yield Text(number, "question", record.question)


def _plain(part: Part) -> Iterator[Text]:
    for number, row in rows(part.file, part.corpus, part.links):
        if isinstance(row, str):
            yield Text(number, "", row)
            continue
        names = [name for name in QUESTIONS if isinstance(row.get(name), str)]
        if not names:
            rule = (
                f"has no column that may be its question ({', '.join(QUESTIONS)}): write a "
                f'{CORPUS} beside it with question = "name of its column"'
            )
            raise BadInput(part.file, rule, number)
        yield Text(number, names[0], row[names[0]])


def parts_of(root: Path, target: str | Path) -> list[Part]:
    """The files of text of an artifact, a drop, or all below a folder.

    root: the data root. target: a path, or the name of an artifact or a drop in the data root, as
        `reasoning/normalized`, `gsm8k__train`, `drops/reasoning/gsm8k`, `reasoning/gsm8k`.

    Raises GristmillError where there is no text of that name.
    """
    root, given = root.absolute(), Path(target)
    places = dict.fromkeys((root / given, root / DROPS / given, given.absolute()))
    found = list[Part]()
    for place in (each for each in places if each.exists()):
        if (place.is_file() or not place.is_relative_to(root)) and not artifacts_in(place):
            found = _outside(place)
        elif place == root / DROPS or root / DROPS in place.parents:
            found = list(_of_drops(root, place))
        else:
            found = list(chain.from_iterable(_of_artifact(*each) for each in _texts_at(place)))
        if found:
            return found
    named = [
        each
        for each in _texts_at(root)
        if str(target) in (each[1].asset, each[1].partition, _title(each[1]))
    ]
    found = list(chain.from_iterable(_of_artifact(*each) for each in named))
    if not found:
        raise GristmillError(
            f"{target}: no artifact or drop of this name holds text: text is in drops of "
            f"{', '.join(INBOXES)}, and in artifacts of {', '.join(ASSETS)}"
        )
    return found


def every_part(root: Path) -> list[Part]:
    """The files of text of all drops and artifacts of a data root."""
    root = root.absolute()
    of_drops = chain.from_iterable(_of_drops(root, root / DROPS / each) for each in INBOXES)
    made = chain.from_iterable(_of_artifact(*each) for each in _texts_at(root))
    return [*of_drops, *made]


def sets_of(root: Path) -> list[EvaluationSet]:
    """The evaluation sets of a data root, by name. Raises BadInput as the drop of one."""
    root = root.absolute()
    found = [*_declared(root), *_built(root)]
    return sorted(found, key=lambda each: each.name)


def has_sets(root: Path) -> bool:
    """Whether a data root has an evaluation set; no file is opened."""
    evals, records = root / DROPS / EVALS, artifacts_in(root / _NORMALIZED)
    return (evals.is_dir() and any(evals.iterdir())) or any(map(_is_split, records))


def _is_split(artifact: Artifact) -> bool:
    return (artifact.partition or "").endswith(_SPLITS)


def _built(root: Path) -> Iterator[EvaluationSet]:
    splits = filter(_is_split, artifacts_in(root / _NORMALIZED))
    for artifact, record, inputs in readable(splits):
        parts = tuple(_of_artifact(artifact, record))
        own = {*(each.sha256 for each in parts), *(each.sha256 or "" for each in inputs)}
        yield EvaluationSet(record.partition or "", parts, _digest(parts), frozenset(own))


def _declared(root: Path) -> Iterator[EvaluationSet]:
    inbox = root / DROPS / EVALS
    for drop in sorted(inbox.iterdir()) if inbox.is_dir() else ():
        if drop.name.startswith(".") or not drop.is_dir():
            continue
        recipe = (drop / CORPUS).exists()
        corpus = corpus_of(drop) if recipe else None
        names = _data_files(drop, RootSettings(root).rules(EVALS)[0])
        parts = tuple(_hashed(root, drop, names, corpus))
        if not parts:
            rule = "holds no questions: put a list of texts into it, as .txt or .jsonl"
            raise BadInput(drop, rule)
        of_recipe = hashlib.sha256((drop / CORPUS).read_bytes()).hexdigest() if recipe else ""
        own = frozenset(each.sha256 for each in parts)
        yield EvaluationSet(drop.name, parts, _digest(parts, of_recipe), own, recipe)


def _digest(parts: Iterable[Part], recipe: str = "") -> str:
    facts = [recipe, *(each.sha256 for each in parts)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _title(record: Record) -> str:
    return " ".join(filter(None, (record.asset, record.partition)))


def _texts_at(place: Path) -> Iterator[tuple[Artifact, Record]]:
    found = artifacts(place)
    if not place.is_dir():
        return
    for artifact, record, _ in readable(found):
        if record.asset in ASSETS:
            yield artifact, record


def _of_artifact(artifact: Artifact, record: Record) -> Iterator[Part]:
    for output in record.outputs:
        if output.payload and kind(output.path.rpartition("/")[2]) is not None:
            yield Part(_title(record), artifact.folder / output.path, output.path, output.sha256)


def _of_drops(root: Path, place: Path) -> Iterator[Part]:
    """The parts of a drop, of all drops of an inbox, or of a file in a drop."""
    inside = place.relative_to(root / DROPS).parts
    inboxes = [inside[0]] if inside else INBOXES
    for inbox in inboxes:
        if inbox not in (*INBOXES, EVALS):
            continue
        folder = root / DROPS / inbox
        drops = (
            [folder / inside[1]]
            if inside[1:]
            else sorted(folder.iterdir())
            if folder.is_dir()
            else []
        )
        for drop in drops:
            if drop.name.startswith(".") or drop.name in ("audits", "recipes") or not drop.is_dir():
                continue
            names = _data_files(drop, RootSettings(root).rules(inbox)[0])
            yield from _hashed(root, drop, names, _corpus(drop))


def _corpus(drop: Path) -> Corpus | None:
    """The corpus that reads a drop; None where it has none, or a recipe of conversations."""
    try:
        return corpus_of(drop)
    except GristmillError:
        return None


def _data_files(drop: Path, links: LinkRule) -> list[str]:
    names = visible_files(drop, links, (SUMS, FILE, CORPUS, FORGOTTEN))
    return [
        name for name in names if name.endswith(_LIST) or kind(name.rpartition("/")[2]) is not None
    ]


def _hashed(root: Path, drop: Path, names: Sequence[str], corpus: Corpus | None) -> Iterator[Part]:
    inbox = drop.parent.name
    links = RootSettings(root).rules(inbox)[0]
    files = [drop / name for name in names]
    place = drop.relative_to(root).as_posix()
    for name, each in zip(names, raw_inputs(root, files, inbox, drop.name, {}, links), strict=True):
        yield Part(place, drop / name, name, each.sha256 or "", corpus, links)


def _outside(place: Path) -> list[Part]:
    """The parts of a file or a folder that no data root has."""
    from gristmill.hashing import kept, sha256_file

    drop = place if place.is_dir() else place.parent
    names = _data_files(drop, REFUSE_LINKS) if place.is_dir() else [place.name]
    corpus = _corpus(drop)
    known = [name for name in names if name.endswith(_LIST) or kind(name.rpartition("/")[2])]
    return [
        Part(str(place), drop / name, name, kept(sha256_file, drop / name), corpus)
        for name in known
    ]
