"""tiktoken with its own patterns: what encoding is measured against."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str

from bench import kit
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    O200K_PATTERN,
    Vocabulary,
    find,
    read_verified,
)

# The seven alternatives of o200k side by side, without our grouping.
_PATTERNS = {
    GPT2.name: r50k_pat_str,
    O200K.name: O200K_PATTERN.replace("(?:[^", "[^", 1).replace(r"[\r\n]+)|", r"[\r\n]+|", 1),
}


def plain_tiktoken(pinned: Vocabulary, file: Path) -> tiktoken.Encoding:
    """A vocabulary as tiktoken ships it, from the local file."""
    ranks = {}
    for line in read_verified(pinned, file).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(
        name=pinned.name,
        pat_str=_PATTERNS[pinned.name],
        mergeable_ranks=ranks,
        special_tokens={},
    )


def compare(
    what: str,
    build: Callable[[], object],
    pinned: Vocabulary,
    texts: Sequence[str],
    given: kit.Given,
    least: float,
    *,
    before: Callable[[], object] = lambda: None,
) -> None:
    """Compare a build with encoding its texts one by one by tiktoken alone, all in one process."""
    encode = plain_tiktoken(pinned, find(pinned, kit.DATA)).encode_ordinary
    size = sum(map(len, texts)) / 1e6

    def ours() -> float:
        build()
        return size

    def theirs() -> float:
        for text in texts:
            encode(text)
        return size

    kit.compare(
        *(f"{what}, {size:.1f} M characters", ours, theirs, "M characters per CPU second"),
        least=least,
        rounds=given.rounds,
        clock=kit.cpu_seconds,
        around=True,
        before=before,
    )
