"""Rows of files of lines: pages, places that are kept, searches, and damage."""

import json
from pathlib import Path

import pytest

from gristmill.browse import Column, Filter, Query, StillCounting
from gristmill.browse import lines as module
from gristmill.browse.lines import EVERY, Form, Lines, csv_table, json_row, jsonl
from gristmill.browse.source import Place
from gristmill.browse.table import where_of
from gristmill.contract import BadInput, GristmillError
from tests.json_lines import jsonl as written

COLUMNS = [Column("name", "text", searchable=True), Column("n", "integer")]


def numbered(path: Path, count: int) -> Path:
    return written(path, [{"name": f"row {number}", "n": number} for number in range(count)])


def found(source: Lines, query: Query) -> list[int]:
    where = where_of(query, COLUMNS)
    return [number for looked in source.look(Place(), where) for number in looked.numbers]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 256)


def test_a_page_begins_at_any_row_and_says_where_its_bytes_are(tmp_path):
    source = jsonl(numbered(tmp_path / "a.jsonl", 5 * EVERY + 3), None, None, None)
    for start in (0, 1, EVERY - 1, EVERY, 3 * EVERY + 7, 5 * EVERY + 1):
        rows = source.read(start, 3, 60)
        assert [row.values["n"] for row in rows] == list(range(start, min(start + 3, 323)))
        assert [row.number for row in rows] == [row.values["n"] for row in rows]
    assert source.read(5 * EVERY + 3, 3, 60) == []
    assert source.count() == 5 * EVERY + 3
    path = numbered(tmp_path / "a.jsonl", 3)
    (row,) = jsonl(path, None, None, None).read(1, 1, 60)
    begin, end = (int(each) for each in row.raw.place.split()[1].split("-"))
    assert path.read_bytes()[begin:end] == row.raw.text.encode() == b'{"name": "row 1", "n": 1}'


def test_the_first_page_counts_nothing_and_a_late_one_goes_on_where_the_time_ended(tmp_path):
    source = jsonl(numbered(tmp_path / "a.jsonl", 1000), None, None, None)
    assert source.count() is None
    assert len(source.read(0, 5, 0)) == 5
    tries = 0
    while True:
        try:
            rows = source.read(990, 5, 0)
            break
        except StillCounting as error:
            assert 0 < error.done < 1
            tries += 1
    assert [row.number for row in rows] == [990, 991, 992, 993, 994]
    assert tries > 10


def test_the_number_of_rows_is_that_of_the_record_until_the_file_was_passed(tmp_path):
    source = jsonl(numbered(tmp_path / "a.jsonl", 20), 21, None, None)
    assert source.count() == 21
    source.read(19, 1, 60)
    assert source.read(30, 1, 60) == []
    assert source.count() == 20


def test_places_are_kept_for_other_processes_and_only_for_the_same_file(tmp_path):
    path, keep = numbered(tmp_path / "a.jsonl", 500), tmp_path / "keep"
    jsonl(path, None, None, keep).read(499, 1, 60)
    (kept,) = keep.iterdir()
    again = jsonl(path, None, None, keep)
    assert again.count() == 500
    assert again.read(499, 1, -1)[0].values["n"] == 499
    kept.write_bytes(kept.read_bytes()[:-8])
    assert jsonl(path, None, None, keep).count() is None
    numbered(path, 400)
    assert jsonl(path, None, None, keep).count() is None
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["a.jsonl"]


def test_a_folder_that_takes_no_places_costs_nothing_else(tmp_path):
    (tmp_path / "keep").write_text("a file")
    source = jsonl(numbered(tmp_path / "a.jsonl", 500), None, None, tmp_path / "keep")
    assert source.read(499, 1, 60)[0].number == 499


@pytest.mark.parametrize(
    "text", ["Ärger", 'a "b" c', "C:\\new\\table", "one\ttwo", "e2e4 c7c5", "日本"]
)
def test_a_search_finds_a_text_however_json_writes_it(tmp_path, text):
    rows: list[object] = [{"name": "other", "n": 0}, {"name": f"x {text} y", "n": 1}]
    written(tmp_path / "escaped.jsonl", rows)
    plain = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "plain.jsonl").write_text(plain)
    for name in ("escaped.jsonl", "plain.jsonl"):
        source = jsonl(tmp_path / name, None, None, None)
        assert found(source, Query(text)) == found(source, Query(text.upper())) == [1]


def test_a_search_finds_words_of_its_column_also_of_lists_and_escapes(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"name": ["e2e4", "c7c5"]}\n{"name": "\\u0061bc"}\n{"name": "c7c5 e2e4"}\n')
    assert found(jsonl(path, None, None, None), Query("e2e4 c7c5")) == [0]
    assert found(jsonl(path, None, None, None), Query("abc")) == [1]
    path = written(tmp_path / "a.jsonl", [{"name": "x", "other": "sought"}, {"name": "sought"}])
    assert found(jsonl(path, None, None, None), Query("sought")) == [1]


