"""Looks for the questions of evaluation sets in texts, and keeps what it found, file by file.

What is kept lies in `.gristmill/leaks/`, by the sha256 of the text and the digest of the set, so
that a file that did not change is not read again. Source: `docs/leaks.md#what-is-kept`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.corpora.raw.forgotten import key_of
from gristmill.layout import WORK
from gristmill.leaks.blocks import COLUMNS, blocks
from gristmill.leaks.method import FEWEST, Index, Questions, compiled, shared
from gristmill.leaks.texts import Counts, EvaluationSet, Part, Text, every_part, hashed
from gristmill.leaks.words import VERSION, seeds_of
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import ordered_map

LEAKS: Final = "leaks"
_SEGMENT: Final = 1 << 18
_RANGE: Final = 1 << 22
_SHARES: Final = 1_000_000
_FACTS: Final = 5
"""Numbers of a question that was found: row, column, question, share, and whether it is changed."""
_CHECK: Final = 16
_check: Final = partial(hashlib.blake2b, digest_size=_CHECK)
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
    changed: uint64 [4, C], the same of questions with other names or numbers, which may be others.
    columns: their names. rows: of the file. unread: those that could not be read.
    skipped: columns that hold bytes, and were not looked at.
    questions: of the set. short: those that are too short to be looked for.
    """

    part: Part
    set: EvaluationSet
    numbers: Numbers
    changed: Numbers
    columns: Sequence[str]
    rows: int
    unread: int
    skipped: Sequence[str]
    questions: int
    short: int

    @property
    def leaked(self) -> int:
        """Number of rows in which a question stands."""
        return len(np.unique(self.numbers[0]))

    @property
    def changed_rows(self) -> int:
        """Number of further rows in which one stands with other names or numbers."""
        return len(np.setdiff1d(self.changed[0], self.numbers[0]))


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
        made, wholes = list[str](), (self.text_whole, self.question_whole)
        for text, marked in zip(wholes, (self.marked, self.asked_marked), strict=True):
            begin, end = window(text, marked, most)
            lead, tail = "… " if begin else "", " …" if end < len(text) else ""
            made.append(f"{lead}{' '.join(text[begin:end].split())}{tail}")
        return made[0], made[1]


class Kept:
    """What is kept of a data root."""

    def __init__(self, root: Path) -> None:
        key = key_of(root, makes=True)
        self.seeds = seeds_of(key)
        own = hashlib.blake2b(key, digest_size=4).hexdigest()
        self._folder = root / WORK / LEAKS / f"{VERSION}-{own}".replace(" ", "-")

    def get(self, key: str, where: str = "texts", ending: str = ".facts") -> Any:
        """Facts or numbers as `keep` has them; None where nothing is, or where it is damaged."""
        try:
            octets = (self._folder / where / f"{key}{ending}").read_bytes()
        except FileNotFoundError:
            return None
        octets, check = octets[:-_CHECK], octets[-_CHECK:]
        if _check(octets).digest() != check:
            return None
        is_numbers = ending.endswith(".npy")
        return np.load(BytesIO(octets), allow_pickle=False) if is_numbers else json.loads(octets)

    def keep(self, key: str, made: Numbers | _Facts, where: str, ending: str = ".facts") -> None:
        """Keep numbers, with the ending `.npy`, or facts. where: `texts`, `sets`, or a digest."""
        file = BytesIO(json.dumps(made).encode() if isinstance(made, dict) else b"")
        if not isinstance(made, dict):
            np.save(file, made)
        path, octets = self._folder / where / f"{key}{ending}", file.getvalue()
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with suppress(FileNotFoundError):  # the folder may be removed at any time
            hidden.write_bytes(octets + _check(octets).digest())
            hidden.replace(path)

    def complete(self, key: str, where: str = "texts", texts: str = "") -> _Facts | None:
        """Facts of a file, where all its texts are kept, too, by their key where that differs."""
        its: _Facts | None = self.get(key, where)
        numbers = range(its["segments"] if its else 0)
        each = (self.get(texts or key, ending=f".{number}.npy") for number in numbers)
        return its if all(one is not None for one in each) else None

    def forget(self, key: str, where: str = "texts") -> None:
        """Let the texts of a file be unread, so that its segments are changed together."""
        (self._folder / where / f"{key}.facts").unlink(missing_ok=True)


