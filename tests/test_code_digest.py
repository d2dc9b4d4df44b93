"""The digest of a builder's code: what changes it, and which modules belong to it."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill import code_digest, families
from gristmill.code_digest import Code, modules_of, tree_digest
from gristmill.run import kept_facts
from gristmill.run.kernels import CACHE_DIR
from tests.paths import CHECKOUT

BEFORE = '''
    """What the module does."""

    # Why it does it.
    LIMIT = 3
    """Rows at most."""


    class Reader:
        """A reader."""

        def rows(self, limit: int = LIMIT) -> list[str]:
            """Rows."""
            if limit > 2:
                return [f"{limit:>3}", "b"]
            return []
'''


def _digest(source: str) -> str:
    return tree_digest(ast.parse(textwrap.dedent(source)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What the module does."""', '"""Another text."""'),
        ('    """What the module does."""\n', ""),
        ('"""Rows at most."""', '"""At most so many rows."""'),
        ('        """A reader."""\n', ""),
        ('            """Rows."""\n', ""),
        ("# Why it does it.", "# For another reason.\n"),
        ("LIMIT = 3", "LIMIT = (3)"),
        ('"b"', "'b'"),
    ],
)
def test_texts_for_people_and_layout_leave_the_digest_alone(old: str, new: str) -> None:
    assert old in BEFORE
    assert _digest(BEFORE.replace(old, new)) == _digest(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", 'LIMIT = "3"'),
        ("LIMIT = 3", "LIMIT = None"),
        ("LIMIT = 3", "LIMIT = True"),
        ("LIMIT = 3", "LIMIT = -3"),
        ("limit > 2", "limit >= 2"),
        ("limit > 2", "not limit > 2"),
        ('"b"]', '"b", "b"]'),
        ('"b"', 'b"b"'),
        (":>3", ":<3"),
        ("def rows", "async def rows"),
        ("return []", "return None"),
        ("return []", "return"),
        ("return []", "x = []"),
        ("limit: int = LIMIT", "limit: int"),
        ("            return []\n", ""),
        ("class Reader:", "class Reader(list):"),
        ("class Reader:", "@final\n    class Reader:"),
    ],
)
def test_every_other_change_changes_the_digest(old: str, new: str) -> None:
    assert old in BEFORE
    assert _digest(BEFORE.replace(old, new)) != _digest(BEFORE)


@pytest.mark.parametrize(
    "before",
    ["for a in b:\n    c\nelse:\n", "try:\n    a\nfinally:\n", "match a:\n  case 1:\n"],
)
def test_a_statement_that_is_only_a_text_leaves_the_digest_alone_everywhere(before: str) -> None:
    assert _digest(f"{before}    d\n") == _digest(f"{before}    'A text.'\n    d\n")
    assert _digest(f"{before}    d\n") != _digest(f"{before}    d('A text.')\n")


