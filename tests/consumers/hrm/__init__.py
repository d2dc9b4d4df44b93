"""HRM: its reader is `tests/puzzles/read/plain_reader.py`, its evaluator `evaluator.py`."""

from typing import Final

from tests.consumers.matrix import Consumer

HRM: Final = Consumer("HRM", "commit 42410da")
