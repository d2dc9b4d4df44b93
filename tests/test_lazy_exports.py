"""Public names that load when they are first used."""

import sys
from pathlib import Path

import pytest

from gristmill.lazy_exports import call
from tests.paths import ran


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "lazy_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from gristmill.lazy_exports import lazy_exports\n"
        "if TYPE_CHECKING := False:\n    from lazy_example.home import answer, home\n"
        "__all__, __getattr__ = lazy_exports(__name__)\n"
    )
    (folder / "home.py").write_text("answer = 42\ndef home():\n    return 'function'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lazy_example"
    for name in [name for name in sys.modules if name.split(".")[0] == "lazy_example"]:
        del sys.modules[name]


def test_a_name_loads_its_module_when_it_is_first_used(package):
    import lazy_example  # type: ignore[import-not-found]

    assert f"{package}.home" not in sys.modules
    assert lazy_example.__all__ == ["answer", "home"]
    assert lazy_example.answer == 42
    assert f"{package}.home" in sys.modules


def test_a_function_with_its_modules_name_wins(package):
    import lazy_example

    assert lazy_example.home() == "function"
    assert lazy_example.home() == "function"


def test_an_unknown_name_is_an_attribute_error(package):
    import lazy_example

    with pytest.raises(AttributeError, match="'lazy_example' has no attribute 'question'"):
        _ = lazy_example.question


def test_a_missing_package_of_an_extra_names_the_extra(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    home = tmp_path / package / "home.py"
    home.write_text("import torch\n")
    import lazy_example

    with pytest.raises(
        ModuleNotFoundError, match=r"pip install -c constraints.txt -e \"\.\[train\]\""
    ) as caught:
        _ = lazy_example.answer
    assert caught.value.name == "torch"
    home.write_text("import no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'no_such_module'$"):
        _ = lazy_example.answer


@pytest.mark.parametrize(
    "module",
    [
        "chess.read.torch_samples",
        "macroxue.read.torch_dataset",
        "reasoning.read.torch_sequences",
        "synth.read.dataset",
    ],
)
def test_the_forms_for_torch_name_the_extra(module):
    names = {"synth.read.dataset": "from gristmill.synth import SynthKDDataset"}
    wanted = names.get(module, f"import gristmill.{module}")
    code = f"import sys; sys.modules['torch'] = None\n{wanted}"
    done = ran([sys.executable, "-c", code])
    assert 'run pip install -c constraints.txt -e ".[train]"' in done.stderr.splitlines()[-1]


def test_a_function_is_imported_when_it_is_called_with_its_first_arguments():
    late = call("gristmill.nowhere:function")
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        late()
    with pytest.raises(AttributeError, match="missing"):
        call("gristmill.keys:missing")("x")
    assert call("operator:sub", 7)(2) == 5
    assert call("operator:sub")(7, 2) == 5
