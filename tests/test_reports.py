"""What `pytest -n` shows is what pytest shows: every result, whenever a test failed or was left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

CONFTEST = """
from tests import reports

def pytest_configure(config):
    reports.install(config)
"""
TESTS = """
import time
import pytest

@pytest.fixture
def fails():
    raise ValueError("in the setup")

@pytest.fixture
def fails_later():
    yield
    raise ValueError("in the teardown")

@pytest.fixture
def slow():
    time.sleep(0.2)

def test_passes(slow): pass
def test_fails(): assert 1 == 2
def test_is_left(): pytest.skip("in the call")
@pytest.mark.skip(reason="before")
def test_is_left_before(): pass
def test_has_no_setup(fails): pass
def test_has_no_teardown(fails_later): pass
@pytest.mark.xfail
def test_may_fail(): assert False
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_every_result_is_counted(tmp_path: Path, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_results.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            str(workers),
            "--durations=3",
            "-q",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed, 2 skipped, 1 xfailed, 2 errors" in done.stdout, done.stdout
    assert "setup    test_results.py::test_passes" in done.stdout
    assert "[100%]" in done.stdout
