"""Laws of the Megatron datasets of a shard: files, types, boundaries, documents and their rows.

Several conversations may have one synth_id, as the answers of one prompt that were sampled, and
then all of them are in one split. So the share of a split is one of ids, not of conversations,
and one hash value divides the splits. Source: `docs/formats/synth.md#trace-laws`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.inbox import division
from gristmill.provenance import Record
from gristmill.run.progress import current_progress
from gristmill.synth.format import harmony_tokens, megatron, parquet, trace
from gristmill.synth.format.megatron import Indexed
from gristmill.synth.laws.shards import SPLITS, shard_numbers
from gristmill.synth.laws.values import SYNTH, Form, Values

if TYPE_CHECKING:
    import pyarrow as pa


class HashBounds:
    """The highest hash of a valid conversation and the lowest hash of a train one.

    No id is in both splits if the first is below the second: the memory for this
    law does not grow with the number of conversations.
    """

    def __init__(self) -> None:
        self.highest_valid = -1
        self.lowest_train = 1 << 64

    def add(self, split: str, synth_ids: Iterable[str]) -> list[int]:
        """Take the ids of some conversations into the bounds; returns their hashes."""
        values = list(map(division.value, synth_ids))
        if split == "valid":
            self.highest_valid = max(self.highest_valid, max(values, default=-1))
        else:
            self.lowest_train = min(self.lowest_train, min(values, default=1 << 64))
        return values

    def divide(self) -> bool:
        """Return whether some threshold divides valid from train."""
        return self.highest_valid < self.lowest_train

    def divide_at(self, valid_fraction: float) -> bool:
        """Return whether the threshold of a fraction divides valid from train."""
        return self.highest_valid < division.threshold(valid_fraction) <= self.lowest_train


class HashSample:
    """Different hashes of each split; of many those with the lowest low bits, which bounds memory.

    most: number of hashes, at most; default 131,072.

    The high bits decide the split, so the choice favours none.
    """

    def __init__(self, most: int = 1 << 17) -> None:
        self._most, self._below = most, 1 << 32
        self._hashes: dict[str, set[int]] = {split: set() for split in SPLITS}

    def add(self, split: str, hashes: Iterable[int]) -> None:
        """Take the hashes of some conversations; those that are there count once."""
        self._hashes[split].update(filter(self._is_kept, hashes))
        while self._below > 1 and sum(map(len, self._hashes.values())) > self._most:
            self._below >>= 1
            for name, kept in self._hashes.items():
                self._hashes[name] = set(filter(self._is_kept, kept))

    def _is_kept(self, value: int) -> bool:
        return value & 0xFFFF_FFFF < self._below

    def counts(self) -> dict[str, int]:
        """Return the number of hashes of each split."""
        return {name: len(kept) for name, kept in self._hashes.items()}


_BATCH_ROWS: Final = 1024
_COLUMNS: Final = ("split", "document", "synth_id", "offsets")


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a shard; another program writes no trace."""
    missing = subject.missing({"trace": "trace, split by synth_id"})
    subject.leaves("manifest.json", "synth/kd_manifest")
    fraction = subject.config.get("valid_fraction")
    return kd_laws(subject.folder, subject.partition, fraction, has_traces=not missing)


