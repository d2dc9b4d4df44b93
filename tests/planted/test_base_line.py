"""Faults of the base line are found again, asked again, and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.planted import base_line
from tests.planted.base_line import ask_again, found_again, keep
from tests.planted.checkout import Verdict

RULE = "def rule(a):\n    return a < 1\n"
KEY = ("gristmill/old.py", "Rules.rule", "return a < 1", "return a <= 1")


class Answers:
    """Answers instead of a copy: what catches a fault, by the test to ask first."""

    def __init__(self, **by: str) -> None:
        self.by, self.asked = by, list[str]()

    def verdict(self, fault: Any, first: str = "") -> Verdict:
        self.asked.append(first)
        return Verdict(fault, self.by[fault.inside])


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    sources = {"gristmill/one.py": "def f(a):\n    return a < 1\n\ndef g(a):\n    return a > 1\n"}
    monkeypatch.setattr(base_line, "product", lambda: sources)
    return sources


def test_a_fault_is_found_where_its_function_went() -> None:
    inside = "class Rules:\n" + "".join(f"    {line}\n" for line in RULE.splitlines())
    other = {"gristmill/else.py": "def other(a):\n    return a < 1\n"}
    stayed = found_again(KEY, other | {"gristmill/old.py": inside, "gristmill/new.py": RULE})
    assert stayed and stayed.key == KEY
    moved = found_again(KEY, other | {"gristmill/new.py": RULE})
    assert moved and (moved.module, moved.inside) == ("gristmill/new.py", "rule")
    assert moved.text == RULE.replace("<", "<=")
    two = {"gristmill/new.py": RULE, "gristmill/newer.py": RULE}
    assert found_again(KEY, other | two) is None
    assert found_again(KEY, other) is None


def test_what_is_kept_was_caught_twice(code: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_text('{"seed": 1, "left_out": ["gristmill/t*.py"]}')
    code["gristmill/two.py"] = RULE
    tests: Any = Answers(f="tests/test_one.py::test", g="")
    keep(file, tests, 50, print)
    items = json.loads(file.read_text())["faults"]
    assert {(item["module"], item["inside"], item["by"]) for item in items} == {
        ("gristmill/one.py", "f", "tests/test_one.py::test"),
        ("gristmill/one.py", "g", ""),
    }
    assert tests.asked.count("tests/test_one.py::test") == sum(item["by"] != "" for item in items)
    asked = len(tests.asked)
    keep(file, tests, 50, print)
    assert len(tests.asked) == asked, "answers that are there stay"


def test_the_share_that_is_caught_is_that_of_faults_that_have_a_place(
    code: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.json"
    lines = {"f": ("return a < 1", "return a <= 1"), "g": ("return a > 1", "return a >= 1")}
    items = [
        {"module": "gristmill/one.py", "inside": name, "before": before, "after": after, "by": by}
        for (name, (before, after)), by in zip(lines.items(), ("tests/a.py", ""), strict=True)
    ]
    gone = items[0] | {"inside": "gone"}
    file.write_text(json.dumps({"faults": [*items, gone]}))

    def asked(**by: str) -> tuple[int, str]:
        tests: Any = Answers(**by)
        code_of_end = ask_again(file, tests, print)
        assert tests.asked == ["tests/a.py", ""]
        return code_of_end, capsys.readouterr().out

    assert asked(f="tests/b.py", g="")[0] == 0
    end, said = asked(f="no end", g="")
    assert end == 1
    assert "SURVIVED, but tests/a.py caught it: gristmill/one.py:2 in f" in said
    assert "0 of 2 caught, 1 at the base line; 1 gone" in said
    assert asked(f="", g="tests/c.py")[0] == 0
