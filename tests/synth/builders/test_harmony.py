"""Raw rows to Harmony rows: what is kept, how it is written, which files a shard takes."""

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_file
from gristmill.run.parts import PartStore
from gristmill.run.progress import Progress, Report
from gristmill.synth import raw
from gristmill.synth.builders import harmony
from gristmill.synth.builders.harmony import (
    HarmonySummary,
    RawRows,
    developer_message,
    system_message,
    to_harmony,
)
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.trace import RowsDigest
from gristmill.synth.samples import write_drop

# The identity in the reference's metadata.json: `docs/formats/synth.md#messages`.
REFERENCE = HarmonyConfig(
    model_identity="You are vpMoE, a large language model trained by Veer Pareek."
)


def expected(files: list[Path], config: HarmonyConfig) -> list[dict[str, str | None]]:
    """The contract's rows, by json.dumps of whole objects."""
    rows = []
    for row in (row for path in files for row in pq.read_table(path).to_pylist()):
        if not all(row[name] for name in raw.TEXTS):
            continue
        developer = developer_message(config)
        messages = [
            system_message(config),
            *([developer] if developer else []),
            {"role": "user", "content": [{"type": "text", "text": row["query"]}]},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": row["synthetic_reasoning"]}],
                "channel": "analysis",
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": row["synthetic_answer"]}],
                "channel": "final",
            },
        ]
        metadata = {name: row[name] for name in config.metadata_fields}
        rows.append(
            {"messages_json": json.dumps({"messages": messages})}
            | {"metadata_json": json.dumps(metadata)}
            | {k: None if v is None else str(v) for k, v in metadata.items()}
        )
    return rows


