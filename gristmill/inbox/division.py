"""How a drop is divided: its files into shards, and what they hold into two splits."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path


def contiguous_run(paths: Sequence[Path], shard_index: int, shards: int) -> list[Path]:
    """Return the files of one shard: consecutive ones, one more in each of the first shards.

    500 files and 4 shards give 001-125, 126-250, 251-375 and 376-500. Raises
    ValueError for another shard_index.
    """
    if not 0 <= shard_index < shards:
        raise ValueError(f"shard_index {shard_index}: must be from 0 to {shards - 1}")
    length, longer = divmod(len(paths), shards)
    begin = length * shard_index + min(shard_index, longer)
    return list(paths[begin : begin + length + (shard_index < longer)])


def threshold(valid_fraction: float) -> int:
    """Return the hash value below which a conversation is valid: floor(fraction * 2**64).

    valid_fraction: from 0 to 1.

    The product is exact in decimal, so 0.1 means one tenth and not the nearest
    binary fraction.
    """
    return int(Decimal(str(valid_fraction)) * (1 << 64))


def value(synth_id: str) -> int:
    """Return the 8-byte BLAKE2b digest of a synth_id as an unsigned big-endian number.

    A digest of 8 bytes is not the beginning of the digest of 64 bytes.
    """
    return int.from_bytes(blake2b(synth_id.encode(), digest_size=8).digest(), "big")


def is_valid(synth_id: str, limit: int) -> bool:
    """Return whether a conversation is in the valid split.

    The splits nest: a conversation that is valid at one fraction is valid at
    every larger one.
    """
    return value(synth_id) < limit
