"""What is forgotten in drops, by file: the rows that the readers of every family leave out.

The tombstones of a drop are an input of what is built from it; rows go by their contents.
Source: `docs/takedowns.md#tombstones`.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gristmill.data_root import DataRoot
from gristmill.families import forgets
from gristmill.inbox.marks import tombstones_of
from gristmill.provenance import Input, raw_inputs
from gristmill.untrusted.files import LinkRule


class LeftOut(NamedTuple):
    """What of some drops a build leaves out.

    inputs: the files of the tombstones. by_date: how many rows were forgotten, by day.
    """

    root: DataRoot
    drops: Sequence[Path]
    inputs: Sequence[Input]
    by_date: Mapping[str, int]

    def links(self) -> LinkRule:
        """How the files are opened, and which of their rows are left out; reads the drops."""
        rows = dict[Path, set[int]]()
        for drop in self.drops:
            rows |= rows_in(self.root.root, drop)
        return replace(self.root.link_rule(), forgotten=rows) if rows else self.root.link_rule()


def left_out(
    root: DataRoot, drops: Iterable[Path], files: Collection[Path], asset: str, partition: str
) -> LeftOut:
    """What of some drops the build of some of their files leaves out.

    Tombstones count that name one of the files, or one that is not in the drop any more. Raises
    BadInput as `corpora.raw.forgotten.read`.
    """
    found, paths, by_date = list[Path](), list[Path](), Counter[str]()
    for drop in drops:
        if not os.path.lexists(path := tombstones_of(drop)):
            continue
        from gristmill.corpora.raw.forgotten import ERASED, read

        dates = [
            each.date
            for each in read(drop, links=root.link_rule())
            if (of := _path(drop, each.file.removesuffix(ERASED))) in files or not of.exists()
        ]
        if dates:
            found, paths = [*found, drop], [*paths, path]
            by_date.update(dates)
    inputs = raw_inputs.raw_inputs(root.root, paths, asset, partition, {}, root.link_rule())
    return LeftOut(root, found, inputs, by_date)


def rows_in(root: Path, drop: Path) -> dict[Path, set[int]]:
    """The rows of a drop that have a hash of one of its tombstones, by file; 0 for a whole one.

    Raises BadInput for a hash of another key than that of the data root.
    """
    from gristmill.corpora.raw.forgotten import hash_of, key_of, mark_of, read, refuse_other_key

    key, how = key_of(root), forgets(drop.parent.name)
    stones = read(drop, links=DataRoot(root).link_rule()) if how else []
    refuse_other_key(tombstones_of(drop), stones, mark_of(key))
    hashes, rows = {each.hash for each in stones}, defaultdict[Path, set[int]](set)
    for unit in how.units(root, drop) if how and hashes else ():
        if f"{mark_of(key)}-{hash_of(key, unit.values)}" in hashes:
            rows[_path(drop, unit.file)].add(unit.row)
    return dict(rows)


def _path(drop: Path, file: str) -> Path:
    return drop if drop.is_file() else drop / file
