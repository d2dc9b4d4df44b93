"""DistillKit, followed to the letter: the folder that it loads, and what it asks of a row.

The library `datasets` is that of `tests/consumers/datasets`.
"""

from tests.consumers.matrix import Consumer

DISTILLKIT = Consumer("DistillKit", "commit a61c2e7, datasets 5.2.0")
