"""The library `datasets` of the hub."""

from tests.consumers.matrix import Consumer

DATASETS = Consumer("datasets", "5.2.0", "the program")
