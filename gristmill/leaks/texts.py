"""Where text is: files of artifacts and drops, their rows, and the texts of a row by column.

Evaluation sets are such files, too: `drops/evals/<name>/`, and the splits `test` and `validation`
of corpora that are built.
"""

from __future__ import annotations

import hashlib
import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import Corpus, corpus_and_split
from gristmill.corpora.raw.drops import CORPUS, corpus_of, kind, matches
from gristmill.corpora.raw.texts import Unfit
from gristmill.data_root.drops import RootSettings
from gristmill.families import Forgets, Unit
from gristmill.hashing import kept, sha256_file
from gristmill.inbox.listing import Account
from gristmill.inbox.marks import FORGOTTEN, SUMS, is_only_sample, not_samples
from gristmill.layout import DROPS
from gristmill.provenance.find_artifacts import Artifact, artifacts, artifacts_in, readable
from gristmill.provenance.raw_inputs import drop_of, raw_inputs
from gristmill.provenance.record import Record
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, refuse_equal
from gristmill.untrusted.json_text import members
from gristmill.untrusted.limits import LIMITS
from gristmill.untrusted.lines import lines, with_line_feeds
from gristmill.untrusted.walk import visible_files

if TYPE_CHECKING:
    from gristmill.corpora.raw.rows import Piece

EVALS: Final = "evals"
"""The folder of evaluation sets below `drops/`."""
INBOXES: Final = ("reasoning", "chat", "synth")
"""Those whose drops hold text."""
ASSETS: Final = ("reasoning/normalized", "chat/conversations", "synth/harmony")
"""Those whose artifacts hold text as text."""
_NORMALIZED: Final = "reasoning/raw"
_SPLITS: Final = ("__test", "__validation")
_LIST: Final = "txt"
QUESTIONS: Final = ("question", "problem", "prompt", "instruction", "query", "input", "text")
"""Columns that a set without a recipe may have its questions in, the first that is there."""


_NO_QUESTION: Final = (
    f"has no column that may be its question ({', '.join(QUESTIONS)}): write a {CORPUS} beside it "
    'with question = "name of its column"'
)


class NoText(GristmillError):
    """What was named holds no text."""


class Text(NamedTuple):
    """A text, the number of its row in the file, from 1, and its column, as `turns[2].content`."""

    row: int
    column: str
    text: str


@dataclass
class Counts:
    """Rows of a file that were read or refused, those refused, and lines of pieces before.

    skipped: columns that are not read, since they hold bytes.
    """

    rows: int = 0
    unread: int = 0
    lines: int = 0
    skipped: list[str] = field(default_factory=list)


def form(name: str) -> tuple[str, str] | None:
    """Format and packing of a file of text, `txt` for a list; None for another file."""
    return (_LIST, "") if name.lower().endswith(f".{_LIST}") else kind(name)


