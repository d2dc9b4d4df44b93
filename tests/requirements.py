"""What a test needs of the machine, and what becomes of the test where it is not there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def cannot_run(why: str) -> NoReturn:
    """Skip the test, saying why; fail it under CI, where nothing may go unseen."""
    if os.environ.get("CI"):
        pytest.fail(f"{why}; under CI this is a failure, elsewhere the test is skipped")
    pytest.skip(why)
