"""The tokenizer of a training job, compared with the tokens that SYNTH's documents have."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from gristmill.synth.format import harmony_tokens as ids

_USED: Final = (
    ids.ENDOFTEXT,
    ids.RETURN,
    ids.CONSTRAIN,
    ids.CHANNEL,
    ids.START,
    ids.END,
    ids.MESSAGE,
    ids.CALL,
)
"""The control tokens of documents: `docs/formats/synth.md#value-laws`."""


class Own(NamedTuple):
    """The tokenizer of the tokens.

    name: of it. eod: id that ends a document. used: ids that may not be padding.
    below: a pad from 0 up to it is ordinary text. size: number of ids, padded.
    """

    name: str
    eod: int
    used: Collection[int]
    below: int
    size: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Own:
        """The tokenizer that a record's config names."""
        name = json.loads(config.get("render") or "{}").get("tokenizer", HARMONY.name)
        if name == HARMONY.name:
            return HARMONY
        size = int(config["ids"])
        return cls(name, int(config["eod"]), (int(config["eod"]), size - 1), size, size)


HARMONY: Final = Own("o200k_harmony", ids.ENDOFTEXT, _USED, ids.BODY_LIMIT, ids.PADDED_VOCABULARY)


def contradiction(tokenizer: Any, pad: Any, own: Own = HARMONY) -> str | None:
    """What a tokenizer says that the tokens of the documents contradict, with both numbers.

    own: the tokenizer of the documents; default: that of SYNTH.
    """
    cure = f"give the config a tokenizer with eod = {own.eod} and pad = -1, as docs/synth.md shows"
    try:
        eod = tokenizer.eod
    except (AttributeError, NotImplementedError):
        eod = None
    if eod != own.eod:
        return (
            f"tokenizer.eod is {eod}, and the EOD of its documents ({own.name}) is"
            f" {own.eod}; tokenizer.pad is {pad}: {cure}"
        )
    if pad in own.used or (pad is not None and 0 <= pad < own.below):
        kind = ids.name(pad) if own.name == HARMONY.name and pad in _USED else "ordinary text"
        return (
            f"tokenizer.pad is {pad}, and in its documents ({own.name}) {pad} is {kind}, of"
            f" which Megatron would make 0; tokenizer.eod is {eod}: {cure}"
        )
    size = getattr(tokenizer, "vocab_size", None)
    if size is not None and size <= max(own.used):
        return (
            f"tokenizer.vocab_size is {size}, and its documents have ids up to {max(own.used)}: "
            f"give the config the vocabulary of {own.name}, padded to {own.size} ids"
        )
    return None
