"""The tables of artifacts of every kind: rows, pictures, tokens, origins, and what is refused."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gristmill.browse import Filter, Query, StillCounting, open_table, source, tables_of
from gristmill.browse.source import Place
from gristmill.browse.table import where_of
from gristmill.browse.web.shelf import Shelf
from gristmill.contract import GristmillError
from gristmill.families import catalogs
from gristmill.macroxue.format.rows import VALUE_ROW_DTYPE
from gristmill.provenance import read_record
from gristmill.provenance.find_artifacts import artifacts

_opened = list[str]()
sys.addaudithook(lambda event, given: _opened.append(str(given[0])) if event == "open" else None)


@pytest.fixture
def values(tmp_path: Path) -> Path:
    folder = tmp_path / "values"
    folder.mkdir()
    for shard, count in enumerate((40, 60)):
        rows = np.zeros(count, VALUE_ROW_DTYPE)
        rows["step_index"] = np.arange(count) + 40 * shard
        rows["reward"] = rows["step_index"] % 7
        np.save(folder / f"values-{shard:05d}.npy", rows)
    (folder / "values.json").write_text("{}")
    return folder


def numbers(folder: Path, query: Query, most: int = 7) -> list[int]:
    table, token, found = open_table(folder), "", list[int]()
    while True:
        page = table.find(query, token, most)
        assert len(page.rows) <= most
        found += [row.number for row in page.rows]
        token = page.token
        if not token:
            return found


def test_pages_and_filters_cross_the_files_of_a_table_and_equal_cells_keep_their_order(values):
    table = open_table(values)
    assert (table.count, tables_of(values), table.kind) == (100, ["values"], "macroxue/values")
    assert [row.cells["step_index"] for row in table.rows(38, 4)] == [38, 39, 40, 41]
    assert table.rows(100, 5) == []
    assert table.rows(41, 1)[0].raw.place == "row 1 of 60"
    both = Query(filters=(Filter("reward", "is", "3"), Filter("step_index", "to", "60")))
    assert numbers(values, both, 2) == [n for n in range(61) if n % 7 == 3]
    assert numbers(values, Query(filters=(Filter("reward", "is not", "3.0"),))) == [
        n for n in range(100) if n % 7 != 3
    ]
    assert numbers(values, Query(filters=(Filter("step_index", "contains", "9"),)))[:3] == [
        9,
        19,
        29,
    ]
    every = range(100)
    assert numbers(values, Query(sort="reward")) == sorted(every, key=lambda n: n % 7)
    down = Query(sort="reward", descending=True, filters=(Filter("step_index", "from", "50"),))
    assert numbers(values, down) == sorted(range(50, 100), key=lambda n: -(n % 7))


def test_a_search_ends_with_its_time_and_its_token_goes_on(tmp_path):
    folder = tmp_path / "games"
    folder.mkdir()
    row = json.dumps({"game_id": "x", "moves": "e2e4 " * 1000})
    (folder / "valid_games.jsonl").write_text(f"{row}\n" * 4000)
    page = open_table(folder).find(Query("sought"), seconds=0)
    assert page.rows == []
    assert page.token
    assert 0 < page.looked < 4000
    rest = open_table(folder).find(Query("sought"), page.token)
    assert (rest.looked, rest.token) == (4000, "")


@pytest.mark.parametrize("text", ["a " * 500, "é" * 1000, "(" * 1000, "\\u00e9 " * 140, "ſ" * 999])
def test_a_text_of_any_form_is_looked_for(tmp_path, text):
    texts = [text.strip(), text[:-2], "other"]
    rows = [
        json.dumps({"game_id": each, "n": 1}, ensure_ascii=at > 0) for at, each in enumerate(texts)
    ]
    (tmp_path / "valid_games.jsonl").write_text("\n".join([*rows, rows[0]]))
    for query in (
        Query(text.strip()),
        Query(filters=(Filter("game_id", "contains", text.strip()),)),
    ):
        found = open_table(tmp_path).find(query)
        assert [row.number for row in found.rows][-2:] == [0, 3]


def test_a_sort_goes_on_where_its_time_ended(tmp_path):
    row = {"game_id": "x", "moves": "e2e4 " * 1000}
    lines = (json.dumps({**row, "n": n * 7 % 4001}) for n in range(4001))
    (tmp_path / "valid_games.jsonl").write_text("\n".join(lines))
    table, tries = open_table(tmp_path), []
    while True:
        try:
            found = table.find(Query(sort="n"), seconds=0)
            break
        except StillCounting as error:
            tries.append(error.done)
    assert tries and tries == sorted(tries) and 0 < tries[0] <= tries[-1] <= 1
    assert [each.cells["n"] for each in found.rows] == list(range(25))
    after = table.find(Query(sort="n"), found.token, seconds=0)
    assert [each.cells["n"] for each in after.rows] == list(range(25, 50))


def test_a_sort_whose_look_failed_leaves_no_rows_out(values, monkeypatch):
    table = open_table(values)

    def broken(*_: object) -> Iterator[object]:
        yield next(iter(look(Place(), where_of(Query(sort="reward"), table.columns))))
        raise OSError("the disk")

    look = table._source.look
    monkeypatch.setattr(table._source, "look", broken)
    for _ in range(2):
        with pytest.raises(OSError, match="the disk"):
            table.find(Query(sort="reward"))


def test_a_column_that_is_too_large_is_not_sorted(values, monkeypatch):
    monkeypatch.setattr(source, "SORTED_BYTES", 1000)
    with pytest.raises(GristmillError, match=r"column reward takes more than .* narrow the rows"):
        numbers(values, Query(sort="reward"))
    few = Query(sort="reward", filters=(Filter("step_index", "to", "3"),))
    assert numbers(values, few) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("query", "token", "rule"),
    [
        (Query(filters=(Filter("none", "is", "1"),)), "", "filter none: there is no such column"),
        (Query(filters=(Filter("reward", "is", "x"),)), "", "'x' is not a number"),
        (Query(filters=(Filter("reward", "near", "1"),)), "", "near is none of is, is not"),  # type: ignore[arg-type]
        (Query(sort="none"), "", "sort none: there is no such column"),
        (Query("x"), "", "no column that a search looks at"),
        (Query(), "s3", "is no place in this list"),
        (Query(sort="reward"), "r3.0", "is no place in this list"),
        (Query(), "../x", "is no place in this list"),
        (
            Query(filters=(Filter("reward", "contains", "1" * 2000),)),
            "",
            "at most 1,000 characters",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(values, query, token, rule):
    with pytest.raises(GristmillError, match=rule):
        open_table(values).find(query, token)


def test_unknown_folders_tables_and_sizes_of_pages_are_refused(values, tmp_path):
    with pytest.raises(GristmillError, match="not an artifact"):
        tables_of(tmp_path)
    with pytest.raises(GristmillError, match="has no table x: it has values"):
        open_table(values, name="x")
    with pytest.raises(GristmillError, match="nothing/here is no asset"):
        open_table(values, kind="nothing/here")
    with pytest.raises(GristmillError, match="a page has"):
        open_table(values).rows(-1, 5)


def test_a_damaged_file_names_itself(values):
    path = values / "values-00001.npy"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(GristmillError, match=r"values-00001\.npy"):
        open_table(values)


def test_a_row_that_cannot_be_drawn_says_so_with_its_file(tmp_path):
    folder = tmp_path / "games"
    folder.mkdir()
    (folder / "valid_games.jsonl").write_text(
        '{"game_id": "x"}\n{"game_id": "y", "moves": ["aXbY"]}\n'
    )
    plain, damaged = open_table(folder).rows(0, 2)
    assert len(plain.pictures()) == 1
    with pytest.raises(GristmillError, match=r"valid_games\.jsonl:2: cannot be shown"):
        damaged.pictures()


@pytest.mark.slow
def test_every_published_artifact_has_rows_with_pictures_and_origins(sample_root, tmp_path):
    data = sample_root.data
    shown: dict[str, set[str]] = {}
    for place in {found.folder for found in artifacts(data)} - {
        data / "audits/leaks/sample-questions"
    }:
        for name in tables_of(place):  # in samples no audit finds a question
            table = open_table(place, name=name, keep=tmp_path / "keep")
            row = table.rows(0, 1)[0]
            assert not row.error
            assert list(row.cells) == [column.name for column in table.columns]
            assert row.raw.file.is_file()
            assert row.raw.text
            has = {"picture"} if row.pictures() else set()
            has |= {"tokens"} if row.tokens() else set()
            has |= {"origin"} if row.origin() else set()
            shown.setdefault(table.kind, set()).update(has)
            assert table.find(Query(), most=2).rows[0].cells == row.cells
    pictures = {asset for asset, has in shown.items() if "picture" in has}
    assert pictures == {
        *("macroxue/pack", "macroxue/pool", "macroxue/training_view", "synth/harmony"),
        *("synth/kd_shards", "synth_smoke/kd_shards", "chat/kd_shards", "chess/valid_games"),
        *("synth/distill", "chat/distill"),
        "chess/game_dataset",
        *("chess/splice_cache", "chess/splice_dataset", "chess/subset", "reasoning/alignment"),
        *("puzzles/arc", "puzzles/sudoku", "puzzles/maze", "puzzles/domino", "puzzles/grid"),
    }
    assert {asset for asset, has in shown.items() if "tokens" in has} > {
        *("synth/harmony", "synth/kd_shards", "reasoning/gpt2_shards", "reasoning/alignment"),
        *("chat/kd_shards", "synth/distill", "chat/distill"),
    }
    assert all("origin" in has for has in shown.values())
    known = {kind.asset for each in catalogs() for kind in each.kinds}
    assert {*shown, "audits/leaks"} == {*known, "tokenizers/gpt2", "tokenizers/o200k_harmony"}


@pytest.mark.slow
def test_a_search_finds_players_texts_ids_and_labels(sample_root):
    searches = {
        ("chess/validated/elite_2024-01", "games", "vienna game"): "headers.Opening",
        ("chess/raw/elite/2024-01", None, "höhle"): "White",
        ("chess/dataset/elite_2024-01_game", "val", "e2e4 c7c5"): "moves",
        ("synth_harmony", "01", "memorization_3_1"): "synth_id",
        ("megatron/synth_kd_v1", "train/00", "language"): "text",
        ("reasoning/raw", "gsm8k__train", "TOMÁS"): "question",
        ("reasoning/tokenized/gpt2", "gsm8k__train", "tickets"): "text",
        ("reasoning/alignment", "gsm8k__train", "step 2"): "step_labels",
        ("puzzles/arc-sample", "train/all", "count"): "identifier",
        ("tokenizer", "gpt2", "hello"): "text",
    }
    for (place, name, text), column in searches.items():
        rows = open_table(sample_root.data / place, name=name).find(Query(text)).rows
        assert rows, place
        for row in rows:
            cells = [str(cell).lower() for cell in row.cells.values()]
            assert any(text.lower() in cell for cell in cells)
        assert any(text.lower() in str(row.cells[column]).lower() for row in rows), place


@pytest.mark.slow
def test_opening_and_reading_writes_nothing_beside_the_artifacts(sample_root, tmp_path):
    place = sample_root.data / "chess/validated/elite_2024-01"
    before = sorted((path, path.stat().st_mtime_ns) for path in place.rglob("*"))
    open_table(place, keep=tmp_path / "keep").find(Query("sought"))
    assert sorted((path, path.stat().st_mtime_ns) for path in place.rglob("*")) == before
    assert list((tmp_path / "keep").iterdir())


@pytest.mark.slow
def test_a_file_that_differs_from_its_record_is_refused(sample_root, tmp_path):
    places = {
        "chess/validated/elite_2024-01": "valid_games.jsonl",
        "macroxue/packs/sample_d6": "steps.npy",
        "puzzles/maze-sample": "train/all__inputs.npy",
        "synth_harmony": "synth_harmony_shard_00.parquet",
        "megatron/synth_kd_v1": "train/shard_00_tokens.bin",
    }
    for place, name in places.items():
        folder = tmp_path / place
        shutil.copytree(sample_root.data / place, folder)
        with (folder / name).open("ab") as file:
            file.write(b"\n\n\n\n")
        with pytest.raises(GristmillError, match=f"{Path(name).name}.* were recorded"):
            open_table(folder, name=tables_of(folder)[0])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["chess/validated/elite_2024-01", "reasoning/tokens/mine"])
@pytest.mark.parametrize("how", ["above", "absolute", "link", "record", "input"])
def test_nothing_outside_of_the_folder_is_opened_by_a_record(sample_root, tmp_path, place, how):
    folder, secret = tmp_path / "data" / place, tmp_path / "secret.json"
    shutil.copytree(sample_root.data / place, folder)
    path = folder / "provenance.json"
    record = read_record(path)
    first = next(each for each in record.outputs if each.path.endswith((".json", ".jsonl")))
    shutil.copy(folder / first.path, secret)
    named = {"above": os.path.relpath(secret, folder), "absolute": str(secret)}.get(how)
    if named is not None:
        outputs = [first.model_copy(update={"path": named}), *record.outputs]
        record = record.model_copy(update={"outputs": outputs})
    elif how == "link":
        (folder / first.path).unlink()
        (folder / first.path).symlink_to(secret)
    elif how == "input":
        inputs = [each.model_copy(update={"path": "../secret.json"}) for each in record.inputs]
        record = record.model_copy(update={"inputs": inputs})
    path.write_bytes(record.sealed().to_bytes())
    if how == "record":
        path.rename(secret)
        path.symlink_to(secret)
    _opened.clear()
    listed = list(Shelf(folder).listed())
    try:
        tables = [open_table(folder, name=name) for name in tables_of(folder)]
        origins = str([row.origin() for table in tables for row in table.rows(0, 1)])
        assert how == "input" and "'../secret.json'" in origins
    except GristmillError as error:
        assert how != "input" and re.search("absolute|leads out", str(error))
    assert secret.name not in {Path(each).name for each in _opened}
    assert bool(listed[0].error) == (how == "record")


def test_documents_of_a_template_of_ones_own_show_mask_and_span(sample_root):
    table = open_table(sample_root.data / "megatron/chat/talks__00", name="train/00")
    (row,) = table.rows(0, 1)
    tokens = row.tokens()
    for span, counts, text in (
        ("prompt", False, "<|start|>user<|message|>What·is·0·+·1?<|end|><|start|>assistant"),
        ("reasoning", True, "<think>⏎One·more.⏎</think>"),
        ("final", True, "1<|end|>"),
    ):
        own = [token for token in tokens if token.span == span]
        assert text in "".join(token.text for token in own)
        assert {token.counts for token in own} == {counts}
    (picture,) = row.pictures()
    assert "final: 1" in picture.svg
