"""Tombstones of a drop: what is refused, by line, and what their file keeps."""

import json
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.forgotten import Forgotten, Tombstone, add, hasher, key_of, read
from gristmill.inbox.marks import FORGOTTEN

GSM8K = CORPORA["gsm8k"]
HASH = "0123abcd-" + "0" * 32
GOOD = {
    **{"file": "train.jsonl", "row": 3, "split": "train", "number": 2},
    **{"hash": HASH, "reason": "asked", "date": "2026-11-29"},
}


def put(drop: Path, *lines: object) -> Path:
    drop.mkdir(exist_ok=True)
    text = "".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in lines)
    (drop / FORGOTTEN).write_text(text)
    return drop


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{", "is not JSON"),
        ([1], "must be an object with the fields file, row, split, number, hash, reason, date"),
        ({**GOOD, "more": 1}, "must be an object with the fields"),
        ({**GOOD, "file": ""}, 'file is "", must be a path in the drop'),
        ({**GOOD, "row": 0}, "row is 0, must be the number of a row, from 1"),
        ({**GOOD, "row": True}, "row is true, must be"),
        ({**GOOD, "split": "dev"}, 'split is "dev", must be one of train, test'),
        ({**GOOD, "split": ["train"]}, 'split is ["train"], must be the name of a split'),
        ({**GOOD, "number": -1}, "number is -1, must be a number from 0, or null"),
        ({**GOOD, "number": 2.0}, "number is 2.0, must be"),
        ({**GOOD, "hash": "12"}, 'hash is "12", must be 8 and 32 hexadecimal digits'),
        ({**GOOD, "reason": None}, "reason is None, must be a text"),
        ({**GOOD, "date": "today"}, 'date is "today", must be a day as 2026-11-30'),
        ({**GOOD, "number": None, "hash": None}, "has neither number nor hash"),
        ({**GOOD, "row": 9}, "number 2 of train is that of line 1, too"),
    ],
)
def test_a_line_that_is_no_tombstone_is_refused_with_its_rule(line, rule, tmp_path):
    drop = put(tmp_path / "gsm8k", GOOD, line)
    with pytest.raises(BadInput) as raised:
        read(drop, GSM8K.splits)
    assert str(raised.value).startswith(f"{drop / FORGOTTEN}:2: {rule}")
    assert str(raised.value).endswith(": correct the line, or take it out")


def test_tombstones_are_added_once_and_a_root_has_one_key(tmp_path):
    assert read(tmp_path, GSM8K.splits) == []
    first, none = Tombstone(**GOOD), Tombstone(**{**GOOD, "number": None})
    other = Tombstone(**{**GOOD, "split": "test", "number": 7})
    assert add(tmp_path, [other, none, first], GSM8K.splits) == 3
    assert add(tmp_path, [first, Tombstone(**{**GOOD, "number": 0})], GSM8K.splits) == 1
    found = read(tmp_path, GSM8K.splits)
    assert [(each.split, each.number, each.line) for each in found] == [
        *(("train", 0, 1), ("train", 2, 2), ("train", None, 3), ("test", 7, 4))
    ]
    assert [path.name for path in tmp_path.iterdir()] == [FORGOTTEN]
    assert read(put(tmp_path, GOOD, "\n"), GSM8K.splits) == [Tombstone(**GOOD, line=1)]
    assert key_of(tmp_path) == b""
    key, path = key_of(tmp_path, makes=True), tmp_path / ".gristmill/key"
    assert (len(key), path.stat().st_mode & 0o777) == (32, 0o600)
    assert key_of(tmp_path) == key_of(tmp_path, makes=True) == key
    assert [each.name for each in path.parent.iterdir()] == ["key"]
    path.write_bytes(b"")  # as a maker leaves it that is killed
    assert key_of(tmp_path) == b"" and len(key_of(tmp_path, makes=True)) == 32
    path.write_bytes(b"short")
    with pytest.raises(BadInput, match="has 5 bytes, a key has 32: bring the key back"):
        key_of(tmp_path)


def test_a_hash_is_of_the_key_and_of_the_columns_that_are_read():
    of, row = hasher(b"1" * 32, GSM8K), {"question": "q", "answer": "a"}
    assert of({"answer": "a", "question": "q", "more": 1, "cot": None}) == of(row)
    assert of({**row, "answer": "b"}) != of(row) != of({})
    other = hasher(b"2" * 32, GSM8K)(row), hasher(b"1" * 32, CORPORA["wiqa"])(row)
    assert not {each[:8] for each in other} & {of(row)[:8]}


def test_a_tombstone_is_refused_that_the_rows_prove_wrong(tmp_path):
    of = hasher(b"1" * 32, GSM8K)
    rows = [{"question": str(number)} for number in range(6)]

    def met(*stones: tuple[int, int], taken: list[dict[str, str]]) -> list[int]:
        """The rows that are left of those that are taken. stones: row, and whose row's hash."""
        made = [
            Tombstone("train.jsonl", row, "train", row - 1, of(rows[own - 1]), "", "", line)
            for line, (row, own) in enumerate(stones, 1)
        ]
        forgotten = Forgotten(tmp_path, made, b"1" * 32, GSM8K)
        left = [n for n, row in enumerate(taken, 1) if not forgotten.takes("train.jsonl", n, row)]
        forgotten.check(len(left))
        return left

    wrong = hasher(b"1" * 32, GSM8K)({"question": "none"})
    assert wrong[:8] == of(rows[0])[:8]
    assert met((2, 2), (5, 5), taken=rows) == [1, 3, 4, 6]
    assert met((2, 2), (5, 5), taken=[rows[0], *rows[2:4], rows[5]]) == [1, 2, 3, 4]
    assert met((2, 2), (5, 5), taken=[rows[0], *rows[2:]]) == [1, 2, 3, 5]
    assert met((2, 2), (5, 5), taken=rows[::-1]) == [1, 3, 4, 6]
    rows.append({"question": "none"})
    with pytest.raises(BadInput, match=r":1: no row has its hash: train.jsonl:2 has another one"):
        met((2, 7), (5, 5), taken=rows[:6])
    with pytest.raises(BadInput, match=r":1: number 4 of train is out of range: 1 records and 1"):
        met((5, 5), taken=rows[:1])
