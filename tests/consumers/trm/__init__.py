"""TRM (TinyRecursiveModels): its reader in `reader.py`, its evaluator of ARC in `evaluator.py`."""

from typing import Final

from tests.consumers.matrix import Consumer

TRM: Final = Consumer("TRM", "commit e7b6871")
