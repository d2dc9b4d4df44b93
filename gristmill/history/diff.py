"""What differs between two versions: rows added, removed, changed, and moved between splits.

Source: docs/history.md#diff.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError
from gristmill.history.rows import named
from gristmill.history.versions import Version, every, place_of, published, read
from gristmill.provenance import Record
from gristmill.provenance.inventory import Entry

if TYPE_CHECKING:
    import polars as pl

KINDS: Final = ("removed", "added", "changed", "moved")
_AT_ONCE: Final = 1 << 16
"""Rows of a version that are joined at once, about: those of a file of `_FILES` at most."""
_FILES: Final = 512
_NOW: Final = ":now"

Difference = dict[str, Any]
"""`rows_before`, `rows_after`, of each of KINDS how many, and `examples`: the first rows of each.

A row that changed or moved is as it was, and with `now` as it is.
"""


def lines(found: Difference) -> Iterator[str]:
    """The rows of both, and the counts of all kinds, each with its examples, for a person."""
    yield f"{found['rows_before']:,} rows -> {found['rows_after']:,}"
    for kind in KINDS:
        yield f"{found[kind]:,} {kind}"
        yield from (f"    {_line(row)}" for row in found["examples"][kind])


def _line(row: Mapping[str, Any]) -> str:
    """A row in one line; of one that changed or moved also what it became."""
    words = [row.get("split"), row.get("name") or row["hash"], row.get("place")]
    own = "  ".join(filter(None, words))
    return own if "now" not in row else f"{own}  ->  {_line(row['now'])}"


def of_replaced(root: Path, now: Record, before: Record, most: int) -> list[str]:
    """Lines of what differs from the version that was replaced; none where it is not known."""
    for partition in (None, now.partition):
        entry = Entry(now.artifact, partition)
        folder = place_of(root, entry) / before.data_version
        with suppress(GristmillError, OSError):
            new = published(root, entry) if folder.is_dir() else None
            if new is not None and new.record == now:
                return [*lines(between(read(root, folder), new, most))]
    return []


def chosen(root: Path, entry: Entry, names: Sequence[str]) -> tuple[Version, Version]:
    """The two versions of an artifact partition that begin with `names`; the last two for none.

    With one name the other version is the published one. Raises GristmillError where there is no
    such version, or more than one.
    """
    published(root, entry)  # raises where its record is damaged
    versions, wrong = every(root, entry)
    if len(names) < 2 and len(versions) < 2:
        why = f": {wrong[0]}" if wrong else ""
        raise GristmillError(f"{entry.title}: no older version is kept{why}")
    ends = list[Version]()
    for name in names:
        listed = [each for each in versions if each.record.data_version.startswith(name)]
        if len(listed) != 1:
            what = "no version" if not listed else f"{len(listed)} versions"
            why = "; ".join(each for each in wrong if f"/{name}" in each) or "see `gristmill log`"
            raise GristmillError(f"{entry.title}: {what} of {name}: {why}")
        ends += listed
    old, new, *_ = [*ends, *versions[-2 + len(ends) :]]
    return old, new


def between(old: Version, new: Version, most: int = 3) -> Difference:
    """What differs between two versions of an artifact. most: examples of each kind.

    Memory does not grow with the rows, but for those of one name. Raises GristmillError where no
    rows are kept of one.
    """
    with tempfile.TemporaryDirectory(prefix="gristmill-diff-") as work:
        for side, version in ("0", old), ("1", new):
            with version.rows() as rows:
                _parted(rows, Path(work, f"0-{side}-"), ["name"], 1)
        return _compared(Path(work), most)


def _compared(work: Path, most: int) -> Difference:
    """What differs between the rows of two files, each step with what the one before left."""
    import polars as pl

    def rows(step: int, side: str) -> pl.LazyFrame:
        return pl.scan_parquet(work / f"{step}-{side}-*.parquet")

    old, new = (int(rows(0, side).select(pl.len()).collect().item()) for side in "01")
    found = {"rows_before": old, "rows_after": new, **dict.fromkeys(KINDS, 0)}
    examples: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    parts, has_name = min(max(old, new) // _AT_ONCE + 1, _FILES), pl.col("name") != ""
    # Of rows without a name the place says which one became which: behind the same row, else in
    # the same row of the file.
    is_known = ~has_name & (pl.col("file") != "") & (pl.col("place") >= 0)
    steps = [
        ("", ["name", "hash", "split"], pl.col("hash").is_not_null()),
        ("moved", ["name", "hash"], pl.col("hash").is_not_null()),
        ("changed", ["name"], has_name),
        ("changed", ["split", "before"], ~has_name),
        ("changed", ["split", "file", "place"], is_known),
    ]
    for step, (kind, on, can_match) in enumerate(steps):
        both = [_parted(rows(step, side), work / f"{side}-", on[:2], parts) for side in "01"]
        # Equal rows are matched one for one; what has no number matches nothing.
        nth = pl.when(can_match).then(pl.int_range(pl.len()).over(*on, can_match))
        for part, files in enumerate(zip(*both, strict=True)):
            was, now = (pl.read_parquet(each).with_columns(nth=nth) for each in files)
            joined = was.join(
                now, on=[*on, "nth"], how="full", suffix=_NOW, maintain_order="left_right"
            )
            is_old, is_new = joined["hash"].is_not_null(), joined[f"hash{_NOW}"].is_not_null()
            was, now = joined.select(was.columns), joined.select(f"{e}{_NOW}" for e in was.columns)
            now.columns = was.columns
            was.filter(~is_new).write_parquet(work / f"{step + 1}-0-{part:06}.parquet")
            now.filter(~is_old).write_parquet(work / f"{step + 1}-1-{part:06}.parquet")
            if kind:
                found[kind] += int((is_old & is_new).sum())
                room = most - len(examples[kind])
                pair = (
                    named(each.filter(is_old & is_new).head(room).iter_rows(named=True))
                    for each in (was, now)
                )
                examples[kind] += ({**a, "now": b} for a, b in zip(*pair, strict=True))
    for kind, side in zip(KINDS, "01", strict=False):
        left_rows = rows(len(steps), side)
        found[kind] = int(left_rows.select(pl.len()).collect().item())
        examples[kind] = [*named(left_rows.head(most).collect().iter_rows(named=True))]
    return {**found, "examples": examples}


def _parted(rows: pl.LazyFrame, stem: Path, on: Sequence[str], parts: int) -> list[Path]:
    """Write rows into files by the hash of some columns, in their order; returns the files.

    They get `before`, which says where in its file a row is: the hash of the row before.
    """
    import polars as pl
    import pyarrow.parquet as pq

    files, last = [stem.with_name(f"{stem.name}{part}.parquet") for part in range(parts)], 0
    own = pl.struct(on).hash() % parts

    def batch(at: int, size: int = _AT_ONCE) -> pl.DataFrame:
        found = rows.slice(at, size).collect()
        before = found.get_column("before", default=found["hash"].shift(1, fill_value=last))
        return found.with_columns(before.alias("before"), own=own)

    with ExitStack() as stack:
        schema = batch(0, 0).drop("own").to_arrow().schema
        writers = [stack.enter_context(pq.ParquetWriter(each, schema)) for each in files]
        for at in range(0, int(rows.select(pl.len()).collect().item()), _AT_ONCE):
            found = batch(at)
            last = found["hash"][-1]
            some = found.partition_by("own", as_dict=True, include_key=False)
            for (part,), each in some.items():
                writers[part].write_table(each.to_arrow())
    return files
