"""How the tokens of one kind of puzzle are numbered, and how long its sequences are.

Source: `docs/formats/puzzles.md#contract`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """The numbers that all examples of a dataset share.

    seq_len: tokens of an input, and of a label.
    vocab_size: tokens are 0 to vocab_size - 1, the padding included.
    pad_id: the token of padding; default 0.
    ignore_label_id: the label that has no loss; None: every label has one. Default 0.
    blank_identifier_id: the identifier of puzzles without one; default 0.

    Raises ValueError for numbers that exclude each other.
    """

    seq_len: int
    vocab_size: int
    pad_id: int = 0
    ignore_label_id: int | None = 0
    blank_identifier_id: int = 0

    def __post_init__(self) -> None:
        if self.seq_len < 1 or self.vocab_size < 1:
            raise ValueError("seq_len and vocab_size must be at least 1")
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError("pad_id must be a token: 0 to vocab_size - 1")
