"""2048former, which trains on games of 2048: what it reads of a folder is in `reader.py`."""

from typing import Final

from tests.consumers.matrix import Consumer

FORMER: Final = Consumer("2048former", "commits a79c8ba and e2defc0 (value-head-v2)")
