"""No module imports itself through others."""

import pytest

from tests.architecture.graph import circles, graph
from tests.paths import CHECKOUT


@pytest.mark.slow
def test_no_circle_of_imports_stands_in_the_checkout() -> None:
    arrows = graph(CHECKOUT)
    assert len(arrows) > 150
    assert circles(arrows) == []


def test_a_circle_of_three_modules_is_found() -> None:
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(arrows) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": set()}) == []
