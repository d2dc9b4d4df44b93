"""Parquet files of other writers: every form of strings, rows by a child, damaged and hostile."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from gristmill.synth.format.parquet import UntrustedParquet, _describe, _read
from gristmill.synth.laws import kd_laws
from gristmill.synth.samples import write_drop
from gristmill.untrusted import parquet as limits
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.paths import CHECKOUT, open_below
from tests.synth.bombs import GOOD as GOOD_FILE
from tests.synth.bombs import dictionary_of_one, nested, nulls, write_all
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten rows in row groups of three."""
    file = tmp_path / "x.parquet"
    table = pa.table({"x": list(range(10)), "y": [f"text {number}" for number in range(10)]})
    pq.write_table(table, file, row_group_size=3)
    return file


def test_row_groups_and_columns_are_chosen(path):
    with UntrustedParquet(path, ["x"], ["x"]) as file:
        assert (file.names, file.rows, file.groups) == (["x", "y"], 10, [3, 3, 3, 1])
        assert file.nulls == {"x": [0, 0, 0, 0]}
        assert [batch.to_pydict() for batch in file.batches(2, ["y"], [1, 2])] == [
            {"y": ["text 3", "text 4"]},
            {"y": ["text 5", "text 6"]},
            {"y": ["text 7", "text 8"]},
        ]
        assert [row for batch in file.batches(100) for row in batch.to_pydict()["x"]] == list(
            range(10)
        )
        assert list(file.batches(100, ["x"], [])) == []


def test_the_row_of_an_error_counts_the_row_groups_before(path):
    with UntrustedParquet(path, []) as file:
        with pytest.raises(BadInput) as error:
            list(file.batches(2, ["y"], [2, 3], row_bytes=5))
        assert (error.value.row, error.value.file) == (7, str(path))


def test_rows_after_an_early_end_are_read_from_the_beginning(path):
    with UntrustedParquet(path, []) as file:
        for _ in range(3):
            assert next(iter(file.batches(4, ["x"]))).to_pydict() == {"x": [0, 1, 2, 3]}
        assert sum(map(len, file.batches(4))) == 10


def test_only_regular_files_are_read(path):
    link, pipe = path.with_name("link"), path.with_name("pipe")
    link.symlink_to(path)
    os.mkfifo(pipe)
    with UntrustedParquet(link, []) as file:
        assert file.rows == 10
    with pytest.raises(BadInput, match="link: is a link: a drop may hold regular files"):
        UntrustedParquet(link, [], links=REFUSE_LINKS)
    with UntrustedParquet(link, [], links=LinkRule(True, (str(path.parent),))) as file:
        assert file.rows == 10
    for links in (None, REFUSE_LINKS):
        with pytest.raises(BadInput, match="is a pipe"):
            UntrustedParquet(pipe, [], links=links)
        with pytest.raises(BadInput, match=r"is a device|is a folder|is not a readable"):
            UntrustedParquet(path.parent, [], links=links)
        with pytest.raises(BadInput, match=r"is not a readable Parquet file.*No such file"):
            UntrustedParquet(path.with_name("absent"), [], links=links)
    with pytest.raises(BadInput, match="is a device"):
        UntrustedParquet(Path("/dev/zero"), [])


def test_a_file_that_is_replaced_while_it_is_open_stays_the_same(path):
    with UntrustedParquet(path, []) as file:
        other = path.with_name("other")
        pq.write_table(pa.table({"x": [7]}), other)
        other.replace(path)
        assert sum(map(len, file.batches(4))) == 10
        file.copy(path.with_name("copy"))
    assert pq.read_table(path.with_name("copy")).num_rows == 10


def test_a_refused_file_is_closed(path):
    path.write_bytes(b"nothing")
    for _ in range(5):
        with pytest.raises(BadInput, match="is not a readable Parquet file"):
            UntrustedParquet(path, [])
    assert open_below(path.parent) == 0


