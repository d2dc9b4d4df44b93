"""A tokenizer of 264 tokens in the drops, and a recipe that names it, for tests."""

import base64
import json
import tempfile
from pathlib import Path

from gristmill.vocabularies.placing import put

EOD = "<|endoftext|>"
_TOKENS = (b"th", b"he", b"in", b"the", b" t", b" the")


def put_tiny(
    data_root: Path, name: str = "tiny", *, dense: bool = False, last: bytes = b"  "
) -> Path:
    """Write `drops/tokenizers/<name>/`; returns the folder.

    dense: whether gigatoken takes its ranks; default False: the proof, which takes seconds, ends
        before it begins.
    last: its last token.
    """
    tokens = [bytes([octet]) for octet in range(256)] + [*_TOKENS, last]
    ranks = [*range(len(tokens) - 1), len(tokens) - (1 if dense else 0)]
    lines = [
        base64.b64encode(token) + b" %d\n" % rank for token, rank in zip(tokens, ranks, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tiny.tiktoken"
        file.write_bytes(b"".join(lines))
        special = {EOD: ranks[-1] + 1}
        return put(file, data_root, name=name, eod=EOD, pattern="gpt2", special=special).parent


def put_recipe(data_root: Path, name: str = "mine", **values: object) -> Path:
    """Write `drops/reasoning/recipes/<name>.toml`: the corpus gsm8k by the tokenizer tiny."""
    keys = {"corpora": ["gsm8k"], "tokenizer": "tiny", "seq_len": 64, "tokens_per_shard": 640}
    path = data_root / "drops/reasoning/recipes" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in (keys | values).items()]
    path.write_text("".join(lines))
    return path
