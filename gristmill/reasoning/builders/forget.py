"""Tombstones for rows of published splits, and for those that a new version of a drop leaves out.

Source: `docs/formats/reasoning.md#forgotten-rows`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gristmill.asset import Wanted, declared
from gristmill.contract import GristmillError
from gristmill.corpora.corpus import Corpus, corpus_and_split
from gristmill.corpora.raw import drops
from gristmill.corpora.raw import forgotten as file
from gristmill.corpora.raw.forgotten import Forgotten, Tombstone, hasher, key_of
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.raw.texts import Unfit
from gristmill.corpora.split_file import lines
from gristmill.data_root import DataRoot
from gristmill.inbox.marks import FORGOTTEN
from gristmill.provenance.trace_inputs import source
from gristmill.reasoning import raw
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import mapped
from gristmill.reasoning.format.numbers import Numbers, free
from gristmill.reasoning.format.published import NORMALIZED, published_partitions


def tombstones_of(root: DataRoot, key: str, numbers: Iterable[int], reason: str) -> list[Tombstone]:
    """Tombstones of records of a published split, and of all rows that are equal to theirs.

    key: of the split. numbers: of the records. reason: that the tombstones give.

    Rows that have tombstones already are left out. Raises GristmillError for a number that no
    record has, where the raw files changed after the build, and for records of several rows.
    """
    corpus, split = corpus_and_split(key)
    drop, corpus, files, _ = raw.files_of(root, corpus.name, split)
    if any(form.group for form in corpus.forms):
        raise GristmillError(f"{key}: a record is made of several rows: name each by hand")
    folder = root.root / names.NORMALIZED
    made = source(folder, key)
    built = {each.path: each.sha256 for each in made.raw_inputs()}
    if any(built.get(each.path) != each.sha256 for each in raw.split_inputs(root, files, key)):
        raise GristmillError(f"{drop}: changed after {made.title} was built: build it first")
    of_lines = Numbers(folder / names.normalized(corpus.name, split))
    places = mapped(folder / names.origins(key))
    wanted = set[tuple[int, int]]()
    for number in numbers:
        if (at := of_lines.place(number)) is None or not 0 <= at < len(places):
            raise GristmillError(f"{key}: no record has the number {number}")
        wanted.add(tuple(places[at].tolist()))
    hash_of = hasher(key_of(root.root, makes=True), corpus)

    def found() -> Iterator[tuple[int, str, int, str]]:
        for at, path in enumerate(files):
            for row, values in rows(path, corpus, root.link_rule()):
                if not isinstance(values, Unfit):
                    yield at, path.relative_to(drop).as_posix(), row, hash_of(values)

    known = {each.hash for each in file.read(drop, corpus.splits, root.link_rule())}
    hashes = {own for at, _, row, own in found() if (at, row) in wanted} - known
    return [
        Tombstone(name, row, split, number, own, reason, _today())
        for at, name, row, own in found()
        if own in hashes
        for same in [np.flatnonzero((places == (at, row)).all(axis=1))]
        for number in [of_lines.of(int(same[0])) if len(same) else None]
    ]


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
        files, places = sorted({*inputs} - {FORGOTTEN}), mapped(folder / names.origins(key))
        more = [
            Tombstone(files[number], row, split, before[at], None, "replaced", _today())
            for at in _gone(old, new)
            if before[at] not in taken
            for number, row in [places[at].tolist()]
        ]
        file.add(staged, more, corpus.splits)
        taken |= {each.number for each in more if each.number is not None}
    after = dict(zip(free(taken, len(new)).tolist(), new, strict=True))
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
