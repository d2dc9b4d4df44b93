"""Laws of the Megatron datasets of a shard: files, types, equal boundaries.

See also `values.py`: tokens, mask and span; `trace.py`: documents and their rows.
Source: `docs/formats/synth.md#shard-laws`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from gristmill import provenance
from gristmill.contract import GristmillError, Violation
from gristmill.synth.format import aligned, indexed
from gristmill.synth.format.indexed import Indexed
from gristmill.synth.laws import trace, values
from gristmill.synth.laws.shards import SPLITS, shard_numbers


def kd_shard_laws(root: Path, partition: str | None) -> Iterator[Violation]:
    """Yield the violations of a published shard. The valid fraction is that of its record.

    root: the dataset.
    partition: number of the shard ("00"); None for all shards.

    Raises GristmillError if the record cannot be read.
    Source: `docs/formats/synth.md#shard-laws`.
    """
    path = provenance.record_path(root, partition, shared=True)
    fraction = provenance.read_record(path).config["valid_fraction"] if path.exists() else None
    yield from kd_laws(root, partition, fraction)


def kd_laws(
    root: Path, partition: str | None = None, valid_fraction: float | None = None
) -> Iterator[Violation]:
    """Yield the violations of Megatron datasets.

    root: the dataset.
    partition: number of one shard ("00"); default all shards.
    valid_fraction: the configured fraction, which the split must obey; default not
        tested.

    Memory does not grow with the datasets.
    Source: `docs/formats/synth.md#shard-laws`.
    """
    numbers = [partition] if partition is not None else shard_numbers(root)
    if not numbers:
        yield Violation("shards", ".", "there is no shard in train or valid, and no trace")
    for number in numbers:
        tokens: dict[str, Indexed | None] = dict.fromkeys(SPLITS)
        for split in SPLITS:
            tokens[split] = yield from _split_laws(root, split, number)
        yield from trace.check(root, number, tokens, valid_fraction)


def _split_laws(root: Path, split: str, number: str) -> Generator[Violation, None, Indexed | None]:
    """Yield the violations of one split; return its tokens, None if they cannot be read."""
    prefix = root / split / f"shard_{number}_tokens"
    where = f"{split}/{prefix.name}"
    if not prefix.with_name(prefix.name + ".idx").exists():
        for path in sorted((root / split).glob(f"shard_{number}_*")):
            yield Violation("empty split", f"{split}/{path.name}", "there is no tokens index")
        return None
    try:
        three = {name: indexed.read(aligned.sibling(prefix, name)) for name in aligned.DTYPES}
    except (GristmillError, OSError) as error:
        yield Violation("readable", where, str(error))
        return None
    broken = list(_aligned(where, three))
    yield from broken or values.check(where, three)
    return three["tokens"]


def _aligned(where: str, three: dict[str, Indexed]) -> Iterator[Violation]:
    for name, dtype in aligned.DTYPES.items():
        if three[name].dtype != dtype:
            yield Violation("dtypes", where, f"{name} is {three[name].dtype}, not {dtype}")
        if not indexed.same_boundaries(three[name], three["tokens"]):
            yield Violation("equal boundaries", where, f"lengths of {name} and tokens differ")
