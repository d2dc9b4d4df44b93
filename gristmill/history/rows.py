"""The rows of a version in a small file: identity, hash and raw place of each, and no contents.

Source: docs/history.md#what-is-kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.layout import HISTORY, WORK

if TYPE_CHECKING:
    import polars as pl

ROWS: Final = "rows.parquet"
_KEY_BYTES: Final = 32
_BATCH: Final = 1 << 16
_LONGEST: Final = 200


class Kept(NamedTuple):
    """One row of an artifact as its history names it.

    split, name: empty without one; a name stays when the row changes, as the id of a conversation.
    content: bytes that differ where the row does; only their keyed hash is kept.
    file, place, end: the raw file below the data root, and its row, from 1; with an `end` the bytes
        `place` to `end`; place -1: the whole file. Or `file` is the asset that it was made from,
        and `place` the `first` of a row there.
    first, count: samples that it gave, as the loader numbers them in its split.
    size: tokens of a document, plies of a game; else 0.
    """

    split: str
    name: str
    content: bytes | memoryview
    file: str
    place: int
    end: int
    first: int
    count: int = 1  # type: ignore[assignment]  # as the loader says; not the tuple's method
    size: int = 0


def key_of(root: Path) -> bytes:
    """The key of a data root's hashes, made at the first use; an older root has one of its history.

    Nobody can guess texts by the hashes without it.
    """
    from gristmill.corpora.raw import forgotten

    path = root / WORK / HISTORY / "key"
    if not path.exists():
        return forgotten.key_of(root, makes=True)
    if len(key := path.read_bytes()) != _KEY_BYTES:
        raise GristmillError(f"{path}: is no key: remove it, and the folder that it is in")
    return key


def _check_of(key: bytes) -> str:
    return sha256(key).hexdigest()[:16]


def write(path: Path, rows: Iterable[Kept], key: bytes) -> None:
    """Write rows to a new file of Parquet.

    The hash of a row with a name has 32 bits, of one without 64: there it is the identity.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = dict.fromkeys((name for name in Kept._fields if name != "content"), pa.int64())
    kinds |= dict.fromkeys(("split", "name", "file"), pa.string())
    kinds |= {"count": pa.int32(), "size": pa.int32(), "hash": pa.uint64()}
    schema = pa.schema(kinds, metadata={"key": _check_of(key)})

    def hashed(row: Kept) -> tuple[Any, ...]:
        digest = blake2b(row.content, digest_size=4 if row.name else 8, key=key).digest()
        return row.split, row.name[:_LONGEST], *row[3:], int.from_bytes(digest, "little")

    waiting = map(hashed, rows)  # no batch holds contents, which may be long
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=["split", "file"],
        column_encoding={
            **dict.fromkeys(("place", "end", "first", "count", "size"), "DELTA_BINARY_PACKED"),
            "name": "DELTA_BYTE_ARRAY",
            "hash": "BYTE_STREAM_SPLIT",
        },
        write_statistics=False,
    ) as writer:
        while batch := list(islice(waiting, _BATCH)):
            values = dict(zip(kinds, zip(*batch, strict=True), strict=True))
            writer.write_batch(pa.RecordBatch.from_pydict(values, schema))


def scan(path: Path, key: bytes) -> pl.LazyFrame:
    """The rows of a file of `write`. Raises GristmillError where it has hashes of another key."""
    import polars as pl
    import pyarrow.parquet as pq

    said = (pq.read_schema(path).metadata or {}).get(b"key", b"").decode()
    if said != _check_of(key):
        raise GristmillError(f"{path}: has hashes of another key than that of the data root")
    return pl.scan_parquet(path)


def named(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows as JSON gives them: split, name, hash in hex, place, and their first sample."""
    for row in rows:
        digits, place = 8 if row["name"] else 16, row["file"]
        if place and row["end"] >= 0:
            place += f" bytes {row['place']}-{row['end']}"
        elif place and row["place"] >= 0:
            place += f" row {row['place']}"
        facts = {"split": row["split"], "name": row["name"], "hash": f"{row['hash']:0{digits}x}"}
        facts |= {"place": place, "first": row["first"], "samples": row["count"]}
        yield {name: value for name, value in facts.items() if value != ""}
