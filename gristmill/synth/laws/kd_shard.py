"""Laws of the Megatron datasets of a shard: files, types, equal boundaries.

See also `values.py`: tokens, mask and span; `trace.py`: documents and their rows.

Source: `docs/formats/synth.md#shard-laws`, `docs/formats/synth.md#unknown-keys`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

from gristmill.contract import GristmillError, Violation
from gristmill.families import Subject
from gristmill.provenance import Record
from gristmill.run.progress import current_progress
from gristmill.synth.format import aligned, indexed
from gristmill.synth.format.indexed import Indexed
from gristmill.synth.laws import trace
from gristmill.synth.laws.shards import SPLITS, shard_numbers
from gristmill.synth.laws.values import Values


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a shard; another program writes no trace."""
    missing = subject.missing({"trace": "trace, split by synth_id"})
    subject.leaves("manifest.json", "synth/kd_manifest")
    fraction = subject.config.get("valid_fraction")
    return kd_laws(subject.folder, subject.partition, fraction, has_traces=not missing)


def notes(record: Record) -> Iterator[Violation]:
    """Yield the keys of messages that a shard does not have, since they are not rendered.

    record: of the shard.
    """
    if found := unknown_keys(record.counts):
        yield Violation("unknown_keys", f"{record.artifact} [{record.partition}]", found)


def unknown_keys(counts: Mapping[str, int | float]) -> str:
    """Return which keys of messages are not rendered, and how often; empty if there are none.

    counts: of the shard's record.
    """
    kind = "unknown_keys/"
    names = [
        f"{name.removeprefix(kind)} ({int(count):,})"
        for name, count in counts.items()
        if name.startswith(kind)
    ]
    return f"keys of messages that are not rendered: {', '.join(names)}" if names else ""


def kd_laws(
    root: Path,
    partition: str | None = None,
    valid_fraction: float | None = None,
    has_traces: bool = True,
) -> Iterator[Violation]:
    """Yield the violations of Megatron datasets.

    valid_fraction: the configured fraction, which the split must obey; default not
        tested.
    has_traces: False where another program wrote no trace: its laws are left out. Default True.

    Memory does not grow with the datasets. The current progress gets the stage "laws" in shards.
    """
    numbers = [partition] if partition is not None else shard_numbers(root)
    if not numbers:
        yield Violation("shards", ".", "there is no shard in train or valid, and no trace")
    with current_progress().stage("laws", "files", len(numbers)) as stage:
        for number in numbers:
            yield from _shard_laws(root, number, valid_fraction, has_traces)
            stage.advance(1)


def _shard_laws(
    root: Path, number: str, valid_fraction: float | None, has_traces: bool
) -> Iterator[Violation]:
    splits: dict[str, Values | None] = {}
    for split in SPLITS:
        splits[split] = yield from _split(root, split, number)
    # The trace reads all documents, so their values are checked meanwhile.
    broken = list(trace.check(root, number, splits, valid_fraction)) if has_traces else []
    for values in splits.values():
        if values is not None:
            yield from values.violations()
    yield from broken


def _split(root: Path, split: str, number: str) -> Generator[Violation, None, Values | None]:
    """Yield what is wrong with the files of a split; return it, None if it cannot be read."""
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
    yield from broken
    return Values(where, three, checked=not broken)


def _aligned(where: str, three: dict[str, Indexed]) -> Iterator[Violation]:
    for name, dtype in aligned.DTYPES.items():
        if three[name].dtype != dtype:
            yield Violation("dtypes", where, f"{name} is {three[name].dtype}, not {dtype}")
        if not indexed.same_boundaries(three[name], three["tokens"]):
            yield Violation("equal boundaries", where, f"lengths of {name} and tokens differ")