@pytest.mark.parametrize(
    "config",
    [
        HarmonyConfig(),
        REFERENCE,
        HarmonyConfig(developer=None, reasoning_effort="low"),
        HarmonyConfig(developer='\x000\x00 "quoted" \x001\x00\x002\x00 ü', rows_per_group=7),
        HarmonyConfig(metadata_fields=("words", "synth_id")),
    ],
)
def test_rows_are_those_of_the_contract(raw_files, tmp_path, config):
    for shard, run in enumerate((raw_files[0:3], raw_files[3:6], raw_files[6:8], raw_files[8:10])):
        out = tmp_path / str(shard)
        summary = to_harmony(raw_files, out, shard, config)
        (path,) = out.iterdir()
        assert path.name == f"synth_harmony_shard_0{shard}.parquet"
        rows = expected(run, config)
        table = pq.read_table(path)
        assert table.to_pylist() == rows
        assert {str(field.type) for field in table.schema} == {"string"}
        assert (summary.rows, summary.skipped) == (len(rows), len(run) * 60 - len(rows))
        assert summary.skipped > 0
        metadata = pq.read_metadata(path)
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert len(groups) == summary.row_groups == -(-len(rows) // config.rows_per_group)
        assert set(groups[:-1]) <= {config.rows_per_group}


@pytest.mark.real
def test_the_messages_around_the_texts_are_the_references(real):
    metadata = json.loads((real / "synth_harmony/metadata.json").read_text())
    assert system_message(REFERENCE) == metadata["system_message"]
    assert developer_message(REFERENCE) == metadata["developer_message"]
    shard = pq.read_table(real / "synth_harmony/synth_harmony_shard_00.parquet")
    text = shard["messages_json"][0].as_py()
    head = json.dumps({"messages": [system_message(REFERENCE), developer_message(REFERENCE)]})
    assert text.startswith(head.removesuffix("]}"))
    assert list(REFERENCE.metadata_fields) == shard.schema.names[2:]


def test_no_default_names_a_person_and_a_raw_row_may_take_four_mebibytes(tmp_path):
    assert "vpMoE" not in json.dumps([system_message(HarmonyConfig())])
    assert "trained by" not in json.dumps([system_message(HarmonyConfig())])
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    path = tmp_path / "synth_001.parquet"
    for size, fits in ((4 << 20, False), ((4 << 20) - 100, True)):
        columns = {name: ["a", "b"] for name in names} | {"query": ["a", "x" * size]}
        pq.write_table(pa.table(columns), path)
        if fits:
            assert to_harmony([path], tmp_path / "a", 0, HarmonyConfig(num_shards=1)).rows == 2
            continue
        with pytest.raises(BadInput, match=r"synth_001\.parquet:2: takes 4,194,.* a row may take"):
            to_harmony([path], tmp_path / "b", 0, HarmonyConfig(num_shards=1))


def _raw(path: Path, **columns: Any) -> Path:
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    pq.write_table(pa.table({name: ["a", "b", "c"] for name in names} | columns), path)
    return path


@pytest.mark.parametrize(("synth_id", "compiled"), [(None, 1), (None, 500), ("", 1), (" \n", 500)])
def test_a_kept_row_without_an_id_is_refused(tmp_path, monkeypatch, compiled, synth_id):
    monkeypatch.setattr(harmony, "_COMPILED_ROWS", compiled)
    config = HarmonyConfig(num_shards=1)
    path = _raw(tmp_path / "synth_001.parquet", synth_id=["x", synth_id, "z"])
    rule = f"synth_id is {synth_id!r}: give the row an id, which chooses its split"
    with pytest.raises(BadInput) as caught:
        to_harmony([path], tmp_path / "out", 0, config)
    assert (caught.value.file, caught.value.row, caught.value.rule) == (str(path), 2, rule)
    # A row that the row filter leaves out needs none.
    _raw(path, synth_id=["x", synth_id, "z"], query=["a", None, "c"])
    summary = to_harmony([path], tmp_path / "kept", 0, config)
    assert (summary.rows, summary.skipped) == (2, 1)


@pytest.mark.parametrize("compiled", [1, 500])
def test_an_id_may_be_any_integer_and_be_there_twice(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(harmony, "_COMPILED_ROWS", compiled)
    path = _raw(tmp_path / "synth_001.parquet", synth_id=[0, -1, 0])
    assert to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1)).rows == 3
    table = pq.read_table(tmp_path / "out/synth_harmony_shard_00.parquet")
    assert table["synth_id"].to_pylist() == ["0", "-1", "0"]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"query": [1, 2, 3]}, "query is int64, not a string: write the column as strings"),
        ({"synth_id": [0.5] * 3}, "synth_id is double, not a string or an integer: write the col"),
        ({"synth_id": [b"a"] * 3}, "synth_id is binary, not a string or an integer: write the"),
        ({"query": [b"a"] * 3}, "query is binary, not a string: write the column as strings"),
        ({"model": [datetime(2026, 1, 1)] * 3}, "model is timestamp[us], and JSON cannot hold its"),
        ({"model": [b"a"] * 3}, "model is binary, and JSON cannot hold its value (Object of type "),
        (
            {"model": [1.5, math.nan, 0.0]},
            "model is double, and JSON cannot hold its value (Out of",
        ),
    ],
)
def test_a_column_of_a_wrong_type_is_named_with_its_type(tmp_path, columns, rule):
    path = _raw(tmp_path / "synth_001.parquet", **columns)
    with pytest.raises(BadInput) as caught:
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))
    assert caught.value.rule.startswith(rule)
    assert caught.value.row == (None if "write the" in rule else 2 if "double" in rule else 1)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_without_a_good_row_is_refused_and_an_empty_one_is_not(tmp_path, workers):
    good, other = _raw(tmp_path / "a.parquet"), tmp_path / "b.parquet"
    pq.write_table(pq.read_table(good).slice(0, 0), other)
    config = HarmonyConfig(num_shards=1, workers=workers)
    assert to_harmony([good, other, good], tmp_path / "empty", 0, config).rows == 6
    _raw(other, query=pa.nulls(3))
    with pytest.raises(BadInput) as caught:
        to_harmony([good, other, good], tmp_path / "out", 0, config)
    assert str(caught.value) == (
        f"{other}: none of its 3 rows has a query, synthetic_reasoning and synthetic_answer: take "
        "it out of the drop, or bring one that has them"
    )
    # Of a file that a cap ends in, nobody knows the rest.
    capped = replace(config, max_rows=5)
    assert to_harmony([good, other, good], tmp_path / "capped", 0, capped).rows == 3


