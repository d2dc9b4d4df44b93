"""What is published, by its records; and what stands on a faster disk, by `staged.json`.

Source: `docs/formats/reasoning.md#staging`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.contract import BadInput, NothingToBuild
from gristmill.corpora.corpus import Corpus, corpus_and_split, is_key, ordered
from gristmill.data_root import DataRoot
from gristmill.provenance import Input, Record
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import read_bytes, wrong_path
from gristmill.reasoning.format import names

RAW = "reasoning/raw"
NORMALIZED, RAW_MANIFEST = "reasoning/normalized", "reasoning/raw_manifest"
SHARDS, MANIFEST = "reasoning/gpt2_shards", "reasoning/manifest"
RECIPE, TOKENS = "reasoning/recipe", "reasoning/tokens"
SPANS, EXPORTS = "reasoning/spans", "reasoning/exports"
EVALS, LEAKS = "evals/raw", "audits/leaks"
ALIGNMENT, REPORT = "reasoning/alignment", "reasoning/qc_report"
REPORTED = (names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT, names.TOKENS)
"""Folders whose artifacts a report describes."""


def record_path(lake: DataRoot, folder: str, partition: str) -> Path:
    """Returns the path of a partition's record in the folder that the partitions share.

    lake: the data root.
    folder: path of the folder relative to the data root.
    partition: key of the partition, or `manifest`.
    """
    return provenance.record_path(lake.root / folder, partition, shared=True)


def is_published(lake: DataRoot, folder: str, partition: str) -> bool:
    """Whether a partition is published in the folder that the partitions share."""
    return record_path(lake, folder, partition).exists()


def published_partitions(lake: DataRoot, folder: str) -> list[str]:
    """Returns the partitions that are published in a folder, in the order of the corpora."""
    return recorded(lake.artifacts(folder))


def recorded(items: list[Artifact]) -> list[str]:
    """Returns the partitions of splits among the artifacts of a folder, in order."""
    return ordered({item.record_path.stem for item in items if is_key(item.record_path.stem)})


def splits_in(folder: Path, name: str) -> list[str]:
    """Returns the partitions with a file, or its parts, in a folder, in the order of the corpora.

    name: of the file below the folder of its corpus, beginning with `{split}`.
    """
    whole = name.removeprefix("{split}")
    parts = folder.glob(f"*/*{whole.removesuffix('.jsonl')}/[0-9]*.jsonl")
    found = {*folder.glob(f"*/*{whole}"), *(Path(f"{each.parent}.jsonl") for each in parts)}
    below = (each.relative_to(folder).as_posix().removesuffix(whole) for each in found)
    return ordered({key for each in below if is_key(key := each.replace("/", "__"))})


def shard_splits(folder: Path) -> list[tuple[str, str]]:
    """Corpus and split of all folders with shards, sorted; corpora need not be known."""
    found = {path.parent for path in folder.glob("*/*/shard_*") if path.is_file()}
    return sorted((path.parent.name, path.name) for path in found)


def corpus_of_record(record: Record) -> Corpus:
    """Returns the corpus of a record of `reasoning/normalized`, as its file was then."""
    return corpus_and_split(str(record.partition), str(record.config.get("corpus", "")))[0]


def corpus_of(root: Path, partition: str) -> Corpus:
    """Returns the corpus of a partition, by the record of its normalised file if there is one."""
    path = provenance.record_path(root / names.NORMALIZED, partition, shared=True)
    if path.is_file():
        return corpus_of_record(provenance.read_record(path))
    return corpus_and_split(partition)[0]


def published_inputs(lake: DataRoot, folder: str, asset: str) -> list[Input]:
    """Returns all published partitions of an asset as inputs, in the order of the corpora."""
    return [lake.published(folder, asset, key) for key in published_partitions(lake, folder)]


def published_datasets(root: Path) -> list[str]:
    """Returns the names of the token datasets that are published, sorted. root: the data root."""
    found = (root / names.TOKENS).glob(f"*/{provenance.RECORD}")
    return sorted(path.parent.name for path in found)


def report_inputs(lake: DataRoot) -> list[Input]:
    """Returns everything published that a report describes."""
    inputs = [
        *published_inputs(lake, names.NORMALIZED, NORMALIZED),
        *published_inputs(lake, names.TOKENIZED, SHARDS),
        *published_inputs(lake, names.ALIGNMENT, ALIGNMENT),
    ]
    for folder, asset in ((names.NORMALIZED, RAW_MANIFEST), (names.TOKENIZED, MANIFEST)):
        if is_published(lake, folder, names.MANIFEST_RECORD):
            inputs.append(lake.published(folder, asset, names.MANIFEST_RECORD))
    for name in published_datasets(lake.root):
        inputs.append(lake.published(f"{names.TOKENS}/{name}", TOKENS, name))
    return inputs


def published_records(lake: DataRoot, folder: str, none: str) -> list[Record]:
    """Returns the records of all published partitions, in the order of the corpora.

    Raises NothingToBuild with the words `none` if there are none.
    """
    if not (keys := published_partitions(lake, folder)):
        raise NothingToBuild("\n".join([none, *lake.without_record(folder)]))
    return [provenance.read_record(record_path(lake, folder, key)) for key in keys]


STAGED: Final = "staged.json"
LOCK: Final = ".staging.lock"
STAGED_SHARDS: Final = "shards"
STAGED_ALIGNMENT: Final = "alignment"
"""Folders below the job's, laid out as those of the data root."""
VERSION: Final = 1