def chat_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a shard of conversations, by whichever template."""
    missing = subject.missing({"trace": "trace, split by synth_id"})
    render = json.loads(str(subject.config.get("render") or "{}"))
    eod, ids = (subject.config.get(name, getattr(SYNTH, name)) for name in ("eod", "ids"))
    form = Form(render.get("template") == "harmony", False, int(str(eod)), int(str(ids)))
    return kd_laws(subject.folder, None, None, has_traces=not missing, form=form)


def notes(record: Record, _: Path) -> Iterator[Violation]:
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
    form: Form = SYNTH,
) -> Iterator[Violation]:
    """Yield the violations of Megatron datasets.

    valid_fraction: the configured fraction, which the split must obey; default not
        tested.
    has_traces: False where another program wrote no trace: its laws are left out. Default True.
    form: of the datasets; default: that of SYNTH.

    Memory does not grow with the datasets. The current progress gets the stage "laws" in shards.
    """
    numbers = [partition] if partition is not None else shard_numbers(root)
    if not numbers:
        yield Violation("shards", ".", "there is no shard in train or valid, and no trace")
    with current_progress().stage("laws", "files", len(numbers)) as stage:
        for number in numbers:
            yield from _shard_laws(root, number, valid_fraction, has_traces, form)
            stage.advance(1)


def _shard_laws(
    root: Path, number: str, valid_fraction: float | None, has_traces: bool, form: Form
) -> Iterator[Violation]:
    splits: dict[str, Values | None] = {}
    for split in SPLITS:
        splits[split] = yield from _split(root, split, number, form)
    # The trace reads all documents, so their values are checked meanwhile.
    broken = list(check(root, number, splits, valid_fraction, form)) if has_traces else []
    for values in splits.values():
        if values is not None:
            yield from values.violations()
    yield from broken


def _split(
    root: Path, split: str, number: str, form: Form
) -> Generator[Violation, None, Values | None]:
    """Yield what is wrong with the files of a split; return it, None if it cannot be read."""
    prefix = root / split / f"shard_{number}_tokens"
    where = f"{split}/{prefix.name}"
    if not prefix.with_name(prefix.name + ".idx").exists():
        for path in sorted((root / split).glob(f"shard_{number}_*")):
            yield Violation("empty split", f"{split}/{path.name}", "there is no tokens index")
        return None
    try:
        three = {name: megatron.read(megatron.sibling(prefix, name)) for name in megatron.DTYPES}
    except (GristmillError, OSError) as error:
        yield Violation("readable", where, str(error))
        return None
    broken = list(_aligned(where, three))
    yield from broken
    return Values(where, three, checked=not broken, form=form)


def _aligned(where: str, three: dict[str, Indexed]) -> Iterator[Violation]:
    for name, dtype in megatron.DTYPES.items():
        if three[name].dtype != dtype:
            yield Violation("dtypes", where, f"{name} is {three[name].dtype}, not {dtype}")
        if not megatron.same_boundaries(three[name], three["tokens"]):
            yield Violation("equal boundaries", where, f"lengths of {name} and tokens differ")


def check(
    root: Path,
    number: str,
    tokens: Mapping[str, Values | None],
    valid_fraction: float | None,
    form: Form = SYNTH,
) -> Iterator[Violation]:
    """Yield the violations between a trace and the tokens of its shard.

    root: the dataset.
    number: of the shard ("00").
    tokens: of each split, None where it has no documents; their values are checked as
        they are read.
    valid_fraction: which the split must obey; None if that is not tested.
    form: of the datasets; default: that of SYNTH.
    """
    where = trace.path(number)
    if not (root / where).exists():
        yield Violation("trace", where, "there is no trace file")
        return
    counts, bounds, sample = dict.fromkeys(tokens, 0), HashBounds(), HashSample()
    try:
        found = _rows(root / where, where, tokens, counts, bounds, sample, form.is_harmony)
        broken = next(found, None)
    except (BadInput, UnicodeDecodeError) as error:
        broken = Violation("trace", where, str(error))
    if broken is not None:
        yield broken
        return
    documents = {split: 0 if each is None else len(each) for split, each in tokens.items()}
    if counts != documents:
        rule = f"has {counts} documents, the datasets have {documents}"
        yield Violation("trace", where, rule)
    if not form.is_by_hash:
        return
    if not bounds.divide():
        rule = "no value of the synth_id hash divides train from valid"
        yield Violation("disjoint splits", where, rule)
    if valid_fraction is not None:
        if not bounds.divide_at(valid_fraction):
            yield Violation("split rule", where, f"is not the split at {valid_fraction}")
        yield from _share(where, sample.counts(), valid_fraction)


def _share(where: str, counts: Mapping[str, int], valid_fraction: float) -> Iterator[Violation]:
    """Yield that the share of valid ids is more than six standard deviations and one off."""
    total = sum(counts.values())
    expected = valid_fraction * total
    if abs(counts["valid"] - expected) > 1 + 6 * math.sqrt(expected * (1 - valid_fraction)):
        rule = f"{counts['valid']} of {total} synth_ids are valid, {expected:.1f} expected"
        yield Violation("split share", where, rule)


def _rows(
    file: Path,
    where: str,
    tokens: Mapping[str, Values | None],
    counts: dict[str, int],
    bounds: HashBounds,
    sample: HashSample,
    is_harmony: bool,
) -> Iterator[Violation]:
    """Yield what is wrong with single rows; count the documents of each split, and their ids."""
    with trace.opened(file) as opened:
        for batch in parquet.batches(file, opened, _BATCH_ROWS, list(_COLUMNS)):
            if any(column.null_count for column in batch.columns):
                yield Violation("trace", where, "has nulls")
                return
            splits = batch.column("split").to_numpy(zero_copy_only=False)
            if unknown := sorted(set(splits) - set(tokens)):
                yield Violation("trace", where, f"has a split {unknown[0]!r}")
                return
            for split, datasets in tokens.items():
                rows = batch.filter(splits == split)
                if wrong := _documents(rows, counts[split], datasets, is_harmony):
                    yield Violation("trace", f"{where}: {split}", wrong)
                    return
                counts[split] += len(rows)
                sample.add(split, bounds.add(split, rows.column("synth_id").to_pylist()))


def _documents(
    rows: pa.RecordBatch, first: int, tokens: Values | None, is_harmony: bool
) -> str | None:
    """Return what is wrong with documents `first`, first + 1, ..; None if nothing is."""
    if not len(rows):
        return None
    numbers = rows.column("document").to_numpy()
    last = first + len(rows)
    if not np.array_equal(numbers, np.arange(first, last)):
        return f"documents are not {first} to {last - 1}"
    if tokens is None or last > len(tokens):
        return f"document {last - 1} is not in the datasets"
    column: Any = rows.column("offsets")
    if column.values.null_count or not np.all(np.diff(column.offsets.to_numpy())):
        return f"documents {first} to {last - 1} lack offsets"
    bounds, offsets = column.offsets.to_numpy(), column.values.to_numpy()
    edges = tokens.tokens.bounds(first, last)
    starts, begin = edges[:-1], int(edges[0])
    ids = tokens.ids(first, edges)
    absolute = offsets[bounds[0] : bounds[-1]] + np.repeat(starts - begin, np.diff(bounds))
    is_end = np.zeros(len(absolute), dtype=np.bool_)
    is_end[bounds[1:] - bounds[0] - 1] = True
    if not is_harmony:
        if not np.isin(starts - begin, absolute).all() or (np.diff(absolute) <= 0).any():
            return f"runs of documents {first} to {last - 1} do not follow each other"
    elif not np.array_equal(np.flatnonzero(ids == harmony_tokens.START), absolute[~is_end]):
        return f"messages of documents {first} to {last - 1} do not begin where <|start|> is"
    if not np.array_equal(absolute[is_end], edges[1:] - 1 - begin):
        return f"documents {first} to {last - 1} do not end where their EOD is"
    return None
