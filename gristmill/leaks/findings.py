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
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.corpora.raw.forgotten import key_of
from gristmill.layout import WORK
from gristmill.leaks.blocks import COLUMNS, Block, blocks
from gristmill.leaks.method import FEWEST, Index, Questions, Texts, compiled, shared
from gristmill.leaks.texts import Counts, EvaluationSet, Part, every_part, hashed
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
_Cells = dict[tuple[int, str], str]


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

    @property
    def counts(self) -> dict[str, Any]:
        """The file, and its rows by what they hold."""
        rows = {"rows": self.rows, "leaked": self.leaked, "changed": self.changed_rows}
        return {"place": self.part.place, "file": self.part.name} | rows | {"unread": self.unread}


@dataclass(frozen=True)
class Leak:
    """A question in a text, with both places and both texts.

    changed: whether it stands there with other names or numbers.
    share: of the runs that only this question of the set has, which stand in the text; 1 where the
        whole text is equal. marked, asked_marked: begin and end of what both share, in characters.
    """

    set: str
    changed: bool
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
    """What is kept of a data root, by names of files that end in `.facts` or `.npy`."""

    def __init__(self, root: Path) -> None:
        key = key_of(root, makes=True)
        self.seeds = seeds_of(key)
        own = hashlib.blake2b(key, digest_size=4).hexdigest()
        self._folder = root / WORK / LEAKS / f"{VERSION}-{own}".replace(" ", "-")

    def get(self, name: str) -> Any:
        """Facts or numbers; None where nothing is kept, or where it is damaged."""
        try:
            octets = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        octets, check = octets[:-_CHECK], octets[-_CHECK:]
        if _check(octets).digest() != check:
            return None
        is_facts = name.endswith(".facts")
        return json.loads(octets) if is_facts else np.load(BytesIO(octets), allow_pickle=False)

    def keep(self, name: str, made: Numbers | _Facts) -> None:
        """Keep facts or numbers. Those of a file of text are kept once its segments are."""
        file = BytesIO(json.dumps(made).encode() if isinstance(made, dict) else b"")
        if not isinstance(made, dict):
            np.save(file, made)
        path, octets = self._folder / name, file.getvalue()
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with suppress(FileNotFoundError):  # the folder may be removed at any time
            hidden.write_bytes(octets + _check(octets).digest())
            hidden.replace(path)

    def facts(self, key: str) -> _Facts | None:
        """What is kept of a file of text."""
        found: _Facts | None = self.get(f"texts/{key}.facts")
        return found

    def segments(self, key: str, facts: _Facts | None) -> Iterator[Numbers | None]:
        """Yield what is kept of the texts of a file: hashes and places, uint64 [2, T]."""
        for number in range(facts["segments"] if facts else 0):
            yield self.get(f"texts/{key}.{number}.npy")

    def complete(self, name: str, key: str) -> _Facts | None:
        """Facts of a file, where all its segments are kept, too."""
        facts: _Facts | None = self.get(name)
        return facts if all(each is not None for each in self.segments(key, facts)) else None

    def forget(self, name: str) -> None:
        """Let the texts of a file be unread, so that its segments are changed together."""
        (self._folder / name).unlink(missing_ok=True)


def _tables(
    sets: Sequence[EvaluationSet], missing: Collection[str], kept: Kept
) -> tuple[dict[str, _Facts], dict[str, Questions]]:
    """What is kept of each set; the questions of those that files lack, and of new ones."""
    of_sets, tables = dict[str, _Facts](), dict[str, Questions]()
    for each in sets:
        name = f"sets/{each.digest}.facts"
        if each.digest in missing or (known := kept.get(name)) is None:
            texts = each.texts or [found.text for _, found in each.questions()]
            if not texts:
                raise BadInput(each.parts[0].file, "holds no question: put some into it")
            made = tables[each.digest] = compiled(texts, kept.seeds, is_rare=not each.texts)
            known = {"questions": len(made.hashes), "short": made.short}
            kept.keep(name, known)
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
    asked = [(part, each) for part in parts for each in sets if part.home not in each.own]
    files = {part.key: part for part in parts}
    facts = {key: kept.complete(f"texts/{key}.facts", key) for key in files}
    found: dict[tuple[str, str], Numbers] = {
        (part.key, each.digest): kept.get(f"{each.digest}/{part.key}.npy") for part, each in asked
    }
    lacking = {key: set[str]() for key, its in facts.items() if its is None}
    for (key, digest), numbers in found.items():
        if numbers is None:
            lacking.setdefault(key, set()).add(digest)
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
    made = list[Finding]()
    for part, each in asked:
        its, of = facts[part.key] or {}, found[part.key, each.digest]
        of_file = (its[name] for name in ("columns", "rows", "unread", "skipped"))
        kinds = of[:4, of[4] == 0], of[:4, of[4] == 1]
        made.append(Finding(part, each, *kinds, *of_file, **of_sets[each.digest]))
    return made


