"""llm.c and modded-nanogpt, followed to the letter: what each reads of a `.bin` file."""

from tests.consumers.matrix import Consumer

LLM_C = Consumer("llm.c", "commit f1e2ace")
NANOGPT = Consumer("modded-nanogpt", "commit f411b3d")
