"""What differs between two versions: rows added, removed, changed, and moved between splits.

Source: docs/history.md#diff.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import GristmillError
from gristmill.history.rows import key_of, named, reading, scan
from gristmill.history.versions import Version, every, place_of, published, read
from gristmill.provenance import Record
from gristmill.provenance.inventory import Entry

if TYPE_CHECKING:
    import polars as pl

KINDS: Final = ("removed", "added", "changed", "moved")
_AT_ONCE: Final = 1 << 20
"""Rows of a version that are joined at once."""


Difference = dict[str, Any]
"""What became of the rows of one version in another one, as JSON has it.

`rows_before`, `rows_after`: of both versions; of each of KINDS how many; `examples`: the first rows
of each kind, with their places; of a row that changed or moved as it was, and with `now` as it is.
"""


def lines(found: Difference) -> Iterator[str]:
    """The counts of all kinds, each with its examples, for a person."""
    for kind in KINDS:
        yield f"{found[kind]:,} {kind}"
        yield from (f"    {_line(row)}" for row in found["examples"].get(kind, ()))


def _add(
    found: Difference, kind: str, rows: pl.DataFrame, most: int, now: pl.DataFrame | None = None
) -> None:
    """Count rows of a kind, and keep the first as examples; now: as they are."""
    found[kind] += len(rows)
    own = found["examples"].setdefault(kind, [])
    heads = (each.head(max(most - len(own), 0)) for each in (rows, now) if each is not None)
    for row, *after in zip(*(named(each.iter_rows(named=True)) for each in heads), strict=True):
        own.append({**row, "now": after[0]} if after else row)


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
        with suppress(GristmillError, OSError):
            new = published(root, entry) if folder.is_dir() else None
            if new is not None and new.record == now:
                found = between(read(root, folder), new, most)
                head = f"{found['rows_before']:,} rows -> {found['rows_after']:,}"
                return [head, *lines(found)]
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


def between(old: Version, new: Version, most: int = 3) -> Difference:
    """What differs between two versions of an artifact. most: examples of each kind.

    Memory does not grow with the rows, but for those of one name. Raises GristmillError where no
    rows are kept of one.
    """
    import polars as pl

    with ExitStack() as stack:
        files = [stack.enter_context(each.rows()) for each in (old, new)]
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gristmill-diff-")))
        for number, file in zip("01", files, strict=True):
            # The hash of the row before says where in its file a row is.
            before = pl.col("hash").shift(1, fill_value=0)
            with reading(file):
                rows = scan(file, key_of(old.root)).with_columns(before=before)
                rows.sink_parquet(work / f"{number}.parquet")
        old_rows, new_rows = (pl.scan_parquet(work / f"{number}.parquet") for number in "01")
        return _compared(old_rows, new_rows, most, work)


def _compared(before: pl.LazyFrame, after: pl.LazyFrame, most: int, work: Path) -> Difference:
    import polars as pl

    old, new = (int(frame.select(pl.len()).collect().item()) for frame in (before, after))
    found = {"rows_before": old, "rows_after": new, **dict.fromkeys(KINDS, 0), "examples": {}}
    has_name, parts = pl.col("name") != "", max(old, new) // _AT_ONCE + 1
    own = pl.when(has_name).then(pl.col("name").hash()).otherwise(pl.col("hash"))
    for part, both in enumerate(_parts(before, after, own, parts)):
        _, rest = _matched(["name", "hash", "split"], *both)
        pairs, rest = _matched(["name", "hash"], *rest)
        _add(found, "moved", pairs[0], most, pairs[1])
        pairs, others = _matched(["name"], *(each.filter(has_name) for each in rest))
        _add(found, "changed", pairs[0], most, pairs[1])
        for kind, named_rows, rows in zip(KINDS, others, rest, strict=False):
            _add(found, kind, named_rows, most)
            rows.filter(~has_name).write_parquet(work / f"{kind}{part}.parquet")
    # Of rows without a name the place says which one became which: behind the same row, else in
    # the same row of the file.
    is_known = (pl.col("file") != "") & (pl.col("place") >= 0)
    turns = [("", ["split", "before"], pl.lit(True)), ("1", ["split", "file", "place"], is_known)]
    for turn, on, can_match in turns:
        lost, came = (pl.scan_parquet(work / f"{turn}{kind}*.parquet") for kind in KINDS[:2])
        for part, both in enumerate(_parts(lost, came, pl.struct(on).hash(), parts)):
            pairs, others = _matched(on, *(rows.filter(can_match) for rows in both))
            _add(found, "changed", pairs[0], most, pairs[1])
            for kind, left, rows in zip(KINDS, others, both, strict=False):
                if turn:
                    _add(found, kind, pl.concat([left, rows.filter(~can_match)]), most)
                else:
                    left.write_parquet(work / f"1{kind}{part}.parquet")
    return found


Both = tuple["pl.DataFrame", "pl.DataFrame"]


def _parts(before: pl.LazyFrame, after: pl.LazyFrame, key: pl.Expr, parts: int) -> Iterator[Both]:
    """Yield the rows of both whose keys leave the same remainder: those are joined at once."""
    for part in range(parts):
        left, right = (frame.filter(key % parts == part).collect() for frame in (before, after))
        yield left, right


def _matched(on: list[str], left: pl.DataFrame, right: pl.DataFrame) -> tuple[Both, Both]:
    """The rows of both that have equal columns, one for one, and those that are left."""
    import polars as pl

    keys, nth = [*on, "nth"], pl.int_range(pl.len()).over(on).alias("nth")
    left, right = left.with_columns(nth), right.with_columns(nth)
    join = partial(pl.DataFrame.join, on=keys, maintain_order="left")
    pairs = join(left, right, how="semi"), join(left.select(keys), right, how="inner")
    return pairs, (join(left, right, how="anti"), join(right, left, how="anti"))
