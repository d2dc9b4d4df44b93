"""Drops of the reasoning family for tests: rows in any format, packed or not."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.raw.texts import Unfit
from gristmill.reasoning.builders.normalize import NormalizeSummary, normalize
from gristmill.reasoning.config import NormalizeConfig
from gristmill.untrusted.limits import LIMITS, Limits

Rows = Sequence[Mapping[str, Any]]


@contextmanager
def unfit(reason: str, rule: str = "") -> Iterator[pytest.ExceptionInfo[Unfit]]:
    """What is read within is refused for this reason, by a rule with this text."""
    with pytest.raises(Unfit) as raised:
        yield raised
    assert (raised.value.reason, rule in raised.value.rule) == (reason, True), raised.value.rule


def text_of(rows: Rows, ending: str) -> bytes:
    """The bytes of a file of this format that holds the rows."""
    if ending == "json":
        return json.dumps(rows, indent=1).encode()
    if ending in ("csv", "tsv"):
        text = io.StringIO(newline="")
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(text, names, delimiter="\t" if ending == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    if ending == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows)), sink)
        return bytes(sink.getvalue())
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def packed(octets: bytes, packing: str) -> bytes:
    if packing == "zst":
        import zstandard

        return bytes(zstandard.ZstdCompressor().compress(octets))
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packing](octets)


def write(drop: Path, name: str, rows: Rows | bytes) -> Path:
    """Write a file of a drop; its name says the format."""
    drop.mkdir(parents=True, exist_ok=True)
    endings = name.split(".")[1:]
    octets = rows if isinstance(rows, bytes) else text_of(rows, endings[0])
    if len(endings) > 1:
        octets = packed(octets, endings[1])
    (drop / name).write_bytes(octets)
    return drop / name


def rows_found(
    path: Path, octets: bytes, corpus: str = "gsm8k", limits: Limits = LIMITS
) -> list[tuple[int, Any]]:
    """The rows of a raw file with these bytes; of one that is refused the reason."""
    path.write_bytes(octets)
    return [
        (number, value.reason if isinstance(value, Unfit) else value)
        for number, value in rows(path, CORPORA[corpus], limits=limits)
    ]


def built(
    root: Path, corpus: str, rows: Rows | bytes, *, split: str = "train", **config: Any
) -> tuple[list[dict[str, Any]], NormalizeSummary]:
    """Records and summary of one split of a drop with these rows."""
    write(root / corpus, f"{split}.jsonl", rows)
    out = root / "out"
    summary = normalize(root / corpus, out, NormalizeConfig(**config), split=split)
    lines = (out / corpus / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], summary
