"""Laws of the Harmony shards. Source: `docs/formats/synth.md#harmony-laws`."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.synth.builders import harmony_shard


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of Harmony shards: of one, or of all in a folder without record."""
    subject.leaves("manifest.json", "synth/harmony_manifest")
    partition, shards = subject.partition, harmony_shard.shards(subject.folder)
    if partition is not None:
        shards = {partition: shards[partition]} if partition in shards else {}
    if not shards:
        wanted = harmony_shard.shard_name(partition or "XX")
        yield Violation("shards", ".", f"there is no {wanted}")
    for shard in shards.values():
        yield from harmony_shard.shard_violations(shard)
