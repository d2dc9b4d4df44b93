"""What is forgotten in drops, by file: the rows that the readers of every family leave out.

The tombstones of a drop are an input of what is built from it; rows go by their contents.
Source: `docs/takedowns.md#tombstones`.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain, compress
from pathlib import Path

from gristmill.data_root import DataRoot
from gristmill.families import forgets
from gristmill.inbox.marks import tombstones_of
from gristmill.provenance import raw_inputs
from gristmill.publish.build import LeftOut
from gristmill.untrusted.files import LinkRule


def left_out(
    root: DataRoot, drops: Iterable[Path], files: Collection[Path], asset: str, partition: str
) -> LeftOut:
    """What of some drops the build of some of their files leaves out.

    Its `links` reads the drops that have tombstones: those count that name one of the files, or
    one that is not in the drop any more. Raises BadInput as `corpora.raw.forgotten.read`.
    """
    found, paths, by_date = list[Path](), list[Path](), Counter[str]()
    for drop in drops:
        if not os.path.lexists(path := tombstones_of(drop)):
            continue
        from gristmill.corpora.raw.forgotten import ERASED, read

        own, stones = {*files}, read(drop, links=root.link_rule())
        of = [_path(drop, each.file.removesuffix(ERASED)) for each in stones]
        named = [file in own or not file.exists() for file in of]
        if any(named):
            found, paths = [*found, drop], [*paths, path]
            by_date.update(each.date for each in compress(stones, named) if each.hash)
    inputs = raw_inputs.raw_inputs(root.root, paths, asset, partition, {}, root.link_rule())

    def links() -> LinkRule:
        rows = dict(chain.from_iterable(rows_in(root.root, drop).items() for drop in found))
        return replace(root.link_rule(), forgotten=rows)

    return LeftOut(inputs, by_date, links)


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
