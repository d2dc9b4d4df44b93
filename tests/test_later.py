"""Modules that are imported when a test first uses them."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from tests.later import COLLECTED, later


def test_collecting_imports_neither_torch_nor_megatron(pytestconfig: pytest.Config) -> None:
    """Of all files that this run has collected; they are 7 seconds of each worker."""
    collected = pytestconfig.stash[COLLECTED]
    assert "tests.later" in collected
    assert not {"torch", "megatron.core.utils"} & collected


def test_tests_run_with_the_garbage_collector() -> None:
    """Without what was collected, which stays for the whole run."""
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000


def test_a_module_is_imported_when_an_attribute_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "a_module", None)
    del sys.modules["a_module"]
    (tmp_path / "a_module.py").write_text("ANSWER = 5\n")
    module = later("a_module")
    assert not hasattr(module, "__test__")  # pytest asks each name of a file for it
    assert "a_module" not in sys.modules
    assert module.ANSWER == 5
    with pytest.raises(AttributeError, match="QUESTION"):
        _ = module.QUESTION


def test_a_test_skips_without_the_module() -> None:
    for missing in (later("no_such_module"), later("json", "no_such_module")):
        with pytest.raises(pytest.skip.Exception, match="no_such_module"):
            _ = missing.dumps
