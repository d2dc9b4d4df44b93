"""Raw files of a split to normalised ones. Source: `docs/formats/reasoning.md#normalised-files`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from gristmill.contract import BadInput, FileNote, NothingToBuild, Summary
from gristmill.corpora.corpus import Corpus, corpus_of_table
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.corpus_file import absent
from gristmill.corpora.raw.forgotten import Forgotten
from gristmill.corpora.raw.reader import Reader, UnknownKeys, emptiness, with_columns
from gristmill.corpora.raw.rows import Piece, has_pieces, rows
from gristmill.corpora.raw.rules import Drawn, Place, Rules
from gristmill.corpora.raw.tables import named
from gristmill.corpora.raw.texts import Unfit, is_left_out
from gristmill.corpora.raw.transforms import Row
from gristmill.corpora.raw.values import Names, text_of
from gristmill.corpora.records import LineWriter, Record
from gristmill.corpora.split_file import SplitWriter
from gristmill.reasoning.builders.refused import (
    Leaks,
    ListedRefused,
    PieceRun,
    PieceTask,
    Refused,
    read_pieces,
    until_damage,
)
from gristmill.reasoning.config import REFUSE, CorpusConfig, NormalizeConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import OriginsWriter, free_numbers, write_numbers
from gristmill.reasoning.render.text import HOOKS
from gristmill.run.parts import Made, PartStore
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.vocabularies.encode import LONGEST_RUN, WHITE_SPACE

_RUN: Final = re.compile(f"[{re.escape(WHITE_SPACE)}]+")


def check_runs(texts: Iterable[str]) -> None:
    """Raise Unfit for a text with more white space in a row than an encoder takes."""
    for text in texts:
        if any(run.end() - run.start() > LONGEST_RUN for run in _RUN.finditer(text)):
            rule = f"a text has more than {LONGEST_RUN:,} white space characters in a row"
            raise Unfit("white_space", rule)


class Ids:
    """The ids of records, by 8 bytes of their hashes. Memory: 250 bytes a record."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, int, bytes]] = {}

    def before(self, own_id: str, content: bytes, place: Place) -> tuple[Place, bool] | None:
        """The place of the first record with an id, and whether it is equal; None: it is this one.

        content: of the record. place: of it.
        """
        digest = blake2b(content, digest_size=8).digest()
        key = blake2b(own_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        file, row, first = self._first.setdefault(key, (*place, digest))
        return None if (file, row) == place else ((file, row), first == digest)


_FLUSHED: Final = 1 << 20
_CLOSE: Final = "</think>"
_NO_ROW: Final[Mapping[str, Any]] = {}
_SUMS: Final = ("rows", "records", "with_cot", "with_steps", "empty")
_TALLIES: Final = ("shapes", "cleaned", "without_cot_by", "part_unread_by")


@dataclass(frozen=True)
class NormalizeSummary(Summary):
    """What was normalised."""

    raw_rows: int
    grouped: int
    from_groups: int
    records: int
    with_cot: int
    with_steps: int
    empty: int
    rejected: int
    rejected_by: Mapping[str, int]
    left_out_by: Mapping[str, int]
    shapes: Mapping[str, int]
    cleaned: Mapping[str, int]
    unknown_keys: Mapping[str, int]
    without_cot_by: Mapping[str, int]
    ids_again: Mapping[str, int]
    part_unread_by: Mapping[str, int]


def normalize(
    source: Path,
    out: Path,
    config: NormalizeConfig,
    *,
    corpus: str | None = None,
    split: str,
    links: LinkRule = REFUSE_LINKS,
    parts: Callable[[], PartStore] | None = None,
    forgotten: Forgotten | None = None,
    leaks: Leaks | None = None,
    progress: Progress = SILENT,
) -> NormalizeSummary:
    """Normalise the raw files of one split of a drop, the folder `source`.

    out: folder to write, which must not exist: `<corpus>/<split>.jsonl`, or its parts,
        `origins/<corpus>__<split>.npy`, and where there is something for them
        `rejected/<corpus>__<split>.jsonl` and `<corpus>/<split>.numbers.npy`.
    config: cleaning, and how many damaged records are set aside.
    corpus, split: their names; default: the corpus of the drop's folder.
    links: what happens to raw files that are links; default: they are refused.
    parts: gives the store of finished parts; forgotten: tombstones; leaks: finds rows that are left
        out and keep their numbers; progress: gets the stage "normalise", in rows; default: none.

    Raises NothingToBuild where the drop has no file of the split, ValueError for an unknown split,
    BadInput for damaged files, a broken limit, a wrong tombstone, a file without a good row, too
    many damaged records, a column that no row has, and where no record is left.
    """
    which = _corpus(config, source if corpus is None else source.with_name(corpus))
    paths = drops.split_files(source, which, split, links)
    if not paths:
        raise NothingToBuild(f"{source}: holds no file of the split {split} of {which.name}")
    out.mkdir(parents=True)
    target, key = names.normalized(which.name, split), f"{which.name}__{split}"
    origins, rejected = names.origins(key), names.rejected(key)

    def written(folder: Path, last: Drawn | None) -> tuple[_Work, NormalizeSummary]:
        (folder / target).parent.mkdir(parents=True)
        (folder / origins).parent.mkdir(parents=True)
        with (
            SplitWriter(folder / target, which.part_bytes) as file,
            OriginsWriter(folder / origins) as places,
            Refused(folder / rejected, config.bad_rows, source) as refused,
        ):
            rules = Rules(which, split, last)
            work = _Work(which, rules, paths, file, places, refused, config, forgotten, leaks)
            work.run(split, PieceRun(links, parts, config.workers, folder), progress)
            notes = file.notes(target, work.records)
        notes[origins] = FileNote(rows=work.records)
        if refused.count:
            notes[rejected] = FileNote(rows=refused.listed)
        if (taken := work.taken()) and write_numbers(folder / target, taken, work.records):
            notes[names.numbers(which.name, split)] = FileNote(rows=work.records)
        return work, work.summary(notes)

    if "cap" not in (which.sample or ()):
        return written(out, None)[1]
    with TemporaryDirectory(dir=out) as scratch:  # the last record is known once all are read
        last = written(Path(scratch), None)[0].rules.last
    return written(out, last)[1]


def _corpus(config: NormalizeConfig, drop: Path) -> Corpus:
    """The corpus that the config has whole, else that of the drop."""
    if isinstance(config, CorpusConfig) and config.corpus:
        return corpus_of_table(json.loads(config.corpus))
    return drops.corpus_of(drop)


def _thoughts(corpus: Corpus) -> Iterator[tuple[str, tuple[str, Callable[[Row], str]]]]:
    """Yield each form whose cot `think` reads, with the name of its column and what reads it."""
    for form in corpus.forms:
        value = form.values.get("cot")
        if isinstance(value, Mapping) and "think" in value and "pick" not in value:
            yield form.name, (value["think"], text_of(value["think"], Names(form.parts)))


def _cut_twice(corpus: Corpus) -> Iterator[tuple[str, tuple[str, Callable[[Row], str], list[str]]]]:
    """Yield each form whose cot and answer are between marks in one column.

    With the name of the column, what reads it, and the marks: a text outside of both is lost.
    """
    for form in corpus.forms:
        cot, answer = form.values.get("cot"), form.values.get("answer")
        if not isinstance(cot, Mapping) or not isinstance(answer, Mapping):
            continue
        column = answer.get("column")
        if "between" not in answer or column != cot.get("think", cot.get("column")):
            continue
        marks = [*cot.get("between", ("<think>", _CLOSE)), *answer["between"]]
        if "think" in cot or "between" in cot:
            yield form.name, (column, text_of(column, Names(form.parts)), marks)


class _Listed:
    """What a piece holds, kept as `SplitWriter` and `OriginsWriter` get it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes | Sequence[int]) -> None:
        self.written.append(data if isinstance(data, bytes) else np.array(data, "<i8").tobytes())


def _read_piece(
    corpus: Corpus,
    config: NormalizeConfig,
    split: str,
    links: LinkRule,
    leaks: Leaks | None,
    task: PieceTask,
) -> Made:
    """The lines of a piece, their rows, and what was refused; the summary counts the rest.

    corpus, config, split, links, leaks: as for `normalize`. Rows are those of the piece. What the
    file breaks is in the summary, too, as rule and row.
    """
    lines, places, refused = _Listed(), _Listed(), ListedRefused(task.path)
    rules = Rules(corpus, split)
    work = _Work(corpus, rules, [task.path], lines, places, refused, config, None, leaks)
    with SILENT.stage("normalise", "rows") as stage:
        given = (Reader(corpus), 0, links, stage, task.piece)
        found = until_damage(lambda: work.read_rows(*given))
        work.flush()
    streams = {
        "lines": b"".join(lines.written),
        "places": b"".join(places.written),
        "refused": json.dumps(refused.found).encode(),
    }
    return streams, {**work.state(), **found, "leaked": work.leaked}


class _Taken(NamedTuple):
    """A record that the rules of its corpus keep."""

    record: Record
    place: Place
    row: Row
    line: bytes
    own_id: str | None
    is_empty: bool


class _Work:
    """One split under way: takes raw rows, writes records."""

    def __init__(
        self,
        corpus: Corpus,
        rules: Rules,
        paths: Sequence[Path],
        file: SplitWriter | _Listed,
        places: OriginsWriter | _Listed,
        refused: Refused,
        config: NormalizeConfig,
        forgotten: Forgotten | None,
        leaks: Leaks | None,
    ) -> None:
        self._forgotten, self._leaks = forgotten, leaks
        self.leaked: list[int] = []
        self._held: list[_Taken] = []
        self.rows = self.records = self.with_cot = self.with_steps = self.empty = 0
        self.grouped = self.made = self.count_again = 0
        self.again: str | None = None
        self._ids = None if corpus.id is None else Ids()
        self.shapes: Counter[str] = Counter()
        self.cleaned: Counter[str] = Counter()
        self.without_cot_by: Counter[str] = Counter()
        self.part_unread_by: Counter[str] = Counter()
        self._thoughts, self._cut_twice = dict(_thoughts(corpus)), dict(_cut_twice(corpus))
        self._corpus, self._paths, self._config = corpus, paths, config
        self._file, self._places, self._refused = file, places, refused
        self._line = LineWriter(corpus).line
        self.rules = rules
        self._hooks = [
            (name, HOOKS[name][corpus.name])
            for name in config.cleaning
            if corpus.name in HOOKS[name]
        ]
        self._is_empty = emptiness(corpus)
        self._lines: list[bytes] = []
        self._origins: list[int] = []
        self._waiting = self._parts_taken = 0
        self._good_files: set[int] = set()
        is_refused = config.unknown_keys == REFUSE
        is_looked_at = is_refused or not corpus.is_built_in
        self._unknown = UnknownKeys(corpus, is_refused) if is_looked_at else None

    def run(self, split: str, how: PieceRun, progress: Progress) -> None:
        reader = Reader(self._corpus)
        with progress.stage("normalise", "rows") as stage:
            kinds = groupby(
                enumerate(self._paths), key=lambda each: self._is_divided(each[1], how.links)
            )
            for is_divided, files in kinds:
                if is_divided:
                    self._read_pieces(files, split, how, stage)
                    continue
                for number, _ in files:
                    self._begin()
                    self.read_rows(reader, number, how.links, stage)
                    self._end(number)
            if not self.rows:
                raise self._empty(self._paths[0])
            self._read_rest(reader, stage)
            self.grouped = reader.grouped
            stage.advance(self.flush())
        seen = None if self._corpus.is_built_in else self._unknown
        if seen is not None and (rule := absent(self._corpus, self.shapes, seen.columns)):
            raise BadInput(self._refused.drop / drops.CORPUS, rule)
        self._refused.check(self._paths[0], self.records)
        if self._forgotten is not None:
            self._forgotten.check(self.records + len(self.leaked))

    def summary(self, notes: Mapping[str, FileNote]) -> NormalizeSummary:
        return NormalizeSummary(
            files=notes,
            raw_rows=self.rows,
            grouped=self.grouped,
            from_groups=self.made,
            records=self.records,
            with_cot=self.with_cot,
            with_steps=self.with_steps,
            empty=self.empty,
            rejected=self._refused.count,
            rejected_by=dict(self._refused.damaged),
            left_out_by=dict(self._refused.left_out),
            shapes=dict(self.shapes),
            cleaned=dict(self.cleaned),
            unknown_keys=dict(self._unknown.counts if self._unknown else {}),
            without_cot_by=dict(self.without_cot_by),
            part_unread_by=dict(self.part_unread_by),
            ids_again={} if self.again is None else {self.again: self.count_again},
        )

    def _is_divided(self, path: Path, links: LinkRule) -> bool:
        """Whether a file is read in pieces: it is large, and no row of it counts for later ones."""
        corpus = self._corpus
        counts = corpus.id is not None or corpus.dedup or "cap" in (corpus.sample or {})
        if counts or self._forgotten or any(form.group is not None for form in corpus.forms):
            return False
        return has_pieces(path, links)

    def _read_pieces(
        self, files: Iterable[tuple[int, Path]], split: str, how: PieceRun, stage: Stage
    ) -> None:
        """Take what the pieces of some files hold."""
        stage.advance(self.flush())
        read = partial(_read_piece, self._corpus, self._config, split, how.links, self._leaks)
        last = -1
        for task, before, held, state in read_pieces(read, files, how, self._refused):
            if not task.piece.begin:
                if last >= 0:
                    self._end(last)
                last = task.number
                self._begin()
            self._file.write(held["lines"])
            places = np.frombuffer(held["places"], "<i8").reshape(-1, 2)
            self._places.write(places + np.array([task.number, before]))
            first = self.records + len(self.leaked)
            self.leaked += [first + number for number in state["leaked"]]
            for name in _SUMS:
                setattr(self, name, getattr(self, name) + state[name])
            for name in _TALLIES:
                getattr(self, name).update(state[name])
            if self._unknown is not None:
                self._unknown.add(*state["unknown"])
            stage.advance(state["records"])
        self._end(last)

    def state(self) -> dict[str, Any]:
        """What was counted, as `_read_pieces` adds it."""
        unknown = self._unknown and (sorted(self._unknown.columns), self._unknown.counts)
        return {name: getattr(self, name) for name in (*_SUMS, *_TALLIES)} | {"unknown": unknown}

    def _begin(self) -> None:
        """Note what was counted before a file."""
        self._begun = (self._good, self.empty, self.rows, self._parts_taken)

    def _end(self, number: int) -> None:
        """Raise BadInput for a file without a row, or of whose rows none is good."""
        self._settle()
        path, (good, empty, rows_before, parts) = self._paths[number], self._begun
        if self._good > good:
            self._good_files.add(number)
        elif self._parts_taken == parts:
            self._refused.check_file(path, self.empty - empty)
        # Of several Parquet files one may be empty: its footer says so. A text may be cut.
        is_empty = self.rows == rows_before and self._parts_taken == parts
        if is_empty and not (path.suffix.lower() == ".parquet" and len(self._paths) > 1):
            raise self._empty(path)

    def read_rows(
        self,
        reader: Reader,
        number: int,
        links: LinkRule,
        stage: Stage,
        piece: Piece | None = None,
    ) -> int:
        """Take the rows of one file, or of a piece of it; return the number of the last one."""
        path, read, row = self._paths[number], reader.read, 0
        reader.begin(named(path))
        forgotten = self._forgotten
        takes = forgotten.takes if forgotten and forgotten.hashes else None
        name = path.relative_to(self._refused.drop).as_posix()
        for row, value in rows(path, self._corpus, links, piece=piece):
            if takes and not isinstance(value, Unfit) and takes(name, row, value):
                self._parts_taken += 1
                continue
            self.rows += 1
            try:
                if isinstance(value, Unfit):
                    raise value
                place = (number, row)
                self.rules.check_row(value)
                if self._unknown is not None:
                    self._unknown.check(value)
                record = read(value, place)
                if record is not None:
                    self._take(record, place, value)
                else:
                    self._parts_taken += 1
            except Unfit as unfit:
                if self._unknown is not None and isinstance(value, dict):
                    self._unknown.see(value)
                self._refused.add(path, row, with_columns(unfit, self._corpus, value))
            if self._waiting > _FLUSHED:
                stage.advance(self.flush())
        return row

    def _read_rest(self, reader: Reader, stage: Stage) -> None:
        """Write the records that were made of several rows."""
        broken: set[int] = set()
        for place, record in reader.rest():
            self.made += 1
            try:
                self._take(record, place)
                self._good_files.add(place[0])
            except Unfit as unfit:
                self._refused.add(self._paths[place[0]], place[1], unfit)
                (self._good_files if is_left_out(unfit.reason) else broken).add(place[0])
            if self._waiting > _FLUSHED:
                stage.advance(self.flush())
        for number in sorted(broken - self._good_files):
            self._refused.check_file(self._paths[number], 0)

    @property
    def _good(self) -> int:
        """Number of raw records so far with a text, or that a rule of the corpus leaves out."""
        return self.records - self.empty + self._refused.left_out.total()

    def _empty(self, path: Path) -> BadInput:
        rule = f"holds no row of {self._corpus.name}: take it out, or get it again if it had some"
        return BadInput(path, rule)

    def _take(self, record: Record, place: Place, row: Mapping[str, Any] = _NO_ROW) -> None:
        """Write a record. Raises Unfit for one that must not be in a normalised file."""
        for name, hook in self._hooks:
            changed = hook(record)
            if changed != record:
                self.cleaned[name] += 1
                record = changed
        question, answer, cot = record[:3]
        is_empty = self._is_empty(record)
        self.rules.check(record, row)
        if len(question) + len(answer) + len(cot or "") > LONGEST_RUN:
            check_runs((record.question, record.answer, record.cot or ""))
        try:
            line = self._line(record)
        except orjson.JSONEncodeError as error:
            raise Unfit("surrogate", "a text holds a surrogate without its pair") from error
        own_id = None if self._ids is None else self.rules.id_of(row)
        taken = _Taken(record, place, row, line, own_id, is_empty)
        if self._leaks is None:
            self._keep(taken)
        else:
            self._held.append(taken)
            self._waiting += len(line)

    def _settle(self) -> None:
        """Keep the records that are held, but for those that hold a question of a set."""
        held, self._held = self._held, []
        if self._leaks is None or not held:
            return
        found = self._leaks([orjson.loads(each.line) for each in held])
        for each, rule in zip(held, found, strict=True):
            if not rule:
                self._keep(each)
                continue
            file, row = each.place
            self.leaked.append(self.records + len(self.leaked))
            self._refused.add(self._paths[file], row, Unfit("leak", rule))

    def taken(self) -> list[int]:
        """The numbers that no record gets: of tombstones, and of leaks, which count as records."""
        found = list(self._forgotten.numbers) if self._forgotten else []
        if not self.leaked:
            return found
        left: list[int] = free_numbers(found, self.records + len(self.leaked))[self.leaked].tolist()
        return found + left

    def _keep(self, taken: _Taken) -> None:
        """Write a record, and count it."""
        record, place, row, line, own_id, is_empty = taken
        shape = record.shape
        if self._ids is not None and own_id is not None:
            self._count_again(self._ids.before(own_id, line, place), place)
        self._lines.append(line)
        self._origins += place
        self._waiting += len(line)
        self.records += 1
        self.with_cot += bool(record.cot and not record.cot.isspace())
        if shape in self._thoughts or shape in self._cut_twice:
            self._count_unread(record, row)
        self.with_steps += record.steps is not None
        self.empty += is_empty
        self.shapes[shape] += 1

    def _count_unread(self, record: Record, row: Mapping[str, Any]) -> None:
        """Count a record of whose text a part is in no value."""
        if record.cot is None and record.shape in self._thoughts:
            column, read = self._thoughts[record.shape]
            if (whole := read(row)).strip() and _CLOSE not in whole:
                self.without_cot_by[f"think:{column}"] += 1
        if record.shape in self._cut_twice:
            column, read, marks = self._cut_twice[record.shape]
            whole = read(row)
            for part in (record.cot or "", record.answer, *marks):
                whole = whole.replace(part, "", 1)
            if whole.strip():
                self.part_unread_by[column] += 1

    def _count_again(self, found: tuple[Place, bool] | None, place: Place) -> None:
        """Count a record with the id of another one before it; the first two places are kept."""
        if found is None or found[1]:
            return
        self.count_again += 1
        if self.again is None:
            names = (
                self._paths[file].relative_to(self._refused.drop) for file, _ in (found[0], place)
            )
            rows_of = (found[0][1], place[1])
            self.again = " and ".join(
                f"{n.as_posix()}:{r}" for n, r in zip(names, rows_of, strict=True)
            )

    def flush(self) -> int:
        """Write what waits; return the number of records."""
        self._settle()
        count = len(self._lines)
        self._file.write(b"".join(self._lines))
        self._places.write(self._origins)
        self._lines.clear()
        self._origins.clear()
        self._waiting = 0
        return count
