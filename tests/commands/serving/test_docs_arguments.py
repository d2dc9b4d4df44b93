"""Docstrings as the site's API pages read them."""

from __future__ import annotations

from pathlib import Path

import griffe
import pytest

from commands.serving.docs_arguments import Arguments, with_headings

SOURCE = '''
"""A module."""
from typing import Annotated, ClassVar
from dataclasses import dataclass


def read(folder: str, first: int, last: int = 9) -> None:
    """Read a folder.

    folder: of the artifact,
        with its record.
    first, last: rows.

    note: this is text.
    """


@dataclass(frozen=True)
class Config:
    """What is read.

    rows: how many.
    """

    VERSION: ClassVar = "1"
    rows: Annotated[int, "at least 1"] = 3
'''


@pytest.fixture
def module(tmp_path: Path) -> griffe.Module:
    (tmp_path / "read.py").write_text(SOURCE)
    loaded = griffe.load(
        "read",
        search_paths=[tmp_path],
        extensions=griffe.load_extensions(Arguments),
        docstring_parser="google",
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


def sections(named: griffe.Object) -> list[tuple[str, object]]:
    assert named.docstring is not None
    return [
        (
            part.kind.value,
            part.value
            if part.kind.value == "text"
            else [(each.name, each.description) for each in part.value],
        )
        for part in named.docstring.parsed
    ]


def test_each_argument_of_a_function_has_its_line(module: griffe.Module) -> None:
    assert sections(module["read"]) == [
        ("text", "Read a folder."),
        (
            "parameters",
            [
                ("folder", "of the artifact,\nwith its record."),
                ("first", "rows."),
                ("last", "rows."),
            ],
        ),
        ("text", "note: this is text."),
    ]


def test_fields_of_a_dataclass_are_its_arguments(module: griffe.Module) -> None:
    assert sections(module["Config"])[1] == ("parameters", [("rows", "how many.")])


def test_the_signature_of_a_config_has_types_without_rules_and_no_constants(
    module: griffe.Module,
) -> None:
    shown = [(each.name, str(each.annotation)) for each in module["Config"].parameters]
    assert shown == [("self", "None"), ("rows", "int")]


def test_indented_code_is_fenced() -> None:
    text = "A.\n\n    for x in y:\n        x()\n\nEnd."
    assert with_headings(text, {}) == "A.\n\n```python\nfor x in y:\n    x()\n```\n\nEnd."
