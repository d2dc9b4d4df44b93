"""The digest of a builder's code: what changes it, and which definitions belong to it."""

from __future__ import annotations

import pkgutil
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gristmill import families
from gristmill.asset import declared
from gristmill.code import digest
from gristmill.code.digest import LEFT_OUT, Code, Place, Sources, definitions_of, is_left_out
from gristmill.contract import GristmillError
from gristmill.lazy_exports import Call
from gristmill.provenance.environment import NAMED_LATER, libraries
from gristmill.run import kernels
from gristmill.run.kernels import CACHE_DIR
from tests.paths import CHECKOUT, ran

FACTS = {"ab": ("digest", "a.module", "b"), "cd": ("other",)}


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


Write = Callable[[dict[str, str]], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules of a package `fake`, by their paths."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))

    def files(texts: dict[str, str]) -> None:
        for name, text in {"__init__.py": "", **texts}.items():
            (tmp_path / "fake" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "fake" / name).write_text(textwrap.dedent(text))
        _forget()

    yield files
    _forget()


def _forget() -> None:
    """Be as a process that begins."""
    for name in ("_digest", "_sources", "_sum", "_kept", "_file"):
        getattr(digest, name).cache_clear()


def _digest(write: Write, source: str) -> str:
    write({"mill.py": "def entry():\n" + textwrap.indent(textwrap.dedent(source), "    ")})
    return Code(("fake.mill.entry",)).digest


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
def test_texts_for_people_and_layout_leave_the_digest_alone(write, old, new):
    assert old in BEFORE
    assert _digest(write, BEFORE.replace(old, new)) == _digest(write, BEFORE)


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
def test_every_other_change_changes_the_digest(write, old, new):
    assert old in BEFORE
    assert _digest(write, BEFORE.replace(old, new)) != _digest(write, BEFORE)


_RAISED = """
class GristmillError(Exception): pass
class Below(GristmillError): pass
class Row(Exception): pass
def entry(row, place):
    raise {error}({arguments})
"""


def test_words_of_an_error_that_ends_a_build_leave_the_digest_alone(write):
    """What other errors say may be published, as why a row was refused."""

    def raised(error: str, arguments: str, room: str = "builders") -> str:
        write({f"{room}/mill.py": _RAISED.format(error=error, arguments=arguments)})
        return Code((f"fake.{room}.mill.entry",)).digest

    for error in ("GristmillError", "Below"):
        words = raised(error, "place, 'a rule'")
        assert words == raised(error, "place, f'another {row}: ' 'rule'")
        assert words == raised(error, "place, rule='a' + row")
        assert words != raised(error, "row, 'a rule'")
        assert words != raised(error, "place, 'a rule', row")
        for room in ("raw", "untrusted"):
            assert raised(error, "'a'", room) != raised(error, "'b'", room)
    for error in ("Row", "ValueError", "row.error"):
        assert raised(error, "'a rule'") != raised(error, "'another rule'")


@pytest.mark.parametrize(
    "before", ["for a in b:\n    c\nelse:\n", "try:\n    a\nfinally:\n", "match a:\n  case 1:\n"]
)
def test_a_statement_that_is_only_a_text_leaves_the_digest_alone_everywhere(write, before):
    assert _digest(write, f"{before}    d\n") == _digest(write, f"{before}    'A text.'\n    d\n")
    assert _digest(write, f"{before}    d\n") != _digest(write, f"{before}    d('A text.')\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a, *b)", "f(*a, b)"),
        ("if a:\n    b\n    c", "if a:\n    b\nelse:\n    c"),
        ("def f(a, /, b): pass", "def f(a, b): pass"),
        ("lambda a=1, *, b: 0", "lambda a, *, b=1: 0"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("lambda *, a, b=1: 0", "lambda *, a=1, b: 0"),
        ("{**a, 'k': b}", "{'k': a, **b}"),
        ("{**a, 'k': b, 'l': c}", "{'k': b, **a, 'l': c}"),
        ("match x:\n    case {'k': a, **b}: pass", "match x:\n    case {'k': a}: pass"),
    ],
)
def test_lists_are_kept_apart_and_what_stands_for_nothing_keeps_its_place(write, one, other):
    assert _digest(write, one) != _digest(write, other)


