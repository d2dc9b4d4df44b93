"""The seconds and the seed of long suites."""

import pytest

from tests import budget, conftest, dealing
from tests.paths import CHECKOUT


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv(budget.SECONDS, "2")
    monkeypatch.setenv(budget.SEED, "a")
    return monkeypatch


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget.SECONDS, raising=False)


@pytest.mark.usefixtures("unlimited")
def test_without_seconds_a_suite_does_all_of_it_in_order() -> None:
    assert budget.seconds() is None
    assert budget.count(1000, each_second=0.1) == 1000
    assert budget.chosen("kills", range(50), each=100) == list(range(50))
    assert list(budget.sample("kills", range(50))) == list(range(50))


def test_a_sample_depends_on_the_seed_and_the_suite(limited: pytest.MonkeyPatch) -> None:
    first = budget.chosen("kills", range(100), each=0.2)
    assert len(first) == 10 and first == sorted(first)
    assert budget.chosen("kills", range(100), each=0.2) == first
    assert budget.chosen("faults", range(100), each=0.2) != first
    limited.setenv(budget.SEED, "b")
    assert budget.chosen("kills", range(100), each=0.2) != first


def test_a_sample_ends_with_its_seconds(limited: pytest.MonkeyPatch) -> None:
    now = 0.0
    limited.setattr("tests.budget.time.monotonic", lambda: now)
    taken = []
    for item in budget.sample("kills", range(100), share=0.5):
        taken.append(item)
        now += 0.3
    assert len(taken) == 4 and len(set(taken)) == 4
    taken = []
    for item in budget.sample("kills", range(100), least=7):
        taken.append(item)
        now += 100
    assert len(taken) == 7


def test_the_number_of_examples_follows_the_seconds(limited: pytest.MonkeyPatch) -> None:
    assert budget.count(1000, each_second=30) == 60
    assert budget.count(1000, each_second=3000) == 1000
    assert budget.count(1000, each_second=0.001) == 1
    limited.setenv(budget.SECONDS, "0")
    with pytest.raises(ValueError, match="above 0"):
        budget.seconds()


def test_the_seed_is_the_commit_unless_it_is_set(limited: pytest.MonkeyPatch) -> None:
    assert budget.seed() == "a"
    limited.delenv(budget.SEED)
    assert budget.seed() not in ("", "a")


def test_a_share_of_tests_is_dealt_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tests/test_x.py::test_{number}" for number in range(300)]

    def dealt(seed: str) -> list[str]:
        monkeypatch.setenv(budget.SEED, seed)
        return [name for name in names if budget.is_dealt(name, 0.4)]

    assert 90 < len(dealt("a")) < 150 and dealt("a") == dealt("a") != dealt("b")
    # Each test comes in some commit, and none comes in all.
    some = [set(dealt(str(seed))) for seed in range(40)]
    assert set.union(*some) == set(names) and not set.intersection(*some)
    assert all(budget.is_dealt(name, 1) for name in names)
    assert not any(budget.is_dealt(name, 0) for name in names)


def test_a_run_with_a_budget_leaves_slow_tests_to_other_commits(
    limited: pytest.MonkeyPatch,
) -> None:
    names = [f"tests/e2e/test_x.py::test_{number}" for number in range(300)]

    def later(seed: str) -> set[str]:
        limited.setenv(budget.SEED, seed)
        return {name for name in names if budget.is_for_later(name)}

    assert 210 < len(later("a")) < 270
    assert not set.intersection(*(later(str(seed)) for seed in range(40)))
    limited.delenv(budget.SECONDS)
    assert not later("a")


class Item:
    """What the hook needs of a test."""

    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid = nodeid
        self.marks = {mark.name: mark.mark for mark in marks}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks[mark.name] = mark.mark


