"""Footers of Parquet files are read together, and one that is broken spoils no other."""

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.look import footers, reading
from gristmill.look.footers import Footer, footer_of, footers_of
from gristmill.look.reading import listed, read_rows
from gristmill.untrusted.files import REFUSE_LINKS

pa = pytest.importorskip("pyarrow")


def write(folder: Path, *names: str, rows: int = 3) -> list[Path]:
    import pyarrow.parquet as pq

    for name in names:
        table = pa.table({"q": [f"{name} {n}?" for n in range(rows)], "image": [b"\xff"] * rows})
        pq.write_table(table, folder / name)
    return [folder / name for name in names]


def test_footers_of_good_files_come_from_one_child_and_broken_ones_have_none(tmp_path, monkeypatch):
    one, two = write(tmp_path, "a.parquet", "b.parquet")
    cut, text = tmp_path / "c.parquet", tmp_path / "d.parquet"
    cut.write_bytes(one.read_bytes()[:-9])
    text.write_text("question,answer\n")
    calls = []
    run = footers.child.run
    monkeypatch.setattr(footers.child, "run", lambda *a, **k: calls.append(1) or run(*a, **k))
    found = footers_of([one, cut, text, two, tmp_path / "gone.parquet"], REFUSE_LINKS)
    assert found == dict.fromkeys((one, two), Footer(["q", "image"], ["image"], 3))
    assert len(calls) == 1
    for path, rule in ((cut, "is not a readable Parquet file"), (text, "is no Parquet file")):
        with pytest.raises(BadInput, match=rule):
            footer_of(path, REFUSE_LINKS)
    assert footers_of([], REFUSE_LINKS) == {}


def test_rows_are_read_of_a_few_large_files_with_the_same_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(reading, "_MOST_ALIKE", 2)
    write(tmp_path, *(f"train-{n}.parquet" for n in range(4)))
    found = listed(tmp_path, REFUSE_LINKS)
    read_rows(found, REFUSE_LINKS)
    assert [(file.rows, file.is_exact, len(file.sample)) for file in found.files] == [
        *[(3, True, 3)] * 2,
        *[(3, True, 0)] * 2,
    ]
    assert not any(file.is_broken for file in found.files)