def test_a_search_goes_on_from_a_place_and_refuses_one_within_a_row(tmp_path):
    source = jsonl(numbered(tmp_path / "a.jsonl", 300), None, None, None)
    where = where_of(Query("row 29"), COLUMNS)
    looked = next(each for each in source.look(Place(), where) if each.numbers)
    after = looked.after(looked.numbers[0])
    rest = [number for each in source.look(after, where) for number in each.numbers]
    assert (looked.numbers[0], rest) == (29, list(range(290, 300)))
    with pytest.raises(GristmillError, match="no row begins at byte"):
        next(source.look(Place(after.row, after.byte + 1), where))


def test_a_bad_row_says_file_row_and_rule_and_leaves_the_others(tmp_path):
    path = tmp_path / "a.jsonl"
    deep = "[" * 100_000 + "]" * 100_000
    path.write_bytes(
        b'{"name": "a"}\n{"name": \n[1]\n'
        + f'{{"name": {deep}}}\n'.encode()
        + b'\xff\n{"name": "z"}'
    )
    rows = jsonl(path, None, None, None).read(0, 10, 60)
    assert [bool(row.error) for row in rows] == [False, True, True, True, True, False]
    assert rows[2].error.startswith(f"{path}:3: is no JSON object")
    assert rows[4].raw.text == "\\xff"
    assert found(jsonl(path, None, None, None), Query("z")) == [5]


def test_values_of_another_type_than_the_first_ones_are_shown_and_fit_no_range(tmp_path):
    rows: list[object] = [{"n": 1}] * 70
    path = written(tmp_path / "a.jsonl", [*rows, {"n": "x"}, {"n": 1 << 70}, {"n": True}, {"n": 2}])
    source = jsonl(path, None, None, None)
    assert source.types["n"] == "integer"
    query = Query(filters=(Filter("n", "from", "2"),))
    assert found(source, query) == [73]
    assert [row.values["n"] for row in source.read(70, 2, 60)] == ["x", 1 << 70]


def test_an_object_and_a_table_with_a_heading_have_columns(tmp_path):
    path = written(tmp_path / "a.jsonl", [{"h": {"White": "w", "n": 1}, "x": {}}])
    assert dict(jsonl(path, None, None, None).types) == {
        "h.White": "text",
        "h.n": "integer",
        "x": "list",
    }
    path = tmp_path / "a.csv"
    path.write_text('name,n\n"x, y",1\nz\n')
    rows = csv_table(path, None, None, None).read(0, 5, 60)
    assert rows[0].values == {"name": "x, y", "n": "1"}
    assert "has 1 cells, and the table has 2 columns" in rows[1].error


def test_made_columns_are_searched_and_a_game_of_a_pgn_is_a_row(tmp_path):
    path = numbered(tmp_path / "a.jsonl", 20)
    form = Form(json_row, more={"name": lambda values: f"made {values['n']}"})
    source = Lines(path, form)
    assert found(source, Query("made 13")) == [13]
    assert source.read(13, 1, 60)[0].values["name"] == "made 13"
    path = tmp_path / "a.pgn"
    path.write_bytes(b'[Event "a"]\n\n1. e4\n\n[Event "b"]\n\n1. d4 {\n[Event}\n\n[Event "c"]\n')
    source = Lines(path, Form(lambda octets: {"name": octets.decode()}, begin=b"[Event "))
    assert [row.values["name"][8] for row in source.read(0, 9, 60)] == ["a", "b", "c"]
    assert source.read(2, 1, 60)[0].values["name"] == '[Event "c"]'


def test_a_long_row_is_named_and_an_empty_file_has_none(tmp_path):
    path = written(tmp_path / "a.jsonl", [{"name": "x" * 1000}, {"name": "sought"}])
    source = jsonl(path, None, None, None)
    assert [len(row.raw.text) for row in source.read(0, 5, 60)] == [1012, 18]
    assert found(source, Query("sought")) == [1]
    (tmp_path := tmp_path / "next").mkdir()
    (tmp_path / "a.jsonl").touch()
    source = jsonl(tmp_path / "a.jsonl", None, None, None)
    assert (source.count(), source.read(0, 5, 60), found(source, Query("x"))) == (0, [], [])


def test_a_file_of_another_size_than_recorded_and_a_missing_one_are_refused(tmp_path):
    path = numbered(tmp_path / "a.jsonl", 3)
    with pytest.raises(BadInput, match=r"a\.jsonl: has .* bytes, and 5 were recorded"):
        jsonl(path, None, 5, None)
    with pytest.raises(BadInput, match="cannot be read"):
        jsonl(tmp_path / "b.jsonl", None, None, None)