def test_neighbouring_lists_are_kept_apart() -> None:
    assert _digest("f(a, *b)") != _digest("f(*a, b)")
    assert _digest("if a:\n    b\n    c") != _digest("if a:\n    b\nelse:\n    c")
    assert _digest("def f(a, /, b): pass") != _digest("def f(a, b): pass")
    assert _digest("lambda a=1, *, b: 0") != _digest("lambda a, *, b=1: 0")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("lambda *, a, b=1: 0", "lambda *, a=1, b: 0"),
        ("{**a, 'k': b}", "{'k': a, **b}"),
        ("{**a, 'k': b, 'l': c}", "{'k': b, **a, 'l': c}"),
        ("match x:\n    case {'k': a, **b}: pass", "match x:\n    case {'k': a}: pass"),
    ],
)
def test_what_stands_for_nothing_in_a_list_keeps_its_place(one: str, other: str) -> None:
    assert _digest(one) != _digest(other)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A family `fake.grain` of a package outside of Gristmill."""
    root = tmp_path / "fake"
    files = {
        "__init__.py": "",
        "floor/disk/files.py": "SIZE = 1",
        "grain/__init__.py": "",
        "grain/config.py": "import fake.grain.build.other",
        "grain/build/__init__.py": "",
        "grain/build/mill.py": """
            from typing import TYPE_CHECKING
            import fake.grain.format.rows
            from fake.grain import config
            from fake.grain.raw import parse
            from fake.grain.laws.mill import law
            from fake.floor.disk import files
            if TYPE_CHECKING:
                from fake.grain.raw.types import Row
            else:
                from fake.grain.raw.fallback import Row
            def build():
                from fake.grain.read.stream import rows
            """,
        "grain/build/other.py": "",
        "grain/format/__init__.py": "",
        "grain/format/rows.py": "from fake.grain.raw import parse",
        "grain/raw/__init__.py": "LIMIT = 1",
        "grain/raw/parse.py": "import fake.grain.build.mill",
        "grain/raw/types.py": "",
        "grain/raw/fallback.py": "from fake.grain.show.board import draw",
        "grain/read/stream.py": "from fake.grain.raw import LIMIT",
        "grain/laws/mill.py": "from fake.grain.build.other import x",
        "grain/show/board.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    _forget()


def _forget() -> None:
    for cached in ("_digest", "_known", "_parsed", "_source"):
        getattr(code_digest, cached).cache_clear()


def test_the_code_is_what_the_builder_imports_in_its_family(package: Path) -> None:
    assert modules_of(("fake.grain.build.mill",)) == [
        "fake.grain.build.mill",
        "fake.grain.format.rows",
        "fake.grain.raw.fallback",
        "fake.grain.raw.parse",
        "fake.grain.read.stream",
    ]


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("grain/build/mill.py", True),
        ("grain/format/rows.py", True),
        ("grain/read/stream.py", True),
        ("grain/raw/types.py", False),
        ("grain/build/other.py", False),
        ("grain/laws/mill.py", False),
        ("grain/show/board.py", False),
        ("grain/config.py", False),
        ("floor/disk/files.py", False),
    ],
)
def test_an_edited_module_changes_the_digest_if_it_is_code(
    package: Path, file: str, changes: bool
) -> None:
    before = Code(("fake.grain.build.mill",)).digest
    with (package / file).open("a") as edited:
        edited.write("\nADDED = 1\n")
    _forget()
    assert (Code(("fake.grain.build.mill",)).digest != before) is changes


def test_what_was_parsed_once_is_known_to_later_processes(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    code = Code(("fake.grain.build.mill",))
    parsed: list[bytes] = []
    parse = ast.parse

    def noted(source: bytes) -> ast.Module:
        parsed.append(source)
        return parse(source)

    def again() -> tuple[str, list[str], int]:
        """Digest, modules, and how many of them another process parses."""
        _forget()
        parsed.clear()
        return code.digest, modules_of(code.modules), len(parsed)

    monkeypatch.setattr(code_digest.ast, "parse", noted)
    digest, modules, count = again()
    assert count == len(
        {(package.parent / f"{n.replace('.', '/')}.py").read_text() for n in modules}
    )
    assert again() == (digest, modules, 0)
    assert again() == (digest, modules, 0)
    with (package / "grain/read/stream.py").open("a") as edited:
        edited.write("\nfrom fake.grain.build.other import x\n")
    changed, more, count = again()
    assert (count, set(more) - set(modules)) == (2, {"fake.grain.build.other"})
    assert changed != digest
    assert again() == (changed, more, 0)
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "elsewhere"))
    assert again()[:2] == (changed, more)


def test_what_is_kept_is_bounded_by_what_is_used(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    monkeypatch.setattr(kept_facts, "MOST", 12)
    lines = []
    for edit in range(9):
        (package / "grain/read/stream.py").write_text(f"EDIT = {edit}\n")
        _forget()
        assert Code(("fake.grain.build.mill",)).digest
        (file,) = (tmp_path / "cache").iterdir()
        lines.append(len(file.read_text().splitlines()) - 1)
    assert max(lines) <= 12 and lines[0] < lines[1] and min(lines[3:]) == lines[0]


def test_another_rule_parses_again(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    code = Code(("fake.grain.build.mill",))
    _forget()
    digest = code.digest
    _forget()
    (tmp_path / "rule.py").write_text("another rule")
    monkeypatch.setattr(code_digest, "__file__", str(tmp_path / "rule.py"))
    monkeypatch.setattr(code_digest, "tree_digest", lambda _: "0" * 64)
    assert code.digest != digest
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_module_that_does_not_exist_is_an_error(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"fake\.grain\.build\.gone"):
        modules_of(("fake.grain.build.gone",))
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        modules_of(("no_such_package.grain.build.gone",))


def test_equal_digests_begin_with_that_of_the_code_that_stands() -> None:
    code = Code(("gristmill.macroxue.build.pool",), compatible_with=("a", "b"))
    assert code.equal_digests == (code.digest, "a", "b")
    assert Code().digest == Code().digest != code.digest


KINDS = [kind for catalog in families.catalogs() for kind in catalog.kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_every_asset_of_a_family_names_its_code(kind: families.Kind) -> None:
    assert kind.code.modules
    assert families.code_of_asset(kind.asset) == kind.code
    for name in kind.code.libraries:
        assert name in _declared_libraries(), name


def _declared_libraries() -> str:
    return (CHECKOUT / "pyproject.toml").read_text()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_loading_a_builder_loads_no_code_that_its_digest_lacks(kind: families.Kind) -> None:
    """Imports by other means than statements would escape the digest."""
    family = kind.code.modules[0].split(".")[1]
    loading = (
        "import importlib, sys\n"
        f"for name in {kind.code.modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in sys.modules if name.startswith('gristmill.{family}.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", loading], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    loaded = {name for name in done.stdout.split() if name.count(".") > 2}
    in_rooms = {name for name in loaded if name.split(".")[2] not in ("laws", "show")}
    for_configs = modules_of((f"gristmill.{family}.config",))
    assert in_rooms <= {*modules_of(kind.code.modules), *for_configs}
