"""Parquet files of other writers: every form of strings, and the errors for damaged files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.synth.builders import manifests
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.format import parquet
from gristmill.synth.laws import kd_laws
from tests.synth.conversations import as_json, conversation, hashes

GOOD = [as_json(conversation(f"question {n}", "a thought", "an answer")) for n in range(5)]
IDS = list("abcde")
SURROGATE = b"\xed\xa0\x80"  # U+D800, as WTF-8 has it
SHARD = "synth_harmony_shard_07.parquet"

FORMS: dict[str, Callable[[Sequence[str | None]], pa.Array]] = {
    "string": lambda values: pa.array(values, pa.string()),
    "large_string": lambda values: pa.array(values, pa.large_string()),
    "string_view": lambda values: pa.array(values, pa.string_view()),
    "dictionary": lambda values: pa.array(values, pa.string()).dictionary_encode(),
    # As DuckDB writes what `to_json` gives.
    "json": lambda values: pa.array(values, pa.json_()),
    "large json": lambda values: pa.array(values, pa.json_(pa.large_string())),
}


def shard(folder: Path, group: int = 2, **columns: Any) -> Path:
    path = folder / SHARD
    table = pa.table({"messages_json": GOOD, "synth_id": IDS} | columns)
    pq.write_table(table, path, row_group_size=group)
    return path


def raw_file(folder: Path, **columns: Any) -> Path:
    path = folder / "synth_001.parquet"
    texts = {name: list("vwxyz") for name in ("query", "synthetic_reasoning", "synthetic_answer")}
    pq.write_table(pa.table({"synth_id": IDS} | texts | columns), path, row_group_size=2)
    return path


LANGUAGES = ["en", None, "fr", "en", "de"]


@pytest.fixture(scope="module")
def of_strings(vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the shard whose columns are of strings."""
    folder = tmp_path_factory.mktemp("strings")
    file = shard(folder, language=LANGUAGES)
    build_kd_shard(file, folder / "out", KDConfig(vocabulary, 0.5))
    return hashes(folder / "out")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_strings_gives_the_same_shard(vocabulary, tmp_path, form, of_strings):
    config = KDConfig(vocabulary, 0.5)
    columns = {
        # The columns are in another order, with one more.
        "extra": pa.array([{"a": n} for n in range(5)]),
        "pairs": pa.array([[("a", n)] * n for n in range(5)], pa.map_(pa.string(), pa.int32())),
        "language": FORMS[form](LANGUAGES),
        "synth_id": FORMS[form](IDS),
        "messages_json": FORMS[form](GOOD),
    }
    pq.write_table(pa.table(columns), tmp_path / SHARD, row_group_size=3)
    build_kd_shard(tmp_path / SHARD, tmp_path / "out", config)
    assert hashes(tmp_path / "out") == of_strings
    assert list(kd_laws(tmp_path / "out", "07", 0.5)) == []
    assert list(manifests.shard_violations(tmp_path / SHARD)) == []
    imported = manifests.import_shard(_renumbered(tmp_path), tmp_path / "imported", "00")
    assert imported.rows == 5


def _renumbered(folder: Path) -> Path:
    (folder / "synth_harmony_shard_00.parquet").hardlink_to(folder / SHARD)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_strings_is_converted(tmp_path, form):
    config = HarmonyConfig(num_shards=1)
    values = ["q", None, "", " ", "😀\0"]
    digests = set()
    for name in ("string", form):
        columns = {column: FORMS[name](values) for column in ("query", "language", "model")}
        out = tmp_path / f"{name}{len(digests)}"
        summary = to_harmony([raw_file(tmp_path, **columns)], out, 0, config)
        assert (summary.rows, summary.skipped) == (3, 2)
        digests |= {note.content_sha256 for note in summary.files.values()}
    assert len(digests) == 1


def test_nulls_skip_their_rows_and_fewer_rows_than_said_are_refused(tmp_path, monkeypatch):
    path = raw_file(tmp_path, synthetic_reasoning=pa.nulls(5), language=pa.nulls(5))
    with pytest.raises(BadInput, match=r"synth_001\.parquet: none of its 5 rows has a query,"):
        to_harmony([path], tmp_path / "out", 0, HarmonyConfig(num_shards=1))
    path = shard(tmp_path)
    with parquet.opened(path, []) as file:
        monkeypatch.setattr(type(file), "iter_batches", lambda *_, **__: iter([]))
        with pytest.raises(BadInput, match="holds 0 rows, but its footer says 5"):
            list(parquet.batches(path, file, 10))


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"messages_json": [b"x"] * 5}, "messages_json is binary, not a string"),
        ({"messages_json": [1] * 5}, "messages_json is int64, not a string"),
        ({"messages_json": [["x"]] * 5}, "messages_json is list"),
        ({"synth_id": [1.5] * 5}, "synth_id is double, not a string"),
        ({"synth_id": [True] * 5}, "synth_id is bool, not a string"),
        ({"language": [["en"]] * 5}, "language is list"),
        ({"exercise": [{"a": 1}] * 5}, "exercise is struct"),
        ({"exercise": [b"x"] * 5}, "exercise is binary"),
    ],
)
def test_columns_of_another_type_are_refused(kd_build, tmp_path, columns, rule):
    path = shard(tmp_path, **columns)
    with pytest.raises(BadInput, match=f"{SHARD}: {rule}"):
        kd_build(path, "out")
    assert [v.found.startswith(rule) for v in manifests.shard_violations(path)] == [True]


