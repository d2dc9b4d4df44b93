"""The tokenizer of a training job, compared with the tokens that SYNTH's documents have.

Source: `docs/formats/synth.md#tokenizer-check`.
"""

from __future__ import annotations

from typing import Any, Final

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
_CURE: Final = (
    f"give the config a tokenizer with eod = {ids.ENDOFTEXT} and pad = -1, as docs/synth.md shows"
)


def contradiction(tokenizer: Any, pad: Any) -> str | None:
    """What a tokenizer says that the tokens of the documents contradict, with both numbers."""
    try:
        eod = tokenizer.eod
    except (AttributeError, NotImplementedError):
        eod = None
    if eod != ids.ENDOFTEXT:
        return (
            f"tokenizer.eod is {eod}, and the EOD of its documents (o200k_harmony) is"
            f" {ids.ENDOFTEXT}; tokenizer.pad is {pad}: {_CURE}"
        )
    if pad in _USED or (pad is not None and 0 <= pad < ids.BODY_LIMIT):
        kind = ids.name(pad) if pad in _USED else "ordinary text"
        return (
            f"tokenizer.pad is {pad}, and in its documents (o200k_harmony) {pad} is {kind}, of"
            f" which Megatron would make 0; tokenizer.eod is {eod}: {_CURE}"
        )
    size = getattr(tokenizer, "vocab_size", None)
    if size is not None and size <= max(_USED):
        return (
            f"tokenizer.vocab_size is {size}, and its documents have ids up to {max(_USED)}: give"
            f" the config the vocabulary of o200k_harmony, padded to {ids.PADDED_VOCABULARY} ids"
        )
    return None
