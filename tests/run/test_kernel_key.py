"""The key of machine code: what changes it, and what leaves it as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from gristmill.run import kernels
from tests.paths import CHECKOUT

SHARED = """
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

FACTOR = 3
TABLE = np.arange(4, dtype=np.int32)
UNUSED = 1

@njit
def helper(number):
    return number * FACTOR + TABLE[number]

def plain(number):
    return number + 1

@intrinsic
def low(context, value):
    def generate(context, builder, signature, arguments):
        return builder.trunc(arguments[0], context.get_value_type(types.uint8))
    return types.uint8(types.int64), generate
"""
CODE = """
from numba import njit
import shared
from shared import helper, low

PAIR = (1, (2.0, "x"))

def closed(step):
    @njit(nogil=True)
    def outer(number, more=5):
        '''What it does.'''
        if number in {"a", "b"}:
            return 0
        return helper(number) + low(number) + shared.plain(number) + PAIR[0] + step
    return outer

outer = closed(7)
"""


def _module(name: str, text: str, file: Path) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, str(file), "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _no_modules_stay() -> Iterator[None]:
    yield
    for name in ("shared", "family"):
        sys.modules.pop(name, None)


def _key(shared: str = SHARED, code: str = CODE, folder: Path = Path("/one")) -> str:
    _module("shared", shared, folder / "shared.py")
    return kernels.kernel_key(_module("family", code, folder / "family.py").outer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 3", "FACTOR = 4"),
        ("FACTOR = 3", "FACTOR = 3.0"),
        ("FACTOR = 3", "FACTOR = True"),
        ("arange(4", "arange(5"),
        ("arange(4", "arange(1, 5"),
        ("np.int32", "np.int64"),
        ("np.int32", "np.float32"),
        ("arange(4, dtype=np.int32)", "arange(8, dtype=np.int32)[::2]"),
        ("number * FACTOR", "number + FACTOR"),
        ("number + 1", "number + 2"),
        ("@njit\ndef helper", "@njit(fastmath=True)\ndef helper"),
        ("builder.trunc", "builder.zext"),
        ("types.uint8)", "types.int8)"),
        ("2.0", "2.5"),
        ('"x"', '"y"'),
        ("+ step", "- step"),
        ("closed(7)", "closed(8)"),
        ("more=5", "more=6"),
        ("nogil=True", "nogil=False"),
        ('{"a", "b"}', '{"a", "c"}'),
    ],
)
def test_a_change_of_a_kernel_or_of_what_it_calls_elsewhere_changes_its_key(
    old: str, new: str
) -> None:
    assert SHARED.count(old) + CODE.count(old) == 1
    assert _key(SHARED.replace(old, new), CODE.replace(old, new)) != _key()


def test_equal_code_has_the_same_key_wherever_it_is() -> None:
    elsewhere = "# A comment.\n\n" + SHARED.replace("UNUSED = 1", "UNUSED = 2\nOTHER = object()")
    assert _key(elsewhere, "\n\n" + CODE, Path("/two")) == _key()
    assert _key(SHARED, CODE.replace("What it does.", "Its docstring.")) == _key()


def test_a_name_of_a_module_is_part_of_the_key() -> None:
    """numba names machine code by module and function: two of one name would be mixed up."""
    _module("shared", SHARED, Path("/one/shared.py"))
    one, two = (_module(name, CODE, Path("/one/x.py")).outer for name in ("family", "other"))
    del sys.modules["other"]
    assert kernels.kernel_key(one) != kernels.kernel_key(two)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("FACTOR = 3", "FACTOR = object()", "<object object"),
        ("FACTOR = 3", "FACTOR = {'a': 1}", "{'a': 1}"),
        ("def generate", "import json\n    def generate", "low imports within the function"),
    ],
)
def test_a_kernel_with_values_that_nobody_can_compare_has_no_key(
    old: str, new: str, named: str
) -> None:
    with pytest.raises(kernels.NoKey, match=named):
        _key(SHARED.replace(old, new))


def test_functions_that_call_each_other_have_a_key() -> None:
    both = "\n@njit\ndef helper(n): return other(n)\n@njit\ndef other(n): return helper(n) + {}\n"
    assert _key(SHARED + both.format(1)) != _key(SHARED + both.format(2))


@pytest.mark.parametrize(
    "name", ["numba.__version__", "llvmlite.__version__", "numpy.__version__", "sys.abiflags"]
)
def test_another_version_changes_the_key(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = kernels._surroundings.__wrapped__()
    monkeypatch.setattr(name, "0.0")
    assert kernels._surroundings.__wrapped__() != before


@pytest.mark.parametrize("name", ["get_host_cpu_name", "get_host_cpu_features"])
def test_another_processor_changes_the_key(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from llvmlite import binding

    class Features(str):
        def flatten(self) -> str:
            return self

    before = kernels._surroundings.__wrapped__()
    monkeypatch.setattr(binding, name, lambda: Features("other"))
    assert kernels._surroundings.__wrapped__() != before


def test_a_processor_that_numba_is_given_takes_the_place_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numba

    here = kernels._surroundings.__wrapped__()
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64-v3")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "")
    named = kernels._surroundings.__wrapped__()
    assert named == kernels._surroundings.__wrapped__(("x86-64-v3", "")) != here


def test_a_setting_of_the_compiler_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels._surroundings.__wrapped__()
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert kernels._surroundings.__wrapped__() != before


def test_what_surrounds_a_kernel_is_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _key()
    monkeypatch.setattr(kernels, "_surroundings", lambda _: (b"another",))
    assert _key() != before


def test_every_kernel_of_the_checkout_has_a_key_of_its_own() -> None:
    """Else it would be compiled in each process."""
    found = {}
    for file in sorted((CHECKOUT / "gristmill").rglob("*.py")):
        if "import kernel\n" in file.read_text():
            parts = file.relative_to(CHECKOUT).with_suffix("").parts
            for value in vars(import_module(".".join(parts))).values():
                if hasattr(value, "py_func"):
                    name = f"{value.__module__}.{value.__qualname__}"
                    found[name] = kernels.kernel_key(value)
    assert len(found) > 100
    assert len(set(found.values())) == len(found)
    assert "gristmill.chess.kernels.scan.scan_games" in found
