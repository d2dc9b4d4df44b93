"""The archive of elite games as a resource: its numbers have bounds."""

from __future__ import annotations

import pytest

from assets.choices import chosen_values
from gristmill.chess.config import archive_config
from resources import EliteArchive


def test_the_numbers_reach_the_download() -> None:
    archive = EliteArchive(
        base_address="http://127.0.0.1:1/", timeout_seconds=86_400, attempts=1000, backoff_seconds=0
    )
    config = archive_config(**chosen_values(archive))
    fetch = config.fetch
    assert config.url_template == "http://127.0.0.1:1/lichess_elite_{month}.zip"
    assert (fetch.timeout, fetch.attempts, fetch.backoff) == (86_400, 1000, 0)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("timeout_seconds", 0),
        ("timeout_seconds", 86_401),
        ("attempts", 0),
        ("attempts", 1001),
        ("backoff_seconds", -1),
        ("backoff_seconds", 3601),
    ],
)
def test_a_number_out_of_its_range_is_refused(field: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=field):
        EliteArchive(**{field: wrong})  # type: ignore[arg-type]
