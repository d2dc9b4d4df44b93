"""The raw row that a trace names holds the texts of the document or row that was traced."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, Trace
from gristmill.families import Request
from gristmill.provenance import Input, trace_inputs
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.manifests import import_shard
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.format import parquet as format_parquet
from gristmill.synth.raw import TEXTS
from gristmill.synth.read import origins
from gristmill.synth.read.origins import (
    Wanted,
    by_counting,
    by_ids,
    has_all_texts,
    one_row,
    row_origins,
    traced,
)
from tests.paths import REAL_DATA


def _raw_row(root: Path, steps: list[Trace]) -> tuple[dict[str, Any], dict[str, object]]:
    facts = steps[-1].facts()
    row = pq.read_table(root / str(facts["raw_file"])).slice(int(str(facts["raw_row"])) - 1, 1)
    (found,) = row.to_pylist()
    return dict(found), facts


def _rows(name: str, gaps: set[int]) -> list[tuple[str | None, str | None, str | None]]:
    """Ten rows, each with texts of its own; those in `gaps` lack one."""
    return [
        (f"{name} query {n}", [None, ""][n % 2] if n in gaps else "why", f"{name} answer {n}")
        for n in range(10)
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Harmony shard of three files; the second one has texts everywhere."""
    return _published(tmp_path, {"a": {0, 3, 4, 5, 6, 7}, "b": set(), "c": {9}})


def _published(
    tmp_path: Path, gaps: dict[str, set[int]], ids: Callable[[str, int], str] | None = None
) -> Path:
    """A data root with a Harmony shard of raw files of ten rows; those in `gaps` lack a text."""
    files = [tmp_path / f"drops/synth/d/{name}.parquet" for name in gaps]
    for file, missing in zip(files, gaps.values(), strict=True):
        rows = _rows(file.stem, missing)
        names = ("query", "synthetic_reasoning", "synthetic_answer")
        id_of = ids or (lambda name, number: f"{name} {number}")
        columns: dict[str, list[str | None]] = {
            "synth_id": [id_of(file.stem, number) for number in range(len(rows))]
        }
        columns |= {name: [row[at] for row in rows] for at, name in enumerate(names)}
        file.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        pq.write_table(table, file, row_group_size=4, compression="NONE", use_dictionary=False)
    config = HarmonyConfig(num_shards=1, metadata_fields=("synth_id",), rows_per_group=6)
    publish(
        Build(
            root=tmp_path,
            artifact="synth_harmony",
            asset="synth/harmony",
            partition="00",
            code_version="1",
            config=config,
            inputs=raw_inputs(tmp_path, files, "synth/raw", "d", {}),
            make=lambda attempt: to_harmony(files, attempt.out, 0, config),
            shared=True,
        )
    )
    return tmp_path


KEPT = (
    [("a", n) for n in (1, 2, 8, 9)] + [("b", n) for n in range(10)] + [("c", n) for n in range(9)]
)


