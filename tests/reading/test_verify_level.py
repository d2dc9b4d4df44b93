"""The three levels, and the two truth values that chess took before."""

from __future__ import annotations

import pytest

from gristmill.reading.verify_level import LEVELS, verify_level


def test_levels_stay_and_truth_values_have_one() -> None:
    assert [verify_level(level) for level in LEVELS] == ["none", "sizes", "hash"]
    assert (verify_level(True), verify_level(False)) == ("hash", "sizes")


@pytest.mark.parametrize("value", ["", "Hash", "size", 1, None])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="verify must be one of 'none', 'sizes', 'hash', not"):
        verify_level(value)  # type: ignore[arg-type]
