"""Raw rows to Harmony rows: what is kept, how it is written, which files a shard takes."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.synth import raw
from gristmill.synth.builders import harmony
from gristmill.synth.builders.harmony import RawRows, developer_message, system_message, to_harmony
from gristmill.synth.config import HarmonyConfig
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
def test_rows_are_those_of_the_contract(
    raw_files: list[Path], tmp_path: Path, config: HarmonyConfig
) -> None:
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
def test_the_messages_around_the_texts_are_the_references(real: Path) -> None:
    metadata = json.loads((real / "synth_harmony/metadata.json").read_text())
    assert system_message(REFERENCE) == metadata["system_message"]
    assert developer_message(REFERENCE) == metadata["developer_message"]
    shard = pq.read_table(real / "synth_harmony/synth_harmony_shard_00.parquet")
    text = shard["messages_json"][0].as_py()
    head = json.dumps({"messages": [system_message(REFERENCE), developer_message(REFERENCE)]})
    assert text.startswith(head.removesuffix("]}"))
    assert list(REFERENCE.metadata_fields) == shard.schema.names[2:]


def test_no_default_names_a_person() -> None:
    assert "vpMoE" not in json.dumps([system_message(HarmonyConfig())])
    assert "trained by" not in json.dumps([system_message(HarmonyConfig())])


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("rows", [0, 1, 59, 60, 61, 10_000])
def test_a_cap_counts_rows_read(raw_files: list[Path], tmp_path: Path, rows: int) -> None:
    summary = to_harmony(raw_files, tmp_path / "out", 0, HarmonyConfig(max_rows=rows))
    assert summary.rows + summary.skipped == min(rows, 180)
    if not summary.rows:
        assert list((tmp_path / "out").iterdir()) == []


def test_the_digest_is_of_the_rows_and_not_of_their_groups(
    raw_files: list[Path], tmp_path: Path
) -> None:
    digests = {}
    for groups in (7, 50, 2000):
        config = HarmonyConfig(rows_per_group=groups)
        summary = to_harmony(raw_files, tmp_path / str(groups), 0, config)
        (digests[groups],) = [note.content_sha256 for note in summary.files.values()]
    other = to_harmony(raw_files, tmp_path / "other", 0, REFERENCE)
    assert len(set(digests.values())) == 1
    assert {note.content_sha256 for note in other.files.values()}.isdisjoint(digests.values())


def test_whitespace_alone_is_kept(tmp_path: Path) -> None:
    (path,) = write_drop(tmp_path / "drop", files=1, rows=4)
    table = pq.read_table(path)
    table = table.set_column(4, "query", pa.array([" ", "", None, "\n"]))
    pq.write_table(table, path)
    summary = to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))
    assert (summary.rows, summary.skipped) == (2, 2)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "synth_001.parquet"
    path.write_bytes(b"nothing")
    with pytest.raises(BadInput, match=r"synth_001.*not a readable Parquet"):
        to_harmony([path], tmp_path / "a", 0, HarmonyConfig(num_shards=1))
    pq.write_table(pa.table({"query": ["q"], "synth_id": ["s"]}), path)
    with pytest.raises(BadInput, match="no column synthetic_reasoning, synthetic_answer"):
        to_harmony([path], tmp_path / "b", 0, HarmonyConfig(num_shards=1))


def _raw(path: Path, **columns: Any) -> Path:
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    pq.write_table(pa.table({name: ["a", "b", "c"] for name in names} | columns), path)
    return path


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize(("synth_id", "compiled"), [(None, 1), (None, 500), ("", 1), (" \n", 500)])
def test_a_kept_row_without_an_id_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: int, synth_id: str | None
) -> None:
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
def test_an_id_may_be_any_integer_and_be_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: int
) -> None:
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
        ({"model": [b"a"] * 3}, "model is binary, and JSON cannot hold its value (Object of type "),
        (
            {"model": [1.5, math.nan, 0.0]},
            "model is double, and JSON cannot hold its value (Out of",
        ),
    ],
)
def test_a_column_of_a_wrong_type_is_named_with_its_type(
    tmp_path: Path, columns: dict[str, Any], rule: str
) -> None:
    path = _raw(tmp_path / "synth_001.parquet", **columns)
    with pytest.raises(BadInput) as caught:
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))
    assert caught.value.rule.startswith(rule)
    assert caught.value.row == (None if "write the" in rule else 2 if "double" in rule else 1)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_without_a_good_row_is_refused_and_an_empty_one_is_not(
    tmp_path: Path, workers: int
) -> None:
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


def test_a_shard_without_raw_files_is_an_error(raw_files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="shard 0 of 4 gets none of 0 raw files: add files"):
        to_harmony([], tmp_path / "out", 0, HarmonyConfig())
    with pytest.raises(GristmillError, match="shard 3 of 4 gets none of 3 raw files"):
        to_harmony(raw_files[:3], tmp_path / "out", 3, HarmonyConfig())
    assert not (tmp_path / "out").exists()
    assert to_harmony(raw_files[:3], tmp_path / "out", 2, HarmonyConfig()).raw_files == 1


def test_a_row_group_may_take_so_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["é" * 100] * 10
    path = tmp_path / "synth_001.parquet"
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    pq.write_table(pa.table(dict.fromkeys(names, texts)), path)
    monkeypatch.setattr(harmony, "_BATCH_ROWS", 2)
    monkeypatch.setattr(harmony, "_GROUP_BYTES", 15_000)
    built = to_harmony([path], tmp_path / "a", 0, HarmonyConfig(num_shards=1, rows_per_group=2))
    assert built.rows == 10
    with pytest.raises(BadInput) as error:
        to_harmony([path], tmp_path / "b", 0, HarmonyConfig(num_shards=1, rows_per_group=10))
    assert error.value.row == 6
    assert "6 Harmony rows up to this raw row take more than 15,000 bytes" in error.value.rule
    assert "lower rows_per_group" in error.value.rule


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62] * 2, pa.timestamp("us")),
        pa.array([1] * 2, pa.timestamp("us", "Nowhere/City")),
        pa.array([2**31 - 1] * 2, pa.date32()),
    ],
    ids=["time", "zone", "date"],
)
def test_metadata_that_python_cannot_hold_is_bad_input(tmp_path: Path, column: pa.Array) -> None:
    names = ("query", "synthetic_reasoning", "synthetic_answer", "synth_id")
    path = tmp_path / "synth_001.parquet"
    pq.write_table(pa.table({name: ["a", "b"] for name in names} | {"model": column}), path)
    with pytest.raises(BadInput, match=r"synth_001\.parquet:1: model: "):
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))


def test_a_raw_row_may_take_four_mebibytes(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("absent", [(), ("model",), ("model", "constraints")])
def test_compiled_code_makes_the_same_rows(
    raw_files: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    absent: tuple[str, ...],
) -> None:
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


@pytest.mark.parametrize("name", ["query", "model"])
def test_compiled_code_leaves_wrong_texts_to_the_errors(
    raw_files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(harmony, "_COMPILED_ROWS", 1)
    table = pq.read_table(raw_files[0])
    values = pa.array([b"a"] * 7 + [b"\xed\xa0\x80"] + [b"a"] * (len(table) - 8))
    at = table.schema.get_field_index(name)
    path = tmp_path / "synth_001.parquet"
    pq.write_table(table.set_column(at, name, values.cast(pa.string(), safe=False)), path)
    with pytest.raises(BadInput, match=rf"synth_001\.parquet:8: {name} is not UTF-8"):
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))
