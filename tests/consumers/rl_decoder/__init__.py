"""RL-Decoder, followed to the letter: which lines, annotations and traces it reads."""

from tests.consumers.matrix import Consumer

RL_DECODER = Consumer("RL-Decoder", "commit e45292b")
