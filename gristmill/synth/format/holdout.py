"""Which conversations are held out: a rule on the synth_id alone.

Source: `docs/formats/synth.md#hash-rule`.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import blake2b


def threshold(valid_fraction: float) -> int:
    """The hash value below which a conversation is valid: floor(fraction * 2**64).

    Exact in decimal, so 0.1 means a tenth and not its nearest binary fraction.
    """
    return int(Decimal(str(valid_fraction)) * (1 << 64))


def value(synth_id: str) -> int:
    """The 8-byte BLAKE2b digest of the UTF-8 synth_id as a big-endian number.

    blake2b with digest_size=8 is a hash of its own, not the beginning of the long one.
    """
    return int.from_bytes(blake2b(synth_id.encode(), digest_size=8).digest(), "big")


def is_valid(synth_id: str, limit: int) -> bool:
    """Whether the conversation is in the valid split; `limit` comes from `threshold`.

    The splits nest: what is valid at a fraction is valid at every larger one.
    """
    return value(synth_id) < limit
