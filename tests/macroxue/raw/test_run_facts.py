"""Valuation names by id, and those that the compiled scanner reads itself."""

from __future__ import annotations

import pytest

from gristmill.macroxue.format.valuation_types import MAX_NAMES, STANDARD_NAMES
from gristmill.macroxue.raw.run_facts import Names, TooManyNames


def test_the_scanner_is_given_the_further_names_that_json_spells_as_they_are() -> None:
    names = Names()
    assert names.plain().shape == (0, 34)
    given = [*STANDARD_NAMES, "mine", 'a "quoted" one', "règle", "x" * 32, "x" * 33, "", "mine"]
    assert [names.id_of(name) for name in given] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 3]
    plain = [
        (row[1], bytes(row[2 : 2 + row[0]]), bytes(row[2 + row[0] :])) for row in names.plain()
    ]
    assert plain == [(3, b"mine", bytes(28)), (6, b"x" * 32, b""), (8, b"", bytes(32))]


def test_more_names_than_ids_are_refused_and_known_ones_stay() -> None:
    names = Names()
    for number in range(MAX_NAMES - len(STANDARD_NAMES)):
        names.id_of(f"name {number}")
    with pytest.raises(TooManyNames, match=f"would be name {MAX_NAMES + 1}, but a pack has at"):
        names.id_of("one more")
    assert names.id_of(STANDARD_NAMES[0]) == 0
    assert len(names.known) == MAX_NAMES