READ = {
    "lengths by differences in a block of 2**30",
    "a page that claims 2 GB, not packed",
    "a column chunk in another file",
    "times as INT96",
    "a column whose name is 1 MB",
    "statistics that are wrong",
    "times beyond the calendar",
    "times in a zone that is unknown",
    "views of one long string",
}
"""Hostile files of which nothing is decoded that is wrong."""
RULES = {
    "a dictionary of one string of 10 MB for 1000 rows": ":1: takes too much memory to read in",
    "2**40 rows of nulls": "claims 1,099,511,627,776 rows in 406 bytes: it looks like a decompr",
    "fewer rows than none": "its row groups have -4 rows, and the footer says -4: get it again",
    "more rows than values": "holds 4 rows, but its footer says 1,000: get it again",
    "a column whose name is not UTF-8": r"a column whose name is not UTF-8 (b'qu\xffry'): rename",
    "20,000 columns": "has more than 10,000 columns",
    "indices beyond the dictionary": ":1: is damaged in this row or one after it (Index not in dic",
    "an encrypted footer": "is not a readable Parquet file (Could not read encrypted metadata",
    "a page of a kind that there is not": "holds 0 rows, but its footer says 4: get it again",
}


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def batches(path: Path, row_bytes: int = 1 << 20) -> list[pa.RecordBatch]:
    """What the child would send, read in this process."""
    with UntrustedParquet(path, [], is_own=True) as file:
        return list(file.batches(1000, row_bytes=row_bytes))


@pytest.mark.slow
def test_every_hostile_file_is_read_or_refused_within_a_gibibyte(tmp_path):
    files = dict(write_all(tmp_path))
    assert max(path.stat().st_size for path in files.values()) < 3_000_000
    done = subprocess.run(
        [sys.executable, "-m", "tests.synth.read_bombs", str(1 << 30)],
        cwd=CHECKOUT,
        input="\n".join(map(str, files.values())),
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    answers = dict(zip(files, map(json.loads, done.stdout.splitlines()), strict=True))
    for name, readers in answers.items():
        kinds = {reader: kind for reader, (_, kind) in readers.items()}
        assert set(kinds.values()) <= {"rows", "BadInput", "GristmillError"}, (name, readers)
        assert kinds["read"] == ("rows" if name in READ else "BadInput"), (name, readers)
        for text, kind in readers.values():
            assert kind == "rows" or str(files[name].parent) in text
            assert len(text) < 1000
    for name, rule in RULES.items():
        assert rule in answers[name]["read"][0]


def test_a_damaged_file_is_read_or_refused(tmp_path):
    """A sample of what `make fuzz` does more of."""
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 150)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_read_or_refused(tmp_path):
    _mutate(write_drop(tmp_path, files=1, rows=5)[0], 10_000)


def _mutate(path: Path, count: int) -> None:
    whole = path.read_bytes()
    chance = random.Random(7)
    refused = 0
    for number in range(count):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            # Half of the changes are in the footer, where the numbers are.
            first = len(data) - 2500 if chance.random() < 0.5 else 0
            place = chance.randrange(max(first, 0), len(data))
            data[place] = chance.choice(
                (0, 0x7F, 0x80, 0xFF, data[place] ^ 1, chance.randrange(256))
            )
        damaged = path.with_name(f"{number}.parquet")
        damaged.write_bytes(data)
        try:
            with UntrustedParquet(damaged, ["synth_id"], ["synth_id"]) as file:
                for batch in file.batches(3):
                    batch.validate()
        except BadInput as error:
            refused += 1
            assert error.file == str(damaged)
        damaged.unlink()
    assert refused > count // 3


def test_a_file_may_have_many_rows_for_its_bytes_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"
    size = len(nulls(limits.ANY_ROWS).octets())
    most = limits.ANY_ROWS + size
    assert sum(map(len, batches(nulls(most).write(path)))) == most
    with pytest.raises(BadInput, match=f"claims {most + 1:,} rows in {size:,} bytes"):
        batches(nulls(most + 1).write(path))


def test_columns_may_be_nested_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"

    def depth(levels: int) -> int:
        kind = pa.int32()
        for _ in range(levels - 1):
            kind = pa.struct({"x": kind})
        pq.write_table(pa.table({"x": pa.nulls(1, kind)}), path)
        return len(batches(path))

    assert depth(limits.DEPTH) == 1
    with pytest.raises(BadInput, match="has columns nested deeper than 32 levels"):
        depth(limits.DEPTH + 1)
    with pytest.raises(BadInput, match="is not a readable Parquet file"):
        batches(nested(10_000).write(path))


