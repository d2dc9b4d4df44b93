"""How tests are given to workers."""

import re
import sys

from tests import dealing
from tests.paths import CHECKOUT


def test_a_worker_takes_a_file_or_all_that_starts_dagster_or_uses_torch():
    assert dealing.unit("tests/run/test_x.py::test_a[b::c]") == "tests/run/test_x.py"
    assert dealing.unit("tests/e2e/test_ui.py::test_a") == dealing.LIVE
    assert dealing.unit("tests/e2e/test_drops.py::test_b") == dealing.LIVE
    assert dealing.unit("tests/reading/test_reader.py::test_a") == dealing.unit(dealing.TORCH[0])
    use = re.compile(r'(later|importorskip)\(("[^)]*)?"(torch|megatron)[".]')
    found = {
        file.relative_to(CHECKOUT).as_posix()
        for file in (CHECKOUT / "tests").rglob("test_*.py")
        if use.search(file.read_text())
    }
    found -= {"tests/test_docs.py"}  # its slow tests alone
    assert {name for name in found if not name.startswith(dealing.TORCH)} == set()
    assert len(found) > 15


def test_what_takes_long_comes_first_and_modules_are_found_by_their_names():
    tests = ["tests/run/test_x.py::test_a", *(f"{path}::test_a" for path in dealing.FIRST)]
    ranked = sorted(tests, key=dealing.rank)
    assert ranked == [*tests[1:], tests[0]]
    first, second, after = (
        f"{path}::test_a" for path in (*dealing.TORCH[:2], "tests/run/test_x.py")
    )
    waits = {first}
    tests = [after, first, second]
    tests.sort(key=lambda test: dealing.rank(test, test in waits))
    assert tests == [second, first, after]
    assert [path for path in dealing.FIRST if not (CHECKOUT / path).exists()] == []
    assert {__name__, "tests.chess.kernels.test_rules"} <= set(dealing.modules(CHECKOUT / "tests"))


def test_each_worker_imports_its_share_first(tmp_path, monkeypatch):
    package = tmp_path / "some_tests"
    (package / "deep").mkdir(parents=True)
    texts = ["", "", "raise ImportError", "import pytest; pytest.skip(allow_module_level=True)", ""]
    for number, text in enumerate(texts):
        (package / f"deep/test_{number}.py").write_text(text)
    (package / "helper.py").touch()
    names = dealing.modules(package)
    assert names == [f"some_tests.deep.test_{number}" for number in range(5)]
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(place: int) -> list[str]:
        dealing.import_share(names, place, 2)
        return [name for name in names if sys.modules.pop(name, None)]

    assert imported(0) == []
    assert imported(1) == [names[4]]
    for number in (2, 3):
        (package / f"deep/test_{number}.py").write_text("x = 1")
    assert imported(1) == names[2:]
