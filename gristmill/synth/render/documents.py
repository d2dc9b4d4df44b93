"""Conversations assembled into the arrays of one split: tokens, labels' spans, boundaries.

How a conversation is read belongs to `plain.py`, how arrays lie in files to
`indexed.py`. Source: `docs/formats/synth.md#label-alignment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.synth.render.templates import Conversation
from gristmill.vocabularies import encode


@dataclass(frozen=True)
class Documents:
    """N tokens of D documents, back to back, with R message runs in all.

    tokens: int32 [N]. span: uint8 [N], of the label: position t speaks of t+1.
    lengths: int32 [D], tokens of each document.
    runs: int32 [R], tokens of each message, the EOD being the last run of its document.
    run_counts: int32 [D], runs of each document.
    """

    tokens: encode.Tokens
    span: npt.NDArray[np.uint8]
    lengths: encode.Tokens
    runs: encode.Tokens
    run_counts: encode.Tokens


def assemble(conversations: Sequence[Conversation], vocabulary: Path) -> Documents:
    """Encode the bodies of the conversations and put everything in its place."""
    if not conversations:
        none = np.zeros(0, dtype=np.int32)
        return Documents(none, np.zeros(0, dtype=np.uint8), none, none, none)
    texts = [body for conversation in conversations for body in conversation.bodies]
    bodies = encode.encode(texts, encode.encoding(vocabulary))
    pieces: list[memoryview] = []
    position = 0
    for shape, own, _ in conversations:
        templates = shape.templates
        for template, body in zip(templates, bodies[position : position + len(own)], strict=False):
            pieces.append(template)
            pieces.append(body)
        pieces.append(templates[-1])
        position += len(own)
    shapes = [conversation.shape for conversation in conversations]
    runs = np.concatenate([shape.fixed for shape in shapes])
    has_body = np.concatenate([shape.has_body for shape in shapes])
    runs[has_body] += np.fromiter((body.nbytes >> 2 for body in bodies), np.int32, len(bodies))
    run_counts = np.fromiter((len(s.fixed) for s in shapes), dtype=np.int32, count=len(shapes))
    firsts = np.cumsum(run_counts, dtype=np.int64) - run_counts
    lengths = np.add.reduceat(runs, firsts, dtype=np.int32)
    span = np.repeat(np.concatenate([shape.spans for shape in shapes]), runs)
    # Both kinds of pieces are 32 bits wide, and bytes are joined ten times faster than arrays.
    tokens = np.frombuffer(b"".join(pieces), dtype=np.int32)
    return Documents(tokens, _of_labels(span, lengths), lengths, runs, run_counts)


def _of_labels(span: npt.NDArray[np.uint8], lengths: encode.Tokens) -> npt.NDArray[np.uint8]:
    """Shift each document's span by one: what stands at t speaks of the label t+1.

    The last position of a document has no label and gets 0, not the first span
    of the next document.
    """
    shifted = np.empty_like(span)
    shifted[:-1] = span[1:]
    shifted[np.cumsum(lengths, dtype=np.int64) - 1] = 0
    return shifted
