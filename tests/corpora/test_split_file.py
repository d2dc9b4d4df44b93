"""A split in parts reads as the one file that it would be."""

import json
import random
from io import BytesIO, UnsupportedOperation
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.corpora.split_file import (
    SplitWriter,
    files,
    is_there,
    lines,
    located,
    opened,
    sha256_of_parts,
    size,
)
from gristmill.hashing import sha256_file

_LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"") + b"\n"))


def written(folder: Path, pieces: list[bytes], part_bytes: int | None) -> list[bytes]:
    path = folder / "own/train.jsonl"
    path.parent.mkdir()
    with SplitWriter(path, part_bytes) as file:
        for piece in pieces:
            file.write(piece)
    found = files(path)
    whole = b"".join(pieces)
    notes = file.notes("own/train.jsonl", whole.count(b"\n"))
    assert [*notes] == [each.relative_to(folder).as_posix() for each in found]
    assert [each.sha256 for each in notes.values()] == [*map(sha256_file, found)]
    assert [each.bytes for each in notes.values()] == [each.stat().st_size for each in found]
    assert [each.rows for each in notes.values()] == [
        each.read_bytes().count(b"\n") for each in found
    ]
    assert sorted(path.parent.rglob("*.jsonl")) == found
    return [each.read_bytes() for each in found]


@given(_LINES, st.none() | st.integers(1, 90), st.integers(0, 1 << 30))
def test_parts_end_by_their_lines_alone_and_are_the_file_end_to_end(rows, part_bytes, seed):
    whole, dice = b"".join(rows), random.Random(seed)
    cuts = sorted(dice.randint(0, len(whole)) for _ in range(9))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        parts = written(Path(one), pieces, part_bytes)
        assert parts == written(Path(other), rows, part_bytes)
    assert b"".join(parts) == whole
    least = part_bytes or len(whole) + 1
    assert all(len(part) >= least for part in parts[:-1])
    assert all(len(part[: part.rfind(b"\n", 0, -1) + 1]) < least for part in parts)


@given(_LINES, st.integers(1, 90), st.integers(0, 1 << 30))
def test_parts_read_as_one_file_at_any_place(rows, part_bytes, seed):
    whole, dice = BytesIO(b"".join(rows)), random.Random(seed)
    with TemporaryDirectory() as folder:
        written(Path(folder), rows, part_bytes)
        path = Path(folder) / "own/train.jsonl"
        assert size(path) == len(whole.getvalue())
        assert [line for _, _, line in lines(path)] == rows
        for number, (file, row, line) in enumerate(lines(path), 1):
            assert file.read_bytes().splitlines(keepends=True)[row - 1] == line or b"\r" in line
            assert located(path, number) == (file, row)
        with opened(path) as file:
            for _ in range(20):
                to = (dice.randint(0, size(path)), 0), (0, 2), (0, 1)
                assert file.seek(*(at := dice.choice(to))) == whole.seek(*at)
                count = dice.randint(0, 200)
                assert file.read(count) == whole.read(count)
                assert file.readline() == whole.readline()
                assert file.tell() == whole.tell()


def test_a_part_that_becomes_shorter_is_named_and_its_hash_is_its_own(tmp_path):
    rows = [b"%d\n" % number for number in range(10, 40)]
    assert len(written(tmp_path, rows, 30)) == 3
    path = tmp_path / "own/train.jsonl"
    second = files(path)[1]
    with pytest.raises(UnsupportedOperation):
        opened(path).write(b"")
    with opened(path) as file:
        file.seek(35)
        second.write_bytes(b"4\n")
        with pytest.raises(BadInput, match=r"00001\.jsonl: became shorter while it was read"):
            file.read()
    assert sha256_of_parts(["a"]) == "a" != sha256_of_parts(["a", "b"])


GONE = r"\.jsonl: is missing, and "
BOTH = r"train\.jsonl: is there, and so are parts in train/: remove"
GAPS = {"12": 0, "02": 1, "01": 2, "": 0, "w": 0}
RECORDED = f"{GONE}the record of the split lists it: build"


@pytest.mark.parametrize(
    ("there", "listed", "said"),
    [
        ("", "", "w"),
        ("01", "", "01"),
        ("02", "", f"00001{GONE}later parts are there: build"),
        ("0123", "210", "012"),  # of the last one the record knows nothing
        *((there, "012", f"0000{gone}{RECORDED}") for there, gone in GAPS.items()),
        ("0", "w", f"own/train{RECORDED}"),
        ("", "w", "w"),
        ("w", "w", "w"),
        *(("w0", listed, BOTH) for listed in ("", "w", "0")),
    ],
)
def test_the_files_of_a_split_are_those_of_its_record(tmp_path, monkeypatch, there, listed, said):
    path = tmp_path / "own/train.jsonl"
    named = {"w": path, **{str(n): path.with_suffix("") / f"0000{n}.jsonl" for n in range(4)}}
    path.with_suffix("").mkdir(parents=True)
    for each in there:
        named[each].write_text("row\n")
    record = tmp_path / "provenance/own__train.json"
    record.parent.mkdir()
    lists = [*(named[each] for each in listed), tmp_path / "own/other.jsonl", record]
    outputs = [{"path": each.relative_to(tmp_path).as_posix()} for each in lists]
    record.write_text(json.dumps({"outputs": outputs}))
    monkeypatch.chdir(path.parent)
    assert is_there(path) == bool(there)
    if said.isalnum():
        assert files(path) == [named[each] for each in said]
        return
    for read in (files, size, opened, lambda of: list(lines(of))):
        with pytest.raises(BadInput, match=said):
            read(path)
        with pytest.raises(BadInput, match=said.removeprefix("own/")):
            read(Path("train.jsonl"))
    for damaged in ("", "{", "[]", '{"outputs": [1]}', '{"outputs": [{}]}'):
        record.write_text(damaged)
        if there == "01":
            assert files(path) == [named["0"], named["1"]]
