"""nanochat, followed to the letter: which Parquet files of texts it reads, shared by its ranks."""

from tests.consumers.matrix import Consumer

NANOCHAT = Consumer("nanochat", "commit 92d63d4")