def test_a_shard_without_raw_files_is_an_error(raw_files, tmp_path):
    with pytest.raises(GristmillError, match="shard 0 of 4 gets none of 0 raw files: add files"):
        to_harmony([], tmp_path / "out", 0, HarmonyConfig())
    with pytest.raises(GristmillError, match="shard 3 of 4 gets none of 3 raw files"):
        to_harmony(raw_files[:3], tmp_path / "out", 3, HarmonyConfig())
    assert not (tmp_path / "out").exists()
    assert to_harmony(raw_files[:3], tmp_path / "out", 2, HarmonyConfig()).raw_files == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62] * 2, pa.timestamp("us")),
        pa.array([1] * 2, pa.timestamp("us", "Nowhere/City")),
        pa.array([2**31 - 1] * 2, pa.date32()),
    ],
    ids=["time", "zone", "date"],
)
def test_metadata_that_python_cannot_hold_is_bad_input(tmp_path, column):
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    path = tmp_path / "synth_001.parquet"
    pq.write_table(pa.table({name: ["a", "b"] for name in names} | {"model": column}), path)
    with pytest.raises(BadInput, match=r"synth_001\.parquet:1: model: "):
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))


@pytest.mark.parametrize("absent", [(), ("model",), ("model", "constraints")])
def test_compiled_code_makes_the_same_rows(raw_files, tmp_path, monkeypatch, absent):
    table = pq.read_table(raw_files[0]).drop_columns(list(absent))
    path = tmp_path / "synth_001.parquet"
    pq.write_table(table, path)
    built = {}
    calls: list[int] = []
    compiled = harmony.Envelope._compiled

    def counted(self: harmony.Envelope, rows: RawRows, *rest: object) -> object:
        calls.append(len(rows.batch))
        return compiled(self, rows, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(harmony.Envelope, "_compiled", counted)
    config = HarmonyConfig(num_shards=1, developer='\x000\x00 "ü" \U0001f600')
    for rows in (len(table) + 1, len(table)):
        monkeypatch.setattr(harmony, "_COMPILED_ROWS", rows)
        summary = to_harmony([path], tmp_path / str(rows), 0, config)
        built[rows] = (summary, next((tmp_path / str(rows)).iterdir()).read_bytes())
    assert calls == [len(table)]
    assert built[len(table)] == built[len(table) + 1]
    monkeypatch.setattr(harmony, "_COMPILED_BYTES", 1000)
    to_harmony([path], tmp_path / "large", 0, config)
    assert calls == [len(table)]


@pytest.mark.parametrize("name", ["query", "model", "synth_id"])
def test_compiled_code_leaves_wrong_texts_to_the_errors(raw_files, tmp_path, monkeypatch, name):
    monkeypatch.setattr(harmony, "_COMPILED_ROWS", 1)
    table = pq.read_table(raw_files[0])
    values = pa.array([b"a"] * 7 + [b"\xed\xa0\x80"] + [b"a"] * (len(table) - 8))
    at = table.schema.get_field_index(name)
    path = tmp_path / "synth_001.parquet"
    pq.write_table(table.set_column(at, name, values.cast(pa.string(), safe=False)), path)
    with pytest.raises(BadInput, match=rf"synth_001\.parquet:8: {name} is not UTF-8"):
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))


