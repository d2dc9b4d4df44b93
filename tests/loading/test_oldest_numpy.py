"""The numbers of version 1 with the oldest NumPy that the package takes."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from tests.requirements import cannot_run

pytestmark = [pytest.mark.engines, pytest.mark.slow]

FOLDER = Path(sys.prefix, "oldest-numpy")
GOLDEN = "never_change or golden or as_scalars_have"
FILES = ("test_bijection.py", "test_plan.py", "test_source.py")


def _oldest() -> str:
    """The least version in the dependencies, as 2.1."""
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["project"]["dependencies"]
    (found,) = (each for each in listed if each.startswith("numpy>="))
    return str(found.removeprefix("numpy>=").partition(",")[0])


def _python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_golden_numbers_are_those_of_the_oldest_numpy():
    if not FOLDER.is_dir():
        cannot_run("oldest-numpy", f"{FOLDER} is missing: make engines")
    version = _python("-c", "import numpy; print(numpy.__version__)").stdout.strip()
    assert f"{version}.".startswith(f"{_oldest()}.")
    files = [str(Path(__file__).with_name(name)) for name in FILES]
    done = _python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", GOLDEN, *files)
    assert done.returncode == 0, done.stdout
    passed = int(done.stdout.splitlines()[-1].split()[0])
    assert passed >= 2 * 8 + 4  # scalars of 8 lengths in both ways, and the golden tests
