"""How `pytest -n` gives tests to its workers: file by file, and first what takes long.

The tests of a file share fixtures and may build on each other, so one worker runs them, in order.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

LIVE: Final = "tests/e2e/"
"""Tests that start Dagster: one worker runs all of them, so that they do not slow each other."""

TORCH: Final = (
    "tests/architecture/test_public_names.py",
    "tests/assets/synth/test_assets.py",
    "tests/chess/read/",
    "tests/examples/",
    "tests/loading/test_loader.py",
    "tests/macroxue/read/test_torch_dataset.py",
    "tests/puzzles/read/",
    "tests/reading/",
    "tests/reasoning/format/test_pt_file.py",
    "tests/reasoning/read/",
    "tests/synth/builders/chat/test_publishing.py",
    "tests/synth/format/",
    "tests/synth/read/",
    "tests/synth/render/test_golden.py",
)
"""Tests that use torch or Megatron, which take seconds to import, and half a gigabyte: one worker
runs all of them."""

FIRST: Final = (
    LIVE,
    "tests/upgrade/",
    "tests/test_readme.py",
    "tests/assets/test_damaged_inputs.py",
    "tests/publish/test_real_builds.py",
    "tests/publish/test_kill.py",
    "tests/vocabularies/test_engine.py",
    "tests/test_sample_commands.py",
    *TORCH,
    "tests/synth/builders/",
)
"""Files and folders that take long, or that others wait for: the first that asks for `sample_root`
compiles the kernels, and meanwhile the other worker takes tests that use few of them."""

_FIRST_OF_TORCH: Final = FIRST.index(TORCH[0])
_ALL_OF_TORCH: Final = range(_FIRST_OF_TORCH, _FIRST_OF_TORCH + len(TORCH))


def file_of(test: str) -> str:
    """The file of a test, as its name begins."""
    return test.partition("::")[0]


def unit(test: str) -> str:
    """What one worker runs in a row: the file of a test, all below LIVE, or all of TORCH."""
    file = file_of(test)
    if file.startswith(TORCH):
        return "torch"
    return LIVE if file.startswith(LIVE) else file


def rank(test: str, waits: bool = False) -> tuple[int, bool, int]:
    """What tests are sorted by: the place of their unit, then in FIRST; last, what is not there.

    waits: whether the file of the test has one that needs `sample_root`, which another worker
        makes at the beginning: such files are the last of a unit.
    """
    last = len(FIRST)
    place = next((at for at, begin in enumerate(FIRST) if test.startswith(begin)), last)
    return _FIRST_OF_TORCH if place in _ALL_OF_TORCH else place, waits, place


def modules(folder: Path) -> list[str]:
    """The names of all test modules below a package, about in the order of the collection."""
    return [
        ".".join(file.relative_to(folder.parent).with_suffix("").parts)
        for file in sorted(folder.rglob("test_*.py"))
    ]


def import_share(names: Sequence[str], place: int, places: int) -> None:
    """Import the modules from a worker's place on, before it collects all of them.

    Pytest rewrites the assertions of each module and keeps the result for the other workers. In a
    new checkout that takes 17 seconds, which all workers would spend at once on the same modules.

    names: of the modules, in the order of the collection.
    place: number of the worker, from 0.
    places: number of workers.
    """
    begin = len(names) * place // places
    for name in names[begin:] if place else ():
        # The collection imports it again, and reports why it fails or skips.
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)


def scheduler(config: Any, log: Any) -> Any:
    """The scheduler of pytest-xdist by units, in the order of the collection."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    # Not by the number of tests: the files with few are those that take long.
    config.option.loadscopereorder = False
    return ByUnit(config, log)
