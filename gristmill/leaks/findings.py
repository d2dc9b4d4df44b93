"""Looks for the questions of evaluation sets in texts, and keeps what it found, file by file.

What is kept lies in `.gristmill/leaks/`, by the sha256 of the text and the digest of the set, so
that a file that did not change is not read again. Source: `docs/leaks.md#what-is-kept`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.corpora.raw.forgotten import key_of
from gristmill.layout import WORK
from gristmill.leaks.method import FEWEST, Index, Questions, compiled, shared
from gristmill.leaks.texts import Counts, EvaluationSet, Part, Text, every_part, hashed
from gristmill.leaks.words import CHANGED, Seeds, seeds_of
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import ordered_map

LEAKS: Final = "leaks"
_BATCH: Final = 4 << 20
_MOST_TEXTS: Final = 1 << 16
_SEGMENT: Final = 1 << 20
_RANGE: Final = 1 << 22
_COLUMNS: Final = 1 << 12
_SHARES: Final = 1_000_000
_CHECK: Final = 16
_AROUND: Final = 40
Numbers = npt.NDArray[np.uint64]
_Facts = dict[str, Any]


class Place(NamedTuple):
    """Where a text stands: artifact or drop, path of the file in it, row from 1, column."""

    place: str
    file: str
    row: int
    column: str


@dataclass(frozen=True)
class Finding:
    """What one file holds of one set.

    numbers: uint64 [4, K]: rows from 1, columns, questions, millionths of their runs.
    columns: their names. rows: of the file. unread: those that could not be read.
    questions: of the set. short: those that are too short to be looked for.
    """

    part: Part
    set: EvaluationSet
    numbers: Numbers
    columns: Sequence[str]
    rows: int
    unread: int
    questions: int
    short: int

    @property
    def leaked(self) -> int:
        """Number of rows in which a question stands."""
        return len(np.unique(self.numbers[0]))


@dataclass(frozen=True)
class Leak:
    """A question in a text, with both places and both texts.

    share: of the runs that only this question of the set has, which stand in the text; 1 where the
        whole text is equal. marked, asked_marked: begin and end of what both share, in characters.
    """

    set: str
    share: float
    text: Place
    question: Place
    text_whole: str
    question_whole: str
    marked: tuple[tuple[int, int], ...]
    asked_marked: tuple[tuple[int, int], ...]

    def cut(self, most: int = 160) -> tuple[str, str]:
        """Both texts, cut around the words that they share, to at most so many characters."""
        return (
            _cut(self.text_whole, self.marked, most),
            _cut(self.question_whole, self.asked_marked, most),
        )


class Kept:
    """What is kept of a data root."""

    def __init__(self, root: Path) -> None:
        key = key_of(root, makes=True)
        self.seeds = seeds_of(key)
        own = hashlib.blake2b(key, digest_size=4).hexdigest()
        self._folder = root / WORK / LEAKS / f"{CHANGED}-{unicodedata.unidata_version}-{own}"

    def facts(self, key: str, where: str = "texts") -> _Facts | None:
        """What was kept of a file, or of a set; None where it must be read."""
        octets = self._read(self._folder / where / f"{key}.facts")
        return None if octets is None else json.loads(octets)

    def array(self, key: str, where: str, ending: str = "") -> Numbers | None:
        """What was kept of a file; None where nothing is, or where it is damaged."""
        octets = self._read(self._folder / where / f"{key}{ending}.npy")
        return None if octets is None else np.load(BytesIO(octets), allow_pickle=False)

    def keep(self, key: str, made: Numbers | _Facts, where: str, ending: str = "") -> None:
        """Keep numbers or facts of a file, or of a set by its digest.

        where: the digest of a set; `texts`; `sets`.
        """
        if isinstance(made, dict):
            octets, ending = json.dumps(made).encode(), ".facts"
        else:
            np.save(file := BytesIO(), made)
            octets, ending = file.getvalue(), f"{ending}.npy"
        self._write(self._folder / where / f"{key}{ending}", octets)

    def forget(self, key: str) -> None:
        """Let the texts of a file be unread, so that its segments are changed together."""
        (self._folder / "texts" / f"{key}.facts").unlink(missing_ok=True)

    def _read(self, path: Path) -> bytes | None:
        """What was written; None where nothing was, or where it is damaged."""
        try:
            octets = path.read_bytes()
        except FileNotFoundError:
            return None
        octets, check = octets[:-_CHECK], octets[-_CHECK:]
        return octets if _check(octets) == check else None

    def _write(self, path: Path, octets: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with suppress(FileNotFoundError):  # the folder may be removed at any time
            hidden.write_bytes(octets + _check(octets))
            hidden.replace(path)


def _check(octets: bytes) -> bytes:
    return hashlib.blake2b(octets, digest_size=_CHECK).digest()


class _Task(NamedTuple):
    """digests: of the sets of the index; empty for one that is not asked for."""

    part: Part
    digests: tuple[str, ...]
    table: Index
    kept: Kept


def audit(
    root: Path,
    parts: Iterable[Part],
    sets: Sequence[EvaluationSet],
    workers: int = 1,
    progress: Progress = SILENT,
) -> list[Finding]:
    """What files hold of evaluation sets; the files that did not change are not read.

    parts: as `parts_of` or `every_part` give them. A set is not looked for in its own files, nor
        in those that it was made from. workers: processes; default 1: this one.

    Raises BadInput for a damaged file, and for a set without questions.
    Memory: 16 MiB of texts, the sets, and 16 bytes a text up to 1,048,576 texts, for each worker.
    """
    parts, kept = hashed(root, parts), Kept(root)
    asked = {part: [each for each in sets if part.home not in each.own] for part in parts}
    facts, found = dict[str, _Facts](), dict[tuple[str, str], Numbers]()
    lacking, files = dict[str, set[str]](), {part.key: part for part in parts}
    for part, wanted in asked.items():
        if part.key not in facts and (known := _whole(kept, part.key)) is not None:
            facts[part.key] = known
        for each in wanted:
            if (numbers := kept.array(part.key, each.digest)) is not None:
                found[part.key, each.digest] = numbers
        lacks = {each.digest for each in wanted if (part.key, each.digest) not in found}
        if part.key not in facts or lacks:
            lacking.setdefault(part.key, set()).update(lacks)
    missing = set[str]().union(*lacking.values())
    of_sets, tables = dict[str, _Facts](), dict[str, Questions]()
    for each in sets:
        known = kept.facts(each.digest, "sets")
        if each.digest in missing or known is None:
            made = tables[each.digest] = _compiled(each, kept.seeds)
            known = {"questions": len(made.hashes), "short": made.short}
            kept.keep(each.digest, known, "sets")
        of_sets[each.digest] = known
    # One table of all sets: what a set holds by right is not asked for below.
    digests = sorted(missing)
    index = Index([tables[digest] for digest in digests], kept.seeds)
    tasks = [
        _Task(files[key], tuple(each if each in lacks else "" for each in digests), index, kept)
        for key, lacks in lacking.items()
    ]
    sizes = [each.part.file.stat().st_size for each in tasks]
    progress = progress if tasks else SILENT
    with progress.stage("looking for leaks", "bytes", sum(sizes)) as stage:
        results = ordered_map(_look, tasks, workers)
        for key, size, (its, several) in zip(lacking, sizes, results, strict=True):
            facts[key] = its
            found |= {(key, digest): one for digest, one in several.items()}
            stage.advance(size)
    return [
        Finding(
            *(part, each, found[part.key, each.digest]),
            *(facts[part.key][name] for name in ("columns", "rows", "unread")),
            *(of_sets[each.digest][name] for name in ("questions", "short")),
        )
        for part, wanted in asked.items()
        for each in wanted
    ]


def _whole(kept: Kept, key: str) -> _Facts | None:
    """The facts of a file all of whose texts are kept."""
    facts = kept.facts(key)
    if facts is None:
        return None
    segments = (kept.array(key, "texts", f".{number}") for number in range(facts["segments"]))
    return facts if all(each is not None for each in segments) else None


def _compiled(asked: EvaluationSet, seeds: Seeds) -> Questions:
    texts = [found.text for _, found in asked.questions()]
    if not texts:
        raise BadInput(asked.parts[0].file, "holds no question: put some into it")
    return compiled(texts, seeds)


def _look(task: _Task) -> tuple[_Facts, dict[str, Numbers]]:
    """Read a file, and keep what is in it; returns its facts, and what it holds of each set."""
    key, kept = task.part.key, task.kept
    columns, counts, segments = {"": 0}, Counts(), 0
    marks, held = list[Numbers](), 0
    found: list[list[Numbers]] = [[] for _ in task.digests]
    kept.forget(key)
    for batch in _batches(task.part.texts(counts)):
        hashes, sizes, hits = task.table.find([each.text for each in batch])
        row = np.array([each.row for each in batch], np.uint64)
        for each in batch:
            if each.column not in columns and len(columns) < _COLUMNS:
                columns[each.column] = len(columns)
        column = np.array([columns.get(each.column, 0) for each in batch], np.uint64)
        for made, hit in zip(found, hits, strict=True):
            share = (hit.share * _SHARES).astype(np.uint64)
            question = hit.question.astype(np.uint64)
            made.append(np.stack([row[hit.text], column[hit.text], question, share]))
        is_text = sizes >= FEWEST
        marks.append(np.stack([hashes, row * np.uint64(_COLUMNS) + column])[:, is_text])
        held += int(is_text.sum())
        if held >= _SEGMENT:
            _write_segment(task, segments, marks)
            marks, held, segments = [], 0, segments + 1
    _write_segment(task, segments, marks)
    none = np.zeros((4, 0), np.uint64)
    several = {
        digest: np.concatenate([none, *made], 1)
        for digest, made in zip(task.digests, found, strict=True)
        if digest
    }
    for digest, numbers in several.items():
        kept.keep(key, numbers, digest)
    facts = {"columns": list(columns), **vars(counts), "segments": segments + 1}
    kept.keep(key, facts, "texts")
    return facts, several


def _write_segment(task: _Task, number: int, marks: Sequence[Numbers]) -> None:
    made = np.concatenate([np.zeros((2, 0), np.uint64), *marks], 1)
    segment = np.ascontiguousarray(made[:, np.lexsort((made[1], made[0]))])
    task.kept.keep(task.part.key, segment, "texts", f".{number}")


def _batches(texts: Iterator[Text]) -> Iterator[list[Text]]:
    batch, size = list[Text](), 0
    for each in texts:
        batch.append(each)
        size += len(each.text)
        if size > _BATCH or len(batch) == _MOST_TEXTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def worst(root: Path, findings: Iterable[Finding], most: int | None = None) -> Iterator[Leak]:
    """Yield leaks with both texts, the worst first: those of which the largest share stands there.

    most: how many; default None: all. Of these alone texts are read, and held.
    """
    seeds = Kept(root).seeds
    every = [
        (-int(each.numbers[3, at]), number, at, each)
        for number, each in enumerate(findings)
        for at in range(each.numbers.shape[1])
    ]
    chosen = sorted(every, key=lambda each: each[:3])[:most]
    texts, asked = (
        dict[tuple[str, int, str], str](),
        dict[tuple[EvaluationSet, int], tuple[Part, Text]](),
    )
    for part in {each.part.key: each.part for *_, each in chosen}.values():
        wanted = {
            (int(each.numbers[0, at]), each.columns[int(each.numbers[1, at])])
            for *_, at, each in chosen
            if each.part.key == part.key
        }
        last = max(row for row, _ in wanted)
        for found in part.texts(Counts()):
            if found.row > last:
                break
            # A column behind the last that has a number is not known: the row is its text.
            for column in {found.column, ""}:
                if (found.row, column) in wanted:
                    key = part.key, found.row, column
                    texts[key] = "\n".join(filter(None, (texts.get(key), found.text)))
    for one in {each.set for *_, each in chosen}:
        wanted_questions = {int(f.numbers[2, at]) for *_, at, f in chosen if f.set == one}
        for number, pair in enumerate(one.questions()):
            if number in wanted_questions:
                asked[one, number] = pair
    for share, _, at, each in chosen:
        row, column = int(each.numbers[0, at]), each.columns[int(each.numbers[1, at])]
        part_asked, question = asked[each.set, int(each.numbers[2, at])]
        text = texts.get((each.part.key, row, column), "")
        ours, theirs = shared(question.text, text, seeds)
        yield Leak(
            each.set.name,
            -share / _SHARES,
            Place(each.part.place, each.part.name, row, column),
            Place(part_asked.place, part_asked.name, question.row, question.column),
            text,
            question.text,
            theirs,
            ours,
        )


def window(text: str, marked: Sequence[tuple[int, int]], most: int) -> tuple[int, int]:
    """Begin and end of a part of a text around what is marked, of at most so many characters."""
    begin = max(0, marked[0][0] - _AROUND) if marked else 0
    return begin, min(len(text), begin + most)


def _cut(text: str, marked: Sequence[tuple[int, int]], most: int) -> str:
    begin, end = window(text, marked, most)
    lead, tail = "… " if begin else "", " …" if end < len(text) else ""
    return f"{lead}{' '.join(text[begin:end].split())}{tail}"


def where_is(root: Path, text: str, parts: Sequence[Part] | None = None) -> list[Place]:
    """Where a text stands that has the same words, as a whole value of a row.

    parts: in which; default None: all of the data root. Those that were never read are read now.
    A text of fewer than three words is nowhere.
    """
    kept, parts = Kept(root), hashed(root, every_part(root) if parts is None else parts)
    audit(root, parts, ())
    wanted = Index((), kept.seeds).find([text])[0]
    found = list[Place]()
    for part, columns, hashes, places in _segments(kept, parts):
        first, end = np.searchsorted(hashes, wanted[0]), np.searchsorted(hashes, wanted[0], "right")
        found += (_place(part, columns, int(each)) for each in places[first:end])
    return found


def duplicates(root: Path, parts: Sequence[Part] | None = None) -> Iterator[list[Place]]:
    """Yield the places of each text that several drops or artifacts hold with the same words.

    parts: as for `where_is`. Memory: 64 MiB, and one file's hashes at a time.
    """
    kept, parts = Kept(root), hashed(root, every_part(root) if parts is None else parts)
    audit(root, parts, ())
    total = sum(len(hashes) for _, _, hashes, _ in _segments(kept, parts))
    ranges = total // _RANGE + 1
    for number in range(ranges):
        low, high = (number << 64) // ranges, ((number + 1) << 64) // ranges - 1
        chosen, names = list[Numbers](), list[tuple[Part, Sequence[str]]]()
        for part, columns, hashes, places in _segments(kept, parts):
            first = np.searchsorted(hashes, np.uint64(low))
            end = np.searchsorted(hashes, np.uint64(high), "right")
            of = np.full(end - first, len(names), np.uint64)
            chosen.append(np.stack([hashes[first:end], places[first:end], of]))
            names.append((part, columns))
        made = np.concatenate([np.zeros((3, 0), np.uint64), *chosen], 1)
        made = made[:, np.lexsort((made[1], made[2], made[0]))]
        _, starts, counts = np.unique(made[0], return_index=True, return_counts=True)
        for start, count in zip(starts[counts > 1], counts[counts > 1], strict=True):
            group = made[:, start : start + count]
            found = [_place(*names[int(of)], int(place)) for _, place, of in group.T]
            if len({each.place for each in found}) > 1:
                yield found


def _segments(
    kept: Kept, parts: Iterable[Part]
) -> Iterator[tuple[Part, Sequence[str], Numbers, Numbers]]:
    for part in parts:
        facts = kept.facts(part.key) or {"segments": 0, "columns": ()}
        for number in range(facts["segments"]):
            if (held := kept.array(part.key, "texts", f".{number}")) is not None:
                yield part, facts["columns"], held[0], held[1]


def _place(part: Part, columns: Sequence[str], place: int) -> Place:
    row, column = divmod(place, _COLUMNS)
    return Place(part.place, part.name, row, columns[column])
