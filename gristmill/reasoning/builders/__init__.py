"""Drop to normalised JSONL, to token shards, to alignment, to reports."""
