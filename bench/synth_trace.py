"""Traces of SYNTH documents and rows to their raw rows, on a large shard, against one row group.

Run from the checkout: python -m bench.synth_trace [--rows N]. Generates raw files of N rows
(default 205,000, of which 2.5 % lack a text), their Harmony shard, and a trace file of the same
documents. Prints the milliseconds of a trace in this process, imports left out, and the
milliseconds in which pyarrow reads the row groups that hold the sample: the texts of the raw row,
the messages of the Harmony row, the trace row. Exit status 1 where the median trace takes more
than 50 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import kit
from bench.publishing import published
from gristmill.contract import FileNote, Summary
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.provenance.record import Input
from gristmill.publish.build import Attempt
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import trace as trace_file
from gristmill.synth.raw import TEXTS
from gristmill.synth.read.origins import document_origins, row_origins

FILES, GROUP, TRACES, MOST_MS = 4, 5_000, 60, 50
HARMONY = "synth_harmony_shard_00.parquet"
VALID = 1_000  # one document of so many is valid


def write_raw(folder: Path, rows: int) -> list[Path]:
    """Raw files whose texts no row repeats."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(1)
    words = [f"{number:x}" for number in range(1 << 14)]
    files = []
    for number in range(FILES):
        count = rows // FILES
        chosen = generator.integers(0, len(words), (count, 3, 60))
        columns: dict[str, list[str | None]] = {
            "synth_id": [f"bench_{number}_{row}" for row in range(count)]
        }
        for at, name in enumerate(TEXTS):
            columns[name] = [" ".join(words[word] for word in row) for row in chosen[:, at]]
        for row in generator.integers(0, count, count // 40).tolist():
            columns[TEXTS[row % 3]][row] = "" if row % 2 else None
        files.append(folder / f"raw_{number}.parquet")
        pq.write_table(pa.table(columns), files[-1], row_group_size=GROUP, compression="zstd")
    return files


def write_trace(attempt: Attempt, harmony: Path) -> Summary:
    """The trace file that a build of the datasets writes, without the datasets."""
    ids = pq.read_table(harmony, columns=["synth_id"])["synth_id"].combine_chunks()
    rows = np.arange(len(ids))
    valid = rows % VALID == VALID - 1
    numbers = np.where(valid, np.cumsum(valid) - 1, np.cumsum(~valid) - 1)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(np.where(valid, "valid", "train")),
            pa.array(numbers),
            pa.repeat(harmony.name, len(ids)),
            pa.array(rows + 1),
            ids,
            pa.repeat("en", len(ids)),
            pa.repeat("math", len(ids)),
            pa.array([[0, 55, 92, 134, 241, 319]] * len(ids), pa.list_(pa.int32())),
        ],
        schema=trace_file.schema(),
    )
    with trace_file.TraceWriter(attempt.out / trace_file.path("00")) as writer:
        for first in range(0, len(batch), 512):
            writer.add(batch.slice(first, 512))
    return Summary({trace_file.path("00"): FileNote(rows=len(ids))})


def build(root: Path, rows: int) -> int:
    """A data root with one Harmony shard and one trace file; returns the number of documents."""
    files = write_raw(root / "drops/synth/bench", rows)
    config = HarmonyConfig(num_shards=1, metadata_fields=("synth_id",))
    record = published(
        *(root, "synth/harmony", "00", config),
        lambda attempt: to_harmony(files, attempt.out, 0, config),
        raw_inputs(root, files, "synth/raw", "bench", {}),
        artifact="synth_harmony",
    ).record
    harmony = Input(
        asset="synth/harmony",
        partition="00",
        data_version=record.data_version,
        path="synth_harmony",
    )
    published(
        *(root, "synth/kd_shards", "00", config),
        lambda attempt: write_trace(attempt, root / "synth_harmony" / HARMONY),
        [harmony],
        artifact="megatron/synth_kd_v1",
    )
    return int(record.counts["rows"])


def read_row_groups(root: Path, facts: dict[str, object], row: int) -> list[pa.Table]:
    """What any reader of this sample must decode: its row groups, once."""
    raw = pq.ParquetFile(root / str(facts["raw_file"]))
    harmony = pq.ParquetFile(root / "synth_harmony" / HARMONY)
    traced = pq.ParquetFile(root / "megatron/synth_kd_v1" / trace_file.path("00"))
    raw_group = int(str(facts["raw_row_group"]))
    group, trace_group = (row // file.metadata.row_group(0).num_rows for file in (harmony, traced))
    return [
        raw.read_row_group(raw_group, columns=[*TEXTS]),
        harmony.read_row_group(group, columns=["messages_json", "synth_id"]),
        traced.read_row_group(trace_group),
    ]


def milliseconds(call: Callable[..., Iterable[Any]], *arguments: Any) -> tuple[float, list[Any]]:
    """CPU milliseconds of a call, and all that it gives."""
    made: list[Any] = []
    return 1_000 * kit.spent(lambda: made.extend(call(*arguments))), made


def traces(given: kit.Given) -> None:
    root = given.scratch
    documents = build(root, given.rows)
    kd = root / "megatron/synth_kd_v1"
    list(document_origins(kd, "00", "train", 0))  # imports
    times: dict[str, list[float]] = {"document": [], "row": [], "row groups alone": []}
    for row in np.random.default_rng(2).integers(0, documents, TRACES).tolist():
        valid = row % VALID == VALID - 1
        split, number = ("valid", row // VALID) if valid else ("train", row - row // VALID)
        spent, steps = milliseconds(document_origins, kd, "00", split, number)
        times["document"].append(spent)
        facts = steps[-1].facts()
        assert "raw_row" in facts, facts
        times["row"].append(milliseconds(row_origins, root / "synth_harmony", "00", row)[0])
        times["row groups alone"].append(milliseconds(read_row_groups, root, facts, row)[0])
    print(f"{documents:,} documents, row groups of {GROUP:,} raw rows, {TRACES} random samples")
    for name, found in times.items():
        print(f"{name:>17}: median {median(found):5.1f} ms, most {max(found):5.1f} ms")
    document, alone = median(times["document"]), median(times["row groups alone"])
    kit.bounded(f"{document / alone:.2f} times the row groups alone, ms", document, most=MOST_MS)


if __name__ == "__main__":
    kit.main(__doc__, traces, rows=205_000)
