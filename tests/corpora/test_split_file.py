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


def test_a_part_that_is_missing_or_cut_is_named(tmp_path):
    rows = [b"%d\n" % number for number in range(10, 40)]
    assert len(written(tmp_path, rows, 30)) == 3
    path = tmp_path / "own/train.jsonl"
    first, second, third = files(path)
    with pytest.raises(UnsupportedOperation):
        opened(path).write(b"")
    with opened(path) as file:
        file.seek(35)
        second.write_bytes(b"4\n")
        with pytest.raises(BadInput, match=r"00001\.jsonl: became shorter while it was read"):
            file.read()
    second.unlink()
    with pytest.raises(BadInput, match=r"00001\.jsonl: is missing, and later parts are there"):
        opened(path)
    third.unlink()
    assert files(path) == [first] and is_there(path)
    first.unlink()
    assert files(path) == [path] and not is_there(path)


def recorded(path: Path, *names: str) -> None:
    """Write a record beside the folder of a split, which lists other files, too."""
    outputs = [{"path": f"own/{name}"} for name in ("other.jsonl", "train/x.jsonl", *names)]
    record = path.parents[1] / "provenance/own__train.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps({"outputs": outputs}))


@pytest.mark.parametrize("gone", ["00000", "00001", "00002"])
def test_a_part_that_the_record_lists_must_be_there(tmp_path, gone, monkeypatch):
    written(tmp_path, [b"%d\n" % number for number in range(10, 40)], 30)
    path = tmp_path / "own/train.jsonl"
    parts = files(path)
    recorded(path, *(f"train/{each.name}" for each in reversed(parts)))
    assert files(path) == parts
    (path.with_suffix("") / "00003.jsonl").write_text("of nobody\n")
    assert files(path) == parts
    (path.with_suffix("") / f"{gone}.jsonl").unlink()
    monkeypatch.chdir(path.parent)
    for each in (path, Path("train.jsonl")):
        for read in (files, size, opened, lambda of: list(lines(of))):
            with pytest.raises(BadInput, match=rf"{gone}\.jsonl: is missing, and the record"):
                read(each)
        assert is_there(each)
    for each in path.with_suffix("").iterdir():
        each.unlink()
    with pytest.raises(BadInput, match=r"00000\.jsonl: is missing"):
        files(path)
    path.write_text("as one\n")
    with pytest.raises(BadInput, match=r"00000\.jsonl: is missing"):
        files(path)
    recorded(path, "train.jsonl")
    assert files(path) == [path]
    path.unlink()
    assert files(path) == [path] and not is_there(path)
    (path.with_suffix("") / "00000.jsonl").write_text("of nobody\n")
    with pytest.raises(BadInput, match=r"own/train\.jsonl: is missing"):
        files(path)


@pytest.mark.parametrize("record", ["", "{", "[]", '{"outputs": [1]}', '{"outputs": [{}]}'])
def test_a_record_that_lists_nothing_counts_as_none(tmp_path, record):
    written(tmp_path, [b"a\n", b"b\n"], 1)
    path = tmp_path / "own/train.jsonl"
    first, second = files(path)
    recorded(path)
    (tmp_path / "provenance/own__train.json").write_text(record)
    second.unlink()
    assert files(path) == [first]


@pytest.mark.parametrize("listed", [(), ("train.jsonl",), ("train/00000.jsonl",)])
def test_one_file_beside_parts_is_refused_with_the_cure(tmp_path, listed):
    path = tmp_path / "own/train.jsonl"
    (path.with_suffix("")).mkdir(parents=True)
    (path.with_suffix("") / "00000.jsonl").write_text("new\n")
    path.write_text("old\n")
    if listed:
        recorded(path, *listed)
    for read in (files, size, opened):
        with pytest.raises(BadInput, match=r"own/train\.jsonl: .*parts in train/: remove what"):
            read(path)
    assert is_there(path)
    path.unlink()
    if listed != ("train.jsonl",):
        assert size(path) == 4


def test_the_hash_of_one_part_is_its_own():
    assert sha256_of_parts(["a"]) == "a" != sha256_of_parts(["a", "b"])
