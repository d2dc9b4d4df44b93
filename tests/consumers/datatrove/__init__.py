"""datatrove, followed to the letter: the streams of tokens that its datasets cut into windows."""

from tests.consumers.matrix import Consumer

DATATROVE = Consumer("datatrove", "commit a649de7")
"""`.ds` with `.ds.index` as its datasets read them: windows, and the place in a document."""
