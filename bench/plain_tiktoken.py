"""tiktoken with its own pattern: what encoding SYNTH is measured against."""

from __future__ import annotations

import base64
from pathlib import Path

import tiktoken

from gristmill.vocabularies.engine import O200K_PATTERN
from gristmill.vocabularies.pinned import O200K, read_verified


def plain_tiktoken(vocabulary: Path) -> tiktoken.Encoding:
    """tiktoken's own o200k_base from the local file."""
    ranks = {}
    for line in read_verified(O200K, vocabulary).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    # The seven alternatives side by side, without our grouping.
    pattern = O200K_PATTERN.replace("(?:[^", "[^", 1).replace(r"[\r\n]+)|", r"[\r\n]+|", 1)
    return tiktoken.Encoding(
        name="o200k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