def test_a_file_may_have_many_columns_up_to_a_limit(tmp_path):
    path = tmp_path / "x.parquet"

    def columns(count: int) -> int:
        names = [b"c%d" % number for number in range(count)]
        with opened(replace(GOOD_FILE, names=names).write(path)) as descriptor:
            return len(_describe(descriptor, path, [])[0])

    assert columns(limits.COLUMNS) == 10_000
    with pytest.raises(BadInput, match="has more than 10,000 columns"):
        columns(limits.COLUMNS + 1)


def test_a_row_may_take_so_many_bytes(tmp_path):
    path = tmp_path / "x.parquet"
    texts = ["a", "b" * 1000, "c" * 500]
    pq.write_table(pa.table({"x": texts, "y": texts}), path)
    rows = batches(path, row_bytes=2008)
    assert [batch.to_pydict()["y"] for batch in rows] == [["a"], ["b" * 1000], ["c" * 500]]
    with opened(path) as descriptor, pytest.raises(BadInput) as error:
        wanted = {"batch_size": 1, "columns": None, "row_groups": [0]}
        list(_read(descriptor, path, wanted, 70, 2007))
    assert (error.value.row, error.value.rule) == (72, "takes 2,008 bytes: a row may take 2,007")


@pytest.mark.parametrize("form", ["dictionary", "view", "string"])
def test_a_batch_that_is_too_large_is_divided_in_order(tmp_path, form, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 5000)
    texts: list[Any] = [f"{number:03d}" * (100 if number % 7 else 1) for number in range(100)]
    texts[50] = None
    array: pa.Array = pa.array(texts, pa.string_view() if form == "view" else pa.string())
    if form == "dictionary":
        array = array.dictionary_encode()
    pq.write_table(pa.table({"x": array}), tmp_path / "x.parquet")
    divided = batches(tmp_path / "x.parquet")
    assert [value for batch in divided for value in batch.to_pydict()["x"]] == texts
    assert 6 <= len(divided) <= 16
    assert {str(batch.schema.field("x").type) for batch in divided} == {"string"}


def test_rows_may_take_many_times_the_bytes_of_the_file_up_to_a_limit(tmp_path, monkeypatch):
    path = dictionary_of_one(100, 2000).write(tmp_path / "x.parquet")
    size = path.stat().st_size
    taken = 2 * 5 * (1000 * 100 + 1000 * 4)  # a string has an offset of four bytes
    monkeypatch.setattr(limits, "ANY_RATIO_BYTES", taken)
    monkeypatch.setattr(limits, "RATIO", 1)
    assert sum(map(len, batches(path))) == 2000
    monkeypatch.setattr(limits, "ANY_RATIO_BYTES", taken - 1)
    with pytest.raises(BadInput, match=r"x.parquet:1001: holds more than 1 times the bytes of the"):
        batches(path)
    monkeypatch.setattr(limits, "RATIO", taken // size + 1)
    assert sum(map(len, batches(path))) == 2000


def test_the_number_of_nulls_is_that_of_the_footer(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"s": [{"a": 1}] * 4, "x": [1, None, None, 4], "y": ["a", None, "b", "c"]})
    pq.write_table(table, path, row_group_size=2)
    with opened(path) as descriptor:
        _, groups, nulls = _describe(descriptor, path, ["x", "y", "s", "z"])
    assert (groups, nulls) == ([2, 2], {"x": [1, 1], "y": [1, 0]})
    pq.write_table(table, path, write_statistics=False)
    with opened(path) as descriptor:
        assert _describe(descriptor, path, ["x"])[2] == {"x": [None]}


def test_a_file_that_was_replaced_is_opened_again(tmp_path):
    path = tmp_path / "x.parquet"
    for number in range(1, 4):
        pq.write_table(pa.table({f"x{number}": [number] * number}), path)
        assert [batch.to_pydict() for batch in batches(path)] == [{f"x{number}": [number] * number}]