MILL = """
    from typing import TYPE_CHECKING
    import fake.shared.disk
    from fake import tables
    from fake.shared import Sack
    from fake.shared.disk import write as put
    from fake.unused import nothing
    if TYPE_CHECKING:
        from fake.types import Row

    LIMIT = 3

    def entry(row: Row) -> None:
        from fake.late import sieve
        fake.shared.disk.flush(LIMIT)
        put(sieve(tables.NAMES[row]))
        return Sack().weight

    def neighbour():
        return nothing
"""
PACKAGE = {
    "mill.py": MILL,
    "tables.py": """
        from fake.letters import letters
        NAMES = {}
        OTHER = 1
        for letter in letters():
            NAMES[letter] = 1
    """,
    "letters.py": "def letters(): return 'ab'",
    "late.py": """
        def sieve(x): return _holes(x)
        def _holes(x): return sieve(x) if x else Grid
        class Grid(list): pass
    """,
    "shared/__init__.py": "from .sack import Sack",
    "shared/sack.py": """
        from fake.shared.disk import flush
        class Sack:
            def weight(self): return self.empty()
            def empty(self): return flush(UNIT)
        UNIT = 1
    """,
    "shared/disk.py": """
        def write(x): pass
        def flush(x): pass
        def remove(x): pass
    """,
    "unused.py": "nothing = 1",
    "types.py": "class Row: pass",
}
ENTRY = ("fake.mill.entry",)


def test_the_code_is_all_definitions_that_the_sources_of_a_function_name(write):
    write(PACKAGE)
    assert {str(place) for place in definitions_of(ENTRY)} == {
        "fake.mill.entry",
        "fake.mill.LIMIT",
        "fake.tables.NAMES",
        "fake.letters.letters",
        "fake.late.sieve",
        "fake.late._holes",
        "fake.late.Grid",
        "fake.shared.sack.Sack",
        "fake.shared.sack.UNIT",
        "fake.shared.disk.write",
        "fake.shared.disk.flush",
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("mill.py", "LIMIT = 3", "LIMIT = 4", True),
        ("shared/disk.py", "def flush(x): pass", "def flush(x): return 1", True),
        ("shared/disk.py", "def remove(x): pass", "def remove(x): return 1", False),
        ("shared/sack.py", "flush(UNIT)", "flush(-UNIT)", True),
        ("shared/sack.py", "UNIT = 1", "UNIT = 2", True),
        ("late.py", "class Grid(list)", "class Grid(dict)", True),
        ("tables.py", "NAMES[letter] = 1", "NAMES[letter] = 2", True),
        ("tables.py", "OTHER = 1", "OTHER = 2", False),
        ("letters.py", "'ab'", "'abc'", True),
        ("unused.py", "1", "2", False),
        ("types.py", "pass", "x = 1", False),
        ("mill.py", "return nothing", "return None", False),
        ("mill.py", "from fake.unused import nothing", "import json as nothing", False),
    ],
)
def test_an_edited_definition_changes_the_digest_if_it_is_code(write, file, old, new, changes):
    write(PACKAGE)
    before = Code(ENTRY).digest
    assert old in PACKAGE[file]
    write(PACKAGE | {file: PACKAGE[file].replace(old, new)})
    assert (Code(ENTRY).digest != before) is changes


MOVED = {
    "another name": (("fake.late", "fake.later"), {"later.py": PACKAGE["late.py"]}),
    "joined": (
        ("from fake.late import sieve", "from fake.shared.disk import sieve"),
        {"shared/disk.py": PACKAGE["shared/disk.py"] + PACKAGE["late.py"]},
    ),
    "another import": (("from fake.late import sieve", "from fake.late import sieve as sieve"), {}),
    "an attribute": (("put(sieve(", "fake.shared.disk.write(sieve("), {}),
    "a name": (("tables.NAMES", "NAMES"), {}),
}


@pytest.mark.parametrize("how", MOVED)
def test_a_definition_in_another_module_has_the_same_digest(write, how):
    write(PACKAGE)
    before = Code(ENTRY).digest
    (old, new), files = MOVED[how]
    text = MILL.replace(old, new)
    if how == "a name":
        text = text.replace("from fake import tables", "from fake.tables import NAMES")
    assert text != MILL
    write(PACKAGE | files | {"mill.py": text})
    assert Code(ENTRY).digest == before


