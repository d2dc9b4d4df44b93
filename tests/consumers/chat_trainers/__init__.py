"""Trainers of chats, followed to the letter: which messages each takes of JSON Lines."""

from tests.consumers.matrix import Consumer

LLAMA_FACTORY = Consumer("LLaMA-Factory", "commit ff6d4d1")
"""`dataset_info.json`, and turns of user and assistant behind a system message."""
MEGATRON_LM = Consumer("Megatron-LM", "commit d98e8a6")
"""`VarlenDataset`: role and content of each message, behind a system message."""
NANOCHAT_SFT = Consumer("nanochat", "commit 92d63d4")
"""`render_conversation`: texts of user and assistant in turns."""
