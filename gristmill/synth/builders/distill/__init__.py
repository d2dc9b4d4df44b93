"""Conversations to datasets of token ids, labels and spans that `datasets` opens."""
