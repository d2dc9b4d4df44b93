"""Faults of the base line are found again, asked again, and compared."""

from typing import Any

from tests.planted import base_line
from tests.planted.base_line import ask_again, found_again, keep
from tests.planted.checkout import Verdict

RULE = "def rule(a):\n    return a < 1\n"
KEY = ("gristmill/old.py", "Rules.rule", "return a < 1", "return a <= 1")


class Answers:
    """Answers instead of a copy: what catches the faults of each function."""

    def __init__(self, **by: str) -> None:
        self.by, self.asked = by, list[str]()

    def verdict(self, fault: Any, first: str = "") -> Verdict:
        self.asked.append(first)
        return Verdict(fault, self.by[fault.inside])


def test_a_fault_is_found_where_its_function_went():
    inside = "class Rules:\n" + "".join(f"    {line}\n" for line in RULE.splitlines())
    other = {"gristmill/else.py": RULE.replace("rule", "other")}
    stayed = found_again(KEY, other | {"gristmill/old.py": inside, "gristmill/new.py": RULE})
    assert stayed and stayed.key == KEY
    moved = found_again(KEY, other | {"gristmill/new.py": RULE})
    assert moved and (moved.module, moved.inside) == ("gristmill/new.py", "rule")
    assert moved.text == RULE.replace("<", "<=")
    two = {"gristmill/new.py": RULE, "gristmill/newer.py": RULE}
    assert found_again(KEY, other | two) is None
    assert found_again(KEY, other) is None


def test_faults_are_kept_and_the_share_that_is_caught_must_not_fall(monkeypatch, tmp_path, capsys):
    sources = {"gristmill/one.py": "def f(a):\n    return not a\n\ndef g(a):\n    return not a\n"}
    monkeypatch.setattr(base_line, "product", lambda: {"gristmill/two.py": RULE} | sources)
    file = tmp_path / "kept.json"
    file.write_text('{"seed": 1, "left_out": ["gristmill/t*.py"]}')
    tests: Any = Answers(f="tests/a.py", g="")
    for _ in range(2):  # what is known is not asked again
        keep(file, tests, 50, print)
    assert sorted(tests.asked) == ["", "", "tests/a.py"]

    def asked(**by: str) -> tuple[int, str]:
        tests: Any = Answers(**by)
        end = ask_again(file, tests, print)
        assert sorted(tests.asked) == ["", "tests/a.py"]
        return end, capsys.readouterr().out

    assert asked(f="tests/b.py", g="")[0] == 0
    assert asked(f="", g="tests/c.py")[0] == 0
    end, said = asked(f="no end", g="")
    assert end == 1
    assert "no end (tests/a.py caught it): gristmill/one.py:2 in f" in said
    assert "0 of 2 caught, 1 at the base line; 0 gone" in said
    sources["gristmill/one.py"] = "def g(a):\n    return not a\n"
    assert ask_again(file, tests, print) == 0
    assert "0 of 1 caught, 0 at the base line; 1 gone" in capsys.readouterr().out
