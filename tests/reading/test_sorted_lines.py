"""Lines found by bisecting are those that a scan finds."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from gristmill.reading.reader import lines_from


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40))), st.integers(-1, 31))
def test_the_lines_from_a_key_on_are_those_of_a_scan(
    made: list[tuple[int, int]], wanted: int
) -> None:
    lines = [json.dumps([key, "x" * size]).encode() + b"\n" for key, size in sorted(made)]
    found = lines_from(io.BytesIO(b"".join(lines)), lambda line: json.loads(line)[0], wanted)
    assert list(found) == [line for line in lines if json.loads(line)[0] >= wanted]


def test_few_lines_of_many_are_read() -> None:
    asked = []

    def key(line: bytes) -> int:
        asked.append(line)
        return int(line)

    file = io.BytesIO(b"".join(b"%d\n" % number for number in range(100_000)))
    assert next(lines_from(file, key, 77_777)) == b"77777\n"
    assert len(asked) < 40
