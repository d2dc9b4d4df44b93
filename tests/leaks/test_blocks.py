"""Texts of JSON lines as arrays, piece by piece, and that they are those of `Part.texts`."""

import json
import random
from itertools import pairwise

import pytest

from gristmill.leaks.blocks import blocks
from gristmill.leaks.texts import Counts, Part, sha256_file

FLAT = [
    b'{"a": "x", "b": null}',
    b' {"a":"\\u00e9 \\ud83d\\ude00 \\n\\"\\\\\\/","b" : "" , "c": -12.50}\t\r',
    '{"ä": "Größe 二", "t": true, "f": false, "n": 0}'.encode(),
    b'{"c": "1", "a": 1e5, "d": 123456789012345678901}',
]
OTHERS = [
    b'{"a": "x", "a": "y"}',
    b'{"a": ["x", "y"], "b": {"c": "z"}}',
    b'{"\\u0061": "x", "a": "y"}',
    b'{"a": "\\ud800"}',
    b'{"a": "\\udc00\\ud800"}',
    b'{"a": "\\x"}',
    b'{"a": "\x01"}',
    b'{"a": "x"',
    b'{"a": "x",}',
    b'{"a" "x"}',
    b'{a: "x"}',
    b'{"a": "\xff"}',
    b'{"a": 01}',
    b'{"a": [1, "b": 2]}',
    b'{"a": 1\n}',
    b'{"a": "\\u007fx"}',
    b'{"a": 1e999}',
    b'{"a": NaN}',
    b"{}",
    b'"a text"',
    b"[1, 2]",
    b"5",
    b"\xff\xfe",  # no mark within a file
    b"",
    b"{",
    b'{"a":',
    b'{"a": "x"} {"a": "y"}',
    json.dumps({f"k{at}": "v" for at in range(70)}).encode(),
]


def _part(path, lines, end=b"\n"):
    path.write_bytes(b"\n".join(lines) + end)
    return Part("", path, path.name, sha256_file(path))


def _texts(part):
    """Row, column and text of all blocks, the counts, and the ends of the blocks."""
    counts, names, found, ends = Counts(), {"": 0}, [], []
    for texts, rows, columns, end in blocks(part, counts, names):
        starts = [0, *texts.ends.tolist()]
        octets = texts.data.tobytes()
        pieces = [octets[a:b].removesuffix(b"\x7f") for a, b in pairwise(starts)]
        named = [list(names)[column] for column in columns.tolist()]
        found += zip(rows.tolist(), named, pieces, strict=True)
        ends.append(end)
    return found, counts, ends


def _by_rows(part):
    counts = Counts()
    found = [(*each[:2], each.text.encode("utf-8", "surrogatepass")) for each in part.texts(counts)]
    return found, counts


@pytest.fixture
def small(monkeypatch):
    """Files of any size have pieces, of a line or two."""
    from gristmill.corpora.raw import rows

    monkeypatch.setattr(rows, "_LEAST_BYTES", 1)
    monkeypatch.setattr(rows, "_PIECE_BYTES", 40)
    monkeypatch.setattr(rows, "_PIECES", 10**9)


@pytest.fixture
def calls(monkeypatch):
    """How often a piece was read row by row."""
    found, read = [], Part.texts

    def texts(self, counts, piece=None):
        found.append(piece)
        return read(self, counts, piece)

    monkeypatch.setattr(Part, "texts", texts)
    return found


@pytest.mark.parametrize("end", [b"\n", b""])
def test_plain_lines_are_read_at_once(tmp_path, small, calls, end):
    part = _part(tmp_path / "a.jsonl", FLAT * 5, end)
    found, counts, ends = _texts(part)
    assert (calls, counts.lines, ends[-1]) == ([], 20, part.file.stat().st_size)
    assert len(ends) > 5
    expected, by_rows = _by_rows(part)
    assert (found, counts.rows, counts.unread) == (expected, by_rows.rows, 0)


@pytest.mark.parametrize("odd", OTHERS, ids=repr)
def test_other_lines_are_read_as_rows_are(tmp_path, small, calls, odd):
    part = _part(tmp_path / "a.jsonl", [*FLAT, odd, *FLAT[::-1], odd, FLAT[0]])
    found, counts, _ = _texts(part)
    assert calls != []
    expected, by_rows = _by_rows(part)
    assert (found, counts.rows, counts.unread) == (expected, by_rows.rows, by_rows.unread)
    assert counts.lines == 11 + 2 * odd.count(b"\n")


def test_damaged_lines_are_read_as_rows_are(tmp_path, small, calls):
    rng, taken = random.Random(3), 0
    for _ in range(400):
        lines = rng.choices(FLAT, k=6)
        at, octets = rng.randint(2, 5), bytearray(rng.choice(FLAT))
        for _ in range(rng.randint(1, 2)):
            octets[rng.randrange(len(octets))] = rng.choice(b'"\\{}:,u0d\xc3\x80\xff e')
        lines[at] = bytes(octets)
        part = _part(tmp_path / "a.jsonl", lines)
        calls.clear()
        found, counts, _ = _texts(part)
        taken += not calls
        expected, by_rows = _by_rows(part)
        assert (found, counts.rows, counts.unread) == (expected, by_rows.rows, by_rows.unread)
    assert 20 < taken < 380
