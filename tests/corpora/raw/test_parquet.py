"""The rows of Parquet files, good and hostile."""

import datetime
import decimal
import math
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw import parquet
from gristmill.corpora.raw.texts import Unfit, flattened, text
from gristmill.untrusted import parquet as limits

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n"


def _found(path: Path, columns: set[str] | None = None) -> list[tuple[int, Any]]:
    return [
        (number, value.reason if isinstance(value, Unfit) else value)
        for number, value in parquet.rows(path, columns=columns)
    ]


def _in_this_process(path: Path) -> list[bytes | str]:
    with path.open("rb") as file:
        classes, *batches = parquet.read(file.fileno(), path)
    assert classes == [b"{}"]
    return [row for batch in batches for row in batch]


def test_dictionaries_and_times_are_texts_and_other_values_arrive(tmp_path):
    table = pa.table(
        {
            "a": pa.array(["x", "y", "x"]).dictionary_encode(),
            "b": pa.array([datetime.date(2026, 1, 2)] * 3),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert _found(tmp_path / "x.parquet")[2] == (3, {"a": "x", "b": "2026-01-02"})
    rows: list[dict[str, Any]] = [
        {"a": "ä", "b": [1, None], "c": {"d": [True]}, "e": 1.5, "f": decimal.Decimal("1.50")},
        {"a": None, "b": None, "c": None, "e": None, "f": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows * 100), tmp_path / "x.parquet", row_group_size=30)
    found = _found(tmp_path / "x.parquet")
    assert [number for number, _ in found] == list(range(1, 201))
    assert found[-2][1] == {**rows[0], "f": "1.50"}
    assert found[-1][1] == rows[1]


def test_a_time_in_nanoseconds_is_a_text(tmp_path):
    times = pa.array([1_500_000_000_000_000_001, 1_500_000_000_000_001_000, None], "timestamp[ns]")
    spans = pa.array([1, 1000, None], "time64[ns]")
    table = pa.table({"a": ["x", "y", "z"], "b": times, "c": spans, "b2": times})
    pq.write_table(table, tmp_path / "x.parquet")
    found = [value for _, value in _found(tmp_path / "x.parquet")]
    assert found[0]["a"] == "x"
    assert found[0]["b"] == found[0]["b2"] == "2017-07-14T02:40:00.000000001"
    assert found[0]["c"] == "00:00:00.000000001"
    # The others are as they were.
    assert (found[1]["b"], found[1]["c"]) == ("2017-07-14T02:40:00.000001", "00:00:00.000001")
    assert found[2] == {"a": "z", "b": None, "c": None, "b2": None}
    assert _found(tmp_path / "x.parquet", {"a"})[0][1] == {
        "a": "x",
        "b": None,
        "c": None,
        "b2": None,
    }


def test_numbers_that_are_not_finite_arrive_as_they_are(tmp_path):
    day = datetime.datetime(2026, 1, 2, 3)
    table = pa.table(
        {
            "a": pa.array([math.inf, 0.5], pa.float16()),
            "b": [[{"c": -math.inf}, None], [{"c": None}]],
            "d": pa.array([[("ä", math.nan)], None], pa.map_(pa.string(), pa.float32())),
            "e": pa.array([math.inf, 1.5]).dictionary_encode(),
            "f": [day, day],
            "g": [None, "null"],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    (_, broken), (_, good) = _found(tmp_path / "x.parquet")
    assert math.isnan(broken["d"][0].pop())
    texts: dict[str, Any] = {"f": "2026-01-02T03:00:00", "g": None}
    assert broken == {
        **{"a": math.inf, "b": [{"c": -math.inf}, None], "d": [["ä"]], "e": math.inf},
        **texts,
    }
    expected = {"a": 0.5, "b": [{"c": None}], "d": None, "e": 1.5}
    assert good == {**expected, **texts, "g": "null"}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([math.inf], pa.float16()),
        pa.array([math.inf]).dictionary_encode(),
        pa.array([[math.inf]]),
        pa.array([{"b": [{"c": math.inf}]}]),
        pa.array([[("b", math.inf)]], pa.map_(pa.string(), pa.float32())),
        pa.ExtensionArray.from_storage(pa.opaque(pa.float64(), "a", "b"), pa.array([math.inf])),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_every_kind_keep_infinities(tmp_path, column):
    pq.write_table(pa.table({"a": column}), tmp_path / "x.parquet")
    (octets,) = _in_this_process(tmp_path / "x.parquet")
    assert isinstance(octets, bytes) and b"Infinity" in octets


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"a": ["x" * 100] * 1000}), tmp_path / "x.parquet", compression="none")
    whole = (tmp_path / "x.parquet").read_bytes()
    for octets in (b"", b"PAR1", whole[:-20], whole[:300] + b"\0" * 300 + whole[600:]):
        (tmp_path / "x.parquet").write_bytes(octets)
        with pytest.raises(BadInput, match="get it again"):
            _found(tmp_path / "x.parquet")
    for octets, rule in (
        (b"a,b\n1,2\n", "is no Parquet file: give it the ending of what it is"),
        (b"PARE" + whole[4:], "is encrypted: write it again without encryption"),
        (POINTER, "is a Git LFS pointer and not the data: run `git lfs pull`"),
    ):
        (tmp_path / "x.parquet").write_bytes(octets)
        with pytest.raises(BadInput, match=rf"x\.parquet: {rule}"):
            _found(tmp_path / "x.parquet")


def test_columns_that_are_not_read_may_hold_anything(tmp_path):
    table = pa.table(
        {
            "image": pa.array([b"\xff", None]),
            "a": pa.array(["x", "y"]).dictionary_encode(),
            "images": pa.array([[b"\xff"], []]),
            "b": pa.array(["p", "q"], pa.large_string()),
            "a.b": pa.array([b"\0", b"\1"]),
            "c": pa.array([7, None]),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    unread = {"image": None, "images": None, "a.b": None}
    assert _found(tmp_path / "x.parquet", {"a", "b", "c", "d"}) == [
        (1, unread | {"a": "x", "b": "p", "c": 7}),
        (2, unread | {"a": "y", "b": "q", "c": None}),
    ]
    assert [list(row) for _, row in _found(tmp_path / "x.parquet", {"c"})] == [
        table.schema.names
    ] * 2
    assert _found(tmp_path / "x.parquet", {"d"})[1] == (2, dict.fromkeys(table.schema.names))


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary(1),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)
def test_a_column_of_bytes_that_is_read_refuses_the_file_by_its_name(tmp_path, kind):
    pq.write_table(pa.table({"a": ["x"], "b": pa.array([b"x"]).cast(kind)}), tmp_path / "x.parquet")
    rule = (
        r"x\.parquet: has the column b, which is .*binary.* and not a string: write it as strings"
    )
    with pytest.raises(BadInput, match=rule):
        _found(tmp_path / "x.parquet", {"a", "b"})


def test_columns_need_utf8_and_rows_that_json_cannot_hold_are_refused(tmp_path):
    pq.write_table(pa.table({"query": ["x"]}, pa.schema([("query", pa.string())])), tmp_path / "x")
    octets = (tmp_path / "x").read_bytes().replace(b"query", b"qu\xffry")
    (tmp_path / "x.parquet").write_bytes(octets)
    with pytest.raises(BadInput, match=r"has a column whose name is not UTF-8 \(.*qu\\xffry"):
        _found(tmp_path / "x.parquet")
    valid, offsets, _ = pa.array(["ab", "cd", "ef"]).buffers()
    buffers = [valid, offsets, pa.py_buffer(b"ab\xff\xffef")]
    broken = pa.Array.from_buffers(pa.string(), 3, buffers)
    pq.write_table(pa.table({"a": broken}), tmp_path / "x.parquet")
    assert _found(tmp_path / "x.parquet") == [(1, {"a": "ab"}), (2, "utf8"), (3, {"a": "ef"})]
    pq.write_table(pa.table({"a": [b"x", None]}), tmp_path / "y.parquet")
    assert _found(tmp_path / "y.parquet") == [(1, "utf8"), (2, {"a": None})]


def test_limits_of_a_file_hold(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["x" * 1000] * 1000}), path)
    assert len(_in_this_process(path)) == 1000
    monkeypatch.setattr(limits, "ANY_RATIO_BYTES", 0)
    monkeypatch.setattr(limits, "RATIO", 10)
    with pytest.raises(BadInput, match="decompression bomb"):
        _in_this_process(path)
    monkeypatch.setattr(limits, "RATIO", 1000)
    monkeypatch.setattr(parquet, "ROW_BYTES", 1000)
    with pytest.raises(BadInput, match=r"x\.parquet:1: a row of more than 1,000 bytes"):
        _in_this_process(path)
    monkeypatch.setattr(limits, "ANY_ROWS", 0)
    pq.write_table(pa.table({"a": pa.nulls(100_000)}), path)
    with pytest.raises(BadInput, match="claims 100,000 rows"):
        _in_this_process(path)