def _tables(
    sets: Sequence[EvaluationSet], missing: Collection[str], kept: Kept
) -> tuple[dict[str, _Facts], dict[str, Questions]]:
    """What is kept of each set; the questions of those that files lack, and of new ones."""
    of_sets, tables = dict[str, _Facts](), dict[str, Questions]()
    for each in sets:
        known = kept.get(each.digest, "sets")
        if each.digest in missing or known is None:
            given = each.texts if isinstance(each, _Given) else None
            texts = given or [found.text for _, found in each.questions()]
            if not texts:
                raise BadInput(each.parts[0].file, "holds no question: put some into it")
            made = tables[each.digest] = compiled(texts, kept.seeds, is_rare=given is None)
            known = {"questions": len(made.hashes), "short": made.short}
            kept.keep(each.digest, known, "sets")
        of_sets[each.digest] = known
    return of_sets, tables


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
    Memory: a block of texts, the sets, and 16 bytes a text up to 262,144 texts, for each worker.
    """
    parts, kept = hashed(root, parts), Kept(root)
    asked = {part: [each for each in sets if part.home not in each.own] for part in parts}
    facts, found = dict[str, _Facts](), dict[tuple[str, str], Numbers]()
    lacking, files = dict[str, set[str]](), {part.key: part for part in parts}
    for part, wanted in asked.items():
        if part.key not in facts and (its := kept.complete(part.key)) is not None:
            facts[part.key] = its
        for each in wanted:
            if (numbers := kept.get(part.key, each.digest, ".npy")) is not None:
                found[part.key, each.digest] = numbers
        lacks = {each.digest for each in wanted if (part.key, each.digest) not in found}
        if part.key not in facts or lacks:
            lacking.setdefault(part.key, set()).update(lacks)
    missing = set[str]().union(*lacking.values())
    of_sets, tables = _tables(sets, missing, kept)
    # One table of all sets: what a set holds by right is not asked for below.
    digests = sorted(missing)
    index = Index([tables[digest] for digest in digests], kept.seeds)
    tasks = [
        (files[key], tuple(each if each in lacks else "" for each in digests), index, kept)
        for key, lacks in lacking.items()
    ]
    sizes = [part.file.stat().st_size for part, *_ in tasks]
    progress = progress if tasks else SILENT
    with progress.stage("looking for leaks", "bytes", sum(sizes)) as stage:
        results = ordered_map(_look, tasks, workers)
        for key, size, (its, several) in zip(lacking, sizes, results, strict=True):
            facts[key] = its
            found |= {(key, digest): one for digest, one in several.items()}
            stage.advance(size)
    return [
        Finding(
            part,
            each,
            (of := found[part.key, each.digest])[:4, of[4] == 0],
            of[:4, of[4] == 1],
            *(facts[part.key][name] for name in ("columns", "rows", "unread", "skipped")),
            *(of_sets[each.digest][name] for name in ("questions", "short")),
        )
        for part, wanted in asked.items()
        for each in wanted
    ]


def _look(task: tuple[Part, Sequence[str], Index, Kept]) -> tuple[_Facts, dict[str, Numbers]]:
    """Read a file, and keep what is in it; returns its facts, and what it holds of each set.

    task: the part; the digests of the sets of the index, empty for one that is not asked for; the
        index; what is kept.

    Of JSON lines what was found so far is kept with each segment; the next audit continues there.
    """
    (part, digests, table, kept), key = task, task[0].key
    sets = hashlib.sha256(repr(digests).encode()).hexdigest()[:16]
    its = kept.complete(f"{key}-{sets}", "begun", key)
    if its is None:
        its = {"columns": [""], "counts": {}, "segments": 0, "end": 0, "found": [[]] * len(digests)}
    names = {name: number for number, name in enumerate(its["columns"])}
    counts, segments, marks, held = Counts(**its["counts"]), its["segments"], list[Numbers](), 0
    found = [[np.array(each, np.uint64).reshape(_FACTS, -1)] for each in its["found"]]
    if not (is_kept := kept.complete(key) is not None):  # else others may read its texts now
        kept.forget(key)

    def write() -> None:
        if not is_kept:
            made = np.concatenate([np.zeros((2, 0), np.uint64), *marks], 1)
            segment = np.take(made, np.argsort(made[0]), 1)
            kept.keep(key, segment, "texts", f".{segments}.npy")

    for texts, rows, columns, end in blocks(part, counts, names, its["end"]):
        hashes, sizes, hits = table.find(texts)
        for made, (at, question, share, changed) in zip(found, hits, strict=True):
            facts = [rows[at], columns[at], question, share * _SHARES, changed]
            made.append(np.stack(facts).astype(np.uint64))
        places = (rows * COLUMNS + columns).astype(np.uint64)
        marks.append(np.stack([hashes, places])[:, sizes >= FEWEST])
        held += marks[-1].shape[1]
        if held >= _SEGMENT:
            write()
            marks, held, segments = [], 0, segments + 1
            if end:
                its = {"columns": [*names], "counts": vars(counts), "segments": segments}
                its |= {"end": end, "found": [np.concatenate(made, 1).tolist() for made in found]}
                kept.keep(f"{key}-{sets}", its, "begun")
    write()
    of_sets = zip(digests, found, strict=True)
    several = {digest: np.concatenate(made, 1) for digest, made in of_sets if digest}
    for digest, numbers in several.items():
        kept.keep(key, numbers, digest, ".npy")
    its = {"columns": [*names], **vars(counts), "segments": segments + 1}
    kept.keep(key, its, "texts")
    kept.forget(f"{key}-{sets}", "begun")
    return its, several


def worst(
    root: Path, findings: Iterable[Finding], most: int | None = None, *, is_changed: bool = False
) -> Iterator[Leak]:
    """Yield leaks with both texts, the worst first: those of which the largest share stands there.

    most: how many; default None: all. Of these alone texts are read, and held. is_changed: whether
    they are those of questions with other names or numbers; default False.
    """
    seeds = Kept(root).seeds
    found = [(each, each.changed if is_changed else each.numbers) for each in findings]
    every = [
        (-int(share), number, at)
        for number, (_, numbers) in enumerate(found)
        for at, share in enumerate(numbers[3])
    ]
    worst_ones = ((share, *found[number], at) for share, number, at in sorted(every)[:most])
    chosen = [(share, each, *numbers[:3, at].tolist()) for share, each, numbers, at in worst_ones]
    texts, asked = dict[tuple[str, int, str], str](), dict[tuple[str, int], tuple[Part, Text]]()
    for part in {each.part.key: each.part for _, each, *_ in chosen}.values():
        of_part = (each for each in chosen if each[1].part.key == part.key)
        wanted = {(row, each.columns[column]) for _, each, row, column, _ in of_part}
        last = max(wanted)[0]
        for row, name, text in part.texts(Counts()):
            if row > last:
                break
            # A column behind the last that has a number is not known: the row is its text.
            for each_name in {name, ""}:
                if (row, each_name) in wanted:
                    key = part.key, row, each_name
                    texts[key] = "\n".join(filter(None, (texts.get(key), text)))
    for one in {each.set.digest: each.set for _, each, *_ in chosen}.values():
        numbers = {question for *_, question in chosen}
        pairs = enumerate(one.questions())
        asked |= {(one.digest, number): pair for number, pair in pairs if number in numbers}
    for share, each, row, column, number in chosen:
        of, question = asked[each.set.digest, number]
        text = texts.get((each.part.key, row, each.columns[column]), "")
        ours, theirs = shared(question.text, text, seeds, is_changed=is_changed)
        yield Leak(
            each.set.name,
            -share / _SHARES,
            Place(each.part.place, each.part.name, row, each.columns[column]),
            Place(of.place, of.name, question.row, question.column),
            *(text, question.text),
            *(theirs, ours),
        )


def window(text: str, marked: Sequence[tuple[int, int]], most: int) -> tuple[int, int]:
    """Begin and end of a part of a text around what is marked, of at most so many characters."""
    begin = max(0, marked[0][0] - _AROUND) if marked else 0
    return begin, min(len(text), begin + most)


def where_is(root: Path, text: str, parts: Sequence[Part] | None = None) -> list[Place]:
    """Where a text stands that has the same words, as a whole value of a row.

    parts: in which; default None: all of the data root. Those that were never read are read now.
    A text of fewer than three words is nowhere.
    """
    kept, parts = Kept(root), hashed(root, every_part(root) if parts is None else parts)
    audit(root, parts, ())
    wanted = Index((), kept.seeds).find([text])[0][0]
    return [
        _place(part, columns, int(each))
        for part, columns, (_, places) in _segments(kept, parts, wanted, wanted)
        for each in np.sort(places)
    ]


@dataclass(frozen=True)
class _Given(EvaluationSet):
    """Texts that are looked for each by itself, whatever the others have."""

    texts: tuple[str, ...]


def holding(
    root: Path,
    texts: Sequence[str],
    parts: Sequence[Part] | None = None,
    least: float = 1.0,
    workers: int = 1,
) -> Iterator[tuple[Place, int, float]]:
    """Yield where a text stands, alone or within a longer one; which it is, and its share there.

    texts: any; of those with the same words the first is named. parts, workers: as for `audit`;
        default: all of the data root, in this process. least: the share of the runs of words of a
        text that must stand in one value, from 0.3; default 1: all of them.

    Of a text of four words or fewer (six characters, in scripts without spaces) only what is equal
    is found, and one of fewer than three words is nowhere.
    """
    kept, parts = Kept(root), every_part(root) if parts is None else parts
    asked = _Given("", (), frozenset(), tuple(texts))
    # Keyed as all that is kept: of a short text the plain sum could be guessed.
    facts = repr((kept.seeds.tolist(), asked.texts)).encode()
    vars(asked)["digest"] = hashlib.sha256(facts).hexdigest()[:32]
    for each in audit(root, parts, [asked] if texts else [], workers):
        for row, column, text, share in each.numbers[:, each.numbers[3] >= least * _SHARES].T:
            place = Place(each.part.place, each.part.name, int(row), each.columns[int(column)])
            yield place, int(text), int(share) / _SHARES


def duplicates(root: Path, parts: Sequence[Part] | None = None) -> Iterator[list[Place]]:
    """Yield the places of each text that several drops or artifacts hold with the same words.

    parts: as for `where_is`. Memory: 64 MiB, and one file's hashes at a time.
    """
    kept, parts = Kept(root), hashed(root, every_part(root) if parts is None else parts)
    audit(root, parts, ())
    total = sum(each.shape[1] for _, _, each in _segments(kept, parts))
    ranges = total // _RANGE + 1
    for number in range(ranges):
        low, high = (number << 64) // ranges, ((number + 1) << 64) // ranges - 1
        held = [*_segments(kept, parts, low, high)]
        of = np.repeat(np.arange(len(held), dtype=np.uint64), [its.shape[1] for *_, its in held])
        made = np.concatenate([np.zeros((2, 0), np.uint64), *(its for *_, its in held)], 1)
        made = np.stack([*made, of])[:, np.lexsort((made[1], of, made[0]))]
        _, starts, counts = np.unique(made[0], return_index=True, return_counts=True)
        for start, count in zip(starts[counts > 1], counts[counts > 1], strict=True):
            group = made[:, start : start + count]
            found = [_place(*held[int(at)][:2], int(place)) for _, place, at in group.T]
            if len({each.place for each in found}) > 1:
                yield found


def _segments(
    kept: Kept, parts: Iterable[Part], low: int = 0, high: int = (1 << 64) - 1
) -> Iterator[tuple[Part, Sequence[str], Numbers]]:
    """Yield hashes and places of texts, uint64 [2, T], of which the hash is in a range."""
    for part in parts:
        facts = kept.get(part.key) or {"segments": 0, "columns": ()}
        for number in range(facts["segments"]):
            if (held := kept.get(part.key, ending=f".{number}.npy")) is not None:
                first = np.searchsorted(held[0], np.uint64(low))
                end = np.searchsorted(held[0], np.uint64(high), "right")
                yield part, facts["columns"], held[:, first:end].copy()  # without the rest


def _place(part: Part, columns: Sequence[str], place: int) -> Place:
    row, column = divmod(place, COLUMNS)
    return Place(part.place, part.name, row, columns[column])
