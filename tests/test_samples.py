"""Sample drops: marked, never mixed with real data, and removed with what was built from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import samples
from gristmill.cli import main
from gristmill.contract import GristmillError
from gristmill.families import catalogs
from gristmill.hashing import sha256_file
from gristmill.inbox.sample_mark import sums_of
from gristmill.provenance import Input
from gristmill.publish import Build, publish
from tests.run_folder import once

NAMES = [name for each in catalogs() for name in each.samples]


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    samples.write_samples(root)
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    return tmp_path / "data"