@dataclass(frozen=True)
class Part:
    """A file that holds text.

    place: of its artifact or drop, as `reasoning/normalized gsm8k__train`. file: its path.
    name: the path in that place. sha256: of its bytes; empty before `hashed`. corpus: that reads
    its rows; default None. is_recorded: whether the sum is that of a record; default False.
    """

    place: str
    file: Path
    name: str
    sha256: str = ""
    corpus: Corpus | None = field(default=None, compare=False)
    links: LinkRule = field(default=REFUSE_LINKS, compare=False)
    is_recorded: bool = field(default=False, compare=False)

    @cached_property
    def key(self) -> str:
        """Digest of all that decides which texts the file gives; of a set as of any other."""
        of = self.corpus
        recipe = (of.name, of.version, of.table) if of else ()
        facts = repr((form(self.file.name), self.links, recipe)).encode()
        return f"{self.sha256[:40]}-{hashlib.sha256(facts).hexdigest()[:16]}"

    @cached_property
    def home(self) -> Path:
        """Where the file lies, however its folder is named; a link to a file is a place itself."""
        return self.file.parent.resolve() / self.file.name

    def texts(self, counts: Counts, piece: Piece | None = None) -> Iterator[Text]:
        """Yield the texts of its rows, and count these.

        piece: of it, whose rows alone are read, behind as many lines as `counts` has; default: all.

        Raises BadInput for a file that is damaged, or has not the bytes of its sum.
        """
        before = counts.lines
        for line, row in self.rows(piece, counts.skipped):
            number = before + line
            counts.rows += 1
            if type(row) is dict:  # without a generator for each text: nearly all of them
                for column, value in row.items():
                    if type(value) is str:
                        yield Text(number, column, value)
                    elif value is not None:
                        yield from (Text(number, *each) for each in leaves(value, str(column)))
            elif isinstance(row, Unfit):
                counts.unread += 1
            else:
                yield from (Text(number, *each) for each in leaves(row))

    def rows(
        self, piece: Piece | None = None, skipped: list[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield its rows as `rows` does, of the bytes that have its sum."""
        with self.unchanged():
            yield from rows(self.file, self.corpus, self.links, piece, skipped)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise BadInput where the file has not the bytes of its sum, or changes within."""
        before = _STAMP(self.file.stat())
        if kept(sha256_file, self.file) != self.sha256:
            cure = "is not as its record says: `gristmill verify` says more"
            raise BadInput(self.file, cure if self.is_recorded else _CHANGED)
        yield
        if _STAMP(self.file.stat()) != before:
            raise BadInput(self.file, _CHANGED)


_CHANGED: Final = "changed while it was read: call the command again"
_STAMP: Final = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


@dataclass(frozen=True)
class EvaluationSet:
    """Questions that no training text should hold.

    name: of the split or of the folder. parts: its files, whose rows are read by their corpus; else
        by their columns. own: places of files that hold the questions by right: its own, and those
        that it was made from. A copy elsewhere holds them by no right. texts: in place of parts,
        each looked for by itself, whatever the others have; default none.
    """

    name: str
    parts: tuple[Part, ...]
    own: frozenset[Path]
    texts: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Of all that decides which questions it has."""
        facts = repr([(each.key, each.name) for each in self.parts])
        return hashlib.sha256(facts.encode()).hexdigest()[:32]

    def questions(self) -> Iterator[tuple[Part, Text]]:
        """Yield its questions. Raises BadInput where a row has none."""
        from gristmill.corpora.raw.reader import Reader

        for part in self.parts:
            corpus, reader = part.corpus, Reader(part.corpus) if part.corpus else None
            if reader is not None:
                reader.begin(part.name)
            for number, row in part.rows():
                try:
                    if isinstance(row, Unfit):
                        raise row
                    if corpus is not None and reader is not None:
                        if (record := reader.read(row, (0, number))) is not None:
                            column = corpus.question_column or "question"
                            yield part, Text(number, column, record.question)
                    elif isinstance(row, str):
                        yield part, Text(number, "", row)
                    else:
                        names = (name for name in QUESTIONS if isinstance(row.get(name), str))
                        if (column := next(names, "")) == "":
                            raise Unfit("no_question", _NO_QUESTION)
                        yield part, Text(number, column, row[column])
                except Unfit as error:
                    raise BadInput(part.file, error.rule, number) from error
            for (_, number), record in reader.rest() if reader is not None else ():
                yield part, Text(number, "question", record.question)


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
    file: Path,
    corpus: Corpus | None = None,
    links: LinkRule = REFUSE_LINKS,
    piece: Piece | None = None,
    skipped: list[str] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a data file, from 1; of one that cannot be read why.

    corpus: that reads it, which knows of tables without a header; default None. piece: of JSON
    lines, whose rows alone are read, from 1; default: all. skipped: gets the columns of bytes.

    A line of a text, or of JSON that is a text, is a row. Raises BadInput for a damaged file.
    """
    from gristmill.corpora.account import of_parquet
    from gristmill.corpora.raw import parquet
    from gristmill.corpora.raw import rows as raw

    found: Iterator[tuple[int, Any]]
    ending, _ = form(file.name) or ("", "")
    if ending == _LIST:
        yield from ((number, row) for number, row in _texts(file, links, None, _line) if row)
        return
    if ending == "parquet":
        footer = of_parquet(parquet.footers, [file], links)[file]
        if not isinstance(footer, tuple):
            raise footer if isinstance(footer, Exception) else BadInput(file, footer)
        if skipped is not None:
            skipped += footer[1]
        found = parquet.rows(file, links, [each for each in footer[0] if each not in footer[1]])
    else:
        columns = None if corpus else _Every()
        found = raw.rows(file, corpus or _ANY, links, columns=columns, piece=piece)
    texts = _texts(file, links, piece, _text)
    for number, row in found:
        if isinstance(row, Unfit) and row.reason == "object":
            yield number, next((text for at, text in texts if at >= number), row)
        else:
            yield number, row


_ANY: Final = replace(corpus_and_split("any__train")[0], forms=())  # no column is its question


class _Every(frozenset[str]):
    """All columns: where no recipe chooses, a row is refused that has any of them twice."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, _: object) -> bool:
        return True


def _texts(
    file: Path, links: LinkRule, piece: Piece | None, read: Callable[[bytes], Any]
) -> Iterator[tuple[int, Any]]:
    """Yield number and text of the rows of a file; of a row that is none, that it is none.

    read: takes a line, and returns its text.
    """
    from gristmill.corpora.raw.rows import one_or_lines, unpacked

    no_text = Unfit("object", "is no JSON object, and no text")
    with unpacked(file, links, piece=piece) as parts:
        first = next(parts, b"")
        if piece is None or not piece.begin:  # within a file these bytes are no mark
            if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise BadInput(file, "is UTF-16: save it as UTF-8")
            first = first.removeprefix(BOM_UTF8)
        texts: Iterator[bytes] = chain([first], parts)
        is_whole = False
        if piece is None and read is _text:
            is_whole, texts = one_or_lines(texts, file, LIMITS)
        if is_whole:
            values: Iterator[Any] = (value for _, value in members(texts, file, LIMITS))
        else:
            values = map(read, lines(with_line_feeds(texts, lambda e: read(e) is not None), file))
        for number, one in enumerate(values, 1):
            yield number, one if isinstance(one, str | Unfit) else no_text


def _line(line: bytes) -> str | Unfit:
    """The text of a line of a list."""
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        return Unfit("utf8", f"is not UTF-8: {error}")


def _text(line: bytes) -> Any:
    """The text that a line of JSON is; None for another one."""
    try:
        return json.loads(line) if line.lstrip().startswith(b'"') else None
    except ValueError:
        return None


def parts_of(root: Path, target: str | Path) -> list[Part]:
    """The files of text of an artifact, a drop, or all below a folder.

    root: the data root. target: a path, or the name of an artifact or a drop in the data root, as
        `reasoning/normalized`, `gsm8k__train`, `drops/reasoning/gsm8k`, `reasoning/gsm8k`.

    Raises NoText where there is no text of that name.
    """
    root, given = root.absolute(), Path(target)
    places = dict.fromkeys((root / given, root / DROPS / given, given.absolute()))
    found = list[Part]()
    for place in (each for each in places if each.exists()):
        if (place.is_file() or not place.is_relative_to(root)) and not artifacts_in(place):
            drop = place if place.is_dir() else place.parent
            corpus = _corpus(drop)
            names = _data_files(drop, REFUSE_LINKS, corpus) if place.is_dir() else [place.name]
            known = (name for name in names if form(name.rpartition("/")[2]))
            found = [Part(str(drop), drop / name, name, "", corpus) for name in known]
        elif place == root / DROPS or root / DROPS in place.parents:
            found = list(_of_drops(root, place))
        else:
            found = list(_built(place))
        if found:
            return found
    found = list(_built(root, str(target)))
    if not found:
        raise NoText(
            f"{target}: no artifact or drop of this name holds text: text is in drops of "
            f"{', '.join(INBOXES)}, and in artifacts of {', '.join(ASSETS)}; puzzles are compared "
            "once they are built, by the name of the dataset"
        )
    return found


def every_part(root: Path) -> list[Part]:
    """The files of text of all drops and artifacts of a data root."""
    root = root.absolute()
    return [*_of_drops(root, root / DROPS), *built_parts(root)]


def built_parts(root: Path) -> list[Part]:
    """The files of text of all artifacts of a data root, by place and name."""
    return sorted(_built(root.absolute()), key=lambda each: (each.place, each.name))


def hashed(root: Path, parts: Iterable[Part]) -> list[Part]:
    """Parts with the sums of their bytes; of drops these are kept."""
    root, parts, sums = root.absolute(), list(parts), dict[Path, str]()
    unknown = {each.file: each.links for each in parts if not each.sha256}
    dropped = {file: links for file, links in unknown.items() if root / DROPS in file.parents}
    for rule in set(dropped.values()):
        files = [file for file, links in dropped.items() if links == rule]
        inputs = raw_inputs(root, files, "", None, {}, rule)
        sums |= {file: each.sha256 or "" for file, each in zip(files, inputs, strict=True)}
    sums |= {file: kept(sha256_file, file) for file in unknown if file not in sums}
    return [replace(each, sha256=each.sha256 or sums[each.file]) for each in parts]


def sets_of(root: Path, names: Collection[str] = ()) -> list[EvaluationSet]:
    """The evaluation sets of a data root, by name. Raises BadInput as the drop of one.

    names: of those that are read; default: all.
    """
    root = root.absolute()
    declared = (declared_set(root, each) for each in _folders(root) if not names or each in names)
    built = (each for each in _splits(root) if not names or each.name in names)
    return sorted((each for each in (*declared, *built) if each), key=lambda each: each.name)


def set_names(root: Path) -> list[str]:
    """The names of the evaluation sets of a data root; no data file is opened."""
    return [*_folders(root), *(each.name for each in _splits(root.absolute()))]


def no_sets_built(root: Path) -> list[str]:
    """The names of the splits of built corpora that are no evaluation sets."""
    names = (each.partition or "" for each in artifacts_in(root.absolute() / _NORMALIZED))
    return sorted(each for each in names if "__" in each and not each.endswith(_SPLITS))


def built_sets(root: Path) -> list[str]:
    """The names of the splits of built corpora that are evaluation sets."""
    return sorted(each.name for each in _splits(root.absolute()))


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a folder of questions.

    Raises BadInput for a wrong recipe, a file that is no regular one, and a folder without text.
    """
    corpus = corpus_of(drop, links) if (drop / CORPUS).exists() else None
    taken = _data_files(drop, links, corpus)
    if not taken:
        raise BadInput(drop, _NO_QUESTIONS)
    every = visible_files(drop, links, (SUMS, FILE, CORPUS, FORGOTTEN))
    refuse_equal(drop, {name: every[name] for name in taken}, links)
    left = {name: "is no text, or left out" for name in every if name not in taken}
    return Account({"": taken}, left | not_samples(drop, every))


_NO_QUESTIONS: Final = "holds no questions: put a list of texts into it, as .txt or .jsonl"


def declared_set(root: Path, name: str) -> EvaluationSet | None:
    """The set of a folder of `drops/evals`, None for none. Raises BadInput as `sets_of`."""
    root, drop = root.absolute(), root.absolute() / DROPS / EVALS / name
    if not drop.is_dir():
        return None
    corpus = corpus_of(drop) if (drop / CORPUS).exists() else None
    parts = tuple(hashed(root, _parts(root, drop, corpus)))
    if not parts:
        raise BadInput(drop, _NO_QUESTIONS)
    return EvaluationSet(name, parts, frozenset(each.home for each in parts))


def no_sets(root: Path) -> list[str]:
    """Files that lie beside the folders of sets, and are none."""
    return [each.name for each in _beside(root) if form(each.name) and not each.is_dir()]


def _folders(root: Path) -> list[str]:
    return [each.name for each in _beside(root) if each.name[0] != "." and each.is_dir()]


def _beside(root: Path) -> list[Path]:
    inbox = root.absolute() / DROPS / EVALS
    return sorted(inbox.iterdir()) if inbox.is_dir() else []


def _splits(root: Path) -> Iterator[EvaluationSet]:
    records = artifacts_in(root / _NORMALIZED)
    splits = (each for each in records if (each.partition or "").endswith(_SPLITS))
    for artifact, record, inputs in readable(splits):
        made_from = [Part("", root / each.path, "") for each in inputs if each.path and each.sha256]
        drops = {drop_of(root, each.file) for each in made_from} - {None}
        if drops and all(each is not None and is_only_sample(each) for each in drops):
            continue  # samples ask one another's questions
        parts = tuple(of_artifact(artifact, record))
        own = frozenset(each.home for each in (*parts, *made_from))
        yield EvaluationSet(record.partition or "", parts, own)


def _title(record: Record) -> str:
    return " ".join(filter(None, (record.asset, record.partition)))


def _built(place: Path, name: str = "") -> Iterator[Part]:
    """The files of text of artifacts in a folder; of those of a name alone where one is given."""
    for artifact, record, _ in readable(artifacts(place)) if place.is_dir() else ():
        names = record.asset, record.partition, _title(record)
        if record.asset in ASSETS and (not name or name in names):
            yield from of_artifact(artifact, record)


def of_artifact(artifact: Artifact, record: Record) -> Iterator[Part]:
    """Yield the files of text of an artifact."""
    for output in record.outputs:
        if output.payload and kind(output.path.rpartition("/")[2]) is not None:
            file, name = artifact.folder / output.path, output.path
            yield Part(_title(record), file, name, output.sha256, is_recorded=True)


def _of_drops(root: Path, place: Path) -> Iterator[Part]:
    """The parts of a drop, of all drops of an inbox, or of a file in a drop."""
    inside = place.relative_to(root / DROPS).parts
    folders = [root / DROPS / each for each in inside[:1] or INBOXES if each in (*INBOXES, EVALS)]
    for folder in (each for each in folders if each.is_dir()):
        for drop in [folder / inside[1]] if inside[1:] else sorted(folder.iterdir()):
            is_other = drop.name.startswith(".") or drop.name in ("audits", "recipes")
            yield from _parts(root, drop, _corpus(drop)) if drop.is_dir() and not is_other else ()


def _corpus(drop: Path) -> Corpus | None:
    """The corpus that reads a drop; None where it has none, or a recipe of conversations."""
    with suppress(GristmillError):
        return corpus_of(drop)
    return None


def _parts(root: Path, drop: Path, corpus: Corpus | None) -> list[Part]:
    links = RootSettings(root).rules(drop.parent.name)[0]
    place, names = drop.relative_to(root).as_posix(), _data_files(drop, links, corpus)
    return [Part(place, drop / name, name, "", corpus, links) for name in names]


def _data_files(drop: Path, links: LinkRule, corpus: Corpus | None) -> list[str]:
    """The files of text in a drop; where a recipe reads it, those that the recipe takes."""
    every = visible_files(drop, links, (SUMS, FILE, CORPUS, FORGOTTEN))
    is_text = form if corpus is None else kind
    names = [name for name in every if is_text(name.rpartition("/")[2]) is not None]
    if corpus is not None:
        globs = [*chain.from_iterable(corpus.files.values())] or ["*"]
        leave = corpus.leave
        names = [name for name in names if matches(name, globs) and not matches(name, leave)]
    others = not_samples(drop, names)
    return [name for name in names if name not in others]


_IDS: Final = ("id", "synth_id", "conversation_id", "conversation_hash", "uuid")


def units(root: Path, drop: Path) -> Iterator[Unit]:
    """Yield the rows of a drop of text, each with its id; those that cannot be read are none."""
    corpus = _corpus(drop)
    own = (corpus.id,) if corpus is not None and isinstance(corpus.id, str) else ()
    for part in _parts(root, drop, corpus):
        if drop.parent.name not in INBOXES and not part.name.endswith(".parquet"):
            continue  # the manifests of a finished conversion
        for number, row in rows(part.file, part.corpus, part.links):
            if not isinstance(row, Unfit):
                values = row if isinstance(row, dict) else {"": row}
                found = (values[each] for each in (*own, *_IDS) if values.get(each) is not None)
                yield Unit(part.name, number, str(next(found, "")), values)


def forgets() -> Forgets:
    """How rows of conversations and of SYNTH are forgotten."""
    return Forgets(units)