@dataclass(frozen=True)
class Entry:
    """One staged file.

    bytes: size. sha256: hex.
    own: whether staging put it there; False for a file that was there before, and is left there.
    """

    path: str
    bytes: int
    sha256: str
    own: bool = True


@dataclass(frozen=True)
class Staged:
    """What is staged for a job, or is to be, once the manifest is there.

    alignment: the folder of the alignments, absolute; None where none was staged.
    manifest_sha256: of the bytes of its manifest.
    """

    job: str
    source: str
    alignment: str | None
    manifest_sha256: str
    world_size: int
    ranks: tuple[int, ...]
    corpora: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    entries: Mapping[str, Entry] = field(default_factory=dict)


def temporary(path: Path) -> Path:
    """Name of a file while it is copied."""
    return path.with_name(f".{path.name}.staging")


def write(folder: Path, staged: Staged) -> None:
    """Write `staged.json` in one step, and flush it."""
    entries = [asdict(entry) for _, entry in sorted(staged.entries.items())]
    value = {"version": VERSION, **asdict(staged), "entries": entries}
    path = folder / STAGED
    with temporary(path).open("wb") as file:
        file.write(json.dumps(value, indent=2).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary(path).replace(path)


def read(folder: Path) -> Staged | None:
    """What is staged in a job's folder, or was to be; None where nothing was.

    Raises BadInput where `staged.json` has another form, or leads out of the folder.
    """
    path = folder / STAGED
    try:
        value = json.loads(read_bytes(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no JSON: {error}: remove the folder by hand") from error
    try:
        if value.pop("version") != VERSION:
            raise BadInput(path, f"is not of version {VERSION}: remove the folder by hand")
        entries = {entry.path: entry for entry in map(_entry, value.pop("entries"))}
        value |= {name: tuple(value[name]) for name in ("ranks", "corpora", "splits")}
        staged = Staged(**value, entries=entries)
        if not all(type(rank) is int for rank in (*staged.ranks, staged.world_size)):
            raise TypeError("ranks")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            path, f"is not of the form of staged.json ({error!r}): remove the folder by hand"
        ) from error
    return staged


def refuse_missing(root: Path, paths: Iterable[str], rank: int, world_size: int) -> None:
    """Raise BadInput where a staged folder lacks shards that a reader needs, and say what it has.

    root: the folder of all shards; nothing is done for one that was not staged.
    """
    if (
        not isinstance(root, Path)
        or root.name != STAGED_SHARDS
        or (known := read(root.parent)) is None
    ):
        return
    missing = next((path for path in paths if not (root / path).exists()), None)
    if missing is None:
        return
    ranks = f"rank{'' if len(known.ranks) == 1 else 's'} {', '.join(map(str, known.ranks))}"
    chosen = "".join(
        f", {name} {', '.join(some)}"
        for name, some in (("corpora", known.corpora), ("splits", known.splits))
        if some
    )
    raise BadInput(
        root / missing,
        f"is missing: staged for {ranks} of {known.world_size}{chosen}; opened as rank {rank} "
        f"of {world_size}: give the reader the same rank, world_size, corpora and splits, or stage "
        "what is missing",
    )


def _entry(value: Any) -> Entry:
    """One entry. Raises TypeError or ValueError for another form."""
    entry = Entry(**value)
    kinds = {"path": str, "bytes": int, "sha256": str, "own": bool}
    for spec in fields(Entry):
        if type(getattr(entry, spec.name)) is not kinds[spec.name]:
            raise TypeError(spec.name)
    if (wrong := wrong_path(entry.path)) is not None:
        raise ValueError(f"the path {entry.path!r} {wrong}")
    return entry
