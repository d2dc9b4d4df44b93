"""Tombstones for rows of published splits, and for those that a new version of a drop leaves out.

Source: `docs/formats/reasoning.md#forgotten-rows`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gristmill.asset import Wanted, declared
from gristmill.contract import GristmillError
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw import drops
from gristmill.corpora.raw import forgotten as file
from gristmill.corpora.raw.forgotten import Forgotten, Tombstone, hasher, key_of
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.raw.texts import Unfit
from gristmill.corpora.split_file import lines
from gristmill.data_root import DataRoot
from gristmill.families import Forgets
from gristmill.leaks import texts
from gristmill.provenance.trace_inputs import source
from gristmill.reasoning import raw
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import Numbers, free_numbers, mapped
from gristmill.reasoning.format.published import NORMALIZED, published_partitions


def tombstones_of(
    root: DataRoot, name: str, named: Collection[tuple[str, int]], reason: str, date: str = ""
) -> list[Tombstone]:
    """Tombstones of rows of a drop, and of all rows of it that are equal to theirs.

    name: of the drop. named: path of the file in it, and row, from 1. reason, date: that the
    tombstones give; default: today.

    A row that was built has the number of its record. Rows that have tombstones already are left
    out. Raises GristmillError where the raw files changed after a build, and for records of
    several rows.
    """
    drop, links = root.inbox(raw.INBOX) / name, root.link_rule()
    corpus = drops.corpus_of(drop, links, name)
    if any(form.group for form in corpus.forms):
        raise GristmillError(f"{name}: a record is made of several rows: name each by hand")
    hash_of = hasher(key_of(root.root, makes=True), corpus)
    before = file.read(drop, corpus.splits, links)
    known = {each.hash for each in before}
    splits = drops.splits(drop, corpus, links)

    def found(split: str) -> Iterator[tuple[int, str, int, str]]:
        for at, path in enumerate(splits[split]):
            for row, values in rows(path, corpus, links):
                if not isinstance(values, Unfit):
                    yield at, path.relative_to(drop).as_posix(), row, hash_of(values)

    files = {each for each, _ in named}
    holds = {
        split: any(path.relative_to(drop).as_posix() in files for path in paths)
        for split, paths in splits.items()
    }
    hashes = {
        own
        for split in splits
        if holds[split]
        for _, path, row, own in found(split)
        if (path, row) in named
    } - known
    made = list[Tombstone]()
    for split, paths in splits.items():
        taken = [each.number for each in before if each.split == split and each.number is not None]
        number_of = _numbers(root, f"{name}__{split}", paths, taken)
        for at, path, row, own in found(split) if hashes else ():
            if own in hashes:
                number = number_of(at, row)
                made.append(Tombstone(path, row, split, number, own, reason, date or _today()))
    return made


def forgets() -> Forgets:
    """How rows of corpora are forgotten."""

    def tombstones(root: Path, drop: Path, *of: Any) -> list[Tombstone]:
        return tombstones_of(DataRoot(root), drop.name, *of)

    return Forgets(texts.units, tombstones)


def _numbers(
    root: DataRoot, key: str, paths: Sequence[Path], taken: Collection[int]
) -> Callable[[int, int], int | None]:
    """What gives the number of the record of a row; None where none was built of it.

    taken: numbers of tombstones. A row that was left out as a leak has a number, too.
    """
    folder = root.root / names.NORMALIZED
    if key not in published_partitions(root, names.NORMALIZED):
        return lambda *_: None
    made = source(folder, key)
    built = {each.path: each.sha256 for each in made.raw_inputs()}
    changed = f"{made.title}: its drop changed after it was built: build it first"
    if any(built.get(each.path) != each.sha256 for each in raw.split_inputs(root, paths, key)):
        raise GristmillError(changed)
    of_lines = Numbers(folder / names.normalized(*key.split("__")))
    places = mapped(folder / names.origins(key))
    refused = folder / names.rejected(key)
    listed = map(json.loads, refused.open()) if refused.exists() else ()
    drop = root.inbox(raw.INBOX) / key.partition("__")[0]
    at_of = {path.relative_to(drop).as_posix(): at for at, path in enumerate(paths)}
    leaks = [(at_of[each["file"]], each["row"]) for each in listed if each["reason"] == "leak"]
    every = free_numbers(taken, len(places) + len(leaks))
    gaps = np.setdiff1d(every, of_lines.between(0, len(places))).tolist()
    if leaks and len(gaps) != len(leaks):
        raise GristmillError(changed)
    of_leaks = dict(zip(leaks, gaps, strict=False))

    def number_of(at: int, row: int) -> int | None:
        same = np.flatnonzero((places == (at, row)).all(axis=1))
        return of_lines.of(int(same[0])) if len(same) else of_leaks.get((at, row))

    return number_of


def renumbered(root: DataRoot, name: str, staged: Path, *, keeps: bool) -> list[str]:
    """What a drop that is to replace another one makes of the ids of records, a line a split.

    name: of the drop. staged: the new one, elsewhere in its inbox. keeps: whether it gets
    tombstones, so that the rows that stay keep their numbers.

    Of an id the record is another one where the line of the normalised file differs. Raises
    GristmillError where the new drop cannot be read and is to get tombstones.
    """
    said = []
    for key in published_partitions(root, names.NORMALIZED):
        if key.partition("__")[0] != name:
            continue
        try:
            said.append(f"{key}: {_renumbered(root, key, staged, keeps)}")
        except GristmillError as error:
            if keeps:
                raise
            said.append(f"{key}: ids are not compared: {error}")
    return said


def _renumbered(root: DataRoot, key: str, staged: Path, keeps: bool) -> str:
    name, split = key.split("__")
    folder, links = root.root / names.NORMALIZED, root.link_rule()
    corpus = drops.corpus_of(staged, links, name)
    every = file.read(staged, corpus.splits, links)
    forgotten = [each for each in every if each.split == split]
    taken = {each.number for each in forgotten if each.number is not None}
    jsonl = folder / names.normalized(name, split)
    old, new = _hashes(jsonl), _hashes_of(root, key, staged, corpus, forgotten)
    before = Numbers(jsonl).between(0, len(old)).tolist()
    if keeps and source(folder, key).record.config.get("leaks"):
        rule = "[leaks] drop leaves rows out of it: take it out of gristmill.toml, build the split"
        raise GristmillError(f"{key}: {rule}, and replace the drop then")
    if keeps:
        inputs = [str(each.path).split("/", 3)[3] for each in source(folder, key).raw_inputs()]
        files, places = sorted({*inputs}), mapped(folder / names.origins(key))
        more = [
            Tombstone(files[number], row, split, before[at], None, "replaced", _today())
            for at in _gone(old, new)
            if before[at] not in taken
            for number, row in [places[at].tolist()]
        ]
        file.add(staged, more, corpus.splits)
        taken |= {each.number for each in more if each.number is not None}
    after = dict(zip(free_numbers(taken, len(new)).tolist(), new, strict=True))
    moved = sum(after.get(number, own) != own for number, own in zip(before, old, strict=True))
    left = (Counter(old) - Counter(new)).total()
    hint = "; --keep-numbers writes tombstones against it" if moved and not keeps else ""
    return f"{left:,} rows left, {moved:,} of {len(old):,} ids name another record{hint}"


def _hashes_of(
    root: DataRoot, key: str, drop: Path, corpus: Corpus, forgotten: Sequence[Tombstone]
) -> list[bytes]:
    """The hashes of the lines that a drop gives. forgotten: whose rows it leaves out."""
    split, links = key.split("__")[1], root.link_rule()
    wanted = Wanted(declared()[NORMALIZED], root, key)
    config = raw.config_of(wanted, corpus, drop)
    by_hash = [replace(each, number=None) for each in forgotten if each.hash]
    left = Forgotten(drop, by_hash, key_of(root.root), corpus)
    with TemporaryDirectory(prefix=".numbers.", dir=drop.parent) as scratch:
        out = Path(scratch) / "out"
        normalize(drop, out, config, corpus=corpus.name, split=split, links=links, forgotten=left)
        return _hashes(out / names.normalized(corpus.name, split))


def _hashes(jsonl: Path) -> list[bytes]:
    return [blake2b(line, digest_size=8).digest() for _, _, line in lines(jsonl)]


def _gone(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """The places in `old` whose numbers no row of `new` may get, so that most keep theirs.

    Between two rows that both have, so many numbers stay free as there are fewer rows. An edited
    row has the number of the one before, and rows that came in use up those that leave behind
    them, if more rows follow.
    """
    last = {row: at for at, row in enumerate(new)}
    counts = Counter(old), Counter(new)
    both = [(at, last[row]) for at, row in enumerate(old) if counts[0][row] == counts[1][row] == 1]
    gone, spare, begin, start = list[int](), 0, 0, 0
    for end, stop in [*_ascending(both), (len(old), len(new))]:
        less = (end - begin) - (stop - start) - (spare if end < len(old) else 0)
        if less > 0:
            stay, there = set[int](), start
            for at in range(begin, end):
                if there < stop and old[at] == new[there]:
                    stay.add(at)
                    there += 1
            gone += sorted(range(begin, end), key=stay.__contains__)[:less]
        spare, begin, start = max(0, -less), end + 1, stop + 1
    return sorted(gone)


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs of which both numbers ascend; the first ones do."""
    least, ends, before = list[int](), list[int](), list[int]()
    for number, (_, value) in enumerate(pairs):
        length = bisect_left(least, value)
        before.append(ends[length - 1] if length else -1)
        least[length : length + 1], ends[length : length + 1] = [value], [number]
    found, number = list[tuple[int, int]](), ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
