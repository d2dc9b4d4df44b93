"""Which faults are planted, where, and what looks for them."""

from __future__ import annotations

import ast
from itertools import islice

import pytest

from tests.paths import CHECKOUT
from tests.planted.checkout import Copy, product, stages
from tests.planted.faults import Fault, drawn, equivalents, faults, package

MODULE = '''"""A module with ü in it: 1 < 2."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import os

Level = Literal[1, 2]


@dataclass(frozen=True)
class Some:
    """A class."""

    size: Literal[3] = 4

    def is_ü(self, most: int) -> bool:
        """Whether 1 is not 2."""
        if not most or self.size <= most:
            self.size += 1
            os.kill(most, 9)
            print(f"{most + 1}")
        return most is not None and True
'''
CHANGES = {
    ("Level = Literal[1, 2]", "Level = Literal[2, 2]"),
    ("Level = Literal[1, 2]", "Level = Literal[1, 3]"),
    ("size: Literal[3] = 4", "size: Literal[3] = 5"),
    ("if not most or self.size <= most:", "if not (not most or self.size <= most):"),
    ("if not most or self.size <= most:", "if not most and self.size <= most:"),
    ("if not most or self.size <= most:", "if most or self.size <= most:"),
    ("if not most or self.size <= most:", "if not most or self.size < most:"),
    ("self.size += 1", "pass"),
    ("self.size += 1", "self.size += 2"),
    ('print(f"{most + 1}")', "pass"),
    ("return most is not None and True", "return most is None and True"),
    ("return most is not None and True", "return most is not None or True"),
    ("return most is not None and True", "return most is not None and False"),
}


def test_a_fault_is_one_change_of_what_a_module_does() -> None:
    found = faults("a/b.py", MODULE)
    changes = {(fault.before, fault.after) for fault in found if fault.before != fault.after}
    assert {change for change in changes if "Literal[1" not in change[0]} == {
        change for change in CHANGES if "Literal[1" not in change[0]
    }
    assert changes >= CHANGES
    for fault in found:
        ast.parse(fault.text)
        assert len(fault.text.splitlines()) == len(MODULE.splitlines())
    (bound,) = [fault for fault in found if "< most" in fault.after]
    assert bound.key[:2] == ("a/b.py", "Some.is_ü")
    assert MODULE.splitlines()[bound.line - 1].strip() == bound.before
    assert bound.text == MODULE.replace("<= most", "< most")


def test_faults_without_effect_have_their_reason_and_every_package_has_others() -> None:
    known = equivalents()
    for module in {key[0] for key in known}:
        keys = {fault.key for fault in faults(module, (CHECKOUT / module).read_text())}
        gone = [key for key in known if key[0] == module and key not in keys]
        assert not gone, "take these out of equivalent.toml, or write them as they are now"
    assert all(reason.endswith(".") for reason in known.values())
    sources = product()
    packages = {package(module) for module in sources}
    assert {"gristmill.chess", "assets", "commands", "sensors", "resources"} <= packages
    taken = [package(fault.module) for fault in islice(drawn(sources, 1, ""), len(packages))]
    assert sorted(taken) == sorted(packages)


SOURCES = {
    "gristmill/one.py": "A = 1 < 2\n",
    "gristmill/rye/two.py": "B = 3\nC = 4\n",
    "gristmill/rye/flour/three.py": "D = 5\n",
    "sensors/four.py": "E = not F\n",
    "sensors/five.py": '"""Nothing to change."""\n',
}


def test_faults_are_drawn_from_each_package_in_turn_and_each_once() -> None:
    found = list(drawn(SOURCES, 7, ""))
    assert {package(fault.module) for fault in found[:3]} == {
        "gristmill",
        "gristmill.rye",
        "sensors",
    }
    assert len({fault.key for fault in found}) == len(found) == 7
    assert found == list(drawn(SOURCES, 7, ""))
    assert found != list(drawn(SOURCES, 8, ""))
    assert {fault.module for fault in drawn(SOURCES, 7, "gristmill.rye.flour")} == {
        "gristmill/rye/flour/three.py"
    }
    assert list(drawn(SOURCES, 7, "gristmill.ry")) == []


def test_tests_look_for_a_fault_from_its_own_to_those_of_the_parent_folder() -> None:
    own, naming, *_ = stages("gristmill/chess/format/rows.py")
    assert own == ["tests/chess/format/test_rows.py"]
    assert naming and all(test.startswith("tests/chess/format/") for test in naming)
    asked = [test for stage in stages("gristmill/chess/format/rows.py") for test in stage]
    assert "tests/chess/laws/test_games.py" in asked
    assert len(asked) == len(set(asked))
    assert not [test for test in asked if not test.startswith("tests/chess/")]
    of_root = [test for stage in stages("gristmill/keys.py") for test in stage]
    assert of_root[0] == "tests/test_keys.py"
    assert "tests/resources/test_lake.py" in of_root  # it imports the module


@pytest.mark.slow
def test_a_fault_is_caught_by_the_test_that_fails_with_it_alone(tmp_path) -> None:
    copy = Copy.of_checkout(tmp_path, 300.0)
    module = "gristmill/keys.py"
    text = (CHECKOUT / module).read_text()
    (bad,) = [each for each in faults(module, text) if each.before == "if reason := refusal(key):"]
    assert copy.verdict(bad).by.startswith("tests/test_keys.py::")
    by = copy.verdict(bad, "tests/test_keys.py::test_that_went").by
    assert by.startswith("tests/test_keys.py::")
    assert copy.verdict(bad, by).by == by
    assert copy.verdict(Fault(module, "", 1, "", "", "raise ValueError\n")).by == "no begin"
    assert (copy.folder / module).read_text() == text
    assert copy.verdict(Fault(module, "", 1, "", "", text + "\nSPARE = 1\n")).by == ""
