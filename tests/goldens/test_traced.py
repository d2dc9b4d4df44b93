"""The digest of a builder's code has all that the builder executes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gristmill import families
from gristmill.code.digest import Place, Sources, definitions_of, is_left_out
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

KINDS = [kind for catalog in families.catalogs() for kind in catalog.kinds]


@pytest.fixture(scope="module")
def tracer(
    sample_root: SampleRoot, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Path]]:
    """Gives the file of what the builder of an asset executes."""
    folder = tmp_path_factory.mktemp("traced")
    root, log = sample_root.copy(folder / "root"), folder / "log"
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "tests.goldens.traced"],
            cwd=CHECKOUT,
            env=os.environ | {"GRISTMILL_DATA": str(root.data), "DAGSTER_HOME": str(root.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as server,
    ):

        def traced(asset: str) -> Path:
            file = folder / asset.replace("/", "+")
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write(f"{asset}\t{file}\n")
            server.stdin.flush()
            assert server.stdout.readline() == "0\n", log.read_text()
            return file

        yield traced


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_a_builder_executes_nothing_that_its_digest_lacks(tracer, kind):
    file = tracer(kind.asset)
    modules = {str(path): name for name, path in Sources("gristmill").files.items()}
    executed = set()
    for line in set(file.read_text().splitlines()):
        module, _, name = line.partition(":")
        # A lambda or a comprehension at the top of a module belongs to no definition by its name.
        if not name.startswith("<"):
            executed.add(Place(modules[module], name.partition(".")[0]))
    reached = definitions_of(kind.code.entries)
    assert executed & reached
    assert {place for place in executed - reached if not is_left_out(place)} == set()
