"""Amounts as people read them."""

import pytest

from gristmill.run import amounts


@pytest.mark.parametrize(
    ("octets", "shown"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (1_234_567_890, "1.2 GB"),
        (5e18, "5000.0 PB"),
    ],
)
def test_bytes_are_shown_in_the_largest_fitting_unit(octets, shown):
    assert amounts.size(octets) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (185, "3 min 5 s"),
        (3599.6, "1 h 0 min"),
        (7805, "2 h 10 min"),
    ],
)
def test_lengths_of_time_are_short(seconds, shown):
    assert amounts.duration(seconds) == shown


def test_counts_have_their_unit():
    assert amounts.count(1500, "rows") == "1,500 rows"
    assert amounts.count(1500, "bytes") == "1.5 kB"
