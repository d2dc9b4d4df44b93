"""The day on which these tests work, so that none fails that runs at midnight."""

from collections.abc import Iterator
from typing import Final

import pytest

from gristmill.reasoning.builds import today
from tests.report_day import working_on

DAY: Final = today().isoformat()


@pytest.fixture(autouse=True, scope="module")
def one_day() -> Iterator[None]:
    with working_on(DAY):
        yield