@pytest.mark.parametrize("number", range(len(KEPT)))
def test_rows_without_a_text_are_counted_and_bytes_hold_the_texts(root, number):
    name, index = KEPT[number]
    raw, facts = _raw_row(root, list(row_origins(root / "synth_harmony", "00", number)))
    assert raw["synth_id"] == f"{name} {index}"
    assert (facts["raw_file"], facts["raw_row"]) == (f"drops/synth/d/{name}.parquet", index + 1)
    assert (facts["raw_row_group"], facts["raw_row_in_group"]) == (index // 4, index % 4 + 1)
    data = (root / str(facts["raw_file"])).read_bytes()
    for column in TEXTS:
        begin, end = map(int, str(facts[f"raw_bytes_of_{column}"]).split("-"))
        assert raw[column].encode() in data[begin:end]


def test_a_raw_file_with_another_time_is_hashed_once_for_all_traces(root, monkeypatch):
    """A copied data root has other times, and every trace compares each raw file several times."""
    hashed: list[Path] = []
    real = trace_inputs.sha256_file

    def counted(path: Path) -> str:
        hashed.append(path)
        return real(path)

    monkeypatch.setattr(trace_inputs, "sha256_file", counted)
    files = sorted((root / "drops/synth/d").iterdir())
    for file in files:
        os.utime(file, (7, 7))
    for number in (22, 13, 22):
        facts = list(row_origins(root / "synth_harmony", "00", number))[-1].facts()
        assert "raw_row" in facts and "raw_note" not in facts
    assert sorted(hashed) == files
    data = files[2].read_bytes()
    files[2].write_bytes(data[:-1] + b"X")
    (_, step) = row_origins(root / "synth_harmony", "00", 22)
    assert "has other bytes" in str(step.facts()["not_traced"])


def test_a_row_among_equal_ids_leads_to_its_own_raw_row(tmp_path):
    """Ids that a row group repeats are counted."""
    root = _published(tmp_path, {"a": {2}}, ids=lambda name, n: "same")
    for number, raw in ((0, 0), (1, 1), (2, 3), (8, 9)):
        facts = list(row_origins(root / "synth_harmony", "00", number))[-1].facts()
        assert facts["raw_row"] == raw + 1


def test_rows_that_do_not_exist_are_refused_and_no_shard_means_the_first(root):
    with pytest.raises(BadInput, match="has 23 rows, no row 23"):
        list(row_origins(root / "synth_harmony", "00", 23))
    with pytest.raises(BadInput, match="there is no shard 07"):
        list(row_origins(root / "synth_harmony", "07", 0))
    folder = root / "synth_harmony"
    wanted = [step.facts() for step in row_origins(folder, "00", 5)]
    for shard in ("00", None):
        found = traced("synth/harmony", Request(folder, "5", {"shard": shard}))
        assert [step.facts() for step in found] == wanted
    with pytest.raises(BadInput, match="there is no shard 03"):
        list(traced("synth/harmony", Request(folder, "5", {"shard": "03"})))


@pytest.mark.skipif(not (REAL_DATA / "synth").is_dir(), reason="no real data")
def test_an_imported_row_leads_to_the_same_row_of_the_drop(tmp_path):
    drop = tmp_path / "drops/synth_harmony/real"
    drop.mkdir(parents=True)
    name = "synth_harmony_shard_01.parquet"
    (drop / name).write_bytes((REAL_DATA / "synth/synth_harmony" / name).read_bytes())
    inputs: list[Input] = raw_inputs(tmp_path, [drop / name], "synth/ready_harmony", "01", {})
    publish(
        Build(
            root=tmp_path,
            artifact="synth_harmony",
            asset="synth/harmony",
            partition="01",
            code_version="1",
            config=HarmonyConfig(),
            inputs=inputs,
            make=lambda attempt: import_shard(drop, attempt.out, "01"),
            shared=True,
        )
    )
    with format_parquet.opened(drop / name, []) as shard:
        rows = shard.metadata.num_rows
    for number in (0, rows // 2, rows - 1):
        steps = list(row_origins(tmp_path / "synth_harmony", "01", number))
        raw, facts = _raw_row(tmp_path, steps)
        assert facts["raw_row"] == number + 1
        assert raw["synth_id"] == steps[0].facts()["synth_id"]


Row = tuple[str | None, str | None]
"""synth_id and reasoning of a raw row."""


def _write(path: Path, rows: Sequence[Row], row_group_size: int = 4) -> Path:
    ids, reasonings = ([row[at] for row in rows] for at in (0, 1))
    texts = ([f"q {n}" for n in range(len(rows))], reasonings, ["a"] * len(rows))
    columns = dict(zip(TEXTS, texts, strict=True))
    table = pa.table(
        {"synth_id": pa.array(ids, pa.string())}
        | {name: pa.array(values, pa.string()) for name, values in columns.items()}
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def _kept(files: Sequence[Sequence[Row]]) -> list[tuple[int, int]]:
    return [(n, at) for n, rows in enumerate(files) for at, row in enumerate(rows) if row[1]]


def _wanted(files: Sequence[Sequence[Row]], row: int, neighbours: int = 8) -> Wanted:
    ids = [files[number][at][0] for number, at in _kept(files)]
    octets = [None if each is None else each.encode() for each in ids]
    first = max(0, row - neighbours)
    return Wanted(row, octets[first:row][::-1], octets[row], octets[row + 1 :][:neighbours])


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, tuple[str, ...]]]:
    """(file, row group, columns) of everything that is read but footers."""
    read: list[tuple[str, int, tuple[str, ...]]] = []
    real = parquet.batches

    def noted(
        path: Path, shard: Any, size: int, columns: Sequence[str], groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        read.extend((path.name, group, tuple(columns)) for group in groups)
        return real(path, shard, size, columns, groups)

    monkeypatch.setattr(parquet, "batches", noted)
    return read


def _check_all(files: list[list[Row]], tmp_path: Path, unknown: Sequence[int] = ()) -> None:
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    for row, place in enumerate(_kept(files)):
        wanted = _wanted(files, row)
        assert by_counting(paths, wanted) == place
        assert by_ids(paths, wanted) == (None if row in unknown else place), row
    past = Wanted(len(_kept(files)), [], None, [])
    assert by_counting(paths, past) is None


def _rows_of_raw_row(name: str, count: int, missing: dict[int, str | None]) -> list[Row]:
    return [(f"{name} {n}", missing.get(n, "why")) for n in range(count)]


def test_equal_ids_lead_to_no_wrong_row_and_gaps_are_passed_over(tmp_path):
    """In other row groups the neighbours tell them apart; in one row group nothing does."""
    files = [_rows_of_raw_row("a", 12, {1: "", 6: None})]
    files[0][2] = ("twin", "why")
    files[0][9] = ("twin", "why")
    _check_all(files, tmp_path)
    files[0][10] = ("twin", "why")
    unknown = [at for at, (_, row) in enumerate(_kept(files)) if row in (9, 10)]
    _check_all(files, tmp_path, unknown)
    files = [
        _rows_of_raw_row("a", 10, {0: None, 3: "", 4: None, 5: "", 6: None, 7: ""}),
        _rows_of_raw_row("b", 9, {}),
        _rows_of_raw_row("c", 10, dict.fromkeys(range(10), "")),
        _rows_of_raw_row("d", 5, {4: None}),
    ]
    _check_all(files, tmp_path)


def test_rows_without_a_text_or_an_id_are_counted(tmp_path):
    files = [_rows_of_raw_row("a", 8, {0: ""})]
    files[0][5] = (None, "why")
    _check_all(files, tmp_path, unknown=[4])
    bare = pq.read_table(tmp_path / "0.parquet").drop_columns(["synth_id"])
    pq.write_table(bare, tmp_path / "bare.parquet")
    assert by_ids([tmp_path / "bare.parquet"], _wanted(files, 3)) is None
    assert by_counting([tmp_path / "bare.parquet"], _wanted(files, 3)) == (0, 4)
    rows = _rows_of_raw_row("a", 150, dict.fromkeys(range(10, 100), ""))
    path = _write(tmp_path / "a.parquet", rows, row_group_size=1000)
    for row, expected in ((3, 3), (9, None), (10, None), (30, 120)):
        found = by_ids([path], _wanted([rows], row, neighbours=2))
        assert found == (None if expected is None else (0, expected))
        assert by_counting([path], _wanted([rows], row)) == _kept([rows])[row]


def test_only_the_row_group_of_the_row_is_read(tmp_path, read_groups):
    """Nulls are in footers, so the row groups before it are not read, however many there are."""
    files = [_rows_of_raw_row(name, 400, dict.fromkeys(range(0, 400, 8))) for name in "abc"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    kept = _kept(files)
    for row in (0, 500, len(kept) - 1):
        read_groups.clear()
        number, at = kept[row]
        assert by_ids(paths, _wanted(files, row)) == (number, at)
        expected = [(f"{number}.parquet", at // 4, ("synth_id",))]
        assert read_groups in (expected, [])
    read_groups.clear()
    full = [_rows_of_raw_row(name, 40, {}) for name in "ab"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(full)]
    assert (by_ids(paths, _wanted(full, 57)), read_groups) == ((1, 17), [])


def test_a_footer_that_counts_too_few_nulls_leads_to_no_wrong_id(tmp_path, monkeypatch):
    """The row is at or after the place that the footers give, so it is found."""
    monkeypatch.setattr(origins, "_fewest_without", lambda *_: 0)
    files = [_rows_of_raw_row(name, 40, dict.fromkeys(range(0, 40, 8))) for name in "ab"]
    paths = [_write(tmp_path / f"{n}.parquet", rows) for n, rows in enumerate(files)]
    for row in range(len(_kept(files))):
        assert by_ids(paths, _wanted(files, row)) == _kept(files)[row]


@pytest.mark.parametrize(("value", "full"), [("x", True), (None, False), ("", False)])
def test_a_footer_says_whether_all_texts_are_there(tmp_path, value, full):
    path = _write(tmp_path / "a.parquet", [("1", "r"), ("2", value)])
    with pq.ParquetFile(path) as shard:
        assert has_all_texts(shard, 0) is full
        assert one_row(path, shard, 0, 1, ["synth_id"]) == {"synth_id": "2"}


def test_an_equal_id_before_the_earliest_place_of_the_row_is_no_other_row(tmp_path):
    rows = _rows_of_raw_row("a", 4, {3: ""})
    rows[0], rows[2] = ("twin", "why"), ("twin", "why")
    path = _write(tmp_path / "a.parquet", rows)
    assert by_ids([path], _wanted([rows], 2)) == (0, 2)
    assert by_ids([path], _wanted([rows], 0)) is None
