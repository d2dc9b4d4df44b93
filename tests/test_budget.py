"""The part of a long suite that each commit runs."""

import pytest

from tests import budget


@pytest.fixture(autouse=True)
def in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(budget.WHOLE, raising=False)


def test_a_suite_takes_a_part_or_all_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert budget.some(range(100), each=3) == [0, 33, 66, 99]
    assert budget.some(range(100), each=3, share=0.5) == [0, 99]
    assert budget.some(range(100), each=60) == [0]
    assert budget.some(range(100), each=60, least=3) == [0, 49, 99]
    assert budget.some(range(3), each=0.1) == [0, 1, 2]
    assert budget.some([], each=1) == []
    assert budget.count(1000, each_second=30) == 360
    assert budget.count(1000, each_second=3000) == 1000
    assert budget.count(1000, each_second=0.001) == 1
    monkeypatch.setenv(budget.WHOLE, "1")
    assert budget.some(range(100), each=60) == list(range(100))
    assert budget.count(1000, each_second=0.001) == 1000
