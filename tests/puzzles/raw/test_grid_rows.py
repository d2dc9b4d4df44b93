"""Rows of grids: what a row is, which files are read, and what is refused with its line."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.domains.grid import Symbols
from gristmill.puzzles.raw.grid_rows import GridRow, grid_files, read_grids
from tests.puzzles import grids

NUMBERS = Symbols.of(None, 4, None)
LETTERS = Symbols.of(".#SG", None, None)


def read(path: Path, value: Any, symbols: Symbols = NUMBERS) -> list[GridRow]:
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text + "\n")
    return list(read_grids(path, symbols))


def test_cells_become_tokens_behind_padding_which_is_cut_off_and_a_null_key_is_none(tmp_path):
    value = {"input": [[0, 3], [1, 2]], "output": [[2]], "group": 7, "puzzle": "p", "set": "easy"}
    (row,) = read(tmp_path / "a.jsonl", value)
    assert (row.line, row.group, row.puzzle, row.set_name) == (1, "7", "p", "easy")
    assert row.input.tolist() == [[1, 4], [2, 3]] and row.output.tolist() == [[3]]
    for grid in ([".#", "GS"], [[".", "#"], ["G", "S"]]):
        (row,) = read(tmp_path / "a.jsonl", {"input": grid, "output": ["."]}, LETTERS)
        assert row.input.tolist() == [[1, 2], [4, 3]]
    assert (row.group, row.puzzle, row.set_name) == ("", "", "all")
    symbols = Symbols.of(None, 4, "1")
    assert symbols.token_of == {1: 0, 0: 1, 2: 2, 3: 3} and len(symbols.texts) == 4
    value = {"input": [[1, 0, 1], [2, 1, 1], [1, 1, 1]], "output": [[3]]}
    (row,) = read(tmp_path / "a.jsonl", value, symbols)
    assert row.input.tolist() == [[0, 1], [2, 0]]
    with pytest.raises(BadInput, match=r"a\.jsonl:1: output: every cell is padding"):
        read(tmp_path / "a.jsonl", {**value, "output": [[1, 1]]}, symbols)
    (row,) = read(
        tmp_path / "a.jsonl", json.dumps({**ROW, "group": None, "puzzle": None, "set": None})
    )
    assert (row.group, row.puzzle, row.set_name) == ("", "", "all")


def test_blank_lines_are_passed_over_and_a_file_without_a_row_is_refused(tmp_path):
    line = json.dumps({"input": [[0]], "output": [[1]]})
    octets = b"\xef\xbb\xbf" + f"{line}\n\n{line}".encode()
    (tmp_path / "a.jsonl").write_bytes(octets)
    digest = hashlib.sha256()
    rows = list(read_grids(tmp_path / "a.jsonl", NUMBERS, see=digest.update))
    assert [row.line for row in rows] == [1, 3]
    assert digest.digest() == hashlib.sha256(octets).digest()
    with pytest.raises(BadInput, match="holds no row"):
        read(tmp_path / "a.jsonl", "\n")


ROW = {"input": [[0]], "output": [[1]]}


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("[1", "not JSON"),
        ("{}\r{}\r{}", "line ends of one carriage return (CR)"),
        ("[]", "must be an object with input and output"),
        ({"input": [[0]]}, "must be an object with input and output"),
        ({**ROW, "label": 1}, "has the key 'label': a row has input, output, group, puzzle, set"),
        ({**ROW, "input": []}, "input: a grid is a list of 1 to 512 rows"),
        ({**ROW, "input": "ab"}, "input: a grid is a list"),
        ({**ROW, "input": [[0]] * 513}, "input: a grid is a list of 1 to 512 rows"),
        ({**ROW, "output": [[0], []]}, "output, row 1: a row is a text or a list of 1 to 512"),
        ({**ROW, "output": [[0] * 513]}, "output, row 0: a row is a text or a list of 1 to 512"),
        ({**ROW, "output": [[0], [0, 1]]}, "output, row 1: has 2 cells, row 0 has 1"),
        ({**ROW, "input": [[5, 1]]}, "the cell 5 is not in the alphabet: write values = 6 or mo"),
        ({**ROW, "input": [[True]]}, "the cell True is not in the alphabet: cells are numbers"),
        ({**ROW, "input": [[1.0]]}, "the cell 1.0 is not in the alphabet"),
        ({**ROW, "input": [[None]]}, "the cell None is not in the alphabet"),
        ({**ROW, "input": [[[1]]]}, "the cell [1] is not in the alphabet"),
        ({**ROW, "input": ["ab"]}, "the cell 'a' is not in the alphabet: write alphabet = \"ab\""),
        ({**ROW, "input": ['"🟥']}, 'write alphabet = "\\"🟥" or more'),
        ({**ROW, "group": 1.5}, "group 1.5 is no number and no text of 1 to 100 letters"),
        ({**ROW, "puzzle": ""}, "puzzle '' is no number and no text"),
        ({**ROW, "puzzle": "a\nb"}, "puzzle 'a\\nb' is no number and no text"),
        ({**ROW, "puzzle": "<blank>"}, "begins with '<', as the blank identifier"),
        ({**ROW, "set": "a/b"}, "set 'a/b' cannot be a part of file names"),
        ("[" * 9 + "]" * 9, "nested deeper than 4 levels"),
    ],
)
def test_a_row_that_is_none_is_refused_with_its_line(tmp_path, value, rule):
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(BadInput) as refused:
        read(tmp_path / "a.jsonl", json.dumps(ROW) + "\n" + text)
    assert refused.value.row == 2 and rule in refused.value.rule


def test_the_files_of_both_splits_come_before_all_others(tmp_path):
    for name in ("b.jsonl", "a.JSONL", ".hidden.jsonl", "notes.txt"):
        grids.write(tmp_path / name, [ROW])
    assert [file.path.name for file in grid_files(tmp_path)] == ["a.JSONL", "b.jsonl"]
    grids.write(tmp_path / "Train.jsonl", [ROW])
    with pytest.raises(BadInput, match=r"has Train\.jsonl without its other split"):
        grid_files(tmp_path)
    grids.write(tmp_path / "train.jsonl", [ROW])
    with pytest.raises(BadInput, match=r"has Train\.jsonl without its other split"):
        grid_files(tmp_path)
    (tmp_path / "train.jsonl").unlink()
    grids.write(tmp_path / "test.jsonl", [ROW])
    found = {file.path.name: file.split for file in grid_files(tmp_path)}
    assert found == {"Train.jsonl": "train", "test.jsonl": "test"}


def test_a_source_without_grids_and_a_packed_file_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"holds no grids, which are rows of `\*\.jsonl`"):
        grid_files(tmp_path)
    (tmp_path / "a.jsonl.zst").write_bytes(b"")
    with pytest.raises(BadInput, match="is packed, and packed files are not read"):
        grid_files(tmp_path)
