"""litgpt, followed to the letter: what litdata, its library, reads of a folder of chunks."""

from tests.consumers.matrix import Consumer

LITGPT = Consumer("litgpt", "commit 2685705, litdata 0.2.76", "litdata")