def test_columns_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table([["a"], ["b"], ["c"]], names=["a", "a", "b"]), path)
    with pytest.raises(BadInput, match="has the column a 2 times: leave one of them"):
        _found(path, {"a", "b"})
    assert _found(path, {"b"}) == [(1, {"a": None, "b": "c"})]
    nested: Any = "x"
    for _ in range(limits.DEPTH):
        nested = [nested]
    pq.write_table(pa.table({"a": [nested]}), path)
    with pytest.raises(BadInput, match="nested deeper than 32 levels"):
        _in_this_process(path)
    monkeypatch.setattr(limits, "COLUMNS", 3)
    pq.write_table(pa.table({"a": ["x"], "b": [{"c": 1, "d": 2}]}), path)
    with pytest.raises(BadInput, match="more than 3 columns"):
        _in_this_process(path)


def test_a_link_and_a_row_of_too_many_values_are_refused(tmp_path):
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "x.parquet")
    (tmp_path / "y.parquet").symlink_to("x.parquet")
    with pytest.raises(BadInput, match="is a link"):
        _found(tmp_path / "y.parquet")
    lists = pa.array([[[]], [[]] * (1 << 20)], pa.list_(pa.list_(pa.int8())))
    pq.write_table(pa.table({"question": lists}), tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="a row of more than 1,048,576 values") as raised:
        _found(tmp_path / "x.parquet")
    assert raised.value.row == 2


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.float32(), 3.8, 3.8),
        (pa.float32(), 1e-10, 1e-10),
        (pa.float32(), 16777216.0, 16777216.0),
        (pa.float32(), -0.0, -0.0),
        (pa.list_(pa.float32()), [0.1, None], [0.1, None]),
        (pa.large_list(pa.float32()), [0.1], [0.1]),
        (pa.list_(pa.float32(), 2), [0.1, 0.7], [0.1, 0.7]),
        (pa.struct({"b": pa.list_(pa.float32()), "c": pa.string()}), {"b": [0.1], "c": "x"}, ...),
        (pa.map_(pa.string(), pa.float32()), [("k", 0.1)], [["k", 0.1]]),
        (pa.float64(), 0.10000000149011612, 0.10000000149011612),
    ],
    ids=str,
)
def test_numbers_of_32_bits_have_their_own_shortest_form(tmp_path, kind, value, expected):
    column = pa.array([value, None], kind)
    pq.write_table(pa.table({"a": column, "b": ["x", "y"]}), tmp_path / "x.parquet")
    found = [row for _, row in _found(tmp_path / "x.parquet")]
    wanted = value if expected is ... else expected
    assert found == [{"a": wanted, "b": "x"}, {"a": None, "b": "y"}]
    assert str(found[0]["a"]) == str(wanted)


