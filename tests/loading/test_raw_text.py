"""The raw text of a sample, whatever its file is packed with."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.contract import BadInput
from gristmill.loading import raw_text as module
from gristmill.loading.raw_text import raw_text

TEXT = "".join(f"line {number}\n" for number in range(1000)).encode() + b"\xff!"
PACKED = {
    "a.jsonl": TEXT,
    "a.jsonl.gz": gzip.compress(TEXT[:700]) + gzip.compress(TEXT[700:]),
    "a.jsonl.bz2": bz2.compress(TEXT),
    "a.jsonl.XZ": lzma.compress(TEXT),
    "a.jsonl.zst": zstandard.compress(TEXT),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("read", [7, 1 << 20])
def test_bytes_of_a_file_are_those_of_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, read: int
) -> None:
    monkeypatch.setattr(module, "_READ", read)
    (tmp_path / name).write_bytes(PACKED[name])
    for begin, end in ((0, 6), (3, 3), (695, 720), (len(TEXT) - 3, len(TEXT))):
        wanted = TEXT[begin:end].decode("utf-8", "backslashreplace")
        place = f"{begin}-{end} of the unpacked text"
        assert raw_text(tmp_path, {"raw_file": name, "raw_line_bytes": place}) == wanted
    assert raw_text(tmp_path, {"raw_steps": name, "raw_row_bytes_unpacked": "0-4"}) == "line"
    assert raw_text(tmp_path, {"raw_file": name, "raw_bytes": 4, "raw_meta_bytes": "0-4"}) is None


def test_bytes_of_a_member_are_those_of_its_text(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.pgn", b"another")
        archive.writestr("a.pgn", TEXT)
    facts = {"raw_file": "a.zip", "raw_member": "a.pgn", "raw_member_bytes": "7-13"}
    assert raw_text(tmp_path, facts) == TEXT[7:13].decode()


def test_a_row_of_parquet_is_an_object(tmp_path: Path) -> None:
    table = pa.table({"query": [f"é{number}" for number in range(10)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    facts = {"raw_file": "a.parquet", "raw_row": 6, "raw_row_group": 1, "raw_row_in_group": 2}
    assert json.loads(raw_text(tmp_path, facts) or "") == {"query": "é5"}
    assert "é" in (raw_text(tmp_path, facts) or "")


def test_where_no_file_is_named_there_is_no_text(tmp_path: Path) -> None:
    assert raw_text(tmp_path, {"row": 3, "raw_line_bytes": "0-3"}) is None


def test_a_file_that_is_gone_or_changed_since_gives_no_text(tmp_path: Path) -> None:
    facts = {"raw_file": "a.jsonl", "raw_row_bytes": "0-3", "raw_note": "the file is gone"}
    assert raw_text(tmp_path, facts) is None
    (tmp_path / "a.jsonl").write_bytes(TEXT)
    assert raw_text(tmp_path, facts) is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT)[:50])
    with pytest.raises(BadInput, match=r"a\.gz"):
        raw_text(tmp_path, {"raw_file": "a.gz", "raw_row_bytes": "0-9000"})
