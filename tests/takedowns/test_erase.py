"""Rows leave raw files of every format, and all other bytes stay."""

import bz2
import gzip
import json
import lzma
from itertools import combinations, product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import corpus_and_split
from gristmill.families import forgets
from gristmill.hashing import sha256_file
from gristmill.inbox.marks import SUMS, listed_sums, written_sums
from gristmill.takedowns import erase as module
from gristmill.takedowns.erase import erase, list_again

CORPUS = corpus_and_split("any__train")[0]
ROWS = [
    json.dumps({"question": f"naïve {at}\n", "answer": "a" * at}, ensure_ascii=False)
    for at in range(5)
]
PACKS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
UNPACKS = {
    "": bytes,
    ".gz": gzip.decompress,
    ".zst": lambda octets: zstandard.ZstdDecompressor().decompressobj().decompress(octets),
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
TABLE = [f'"q {at}, with\r\n""lines""",a{at}\r\n' for at in range(5)]
GAMES = [
    f'[Event "{at}"]\n[White "w{at}"]\n\n1. e4 {{ [note] }} {"e5 " * at}*\n\n' for at in range(5)
]


def joined(form: str, stay: list[int]) -> str:
    """A file of a format with some rows of five."""
    if form == "jsonl":
        return "".join(f"{ROWS[at]}\n" for at in stay)
    if form == "json":
        return "[\n" + ",\n".join(ROWS[at] for at in stay) + "\n]\n"
    if form == "csv":
        return "question,answer\r\n" + "".join(TABLE[at] for at in stay)
    if form == "pgn":
        return "".join(GAMES[at] for at in stay)
    mark, end = ("\ufeff", "\r") if form == "mac.txt" else ("", "\n")
    return mark + "".join(f"text {at}{end}" for at in stay)


CASES = [("txt", ""), ("mac.txt", ""), *product(("jsonl", "json", "csv", "pgn"), PACKS)]


@pytest.mark.parametrize(("form", "packing"), CASES)
def test_the_rest_of_a_text_keeps_its_bytes(tmp_path: Path, form: str, packing: str) -> None:
    how = forgets("chess" if form == "pgn" else "chat")
    path = tmp_path / f"a.{form}{packing}"
    for count in (1, 2, 4):
        for gone in combinations(range(5), count):
            path.write_bytes(PACKS[packing](joined(form, [*range(5)]).encode()))
            less = erase(path, {at + 1 for at in gone}, CORPUS, how)
            stay = [at for at in range(5) if at not in gone]
            expected = joined(form, stay).encode()
            held = UNPACKS[packing](path.read_bytes())
            if form == "json":
                assert json.loads(held) == json.loads(expected)
            else:
                assert held == expected
            assert packing or less > 0
            assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_array_keeps_all_but_the_member_and_parquet_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for gone, left in (
        ({1}, '[ "b" ,"c" ]'),
        ({2}, '[ {"é": 1} ,"c" ]'),
        ({1, 3}, '[ "b" ]'),
        ({2, 3}, '[ {"é": 1} ]'),
    ):
        path.write_text('[ {"é": 1}, "b" ,"c" ]')
        erase(path, gone, CORPUS, forgets("chat"))
        assert path.read_text() == left
    with pytest.raises(BadInput, match="no row would be left"):
        erase(path, {1}, CORPUS, forgets("chat"))
    path, rows = tmp_path / "a.parquet", [json.loads(each) | {"list": [1.5, None]} for each in ROWS]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"mine": "yes"})
    for gone in ({1}, {2, 3}, {5, 1}):
        pq.write_table(table, path, row_group_size=2, compression="zstd")
        schema = pq.read_schema(path)
        erase(path, gone, CORPUS, forgets("synth"))
        found = pq.read_table(path)
        assert found.to_pylist() == [row for at, row in enumerate(rows, 1) if at not in gone]
        assert found.schema.equals(schema, check_metadata=True)
        assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    ("column", "packing"),
    [
        (pa.array([1.0, float("nan"), float("nan")]), "zstd"),
        (pa.array(["a", "b", "c"]), "none"),
        (pa.array(["a" * 20, "b", "c"], pa.string_view()), "snappy"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "gzip"),
    ],
)
def test_parquet_of_other_writers_is_written_again(tmp_path: Path, column, packing) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": column}), path, compression=packing)
    erase(path, {2}, CORPUS, forgets("synth"))
    found = pq.read_table(path)["a"]
    assert (repr(found.to_pylist()), found.type) == (repr(column.to_pylist()[::2]), column.type)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_brackets_of_comments_marks_and_games_without_moves_part_no_game(tmp_path: Path) -> None:
    path, how = tmp_path / "2024-02.pgn", forgets("chess")
    games = [
        '\ufeff[Event "0"]\n[Site "s0"]\n\n1. e4 {\n[%clk 0:01]\n} *\n\n',
        '[Event "1"]\n[Site "s1"]\n\n',
        '[Event "2"]\n[Site "s2"]\n\n1. d4 *\n\n',
    ]
    for gone in range(3):
        path.write_text("".join(games))
        assert [each.name for each in how.units(tmp_path, path)] == ["s0", "s1", "s2"]
        erase(path, {gone + 1}, CORPUS, how)
        assert path.read_text() == "".join(each for at, each in enumerate(games) if at != gone)


def test_a_list_of_sums_gets_the_new_one_and_a_link_stays(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(joined("jsonl", [0, 1]))
    other.symlink_to(path)
    (tmp_path / SUMS).write_bytes(written_sums({"a.jsonl": sha256_file(path), "c": "0" * 64}))
    with pytest.raises(GristmillError, match=r"b.jsonl: is a link"):
        erase(other, {1}, CORPUS, forgets("chat"))
    erase(path, {1}, CORPUS, forgets("chat"))
    list_again(path)
    assert listed_sums(tmp_path / SUMS, tmp_path) == {"a.jsonl": sha256_file(path), "c": "0" * 64}


def test_what_changes_another_row_replaces_nothing(tmp_path, monkeypatch) -> None:
    path, made = tmp_path / "a.jsonl", module._without
    path.write_text(before := joined("jsonl", [0, 1, 2]))
    calls = iter((True, False))
    monkeypatch.setattr(
        module, "_without", lambda texts, cuts: made(texts, cuts if next(calls) else [])
    )
    with pytest.raises(GristmillError, match="erasing changed other rows"):
        erase(path, {2}, CORPUS, forgets("chat"))
    assert path.read_text() == before