ROWS = [60, 60, 0, 60, 60, 300, 60, 60]
"""Rows of the raw files; those of one file are skipped but for the last, and one lacks columns."""


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = write_drop(tmp_path_factory.mktemp("drop"), files=len(ROWS))
    for number, path in enumerate(paths):
        table = pq.read_table(path)
        if number == 3:
            at = table.schema.get_field_index("synthetic_answer")
            table = table.set_column(
                at, "synthetic_answer", pa.array([""] * (len(table) - 1) + ["a"])
            )
        if number == 6:
            table = table.drop_columns(["model"])
        times = -(-ROWS[number] // 60)
        table = pa.concat_tables([table] * times) if times else table.slice(0, 0)
        pq.write_table(table, path, row_group_size=77)
    return paths


def _config(**values: object) -> HarmonyConfig:
    return HarmonyConfig(num_shards=1, **values)  # type: ignore[arg-type]


def _shard(out: Path) -> bytes:
    return (out / "synth_harmony_shard_00.parquet").read_bytes()


def _of_one_writer(paths: list[Path], out: Path, group: int, most: int) -> tuple[bytes, str]:
    """The shard as one writer of all rows makes it, and the digest of the rows."""
    rows, taken = [], 0
    for number, path in enumerate(paths):
        table = pq.read_table(path)
        table = table.slice(0, max(0, most - taken)) if most >= 0 else table
        taken += len(table)
        pq.write_table(table, out)
        fields = [name for name in HarmonyConfig().metadata_fields if name in table.schema.names]
        made = expected([out], HarmonyConfig(metadata_fields=tuple(fields)))
        rows += [dict.fromkeys(HarmonyConfig().metadata_fields) | each for each in made]
        assert number != 3 or len(made) <= 1
    schema = harmony.schema_of(HarmonyConfig())
    whole = pa.Table.from_pylist(rows, schema=schema)
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for first in range(0, len(whole), group):
            writer.write_table(whole.slice(first, group).combine_chunks(), row_group_size=group)
    digest = RowsDigest()
    for batch in whole.to_batches():
        digest.update(batch)
    return out.read_bytes(), digest.hexdigest()


@pytest.mark.parametrize(
    ("group", "most"),
    [(1, -1), (7, -1), (55, -1), (100, -1), (5000, -1), (7, 119), (7, 120), (50, 250), (7, 9999)],
)
def test_a_shard_has_the_bytes_that_one_writer_would_write(drop, tmp_path, group, most):
    file, digest = _of_one_writer(drop, tmp_path / "whole", group, most)
    summary = to_harmony(
        drop, tmp_path / "out", 0, _config(rows_per_group=group, max_rows=most, workers=0)
    )
    assert _shard(tmp_path / "out") == file
    (note,) = summary.files.values()
    rows = pq.ParquetFile(tmp_path / "whole").metadata.num_rows
    assert (note.rows, summary.rows, summary.row_groups) == (rows, rows, -(-rows // group))
    assert (note.content_sha256, note.bytes) == (digest, len(file))
    assert note.sha256 == hashlib.sha256(file).hexdigest()
    assert summary.rows + summary.skipped == (min(most, sum(ROWS)) if most >= 0 else sum(ROWS))


@pytest.mark.parametrize(
    ("group", "most"), [(7, -1), pytest.param(100, 250, marks=pytest.mark.slow)]
)
def test_the_bytes_do_not_depend_on_workers(drop, tmp_path, group, most):
    built = {}
    for workers in (0, 1, 2, 3):
        config = _config(rows_per_group=group, max_rows=most, workers=workers)
        summary = to_harmony(drop, tmp_path / str(workers), 0, config)
        built[workers] = (summary, _shard(tmp_path / str(workers)))
        assert len(list((tmp_path / str(workers)).iterdir())) == 1
    assert [built[workers] == built[1] for workers in built] == [True] * 4


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_cap_of_no_rows_reads_the_first_file_that_has_some(tmp_path, workers):
    paths = write_drop(tmp_path / "drop", files=3, rows=4)
    pq.write_table(pq.read_table(paths[0]).slice(0, 0), paths[0])
    pq.write_table(pa.table({"query": ["q"]}), paths[2])
    config = _config(max_rows=0, workers=workers)
    assert to_harmony(paths, tmp_path / "out", 0, config).rows == 0
    assert list((tmp_path / "out").iterdir()) == []
    # The third file lacks columns, which nobody sees while the cap ends before it.
    four = to_harmony(paths, tmp_path / "four", 0, replace(config, max_rows=4))
    assert four.rows + four.skipped == 4
    pq.write_table(pa.table({"query": ["q"]}), paths[1])
    with pytest.raises(BadInput, match=r"synth_002\.parquet: has no column synthetic_reasoning"):
        to_harmony(paths, tmp_path / "bad", 0, config)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_beyond_the_cap_is_not_converted(tmp_path, workers):
    paths = write_drop(tmp_path / "drop", files=2, rows=4)
    names = (*raw.TEXTS, "synth_id")
    broken = pa.array([b"a", b"b", b"c", b"\xff"]).cast(pa.string(), safe=False)
    pq.write_table(pa.table(dict.fromkeys(names, broken)), paths[1])
    for most, fits in ((4, True), (8, False)):
        config = _config(max_rows=most, workers=workers)
        if fits:
            to_harmony(paths, tmp_path / "out", 0, config)
            continue
        with pytest.raises(BadInput, match=r"synth_002\.parquet:4: .* is not UTF-8"):
            to_harmony(paths, tmp_path / "bad", 0, config)


def _not_utf8(path: Path, row: int) -> None:
    table = pq.read_table(path)
    values = [value.encode() if value else b"" for value in table["synth_id"].to_pylist()]
    values[row] = b"\xff"
    at = table.schema.get_field_index("synth_id")
    column = pa.array(values).cast(pa.string(), safe=False)
    pq.write_table(table.set_column(at, "synth_id", column), path)


def _damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:400] = bytes(300)
    path.write_bytes(data)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_bad_row_in_file_order_is_named(tmp_path, workers):
    paths = write_drop(tmp_path / "drop", files=8, rows=20)
    index = next(
        at
        for at, row in enumerate(pq.read_table(paths[4]).to_pylist())
        if all(row[n] for n in raw.TEXTS)
    )
    _not_utf8(paths[4], index)
    _damaged(paths[5])
    _not_utf8(paths[6], 0)
    config = _config(rows_per_group=7, workers=workers)
    with pytest.raises(BadInput) as error:
        to_harmony(paths, tmp_path / "out", 0, config)
    assert (Path(error.value.file).name, error.value.row) == ("synth_005.parquet", index + 1)
    _damaged(paths[1])
    with pytest.raises(BadInput, match=r"synth_002\.parquet.* is damaged|not a readable"):
        to_harmony(paths, tmp_path / "damaged", 0, config)


def _same_rows(path: Path, rows: int, broken: int | None = None) -> Path:
    """A raw file whose rows take about 3,500 bytes as Harmony rows; one may be no UTF-8."""
    texts = [("é" * 100).encode()] * rows
    if broken is not None:
        texts[broken] = b"\xff"
    column = pa.array(texts).cast(pa.string(), safe=False)
    pq.write_table(pa.table(dict.fromkeys((*raw.TEXTS, "synth_id"), column)), path)
    return path


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_group_of_several_files_may_take_so_many_bytes(tmp_path, monkeypatch, workers):
    paths = [_same_rows(tmp_path / f"synth_{number}.parquet", 10) for number in range(3)]
    config = _config(rows_per_group=25, workers=workers)
    monkeypatch.setattr(harmony, "_BATCH_ROWS", 2)
    for limit, fits in ((110_000, True), (60_000, False)):
        monkeypatch.setattr(harmony, "_GROUP_BYTES", limit)
        if fits:
            to_harmony(paths, tmp_path / "fits", 0, config)
            continue
        with pytest.raises(BadInput) as error:
            to_harmony(paths, tmp_path / "out", 0, config)
        assert (Path(error.value.file).name, error.value.row) == ("synth_1.parquet", 8)
        assert "18 Harmony rows up to this raw row take more than 60,000" in error.value.rule
        assert "a row group of 25 rows must not: lower rows_per_group" in error.value.rule


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize(("workers", "most"), [(1, 200), (2, 200), (1, -1)])
def test_progress_counts_the_raw_rows_of_each_file(drop, tmp_path, workers, most):
    reports: list[Report] = []
    config = _config(rows_per_group=9, workers=workers, max_rows=most)
    to_harmony(drop, tmp_path / "out", 0, config, progress=Progress(reports.append, 0.0))
    if most > 0:
        assert [report.done for report in reports] == [0, 60, 120, 180, 200]
    total = most if most > 0 else sum(ROWS)
    assert reports[-1].done == total
    assert {(report.stage, report.total, report.unit) for report in reports} == {
        ("convert", total, "rows")
    }


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the raw files that are converted from now on, in this process."""
    names: list[str] = []
    make: Callable[..., dict[str, object]] = harmony.make_part

    def counting(task: harmony.Task, *rest: object) -> dict[str, object]:
        names.append(task.path.name)
        return make(task, *rest)

    monkeypatch.setattr(harmony, "make_part", counting)
    return names


def test_finished_files_are_not_converted_again(drop, tmp_path, monkeypatch):
    names, store = _counted(monkeypatch), PartStore(tmp_path / "parts")
    store.folder.mkdir()
    builds: list[HarmonySummary] = []
    for number in range(3):
        names.clear()
        builds.append(to_harmony(drop, tmp_path / str(number), 0, _config(), store))
        assert names == [[path.name for path in drop], [], ["synth_006.parquet"]][number]
        if number == 1:
            (part,) = store.folder.glob("file_000005.part")
            os.truncate(part, 100)
    assert builds[0] == builds[1] == builds[2]
    assert sha256_file(tmp_path / "0/synth_harmony_shard_00.parquet") == sha256_file(
        tmp_path / "2/synth_harmony_shard_00.parquet"
    )
