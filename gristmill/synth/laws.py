"""Laws of the SYNTH artifacts: Megatron datasets and their manifest, Harmony shards, distill rows.

Several conversations may have one synth_id, as the answers of one prompt that were sampled, and
then all of them are in one split: one hash value divides the splits.
Source: `docs/formats/synth.md#trace-laws`, `docs/formats/synth.md#value-laws`,
`docs/formats/synth.md#harmony-laws`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.inbox import division
from gristmill.laws import MOST, Few
from gristmill.provenance import Record
from gristmill.run.progress import current_progress
from gristmill.synth.builders import harmony_shard, manifests
from gristmill.synth.builders.manifests import (
    MANIFEST,
    METADATA,
    check_equal_configs,
    json_violations,
)
from gristmill.synth.config import KDConfig
from gristmill.synth.format import harmony_tokens as control
from gristmill.synth.format import megatron, parquet, trace
from gristmill.synth.format.megatron import Indexed

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS: Final = ("train", "valid")
"""The splits of a Megatron dataset."""


def shard_numbers(root: Path) -> list[str]:
    """The numbers ("00") of a dataset's shards that have an index file or a trace, sorted."""
    numbers = {
        path.name.split("_")[1] for split in SPLITS for path in (root / split).glob("shard_*.idx")
    }
    numbers |= {path.stem.removeprefix("trace_") for path in root.glob("trace/trace_*.parquet")}
    return sorted(numbers)


def shard_records(root: Path, skip: str | None = None) -> list[Record]:
    """Return the provenance records of the shards of a folder, sorted by partition."""
    folder = root / provenance.SHARED_RECORDS
    paths = sorted(path for path in folder.glob("*.json") if path.stem != skip)
    return [provenance.read_record(path) for path in paths]


_BATCH_TOKENS: Final = 1 << 20
_BATCH_DOCUMENTS: Final = 1 << 16

# Which control token may come next after which, ordinary tokens aside. Bodies
# lie between <|message|> and a terminator, so a control id in a body breaks this.
_NEXT: Final = {
    control.START: [control.CHANNEL, control.CONSTRAIN, control.MESSAGE],
    control.CHANNEL: [control.CONSTRAIN, control.MESSAGE],
    control.CONSTRAIN: [control.MESSAGE],
    control.MESSAGE: [control.END, control.CALL, control.RETURN],
    control.END: [control.START, control.ENDOFTEXT],
    control.CALL: [control.START, control.ENDOFTEXT],
    control.RETURN: [control.ENDOFTEXT],
    control.ENDOFTEXT: [control.START],
}
# After these the next token is a control token itself.
_CLOSING: Final = [control.END, control.CALL, control.RETURN, control.ENDOFTEXT]


def _tables() -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    size = control.PADDED_VOCABULARY - control.BODY_LIMIT
    follows = np.zeros((size, size), dtype=np.bool_)
    closing = np.zeros(size, dtype=np.bool_)
    for before, allowed in _NEXT.items():
        follows[before - control.BODY_LIMIT, np.array(allowed) - control.BODY_LIMIT] = True
    closing[np.array(_CLOSING) - control.BODY_LIMIT] = True
    return follows, closing


class Form(NamedTuple):
    """What the datasets of a shard are. eod, ids: the id of an end, and how many ids there are."""

    is_harmony: bool = True
    is_by_hash: bool = True
    eod: int = control.ENDOFTEXT
    ids: int = control.PADDED_VOCABULARY


SYNTH: Final = Form()


