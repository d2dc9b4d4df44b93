"""The digest of a builder's code has all that the builder executes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill import families
from gristmill.code.definitions import Place, Sources
from gristmill.code.digest import definitions_of, is_left_out
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

pytestmark = pytest.mark.sampled(0.4)

KINDS = [kind for catalog in families.catalogs() for kind in catalog.kinds]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_a_builder_executes_nothing_that_its_digest_lacks(
    sample_root: SampleRoot, tmp_path: Path, kind: families.Kind
) -> None:
    root, file = sample_root.copy(tmp_path / "root"), tmp_path / "executed"
    done = subprocess.run(
        [sys.executable, "-m", "tests.goldens.traced", kind.asset, str(file)],
        cwd=CHECKOUT,
        env=os.environ | {"GRISTMILL_DATA": str(root.data), "DAGSTER_HOME": str(root.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
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
