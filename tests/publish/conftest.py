"""The fault-injecting layer, compiled once a session, and the servers that build under it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gristmill.hashing import sha256_file
from gristmill.publish import input_proof, storage
from tests.publish.killing import FORMS, LINK, REFUSED, Killer


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


@pytest.fixture(scope="session")
def link_killer(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    """What stands before was published in the link form; the test sets it for itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.VARIABLE, LINK)
        made = Killer(shim, tmp_path_factory.mktemp("linked").resolve(), more=REFUSED)
    yield made
    made.close()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that the proof of inputs hashes."""
    files: list[Path] = []

    def counted(path: Path, *more: Any) -> str:
        files.append(path)
        return sha256_file(path, *more)

    monkeypatch.setattr(input_proof, "sha256_file", counted)
    return files


@pytest.fixture(params=FORMS)
def killer_of_a_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Killer:
    """A killer of builds in each form, or in that of the seed."""
    if request.param == LINK:
        monkeypatch.setenv(storage.VARIABLE, LINK)
    made: Killer = request.getfixturevalue("link_killer" if request.param == LINK else "killer")
    return made