def _look(task: tuple[Part, Sequence[str], Index, Kept]) -> tuple[_Facts, dict[str, Numbers]]:
    """Read a file, and keep what is in it; returns its facts, and what it holds of each set.

    task: the part; the digests of the sets of the index, empty for one that is not asked for; the
        index; what is kept.

    Of JSON lines what was found so far is kept with each segment; the next audit continues there.
    """
    (part, digests, table, kept), key = task, task[0].key
    own = f"texts/{key}.facts"
    begun = f"begun/{key}-{hashlib.sha256(repr(digests).encode()).hexdigest()[:16]}.facts"
    its: _Facts = kept.complete(begun, key) or {
        **{"columns": [""], "counts": {}, "segments": 0, "end": 0, "found": [[]] * len(digests)}
    }
    names = {name: number for number, name in enumerate(its["columns"])}
    counts, segments, marks = (
        Counts(**its["counts"]),
        its["segments"],
        [np.zeros((2, 0), np.uint64)],
    )
    found = [[np.array(each, np.uint64).reshape(_FACTS, -1)] for each in its["found"]]
    if not (is_kept := kept.complete(own, key) is not None):  # else others may read its texts now
        kept.forget(own)
    ended = Block(Texts.of(()), np.zeros(0, np.int64), np.zeros(0, np.int64), -1)
    for texts, rows, columns, end in chain(blocks(part, counts, names, its["end"]), [ended]):
        hashes, sizes, hits = table.find(texts)
        for made, (at, question, share, changed) in zip(found, hits, strict=True):
            facts = [rows[at], columns[at], question, share * _SHARES, changed]
            made.append(np.stack(facts).astype(np.uint64))
        places = (rows * COLUMNS + columns).astype(np.uint64)
        marks.append(np.stack([hashes, places])[:, sizes >= FEWEST])
        if end < 0 or sum(each.shape[1] for each in marks) >= _SEGMENT:
            if not is_kept:
                kept.keep(f"texts/{key}.{segments}.npy", np.concatenate(marks, 1))
            marks, segments = [], segments + 1
            if end > 0:
                its = {"columns": [*names], "counts": vars(counts), "segments": segments}
                its |= {"end": end, "found": [np.concatenate(made, 1).tolist() for made in found]}
                kept.keep(begun, its)
    of_sets = zip(digests, found, strict=True)
    several = {digest: np.concatenate(made, 1) for digest, made in of_sets if digest}
    for digest, numbers in several.items():
        kept.keep(f"{digest}/{key}.npy", numbers)
    its = {"columns": [*names], **vars(counts), "segments": segments}
    kept.keep(own, its)
    kept.forget(begun)
    return its, several


def worst(root: Path, findings: Iterable[Finding], most: int | None = None) -> Iterator[Leak]:
    """Yield leaks with both texts, the worst first: those of which the largest share stands there.

    Those of questions with other names or numbers are behind the others.

    most: how many; default None: all. Of these alone texts are read, and held.
    """
    found = [
        (kind, each, *hit)
        for each in findings
        for kind, its in enumerate((each.numbers, each.changed))
        for hit in its.T.tolist()
    ]
    chosen, seeds = sorted(found, key=lambda hit: (hit[0], -hit[5]))[:most], Kept(root).seeds
    texts, asked = dict[Part, _Cells](), dict[EvaluationSet, dict[int, Any]]()
    for _, each, row, column, question, _ in chosen:
        texts.setdefault(each.part, {})[row, each.columns[column]] = ""
        asked.setdefault(each.set, {})[question] = None
    for part, cells in texts.items():
        _fill(part, cells)
    for one, its in asked.items():
        its.update((at, pair) for at, pair in enumerate(one.questions()) if at in its)
    for kind, each, row, column, number, share in chosen:
        place = Place(*_at(each.part), row, each.columns[column])
        (of, question), text = asked[each.set][number], texts[each.part][place[2:]]
        ours, theirs = shared(question.text, text, seeds, is_changed=kind == 1)
        asks = Place(*_at(of), question.row, question.column)
        both = text, question.text
        yield Leak(each.set.name, kind == 1, share / _SHARES, place, asks, *both, theirs, ours)