def test_one_of_two_definitions_with_the_same_name_is_not_taken_for_the_other(write):
    both = {
        "one.py": "def f(): return 1",
        "two.py": "def f(): return 2",
        "mill.py": "from fake import one, two\ndef entry(): return one.f() - two.f()",
    }
    write(both)
    before = Code(ENTRY).digest
    write(both | {"mill.py": "from fake import one, two\ndef entry(): return two.f() - one.f()"})
    assert Code(ENTRY).digest != before


def test_a_module_that_is_handed_on_is_code_as_a_whole(write):
    write(
        {
            "mill.py": "from fake import rows\ndef entry(): return vars(rows)",
            "rows.py": "import os\nA = 1\ndef b(): return C\nC = 2\nprint(A)\nprint(os)",
        }
    )
    found = {str(place) for place in definitions_of(ENTRY)}
    assert found == {"fake.mill.entry", "fake.rows", "fake.rows.A", "fake.rows.b", "fake.rows.C"}


def test_what_takes_the_place_of_a_missing_import_is_code(write):
    text = """
        try:
            from json import loads
        except ImportError:
            loads = spare
        spare = 1
        def entry(): return loads
    """
    write({"mill.py": text})
    found = {str(place) for place in definitions_of(ENTRY)}
    assert found == {"fake.mill.entry", "fake.mill.loads", "fake.mill.spare"}


