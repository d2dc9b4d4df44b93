"""What was measured as long is marked as slow."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import measured
from tests.architecture.graph import listed
from tests.dealing import LIVE
from tests.paths import CHECKOUT

_WAIT = (LIVE, "tests/clusters/", "tests/upgrade/")
"""Tests that wait for other processes: all of them are slow, whatever CPU time they take."""


def _functions(source: str) -> Iterator[tuple[str, str]]:
    """The tests of a file, each with what says which marks it has."""
    tree = ast.parse(source)
    common = [ast.unparse(node) for node in tree.body if "pytestmark" in ast.unparse(node)[:12]]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, "\n".join([*common, *map(ast.unparse, node.decorator_list)])


def _marks() -> dict[str, str]:
    files = sorted((CHECKOUT / "tests").rglob("test_*.py"))
    return {
        f"{file.relative_to(CHECKOUT).as_posix()}::{name}": marks
        for file in files
        for name, marks in _functions(file.read_text())
    }


def test_what_was_measured_as_long_is_marked_as_slow() -> None:
    marks = _marks()
    slow = {test for test, said in marks.items() if "mark.slow" in said}
    long = {test for test in json.loads(measured.FILE.read_text()) if not test.startswith(_WAIT)}
    wrong = {
        "measured, and not there": long - marks.keys(),
        "long, and not marked as slow": long & marks.keys() - slow,
    }
    cure = "measure again, as tests/measured.py says, or mark them"
    found = {Path(words): sorted(tests) for words, tests in wrong.items() if tests}
    assert not found, f"{cure}:{listed(found)}"
    assert len(long) > 50


def test_marks_of_functions_cases_and_files_are_found() -> None:
    source = "pytestmark = [pytest.mark.real]\n@pytest.mark.slow\ndef test_a(): pass\n"
    ((name, marks),) = _functions(source)
    assert name == "test_a" and "mark.slow" in marks and "mark.real" in marks


@pytest.mark.slow
def test_a_run_measures_its_tests(tmp_path: Path) -> None:
    """The calls of both workers, the longest case of each function; what is not long goes."""
    (tmp_path / "conftest.py").write_text(
        "from tests import measured\npytest_configure = measured.install\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import time\n"
        "import pytest\n"
        "@pytest.mark.parametrize('seconds', [0, 1.2])\n"
        "def test_a(seconds):\n"
        "    begin = time.process_time()\n"
        "    while time.process_time() < begin + seconds: pass\n"
        "def test_b(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    file = tmp_path / "measured.json"
    file.write_text('{"test_it.py::test_b": 3, "gone.py::test_c": 2}')
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT), measured.MEASURE: str(file)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True)
    known = json.loads(file.read_text())
    assert known == {"gone.py::test_c": 2, "test_it.py::test_a": known["test_it.py::test_a"]}
    assert known["test_it.py::test_a"] >= 1
