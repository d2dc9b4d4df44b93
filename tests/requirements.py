"""What a test needs of the machine: without it the test is skipped, or fails where it is required.

GRISTMILL_REQUIRE lists what must be there, separated by spaces: `strace real-data mounts browser`.
`.ci/run` sets it, with `ray postgres s3 linters oldest-numpy` for tests marked `engines`. CI alone
does not: a hosted machine has none.
"""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from gristmill.families import FAMILIES

VARIABLE = "GRISTMILL_REQUIRE"


def is_required(need: str) -> bool:
    """Whether GRISTMILL_REQUIRE lists `need`."""
    return need in os.environ.get(VARIABLE, "").split()


def missing_real_data(folder: Path) -> str:
    """What is wrong where real data is required and `folder` lacks a family's; else empty."""
    missing = [name for name in FAMILIES if not (folder / name).is_dir()]
    if not missing or not is_required("real-data"):
        return ""
    return f"{VARIABLE} requires real-data, but {folder} has no {', '.join(missing)}"


def cannot_run(need: str, why: str) -> NoReturn:
    """Skip the test, saying why; fail it where GRISTMILL_REQUIRE lists `need`."""
    if is_required(need):
        pytest.fail(f"{why}; {VARIABLE} requires {need}")
    pytest.skip(why)
