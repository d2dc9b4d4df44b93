"""DistillKit, followed to the letter: what it asks of a row."""

from tests.consumers.matrix import Consumer

DISTILLKIT = Consumer("DistillKit", "commit a61c2e7, datasets 5.2.0")
