"""The .jsonl files of a pack: written bytes, reading line by line, bad lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.jsonl import iter_lines, read_lines, write_lines


def test_lines_are_compact_utf_8_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [{"a": [1, 2.5, None], "ü": "é\n"}, {}]
    write_lines(path, lines)
    assert path.read_bytes() == '{"a":[1,2.5,null],"ü":"é\\n"}\n{}\n'.encode()
    assert read_lines(path) == lines
    assert list(iter_lines(path)) == [(1, lines[0]), (2, lines[1])]
    with pytest.raises(FileExistsError):
        write_lines(path, [])


def test_lines_before_a_bad_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\r\n{"a":2}\n{"a":')
    lines = iter_lines(path)
    assert [next(lines), next(lines)] == [(1, {"a": 1}), (2, {"a": 2})]
    with pytest.raises(BadInput, match=r"x\.jsonl:3: not JSON"):
        next(lines)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"[1]", "not a JSON object"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: bytes, rule: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" + text + b"\n{}\n")
    with pytest.raises(BadInput, match=rule) as caught:
        read_lines(path)
    assert (caught.value.file, caught.value.row) == (str(path), 2)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"x\.jsonl: cannot be read: No such file"):
        read_lines(tmp_path / "x.jsonl")
