"""The seconds and the seed of long suites."""

import pytest

from tests import budget


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
