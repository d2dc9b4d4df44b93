"""What differs between two versions: rows added, removed, changed, and moved between splits.

Source: docs/history.md#diff.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError
from gristmill.history.rows import key_of, named, reading, scan
from gristmill.history.versions import Version, kept, place_of, published, read
from gristmill.provenance import Record
from gristmill.provenance.inventory import Entry

if TYPE_CHECKING:
    import polars as pl

KINDS: Final = ("removed", "added", "changed", "moved")
_AT_ONCE: Final = 1 << 20
"""Rows of a version that are joined at once."""


@dataclass
class Difference:
    """What became of the rows of one version in another one.

    rows_before, rows_after: of both versions. examples: the first rows of each kind, with their
    places; of a row that changed or moved as it was, and with `now` as it is.
    """

    rows_before: int
    rows_after: int
    removed: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The counts of all kinds, each with its examples, for a person."""
        for kind in KINDS:
            yield f"{getattr(self, kind):,} {kind}"
            yield from (f"    {_line(row)}" for row in self.examples.get(kind, ()))

    def add(
        self, kind: str, rows: pl.DataFrame, most: int, now: pl.DataFrame | None = None
    ) -> None:
        """Count rows of a kind, and keep the first as examples; now: as they are."""
        setattr(self, kind, getattr(self, kind) + len(rows))
        own = self.examples.setdefault(kind, [])
        head = max(most - len(own), 0)
        found = [*named(rows.head(head).iter_rows(named=True))]
        if now is not None:
            after = named(now.head(head).iter_rows(named=True))
            found = [{**row, "now": each} for row, each in zip(found, after, strict=True)]
        own += found


def _line(row: Mapping[str, Any]) -> str:
    """A row in one line; of one that changed or moved also what it became."""
    words = [row.get("split"), row.get("name") or row["hash"], row.get("place")]
    own = "  ".join(filter(None, words))
    return own if "now" not in row else f"{own}  ->  {_line(row['now'])}"


def of_replaced(root: Path, now: Record, before: Record, most: int) -> list[str]:
    """What differs between a published version and the one that it replaced, in lines.

    most: examples of each kind. Empty where it is not known, or was replaced again.
    """
    for partition in (None, now.partition):
        entry = Entry(now.artifact, partition)
        folder = place_of(root, entry) / before.data_version
        if folder.is_dir():
            with suppress(GristmillError, OSError):
                new = published(root, entry)
                if new is not None and new.record == now:
                    found = between(read(root, folder), new, most)
                    return [f"{found.rows_before:,} rows -> {found.rows_after:,}", *found.lines()]
    return []


def chosen(root: Path, entry: Entry, names: Sequence[str]) -> tuple[Version, Version]:
    """The two versions of an artifact partition that begin with `names`; the last two for none.

    With one name the other version is the published one. Raises GristmillError where there is no
    such version, or more than one.
    """
    older, wrong = kept(root, entry)
    now = published(root, entry)
    versions = [each for each in older if now is None or not _is_same(each, now)]
    versions += [now] if now is not None else []
    if len(names) < 2 and len(versions) < 2:
        why = f": {wrong[0]}" if wrong else ""
        raise GristmillError(f"{entry.title}: no older version is kept{why}")

    def found(name: str) -> Version:
        listed = [each for each in versions if each.record.data_version.startswith(name)]
        if len(listed) == 1:
            return listed[0]
        what = "no version" if not listed else f"{len(listed)} versions"
        why = "; ".join(each for each in wrong if f"/{name}" in each)
        raise GristmillError(
            f"{entry.title}: {what} of {name}" + (f": {why}" if why else ": see `gristmill log`")
        )

    if not names:
        return versions[-2], versions[-1]
    return found(names[0]), found(names[1]) if len(names) > 1 else versions[-1]


def _is_same(one: Version, other: Version) -> bool:
    return one.record.data_version == other.record.data_version