@pytest.mark.parametrize("name", ["messages_json", "synth_id", "language"])
def test_a_row_that_is_not_utf8_is_a_bad_row(kd_build, vocabulary, tmp_path, name):
    values = [text.encode() for text in (GOOD if name == "messages_json" else IDS)]
    values[3] = values[3].replace(b"question", SURROGATE) if b"q" in values[3] else SURROGATE
    buffers = pa.array(values, pa.binary()).buffers()
    path = shard(tmp_path, **{name: pa.Array.from_buffers(pa.string(), len(values), buffers)})
    shown = r"'\\\\xed\\\\xa0\\\\x80'" if name == "synth_id" else "'d'"
    with pytest.raises(BadInput, match=rf"{SHARD}:4: synth_id {shown}: .*{name} is not UTF-8"):
        kd_build(path, "strict")
    config = KDConfig(vocabulary, bad_rows=1)
    summary = build_kd_shard(path, tmp_path / "out", config)
    assert (summary.rows, summary.bad_rows) == (4, 1)
    assert list(kd_laws(tmp_path / "out", "07")) == []


def test_a_column_that_is_there_twice_is_refused(kd_build, tmp_path):
    table = pa.table({"messages_json": GOOD, "synth_id": IDS})
    for name in ("synth_id", "language"):
        repeated = table
        while repeated.schema.names.count(name) < 2:
            repeated = repeated.append_column(name, pa.array(IDS))
        pq.write_table(repeated, tmp_path / SHARD)
        with pytest.raises(BadInput, match=f"{SHARD}: has the column {name} 2 times"):
            kd_build(tmp_path / SHARD, name)
    path = raw_file(tmp_path)
    repeated = pq.read_table(path).append_column("query", pa.array(IDS))
    pq.write_table(repeated, path)
    with pytest.raises(BadInput, match=r"synth_001\.parquet: has the column query 2 times"):
        to_harmony([path], tmp_path / "raw", 0, HarmonyConfig(num_shards=1))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_a_damaged_page_names_file_and_row(vocabulary, tmp_path, compression):
    """The footer is not damaged, so opening the file finds nothing."""
    names = {"synth_id": [f"id{n}" for n in range(2000)]}
    texts = [str(n) * 5 for n in range(2000)]
    columns = dict.fromkeys(("query", "synthetic_reasoning", "synthetic_answer"), texts)
    columns["messages_json"] = [as_json(conversation(text, "r", "a")) for text in texts]
    path = tmp_path / SHARD
    pq.write_table(
        pa.table(names | columns), path, row_group_size=1000, compression=compression,
        use_dictionary=False, write_page_checksum=compression == "none",
    )  # fmt: skip
    data = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path)
    for place in range(metadata.num_columns):
        chunk = metadata.row_group(1).column(place)
        begin = chunk.data_page_offset + 60
        data[begin : begin + 40] = bytes(40)
    path.write_bytes(data)
    _renumbered(tmp_path)
    config = HarmonyConfig(num_shards=1)
    builds: list[tuple[int, Callable[[Path], object]]] = [
        # The first row of the batch that could not be read.
        (513, lambda out: build_kd_shard(path, out, KDConfig(vocabulary))),
        (1001, lambda out: to_harmony([path], out, 0, config)),
        (1001, lambda out: manifests.import_shard(tmp_path, out, "00")),
    ]
    for place, (row, build) in enumerate(builds):
        with pytest.raises(BadInput, match=rf"shard_0[07]\.parquet:{row}: is damaged in this row"):
            build(tmp_path / f"out{place}")


@pytest.mark.slow
def test_a_null_id_after_a_struct_column_is_found(tmp_path):
    """In the file a struct column takes one column for each field."""
    table = pa.table({"s": [{"a": 1, "b": None}] * 5, "messages_json": GOOD, "synth_id": IDS})
    pq.write_table(table, tmp_path / SHARD)
    assert list(manifests.shard_violations(tmp_path / SHARD)) == []
    nulls = table.set_column(2, "synth_id", pa.array(["a", "b", "c", "d", None]))
    pq.write_table(nulls, tmp_path / SHARD, row_group_size=3)
    (violation,) = manifests.shard_violations(tmp_path / SHARD)
    assert (violation.law, violation.found) == ("no nulls", "synth_id of row 5")
