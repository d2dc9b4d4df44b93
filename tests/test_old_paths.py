"""Module paths of the version before lead to the modules of today."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

from gristmill import old_paths


@pytest.mark.filterwarnings("ignore")  # torch and Megatron warn when they are first imported
@pytest.mark.parametrize("earlier", sorted(old_paths.MOVED))
def test_an_earlier_path_gives_the_module_of_today(earlier: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{earlier} is now {old_paths.MOVED[earlier]}"):
        found = import_module(earlier)
    assert found is import_module(old_paths.MOVED[earlier])


def test_a_module_in_an_earlier_package_is_loaded_once_and_by_either_path() -> None:
    code = (
        "import gristmill.chess.build.splits as old\n"
        "import gristmill.chess.builders.splits as new\n"
        "assert old is new\n"
        "from gristmill.chess.build import splits\n"
        "assert splits is new"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pickle_that_names_an_earlier_path_is_read() -> None:
    pickled = b"cgristmill.macroxue.build.pack\npack\n."
    with pytest.warns(DeprecationWarning, match="builders"):
        found = pickle.loads(pickled)
    assert found is import_module("gristmill.macroxue.builders.pack").pack


@pytest.mark.parametrize("name", ["gristmill.chess.builder", "gristmill.build", "gristmill.chess"])
def test_other_paths_are_none(name: str) -> None:
    assert old_paths.moved_to(name) is None