def between(old: Version, new: Version, most: int = 3) -> Difference:
    """What differs between two versions of an artifact. most: examples of each kind.

    Memory does not grow with the rows, but for those of one name. Raises GristmillError where no
    rows are kept of one.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(each.rows()) for each in (old, new)]
        key = key_of(old.root)
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gristmill-diff-")))
        before, after = (_with_neighbours(f, key, work / f.parent.name) for f in files)
        return _compared(before, after, most, work)


def _with_neighbours(file: Path, key: bytes, work: Path) -> pl.LazyFrame:
    """The rows with `before`, the hash of the row before: it says where in its file a row is."""
    import polars as pl

    work.mkdir(exist_ok=True)
    rows, last = scan(file, key), pl.Series([0], dtype=pl.UInt64)
    for number in itertools.count():
        with reading(file):
            batch = rows.slice(number * _AT_ONCE, _AT_ONCE).collect()
        hashes = batch["hash"]
        before = pl.concat([last, hashes]).head(len(batch)).alias("before")
        batch.with_columns(before).write_parquet(work / f"{number:06}.parquet")
        if len(batch) < _AT_ONCE:
            return pl.scan_parquet(work / "*.parquet")
        last = hashes.tail(1)
    raise AssertionError


def _compared(before: pl.LazyFrame, after: pl.LazyFrame, most: int, work: Path) -> Difference:
    import polars as pl

    old, new = (int(frame.select(pl.len()).collect().item()) for frame in (before, after))
    found, parts = Difference(old, new), max(old, new) // _AT_ONCE + 1
    has_name = pl.col("name") != ""
    own = pl.when(has_name).then(pl.col("name").hash()).otherwise(pl.col("hash"))
    for part, (left, right) in enumerate(_parts(before, after, own, parts)):
        _, *others = _matched(["name", "hash", "split"], left, right)
        pairs, *others = _matched(["name", "hash"], *others)
        _count(found, "moved", pairs, most)
        pairs, *named_rows = _matched(["name"], *(each.filter(has_name) for each in others))
        _count(found, "changed", pairs, most)
        for kind, own_rows, rows in zip(KINDS, named_rows, others, strict=False):
            found.add(kind, own_rows, most)
            rows.filter(~has_name).write_parquet(work / f"{kind}{part}.parquet")
    # Of rows without a name the place says which one became which: behind the same row, else in
    # the same row of the file.
    is_known = (pl.col("file") != "") & (pl.col("place") >= 0)
    turns = [("", ["split", "before"], pl.lit(True)), ("1", ["split", "file", "place"], is_known)]
    for turn, on, can_match in turns:
        lost, came = (pl.scan_parquet(work / f"{turn}{kind}*.parquet") for kind in KINDS[:2])
        for part, both in enumerate(_parts(lost, came, pl.struct(on).hash(), parts)):
            pairs, *others = _matched(on, *(rows.filter(can_match) for rows in both))
            _count(found, "changed", pairs, most)
            for kind, left, rows in zip(KINDS, others, both, strict=False):
                if turn:
                    found.add(kind, pl.concat([left, rows.filter(~can_match)]), most)
                else:
                    left.write_parquet(work / f"1{kind}{part}.parquet")
    return found


def _parts(
    before: pl.LazyFrame, after: pl.LazyFrame, key: pl.Expr, parts: int
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of both whose keys leave the same remainder: those are joined at once."""
    for part in range(parts):
        left, right = (frame.filter(key % parts == part).collect() for frame in (before, after))
        yield left, right


def _matched(
    on: list[str], left: pl.DataFrame, right: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pairs of rows with equal columns, one for one, and the rows of both that are left."""
    import polars as pl

    nth = pl.int_range(pl.len()).over(on).alias("nth")
    left, right = (frame.drop("nth", strict=False).with_columns(nth) for frame in (left, right))
    keys = [*on, "nth"]
    pairs = left.join(right, on=keys, how="inner", suffix=":now", maintain_order="left")
    rest = partial(pl.DataFrame.join, on=keys, how="anti", maintain_order="left")
    return pairs, rest(left, right).drop("nth"), rest(right, left).drop("nth")


def _count(found: Difference, kind: str, pairs: pl.DataFrame, most: int) -> None:
    mark = ":now"
    after = pairs.select(
        (pairs[f"{name}{mark}"] if f"{name}{mark}" in pairs.columns else pairs[name]).alias(name)
        for name in pairs.columns
        if not name.endswith(mark)
    )
    found.add(kind, pairs, most, after)
