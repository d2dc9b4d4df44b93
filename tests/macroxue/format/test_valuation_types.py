"""valuation_types.json: what is written, and every form that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format.valuation_types import read_valuation_types, write_valuation_types

NAMES = ("search", "tuple11", "tuple10", "line_plan", "")


def test_written_forms(tmp_path: Path) -> None:
    path = tmp_path / "valuation_types.json"
    write_valuation_types(path, NAMES[:3])
    assert path.read_bytes() == b'[\n  "search",\n  "tuple11",\n  "tuple10"\n]\n'
    write_valuation_types(path, NAMES[:3], "object")
    assert path.read_bytes() == b'{\n  "search": 0,\n  "tuple11": 1,\n  "tuple10": 2\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        '["search", "tuple11", "tuple10", "line_plan", ""]',
        '{"tuple10": 2, "search": 0, "": 4, "line_plan": 3, "tuple11": 1}',
        '{"1": "tuple11", "0": "search", "2": "tuple10", "4": "", "3": "line_plan"}',
    ],
)
def test_every_form_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    assert read_valuation_types(path) == NAMES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '["a", "a"]',
        '["a", 1]',
        '{"a": 0, "b": 2}',
        '{"a": 0, "b": 0}',
        '{"a": 0, "a": 1}',
        '{"a": true, "b": 0}',
        '{"0": "a", "00": "b"}',
        '{"0": "a", "2": "b"}',
        '{"0000000000": "a"}',
        '{"0": "a", "1": 1}',
        "[" + ",".join(f'"{i}"' for i in range(256)) + "]",
    ],
)
def test_broken_enums_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"valuation_types\.json"):
        read_valuation_types(path)
    with pytest.raises(BadInput, match="no such file"):
        read_valuation_types(tmp_path / "absent.json")
