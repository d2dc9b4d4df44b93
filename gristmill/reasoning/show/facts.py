"""What is in a folder of this family, for `gristmill verify` of a folder without a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill.reading.reader import Ranges, counted, file_facts
from gristmill.reasoning.format import conversations, id_files, names, reports
from gristmill.reasoning.format.published import EXPORTS, SHARDS, TOKENS, shard_splits


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the files of each split with their lines, or its shards with shape and ids.

    Raises BadInput where a file cannot be read.
    """
    for corpus, split in shard_splits(folder) if asset in (SHARDS, TOKENS) else ():
        ranges, shapes = Ranges(), dict[tuple[int, ...], int]()
        inside = folder / corpus / split
        endings = (".pt", *id_files.SUFFIXES)
        several = (sorted(inside.glob(f"shard_*{ending}")) for ending in endings)
        for shard in next(filter(None, several), []):
            ids = id_files.of_path(shard)
            shapes[ids.shape] = shapes.get(ids.shape, 0) + 1
            ranges.add(ids, "ids")
        listed = [f"{counted(count, 'shard')} of {list(each)}" for each, count in shapes.items()]
        yield f"{corpus}/{split}: {'; '.join([*listed, *ranges.lines()])}"
    for path in conversations.shards(folder) if asset == "chat/conversations" else ():
        import pyarrow.parquet as pq

        yield f"{path.name}: {counted(pq.read_metadata(path).num_rows, 'conversation')}"
    for path in sorted(folder.glob("*/**/*")) if asset == EXPORTS else ():
        if path.suffix in (".bin", ".parquet"):
            yield f"{path.relative_to(folder).as_posix()}: {path.stat().st_size:,} bytes"
    if asset == "reasoning/qc_report":
        yield f"reports of {', '.join(reports.dates(folder))}"
    found = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.jsonl")}
    yield from file_facts(folder, (*sorted(found), names.INDEX, names.MANIFEST))
