"""Public names that load when they are first used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "lazy_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from gristmill.lazy_exports import lazy_exports\n"
        "__getattr__ = lazy_exports(__name__, {'home': ('answer', 'home')})\n"
    )
    (folder / "home.py").write_text("answer = 42\ndef home():\n    return 'function'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lazy_example"
    for name in [name for name in sys.modules if name.split(".")[0] == "lazy_example"]:
        del sys.modules[name]


def test_a_name_loads_its_module_when_it_is_first_used(package: str) -> None:
    import lazy_example  # type: ignore[import-not-found]

    assert f"{package}.home" not in sys.modules
    assert lazy_example.answer == 42
    assert f"{package}.home" in sys.modules


def test_a_function_with_its_modules_name_wins(package: str) -> None:
    import lazy_example

    assert lazy_example.home() == "function"
    assert lazy_example.home() == "function"


def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    import lazy_example

    with pytest.raises(AttributeError, match="'lazy_example' has no attribute 'question'"):
        _ = lazy_example.question