def _fill(part: Part, cells: _Cells) -> None:
    """Fill in the texts of a file; where a column has no number, all of its row."""
    last = max(row for row, _ in cells)
    for row, name, text in part.texts(Counts()):
        if row > last:
            break
        for cell in {(row, name), (row, "")} & cells.keys():
            cells[cell] = "\n".join(filter(None, (cells[cell], text)))


def window(text: str, marked: Sequence[tuple[int, int]], most: int) -> tuple[int, int]:
    """Begin and end of a part of a text around what is marked, of at most so many characters."""
    begin = max(0, marked[0][0] - _AROUND) if marked else 0
    return begin, min(len(text), begin + most)


def where_is(root: Path, text: str, parts: Sequence[Part] | None = None) -> list[Place]:
    """Where a text stands that has the same words, as a whole value of a row.

    parts: in which; default None: all of the data root. Those that were never read are read now.
    A text of fewer than three words is nowhere.
    """
    kept, parts = _read(root, parts)
    wanted = int(Index((), kept.seeds).find([text])[0][0])
    return next(_groups(kept, parts, wanted, wanted, 1), [])


def _read(root: Path, parts: Sequence[Part] | None) -> tuple[Kept, list[Part]]:
    """What is kept, and parts of which the texts are."""
    found = hashed(root, every_part(root) if parts is None else parts)
    audit(root, found, ())
    return Kept(root), found


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
    asked = EvaluationSet("", (), frozenset(), tuple(texts))
    # Keyed as all that is kept: of a short text the plain sum could be guessed.
    facts = repr((kept.seeds.tolist(), asked.texts)).encode()
    vars(asked)["digest"] = hashlib.sha256(facts).hexdigest()[:32]
    for each in audit(root, parts, [asked] if texts else [], workers):
        for row, column, text, share in each.numbers[:, each.numbers[3] >= least * _SHARES].T:
            place = Place(*_at(each.part), int(row), each.columns[int(column)])
            yield place, int(text), int(share) / _SHARES


def duplicates(root: Path, parts: Sequence[Part] | None = None) -> Iterator[list[Place]]:
    """Yield the places of each text that several drops or artifacts hold with the same words.

    parts: as for `where_is`. Memory: 64 MiB, and one file's hashes at a time.
    """
    kept, parts = _read(root, parts)
    segments = (each for part in parts for each in kept.segments(part.key, kept.facts(part.key)))
    ranges = sum(each.shape[1] for each in segments if each is not None) // _RANGE + 1
    for number in range(ranges):
        low, high = (number << 64) // ranges, ((number + 1) << 64) // ranges - 1
        for group in _groups(kept, parts, low, high, 2):
            if len({each.place for each in group}) > 1:
                yield group


def _groups(
    kept: Kept, parts: Sequence[Part], low: int, high: int, least: int
) -> Iterator[list[Place]]:
    """Yield the places of each text of which the hash is in a range, and which stands so often."""
    columns, held = list[Sequence[str]](), [np.zeros((3, 0), np.uint64)]
    for number, part in enumerate(parts):
        facts = kept.facts(part.key)
        columns.append(facts["columns"] if facts else ())
        for each in kept.segments(part.key, facts):
            if each is not None:
                its = each[:, (each[0] >= np.uint64(low)) & (each[0] <= np.uint64(high))]
                held.append(np.insert(its, 1, number, 0))
    made = np.concatenate(held, 1)
    made = made[:, np.lexsort(made[::-1])]
    _, starts, counts = np.unique(made[0], return_index=True, return_counts=True)
    for start, count in zip(starts[counts >= least], counts[counts >= least], strict=True):
        found = list[Place]()
        for number, place in made[1:, start : start + count].T.tolist():
            row, column = divmod(place, COLUMNS)
            found.append(Place(*_at(parts[number]), row, columns[number][column]))
        yield found


def _at(part: Part) -> tuple[str, str]:
    return part.place, part.name