def _with_classes(path: Path, features: Any, **columns: Any) -> Path:
    said = features if isinstance(features, bytes) else orjson.dumps({"info": features})
    table = pa.table(columns).replace_schema_metadata({"huggingface": said})
    pq.write_table(table, path)
    return path


def test_the_number_of_a_class_has_its_name(tmp_path):
    label = {"_type": "ClassLabel", "names": ["neg", "pos"]}
    features = {
        "label": label,
        "labels": {"_type": "Sequence", "feature": label},
        "older": [label],
        "place": {"label": label, "n": {"_type": "Value", "dtype": "int64"}},
        "gone": label,
        "n": {"_type": "Value", "dtype": "int64"},
    }
    path = _with_classes(
        tmp_path / "x.parquet",
        {"features": features},
        **{"label": [1, -1, None], "labels": [[0, 1], [], None], "older": [[1], [0], [2]]},
        **{"place": [{"label": 0, "n": 1}] * 3, "n": [1, 2, 3]},
    )
    one, two, three = (row for _, row in parquet.rows(path))
    assert one == {"label": 1, "labels": [0, 1], "older": [1], "place": {"label": 0, "n": 1}} | {
        "n": 1
    }
    said = [flattened(each) for each in (one["label"], one["labels"], one["place"]["label"])]
    assert said == ["pos", "neg\npos", "neg"] and flattened(one["n"]) == "1"
    assert [text(each) for each in (two["label"], three["label"], three["older"])] == ["", "", ""]
    assert type(next(parquet.rows(path, columns={"n"}))[1]["n"]) is int


@pytest.mark.parametrize(
    "said",
    [
        b"{",
        b"[]",
        b'{"info": 3}',
        b'{"info": {"features": {"a": {"_type": "ClassLabel", "names": [1, 2]}}}}',
        b'{"info": {"features": {"a": {"_type": "ClassLabel"}}}}',
        b'{"info": {"features": {"a": [1, 2]}}}',
        b'{"info": {"features": "a"}}',
        b"[" * 100_000,
    ],
)
def test_names_of_classes_that_are_none_are_numbers(tmp_path, said):
    ((_, row),) = parquet.rows(_with_classes(tmp_path / "x.parquet", said, a=[1]))
    assert type(row["a"]) is int and row == {"a": 1}


def test_what_pyarrow_cannot_decode_is_said_with_file_and_column(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), path)
    whole = pq.ParquetFile.iter_batches

    def fails(self: Any, size: int, columns: Any, **more: Any) -> Any:
        if "b" in columns:
            raise pa.ArrowNotImplementedError("Nested data conversions not implemented")
        return whole(self, size, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fails)
    rule = r"x\.parquet:1: pyarrow cannot decode its column 'b' \(Nested data .*write it again"
    with pytest.raises(BadInput, match=rule):
        _in_this_process(path)
