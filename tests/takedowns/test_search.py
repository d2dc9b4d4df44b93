"""The search finds a text wherever a file may hold it, and nothing else."""

import gzip
import html
import json
import random
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill import markdown
from gristmill.takedowns import search as module
from gristmill.takedowns.search import Patterns, Search, normalised

TEXT = 'Ada said: "naïve\nquestions & <answers> of 1/2 kinds."'


def write(path: Path, form: str) -> None:
    """Write the text into a file in one of many ways."""
    around = f"before {TEXT} after"
    if form == "db":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE a (b TEXT)")
            database.execute("INSERT INTO a VALUES (?)", ("x" * 4000 + around * 3,))
            database.commit()
    elif form == "parquet":
        pq.write_table(pa.table({"a": [["x", around]]}), path, compression="zstd")
    elif form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("inner", around)
    else:
        text = {
            "json": json.dumps(around),
            "wide": json.dumps(around, ensure_ascii=False),
            "csv": '"' + around.replace('"', '""') + '"',
            "html": html.escape(around),
            "twice": json.dumps({"arguments": json.dumps({"a": around})}),
            "capitals": json.dumps(around).replace("00ef", "00EF"),
            "slash": json.dumps(around).replace("/", "\\/"),
        }.get(form, around)
        path.write_bytes(gzip.compress(text.encode()) if form == "gz" else text.encode())


@pytest.mark.parametrize(
    "form",
    [
        "txt",
        "json",
        "wide",
        "csv",
        "html",
        "gz",
        "db",
        "parquet",
        "zip",
        "twice",
        "capitals",
        "slash",
    ],
)
def test_a_text_is_found_in_the_bytes_of_a_file(tmp_path: Path, form: str, monkeypatch) -> None:
    path = tmp_path / ".gristmill/history" / f"a.{form.upper()}"
    path.parent.mkdir(parents=True)
    write(path, form)
    other = Search([TEXT + " No."])
    found = Search(["other text", TEXT]).everywhere(tmp_path, ())
    assert {(each.path, each.text) for each in found} == {(path, 1)}
    assert [*other.everywhere(tmp_path, ())] == []
    assert [*Search([TEXT]).everywhere(tmp_path, {path.parent})] == []
    monkeypatch.setattr(module, "_BATCH", 16)
    assert Search([TEXT]).raw.stream([bytes([each]) for each in path.read_bytes()]) == (
        set() if form in ("gz", "zip") else {0}
    )


def test_what_cannot_be_searched_is_said_and_links_are_followed(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT.encode() * 9)
    (tmp_path / "root").mkdir()
    for name, octets in {
        "cut.gz": packed[:-9],
        "none.gz": TEXT.encode(),
        "bad.zip": b"PK\3\4" + TEXT.encode(),
        "bad.parquet": b"PAR1",
        "bad.db": b"SQLite format 3\0",
    }.items():
        (tmp_path / "root" / name).write_bytes(octets)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text(TEXT)
    (other / "back").symlink_to(tmp_path)
    for name in ("linked", "again"):
        (tmp_path / "root" / name).symlink_to(other)
    look = Search([TEXT])
    found = {each.path.name for each in look.everywhere(tmp_path / "root", ())}
    assert found == {"none.gz", "bad.zip", "a.txt"}
    assert {each.name for each in look.unread} == {"cut.gz", "bad.zip", "bad.parquet", "bad.db"}
    assert len([*module.files_below(tmp_path / "root", ())]) == 6
    Search(["\ufdfa\ufdfa"])  # few bytes, which are many once they are normalised


def test_patterns_are_found_wherever_they_stand_without_case_width_and_spacing() -> None:
    draw = random.Random(4)
    octets = bytes(draw.choices(b"ab", k=3000))
    named = {octets[at : at + size]: at for at in range(0, 2900, 97) for size in (8, 9, 23, 64)}
    found = sorted({(begin, octets[begin:end]) for begin, end, _ in Patterns(named).find(octets)})
    assert found == sorted(
        {(at, one) for one in named for at in range(3000) if octets.startswith(one, at)}
    )
    assert [*Patterns(named).find(b"short")] == [*Patterns({}).find(octets)] == []
    with pytest.raises(ValueError, match="7 bytes"):
        Patterns({b"1234567": 0})
    look = Search(["Some text of Ｍine.", "of mine. And more"])
    values = ["some  TEXT of\nmine.", "x some text of mine. and more!", "awesome text of mine."]
    assert look.values(values) == {(0, 0), (1, 0), (1, 1)}
    assert Search(["half \ud800 a pair"]).values(["Half \ud800  a pair"]) == {(0, 0)}
    assert normalised("Ａ\u00a0 b") == "a b"


@pytest.mark.parametrize(
    ("shown", "is_seen"),
    [
        ("Step 1: Natalia sold 48/2 = <<48", True),
        ("Step 1: Weng earns", False),
        ("user: Natalia·sold·48", True),
    ],
)
def test_the_begin_of_a_text_is_seen_in_a_picture(shown: str, is_seen: bool) -> None:
    look = Search(["Natalia sold 48/2 = <<48/2=24>>24 clips & more"])
    svg = f"<svg><text>{html.escape(shown)}…</text></svg>"
    event = json.dumps({"picture": [markdown.image("steps", svg)]})
    assert look.pictured(event) == is_seen
