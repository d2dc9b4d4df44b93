"""Every law holds of what is built, and notices what breaks it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.synth.build.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import indexed, trace
from gristmill.synth.laws import shards
from gristmill.synth.laws import values as value_laws
from gristmill.synth.read.trace import trace as trace_document
from gristmill.synth.show import terminal, tokens


@pytest.fixture(scope="module")
def whole(harmony: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("laws") / "kd"
    build_kd_shard(harmony, out, KDConfig(vocabulary, 0.3))
    return out


@pytest.fixture
def broken(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "kd"))


def poke(path: Path, dtype: str, place: int, value: int) -> None:
    values = np.fromfile(path, dtype=dtype)
    values[place] = value
    path.write_bytes(values.tobytes())


def names(root: Path, fraction: float | None = 0.3) -> set[str]:
    return {violation.law for violation in shards.kd_laws(root, "00", fraction)}


def first(root: Path) -> indexed.Indexed:
    return indexed.read(root / "train/shard_00_tokens")


def test_a_whole_shard_breaks_nothing(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(whole) == set()
    assert list(shards.kd_laws(whole)) == []
    monkeypatch.setattr(value_laws, "_CHUNK", 500)
    assert names(whole) == set()


@pytest.mark.parametrize(
    ("place", "token", "law"),
    [
        (5, 201_088, "tokens in the vocabulary"),
        (5, -1, "tokens in the vocabulary"),
        (-1, 5, "EOD at the end"),
        (5, 200_007, "no control ids in bodies"),
        (5, 200_050, "no control ids in bodies"),
        (5, 199_999, "no control ids in bodies"),
        (5, 200_006, "no control ids in bodies"),
        (0, 5, "no control ids in bodies"),
    ],
)
@pytest.mark.parametrize("chunk", [400, 1 << 20])
def test_a_wrong_token_is_noticed(
    broken: Path, place: int, token: int, law: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_laws, "_CHUNK", chunk)
    begin, end = first(broken).bounds(7, 8).tolist()
    where = (end if place < 0 else begin) + place
    poke(broken / "train/shard_00_tokens.bin", "<i4", where, token)
    found = [v for v in shards.kd_laws(broken, "00") if v.law == law]
    assert len(found) == 1
    assert found[0].where.startswith("train/shard_00_tokens: document 7, token ")


@pytest.mark.parametrize(
    ("name", "place", "value", "law"),
    [
        ("lossmask", 3, 1, "mask is span not 0"),
        ("span", 3, 2, "mask is span not 0"),
        ("span", 3, 3, "mask is span not 0"),
        ("lossmask", -1, 1, "EOD masked"),
        ("lossmask", -2, 1, "EOD masked"),
    ],
)
def test_a_wrong_mask_or_span_is_noticed(
    broken: Path, name: str, place: int, value: int, law: str
) -> None:
    where = place if place >= 0 else int(first(broken).bounds(4, 4)[0]) + place
    poke(broken / f"train/shard_00_{name}.bin", "u1", where, value)
    assert law in names(broken)


def test_other_boundaries_are_noticed(broken: Path) -> None:
    path = broken / "train/shard_00_span"
    lengths = first(broken).lengths.copy()
    lengths[:2] += [1, -1]
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with indexed.IndexedWriter(path, "u1") as writer:
        writer.add(values, lengths)
    assert names(broken) == {"equal boundaries"}


def test_a_wrong_dtype_is_noticed(broken: Path) -> None:
    path = broken / "train/shard_00_span"
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1").astype("<i4")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with indexed.IndexedWriter(path, "<i4") as writer:
        writer.add(values, first(broken).lengths)
    assert names(broken) == {"dtypes"}


@pytest.mark.parametrize(
    ("path", "law"),
    [
        ("train/shard_00_tokens.idx", "empty split"),
        ("train/shard_00_span.bin", "readable"),
        ("trace/trace_00.parquet", "trace"),
    ],
)
def test_a_missing_file_is_noticed(broken: Path, path: str, law: str) -> None:
    (broken / path).unlink()
    assert law in names(broken)


def test_a_shard_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    assert names(tmp_path, None) == {"trace"}
    assert [v.law for v in shards.kd_laws(tmp_path)] == ["shards"]


Change = Callable[[dict[str, list]], None]


def test_another_fraction_is_noticed(whole: Path) -> None:
    assert names(whole, 0.01) == {"split rule", "split share"}


def swap_ids(table: dict[str, list]) -> None:
    """Give one valid document the id of a train one."""
    at = {split: table["split"].index(split) for split in ("train", "valid")}
    table["synth_id"][at["valid"]] = table["synth_id"][at["train"]]


def lose_a_row(table: dict[str, list]) -> None:
    for column in table.values():
        column.pop()


def move_a_message(table: dict[str, list]) -> None:
    table["offsets"][3] = [x + (i == 2) for i, x in enumerate(table["offsets"][3])]


def move_the_end(table: dict[str, list]) -> None:
    table["offsets"][3] = [*table["offsets"][3][:-1], table["offsets"][3][-1] - 1]


def renumber(table: dict[str, list]) -> None:
    table["document"][0] += 1


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (swap_ids, "disjoint splits"),
        (lose_a_row, "trace"),
        (move_a_message, "trace"),
        (move_the_end, "trace"),
        (renumber, "trace"),
    ],
)
def test_a_wrong_trace_is_noticed(broken: Path, change: Change, law: str) -> None:
    path = broken / trace.path("00")
    table = pq.read_table(path).to_pydict()
    change(table)
    pq.write_table(pa.table(table, schema=trace.schema()), path)
    assert law in names(broken)


def test_harmony_laws(harmony: Path, tmp_path: Path) -> None:
    assert list(shards.harmony_laws(harmony.parent, "00")) == []
    assert [v.law for v in shards.harmony_laws(harmony.parent, "01")] == ["shards"]
    wrong = pa.table({"messages_json": pa.array([1]), "synth_id": pa.array([None], pa.string())})
    pq.write_table(wrong, tmp_path / "synth_harmony_shard_00.parquet")
    assert [v.law for v in shards.harmony_laws(tmp_path)] == ["columns", "no nulls"]


@pytest.mark.parametrize("damage", ["cut", "pages", "columns", "nulls", "bytes"])
def test_a_damaged_trace_is_noticed_and_named(broken: Path, damage: str) -> None:
    path = broken / trace.path("00")
    table = pq.read_table(path)
    ids = table["synth_id"].to_pylist()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "pages":
        data = bytearray(path.read_bytes())
        data[4:900] = bytes(896)
        path.write_bytes(data)
    elif damage == "columns":
        pq.write_table(table.drop_columns(["offsets"]), path)
    elif damage == "nulls":
        pq.write_table(table.set_column(4, "synth_id", pa.array([None, *ids[1:]])), path)
    else:
        buffers = pa.array([b"\xff", *(i.encode() for i in ids[1:])], pa.binary()).buffers()
        column = pa.Array.from_buffers(pa.string(), len(ids), buffers)
        pq.write_table(table.set_column(4, "synth_id", column), path)
    assert names(broken) == {"trace"}
    if damage in ("cut", "columns", "pages"):
        with pytest.raises(BadInput, match=r"trace_00\.parquet"):
            trace_document(broken, "00", "train", 0)


@pytest.mark.parametrize("kind", ["bin", "idx"])
def test_a_file_that_is_gone_is_named(broken: Path, vocabulary: Path, kind: str) -> None:
    (broken / f"train/shard_00_span.{kind}").unlink()
    assert "readable" in names(broken)
    with pytest.raises(BadInput, match=rf"shard_00_span\.{kind}: the file is missing"):
        terminal.document_text(broken, "00", "train", 0, vocabulary)


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("tokens", "<i4", -1),
        ("tokens", "<i4", 201_088),
        ("lossmask", "u1", 2),
        ("span", "u1", 3),
    ],
)
def test_a_document_that_cannot_be_is_not_shown(
    broken: Path, vocabulary: Path, name: str, dtype: str, value: int
) -> None:
    poke(broken / f"train/shard_00_{name}.bin", dtype, 3, value)
    with pytest.raises(BadInput, match=rf"shard_00_{name}\.bin: document 0 is damaged"):
        terminal.document_text(broken, "00", "train", 0, vocabulary)


def test_odd_names_are_drawn_and_written_without_harm(broken: Path, vocabulary: Path) -> None:
    path = broken / trace.path("00")
    table = pq.read_table(path)
    odd = pa.array(["\x00\x1b[31m\ufffe<b>"] * len(table))
    pq.write_table(table.set_column(4, "synth_id", odd), path)
    drawn = tokens.svg([tokens.conversation(broken, "00", "train", 0, vocabulary)])
    assert "<b>" not in drawn
    ElementTree.fromstring(drawn)
    assert "\x1b" not in terminal.document_text(broken, "00", "train", 0, vocabulary).plain
    ran = CliRunner().invoke(main, ["trace", str(broken), "0"])
    assert "synth_id: ��[31m�<b>\n" in ran.output
