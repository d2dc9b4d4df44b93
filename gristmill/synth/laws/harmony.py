"""Laws of the Harmony shards. Source: `docs/formats/synth.md#harmony-laws`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill.contract import Violation
from gristmill.synth.builders import harmony_shard


def harmony_laws(root: Path, partition: str | None = None) -> Iterator[Violation]:
    """Yield the violations of Harmony shards."""
    shards = harmony_shard.shards(root)
    if partition is not None:
        shards = {partition: shards[partition]} if partition in shards else {}
    if not shards:
        wanted = harmony_shard.shard_name(partition or "XX")
        yield Violation("shards", ".", f"there is no {wanted}")
    for shard in shards.values():
        yield from harmony_shard.shard_violations(shard)