class Values:
    """The documents of a split, whose values are checked as they are read."""

    def __init__(
        self, where: str, three: Mapping[str, Indexed], checked: bool = True, form: Form = SYNTH
    ) -> None:
        self.tokens = three["tokens"]
        self._where, self._three = where, three
        self._next = 0 if checked else len(self.tokens)
        self._tables = _tables() if form.is_harmony else None
        self._form = form
        self._few = Few(where, "{more:,} more documents")

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, first: int, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the tokens of whole documents; check them if all before them were checked.

        edges: int64 [D + 1], as `Indexed.bounds` returns them.
        """
        ids: npt.NDArray[np.int32] = self.tokens.load(int(edges[0]), int(edges[-1]))
        if first == self._next:
            self._check(first, edges, ids)
            self._next = first + len(edges) - 1
        return ids

    def violations(self) -> Iterator[Violation]:
        """Check the documents that nobody read; yield broken laws with a document's first token."""
        for first, edges in _batches(self.tokens, self._next):
            self.ids(first, edges)
        yield from self._few.added()

    def _check(self, first: int, edges: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
        begin, stop = int(edges[0]), int(edges[-1])
        mask, span = (self._three[name].load(begin, stop) for name in ("lossmask", "span"))
        broken = _broken(ids, mask, span, edges[1:] - 1 - begin, self._form, self._tables)
        for law, places in broken.items():
            if not len(places):
                continue
            documents = np.searchsorted(edges - begin, places, side="right") - 1
            numbers, at = np.unique(documents, return_index=True)
            named = (
                (
                    f"{self._where}: document {first + document}, "
                    f"token {begin + place - int(edges[document])}",
                    f"id {ids[place]}, mask {mask[place]}, span {span[place]}",
                )
                for document, place in zip(
                    numbers[:MOST].tolist(), places[at[:MOST]].tolist(), strict=True
                )
            )
            self._few.add_all(law, len(numbers), named)


def _batches(tokens: Indexed, first: int = 0) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield whole documents, about a million tokens together: the first one, and all edges."""
    while first < len(tokens):
        edges = tokens.bounds(first, min(first + _BATCH_DOCUMENTS, len(tokens)))
        inside = int(np.searchsorted(edges, edges[0] + _BATCH_TOKENS, side="right")) - 1
        edges = edges[: max(inside, 1) + 1]
        yield first, edges
        first += len(edges) - 1


def _broken(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    span: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    form: Form,
    tables: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None,
) -> dict[str, npt.NDArray[np.int64]]:
    """For each law the places where tokens break it, in whole documents. ends: of documents [D]."""
    outside = np.flatnonzero((ids < 0) | (ids >= form.ids))
    broken = {
        "tokens in the vocabulary": outside,
        "EOD at the end": ends[ids[ends] != form.eod],
        "mask is span not 0": np.flatnonzero((span > control.FINAL) | (mask != (span != 0))),
        # A label is one place before its token: the last two are the EOD and none.
        "EOD masked": np.concatenate([ends[mask[ends] != 0], (ends - 1)[mask[ends - 1] != 0]]),
    }
    if tables is not None and not len(outside):
        follows, closing = tables
        places = np.flatnonzero(ids >= control.BODY_LIMIT)
        codes = ids[places] - control.BODY_LIMIT
        # The first document follows no other: it must begin as if it did.
        before = np.concatenate([[control.ENDOFTEXT - control.BODY_LIMIT], codes[:-1]])
        gaps = np.diff(places, prepend=-1)
        wrong = ~follows[before, codes] | (closing[before] & (gaps != 1))
        broken["no control ids in bodies"] = places[wrong]
    return broken


class HashBounds:
    """The highest hash of a valid conversation and the lowest hash of a train one."""

    def __init__(self) -> None:
        self.highest_valid = -1
        self.lowest_train = 1 << 64

    def add(self, split: str, synth_ids: Iterable[str]) -> None:
        """Take the ids of some conversations into the bounds."""
        values = list(map(division.value, synth_ids))
        if split == "valid":
            self.highest_valid = max(self.highest_valid, max(values, default=-1))
        else:
            self.lowest_train = min(self.lowest_train, min(values, default=1 << 64))

    def divide(self) -> bool:
        """Return whether some threshold divides valid from train."""
        return self.highest_valid < self.lowest_train

    def divide_at(self, valid_fraction: float) -> bool:
        """Return whether the threshold of a fraction divides valid from train."""
        return self.highest_valid < division.threshold(valid_fraction) <= self.lowest_train


_BATCH_ROWS: Final = 1024
_UNKNOWN: Final = "unknown_keys/"
_COLUMNS: Final = ("split", "document", "synth_id", "offsets")


def kd_law(subject: Subject) -> Iterator[Violation]:
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
    """Yield the keys of messages that are not rendered, and the answers that have no labels."""
    place = f"{record.artifact} [{record.partition}]"
    counts = (int(record.counts.get(name, 0)) for name in ("labelled_tokens", "trained_tokens"))
    labelled, trained = counts
    if labelled < trained:
        found = f"{labelled:,} of {trained:,} tokens that are trained on have labels"
        cure = 'those of the last answers: `turns = "all"` in [chat.distill] gives all of them'
        yield Violation("turns", place, f"{found}, {cure}")
    names = [
        f"{name.removeprefix(_UNKNOWN)} ({int(count):,})"
        for name, count in record.counts.items()
        if name.startswith(_UNKNOWN)
    ]
    if names:
        found = f"keys of messages that are not rendered: {', '.join(names)}"
        yield Violation("unknown_keys", place, found)


def kd_laws(
    root: Path,
    partition: str | None = None,
    valid_fraction: float | None = None,
    has_traces: bool = True,
    form: Form = SYNTH,
) -> Iterator[Violation]:
    """Yield the violations of Megatron datasets. valid_fraction: which the split must obey."""
    numbers = [partition] if partition is not None else shard_numbers(root)
    if not numbers:
        yield Violation("shards", ".", "there is no shard in train or valid, and no trace")
    with current_progress().stage("laws", "files", len(numbers)) as stage:
        for number in numbers:
            splits: dict[str, Values | None] = {}
            for split in SPLITS:
                splits[split] = yield from _split(root, split, number, form)
            # The trace reads all documents, so their values are checked meanwhile.
            broken = list(check(root, number, splits, valid_fraction, form)) if has_traces else []
            for values in splits.values():
                if values is not None:
                    yield from values.violations()
            yield from broken
            stage.advance(1)


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
    broken = [Violation(law, where, found) for law, found in megatron.misaligned(three)]
    yield from broken
    return Values(where, three, checked=not broken, form=form)


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
    counts, bounds = dict.fromkeys(tokens, 0), HashBounds()
    try:
        found = _rows(root / where, where, tokens, counts, bounds, form.is_harmony)
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
    if valid_fraction is not None and not bounds.divide_at(valid_fraction):
        yield Violation("split rule", where, f"is not the split at {valid_fraction}")


def _rows(
    file: Path,
    where: str,
    tokens: Mapping[str, Values | None],
    counts: dict[str, int],
    bounds: HashBounds,
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
                bounds.add(split, rows.column("synth_id").to_pylist())


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
    elif not np.array_equal(np.flatnonzero(ids == control.START), absolute[~is_end]):
        return f"messages of documents {first} to {last - 1} do not begin where <|start|> is"
    if not np.array_equal(absolute[is_end], edges[1:] - 1 - begin):
        return f"documents {first} to {last - 1} do not end where their EOD is"
    return None


_ID_ROWS = 1 << 14


def kd_manifest_law(subject: Subject) -> Iterator[Violation]:
    """Yield a manifest's violations. Raises GristmillError if a record cannot be read."""
    path = subject.folder / MANIFEST
    if broken := list(json_violations(path)):
        yield from broken
        return
    # Before it is published, the manifest is alone in its folder, and its inputs are the shards.
    is_published = (subject.folder / provenance.SHARED_RECORDS).is_dir()
    shards = subject.folder if is_published else subject.inputs[0]
    manifest = json.loads(path.read_bytes())
    records = shard_records(shards, skip=subject.partition)
    try:
        dumped = [record.model_dump(mode="json") for record in records]
        check_equal_configs(dumped, KDConfig)
    except GristmillError as error:
        yield Violation("equal configs", MANIFEST, str(error))
        return
    try:
        if manifest["config_hash"] != manifests.config_hash(manifest["config"]):
            yield Violation("config hash", MANIFEST, "config_hash is not the hash of config")
        for split in SPLITS:
            yield from _inventory(split, manifest["splits"][split], records)
    except (KeyError, TypeError, AttributeError) as error:
        yield Violation("schema", MANIFEST, f"is not a manifest of Megatron datasets: {error!r}")
    yield from _disjoint(shards, [str(record.partition) for record in records])


def _inventory(
    split: str, inventory: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[Violation]:
    listed = {shard["name"].removeprefix("shard_"): shard for shard in inventory["shards"]}
    for record in records:
        shard = listed.pop(str(record.partition), None)
        if shard is None:
            if record.counts[f"{split}_rows"]:
                yield Violation("inventory", MANIFEST, f"{split} lacks shard {record.partition}")
        elif different := _differences(split, shard, record):
            yield Violation(
                "inventory",
                MANIFEST,
                f"{split} shard {record.partition}: its record has other {', '.join(different)}: "
                "if the shard was rebuilt after the manifest, materialize the manifest again",
            )
    for number in listed:
        yield Violation("inventory", MANIFEST, f"{split} lists shard {number}, which has no record")


def _differences(split: str, shard: Mapping[str, Any], record: Record) -> list[str]:
    """Return the files and counts of a listed shard that are not those of its record."""
    outputs = {output.path: output for output in record.outputs}
    different = []
    for key, path in shard["paths"].items():
        output = outputs.get(f"{split}/{Path(path).name}")
        listed = (shard["bytes"][key], shard["sha256"][key])
        if output is None or (output.bytes, output.sha256) != listed:
            different.append(key)
    counts = ("rows", "tokens")
    return different + [key for key in counts if shard[key] != record.counts[f"{split}_{key}"]]


def _disjoint(root: Path, numbers: Sequence[str]) -> Iterator[Violation]:
    """One value of the synth_id hash divides train from valid in all shards together."""
    bounds = HashBounds()
    for number in numbers:
        try:
            _add_ids(root / trace.path(number), bounds)
        except (BadInput, UnicodeDecodeError, AttributeError) as error:
            yield Violation("trace", trace.path(number), str(error))
            return
        if not bounds.divide():
            yield Violation(
                "disjoint splits",
                trace.path(number),
                "no value of the synth_id hash divides train from valid over all shards",
            )
            return


def _add_ids(file: Path, bounds: HashBounds) -> None:
    with trace.opened(file) as opened:
        for batch in parquet.batches(file, opened, _ID_ROWS, ["split", "synth_id"]):
            splits, ids = (column.to_pylist() for column in batch.columns)
            for split in SPLITS:
                members = (x for name, x in zip(splits, ids, strict=True) if name == split)
                bounds.add(split, members)


def harmony_law(subject: Subject) -> Iterator[Violation]:
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


def harmony_manifest_law(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for each of both files that is not a JSON object."""
    for name in (MANIFEST, METADATA):
        yield from json_violations(subject.folder / name)


_HARMONY: Final = ("harmony", "chatgpt_plain")


def distill_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a dataset."""
    from gristmill.synth.read import distill  # loads Arrow

    folder, config = subject.folder, subject.config
    try:
        if json.loads((folder / distill.DICT).read_bytes()) != {
            "splits": [*distill.SPLITS.values()]
        }:
            yield Violation("splits", distill.DICT, "does not name train and validation")
    except (OSError, ValueError) as error:
        yield Violation("readable", distill.DICT, str(error))
    has_trace = not subject.missing({"trace": "trace, split by id"})
    # Only a record says how the rows are rendered.
    render = config.get("render")
    returns = json.loads(str(render))["template"] in _HARMONY if render else "template" in config
    for split in distill.SPLITS:
        try:
            yield from _distill_split(folder, split, config, returns, has_trace)
        except GristmillError as error:
            yield Violation("readable", distill.SPLITS[split], str(error))


def _distill_split(
    folder: Path, split: str, config: Any, returns: bool, has_trace: bool
) -> Iterator[Violation]:
    from gristmill.synth.read import distill

    where, row = distill.SPLITS[split], 0
    names = _names(folder, split) if has_trace else iter(())
    most = int(config.get("max_length", 0))
    for batch in distill.batches(folder, split):
        has_all = config.get("turns") == "all"
        for name, broken in _broken_rows(batch, most, returns, has_all):
            if broken.any():
                yield Violation(name, where, f"row {row + int(broken.argmax())} breaks it")
        if has_trace:
            own = [*islice(names, len(batch))]
            ids = [text.partition(":")[2] for text in batch.column("id").to_pylist()]
            if own != ids:
                yield Violation("trace", where, f"the ids from row {row} on are not those of it")
        row += len(batch)
    if next(names, None) is not None:
        yield Violation("trace", where, f"has more documents than the {row} rows")


def _broken_rows(
    batch: pa.RecordBatch, most: int, returns: bool, has_all: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the laws of rows, and which rows break each, bool [rows].

    has_all: whether answers before the last one have labels, too.
    """
    from gristmill.synth.read import distill

    lists = [batch.column(name) for name in ("input_ids", "labels", "attention_mask")]
    lengths = [np.asarray(each.value_lengths()) for each in lists]
    uneven = (lengths[0] != lengths[1]) | (lengths[0] != lengths[2]) | (lengths[0] == 0)
    yield "equal lengths", uneven
    if uneven.any():
        return
    ids, labels, mask = (np.asarray(each.flatten()) for each in lists)
    start, reasoning, final = (np.asarray(each) for each in batch.column("spans").flatten())
    ends = np.cumsum(lengths[0])
    begins = ends - lengths[0]
    yield (
        "spans",
        ((start + reasoning + final != lengths[0]) | (start < 1) | (reasoning < 0) | (final < 1)),
    )
    is_prompt = np.arange(len(ids)) - np.repeat(begins, lengths[0]) < np.repeat(start, lengths[0])
    wrong = labels != np.where(is_prompt, distill.IGNORED, ids)
    if has_all:
        wrong &= ~is_prompt | (labels != ids)
    yield "labels", np.logical_or.reduceat(wrong, begins)
    yield "attention_mask", np.logical_or.reduceat(mask != 1, begins)
    yield "ids", np.logical_or.reduceat(ids < 0, begins)
    if returns:
        yield "end", ids[ends - 1] != control.RETURN
    if most:
        yield "max_length", lengths[0] > most


def _names(folder: Path, split: str) -> Iterator[str]:
    """Yield the synth_id of each document of a split."""
    for path in sorted(folder.glob("trace/trace_*.parquet")):
        with trace.opened(path) as file:
            for batch in file.iter_batches(columns=["split", "synth_id"]):
                for own, name in zip(*(column.to_pylist() for column in batch), strict=True):
                    if own == split:
                        yield name