CONFIG = """
    from dataclasses import dataclass
    from typing import Annotated
    Rows = Annotated[int, "Rows at most."]
    @dataclass
    class Config:
        CODE_VERSION = "1"
        rows: Rows = 3
        def bytes(self): return self.rows * 8
    def entry(config: Config): return config.bytes()
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("Rows at most.", "At most so many rows.", False),
        ("Rows = 3", "Rows = 4", False),
        ("self.rows * 8", "self.rows * 9", True),
        ("@dataclass", "@dataclass(eq=False)", True),
        ('CODE_VERSION = "1"', "VERSION = 1", True),
    ],
)
def test_fields_of_a_config_are_no_code_but_in_the_fingerprint(write, old, new, changes):
    write({"mill.py": CONFIG})
    before = Code(ENTRY).digest
    assert old in CONFIG
    write({"mill.py": CONFIG.replace(old, new)})
    assert (Code(ENTRY).digest != before) is changes


def test_what_was_found_once_is_known_to_later_processes(write, monkeypatch):
    found: list[int] = []
    reached = Sources.reached

    def counted(*words: object) -> object:
        found.append(1)
        return reached(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(Sources, "reached", counted)
    write(PACKAGE)
    before = Code(ENTRY).digest
    assert len(found) == 1
    _forget()
    assert (Code(ENTRY).digest, len(found)) == (before, 1)
    write(PACKAGE | {"unused.py": "nothing = 2"})
    assert (Code(ENTRY).digest, len(found)) == (before, 2)
    _forget()
    assert (Code(ENTRY).digest, len(found)) == (before, 2)


def test_a_digest_of_sources_that_changed_while_they_were_read_is_not_kept(write):
    write(PACKAGE)
    right = Code(ENTRY).digest
    write(PACKAGE | {"unused.py": "nothing = 2"})
    digest._sum("fake")
    mill = Path(digest.folder_of("fake")) / "mill.py"
    text = mill.read_text()
    mill.write_text(text.replace("LIMIT = ", "LIMIT = 1 + "))
    assert mill.read_text() != text
    assert Code(ENTRY).digest != right
    mill.write_text(text)
    _forget()
    assert Code(ENTRY).digest == right


def test_another_rule_finds_again(write, tmp_path, monkeypatch):
    write(PACKAGE)
    before = Code(ENTRY).digest
    _forget()
    (tmp_path / "rule.py").write_text("another rule")
    monkeypatch.setattr(digest, "__file__", str(tmp_path / "rule.py"))
    monkeypatch.setattr(Sources, "line", lambda _self, _place: "another\n")
    assert Code(ENTRY).digest != before
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_an_entry_that_nothing_defines_is_an_error_and_equal_digests_begin_with_the_newest(write):
    write(PACKAGE)
    for gone in ("fake.mill.gone", "fake.mill", "fake.mill.LIMIT.real", "fake.gone.entry"):
        with pytest.raises(GristmillError, match=f"{gone}: no function, class or constant"):
            definitions_of((gone,))
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        definitions_of(("no_such_package.mill.entry",))
    code = Code(("gristmill.macroxue.builders.pool.merge",), compatible_with=("a", "b"))
    assert code.equal_digests == (code.digest, "a", "b")
    assert Code().digest == Code().digest != code.digest


DIGESTS = "from gristmill.reasoning.code import NORMALIZED; print(NORMALIZED.digest)"


@pytest.mark.slow
def test_of_gristmill_itself_a_module_may_move_and_shared_code_may_not_change(tmp_path):
    copy = tmp_path / "gristmill"
    shutil.copytree(CHECKOUT / "gristmill", copy, ignore=shutil.ignore_patterns("__pycache__"))

    def digest() -> str:
        done = ran(
            [sys.executable, "-B", "-c", DIGESTS],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), CACHE_DIR: str(tmp_path / "cache")},
            check=True,
        )
        return done.stdout

    before = digest()
    (copy / "untrusted/lines.py").rename(copy / "untrusted/text_lines.py")
    for file in copy.rglob("*.py"):
        text = file.read_text()
        if "untrusted.lines" in text or "untrusted import" in text:
            file.write_text(text.replace("untrusted.lines", "untrusted.text_lines"))
    assert digest() == before
    lines = copy / "untrusted/text_lines.py"
    text = lines.read_text()
    lines.write_text(text.replace("    return ", "    return 0 or "))
    assert digest() != before


KINDS = [kind for catalog in families.catalogs() for kind in catalog.kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_every_asset_of_a_family_names_its_code(kind):
    assert definitions_of(kind.code.entries)
    assert families.code_of_asset(kind.asset) == kind.code
    if (asset := declared().get(kind.asset)) is not None:
        # What says how a build is made decides no bytes: see `is_left_out`.
        assert isinstance(asset.build, Call)
        assert is_left_out(Place(*asset.build.place.split(":"))), asset.build.place
    for name in kind.code.libraries:
        assert name in (CHECKOUT / "pyproject.toml").read_text(), name
    assert {*kind.code.libraries} - NAMED_LATER <= libraries().keys(), "no record has them"


def test_what_is_left_out_is_there_and_has_a_reason():
    for name in {*LEFT_OUT} - {*Sources("gristmill").files}:
        assert pkgutil.resolve_name(name), name
    assert all(LEFT_OUT.values())
    assert is_left_out(Place("gristmill.publish.publish", "publish"))
    assert is_left_out(Place("gristmill.layout", "root_of"))
    assert not is_left_out(Place("gristmill.publisher", "x"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "cache"
    monkeypatch.setenv(kernels.CACHE_DIR, str(made))
    return made


def test_what_was_kept_is_read_and_more_is_added(folder):
    assert digest.read_facts("facts") == {}
    digest.keep_facts("facts", FACTS)
    assert digest.read_facts("facts") == FACTS
    digest.keep_facts("facts", {"ef": ("x",), "cd": ("newer",)})
    assert digest.read_facts("facts") == {**FACTS, "ef": ("x",), "cd": ("newer",)}
    assert digest.read_facts("others") == {}
    assert [path.name for path in folder.iterdir()] == ["facts"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "facts").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_as_it_was_written_counts_for_nothing(folder):
    digest.keep_facts("facts", FACTS)
    file = folder / "facts"
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place])
        assert digest.read_facts("facts") == {}
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert digest.read_facts("facts") == {}
    file.write_bytes(b"\xff" + data)
    assert digest.read_facts("facts") == {}
    digest.keep_facts("facts", {"ef": ("x",)})
    assert digest.read_facts("facts") == {"ef": ("x",)}


def test_a_file_is_bounded_and_where_none_can_be_written_nothing_is_kept(folder, monkeypatch):
    monkeypatch.setattr(digest, "MOST", 3)
    for more, count in ((FACTS, 2), ({"ef": ("x",)}, 3), ({"gh": ("y",)}, 1)):
        digest.keep_facts("facts", more)
        assert len(digest.read_facts("facts")) == count
    assert digest.read_facts("facts") == {"gh": ("y",)}
    (folder / "others").mkdir()
    (folder / "others" / "x").touch()
    monkeypatch.setenv(kernels.CACHE_DIR, str(folder))
    digest.keep_facts("others", FACTS)
    assert digest.read_facts("others") == {}
    assert {path.name for path in folder.iterdir()} == {"facts", "others"}
    monkeypatch.setenv(kernels.CACHE_DIR, str(folder / "facts" / "cache"))  # below a file
    digest.keep_facts("facts", FACTS)
    assert digest.read_facts("facts") == {}
