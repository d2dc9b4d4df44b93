"""The fault-injecting layer, compiled once a session, and the servers that build under it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.killing import Killer


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`killpoint.c` as a library for LD_PRELOAD."""
    library = tmp_path_factory.mktemp("shim") / "killpoint.so"
    source = Path(__file__).with_name("killpoint.c")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def killer(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    made = Killer(shim, tmp_path_factory.mktemp("killed").resolve())
    yield made
    made.close()