class Config:
    """What the hook says to pytest: the tests that it leaves out."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.hook = self

    def pytest_deselected(self, items: list[Item]) -> None:
        self.left += [item.nodeid for item in items]


def collected(*items: Item) -> tuple[list[Item], list[str]]:
    """The tests that stay, and the names of the others."""
    config, stay = Config(), list(items)
    conftest.pytest_collection_modifyitems(config, stay)  # type: ignore[arg-type]
    return stay, config.left


def test_a_sampled_test_is_slow_where_the_seed_leaves_it_out(
    pytestconfig: pytest.Config, limited: pytest.MonkeyPatch
) -> None:
    lines = [line for line in pytestconfig.getini("markers") if line.startswith("sampled(share)")]
    assert len(lines) == 1
    limited.delenv(budget.SECONDS)
    items = [Item(f"tests/test_x.py::test_{n}", pytest.mark.sampled(n)) for n in (0, 1)]
    items.append(Item("tests/test_x.py::test_it"))
    stay, left = collected(*items)
    assert [list(item.marks) for item in stay] == [["sampled", "slow"], ["sampled"], []]
    assert left == []


def test_of_each_sampled_test_with_cases_one_is_dealt(limited: pytest.MonkeyPatch) -> None:
    limited.delenv(budget.SECONDS)
    rarely = pytest.mark.sampled(0.01)
    taken = set()
    for seed in map(str, range(12)):
        limited.setenv(budget.SEED, seed)
        items = [
            Item(f"tests/test_x.py::test_{n}[{case}]", rarely) for n in "ab" for case in "cdef"
        ]
        items += [Item("tests/test_x.py::test_alone[case]", pytest.mark.sampled(1e-9))]
        stay, _ = collected(*items)
        quick = [item.nodeid for item in stay if "slow" not in item.marks]
        for n in "ab":
            assert [name for name in quick if f"test_{n}[" in name]
        assert len(quick) < 5 and "tests/test_x.py::test_alone[case]" not in quick
        taken.update(quick)
    assert len(taken) > 4


def test_what_make_test_leaves_is_files_that_take_long(
    pytestconfig: pytest.Config, limited: pytest.MonkeyPatch
) -> None:
    assert [line for line in pytestconfig.getini("markers") if line.startswith("left: ")]
    limited.delenv(budget.SECONDS)
    names = [
        f"{folder}test_{number}.py::test_{each}"
        for folder in (*dealing.LONG, "tests/keys/")
        for number in range(20)
        for each in "ab"
    ]
    found = set()
    for seed in "abcdefgh":
        limited.setenv(budget.SEED, seed)
        stay, none = collected(*map(Item, names))
        assert len(stay) == len(names) and none == []
        left = {item.nodeid for item in stay if "left" in item.marks}
        # All tests of a file are left, or none is.
        assert {name for name in names if f"{dealing.file_of(name)}::test_a" in left} == left
        assert not any(name.startswith("tests/keys/") for name in left)
        assert 0.5 < len(left) / 40 / len(dealing.LONG) < 0.7
        found.add(frozenset(left))
    assert len(found) == 8


def test_what_takes_long_is_there() -> None:
    assert [
        folder for folder in dealing.LONG if not list((CHECKOUT / folder).glob("test_*.py"))
    ] == []


def test_what_is_left_for_later_is_sampled_or_starts_dagster(limited: pytest.MonkeyPatch) -> None:
    limited.setattr(budget, "NOW", 0)
    slow, of_none, of_all = pytest.mark.slow, pytest.mark.sampled(0), pytest.mark.sampled(1)
    stay, left = collected(
        Item("tests/test_x.py::test_slow", slow),
        Item("tests/test_x.py::test_left", of_none),
        Item("tests/test_x.py::test_dealt", of_all),
        Item("tests/test_x.py::test_both", of_all, slow),
        Item("tests/e2e/test_x.py::test_live", slow),
        Item("tests/e2e/test_x.py::test_quick"),
        Item(f"{dealing.BROWSER[0]}::test_seen", slow),
    )
    assert [name.rpartition("_")[2] for name in left] == ["left", "both", "live"]
    assert {item.nodeid.rpartition("_")[2] for item in stay} == {"slow", "dealt", "quick", "seen"}
    limited.setattr(budget, "NOW", 0.5)
    for file in map(str, range(20)):
        tests = [Item(f"tests/e2e/test_{file}.py::test_{n}", slow) for n in range(9)]
        assert len(collected(*tests)[1]) in (0, 9)
    limited.setattr(budget, "NOW", 1)
    assert collected(Item("tests/e2e/test_x.py::test_live", slow))[1] == []
