"""The manifests of normalised files and of token shards, and the index of all splits.

Source: `docs/formats/reasoning.md#raw-manifest`, `docs/formats/reasoning.md#manifest`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.corpora.corpus import CORPORA, Corpus, corpus_and_split
from gristmill.corpora.split_file import opened, sha256_of_parts
from gristmill.hashing import HashedFile
from gristmill.reasoning.format import names
from gristmill.reasoning.format.shards import Meta, manifest_entries, metas
from gristmill.run.progress import SILENT, Progress

SCHEMA: Final = 1
"""`schema_version` of every corpus in the manifest."""
NINE_KEYS: Final = (
    *("name", "hf_path", "subset", "splits", "question_column", "answer_column"),
    *("cot_column", "extra_columns", "notes"),
)
"""First keys of a corpus, in this order."""
MORE_KEYS: Final = ("licence", "source_shape", "files", "generated_at", "schema_version")
"""The keys behind them, in this order."""
PART_KEYS: Final = ("path", "sha256", "bytes", "rows")
"""Keys of a part of a split, which the manifest lists where a split is in parts."""
_SHAPES: Final = "shapes/"


@dataclass(frozen=True)
class RawManifestSummary(Summary):
    """Sums over the manifest."""

    corpora: int
    splits: int
    records: int
    rejected: int


def write_raw_manifest(
    records: Sequence[Mapping[str, Any]],
    previous: Mapping[str, Any] | None,
    out: Path,
    *,
    generated_at: str,
) -> RawManifestSummary:
    """Write the manifest from the provenance records of the normalised splits.

    records: of each split a mapping with `partition`, `outputs` (path, bytes, sha256),
        `counts` (records, rejected, shapes/<form>) and `config`, in any order.
    previous: the manifest that is there, None where there is none. What it says about corpora
        and splits without a record stays.
    out: folder to write, which must not exist.
    generated_at: time in ISO 8601; a corpus whose entry is otherwise the same keeps its time.

    Raises GristmillError for a previous manifest that is none, or a record without its file.
    """
    manifest: dict[str, dict[str, Any]] = {}
    for name, entry in (previous or {}).items():
        if not _is_entry(entry):
            raise GristmillError(
                f"the raw manifest's entry {name!r} is damaged: remove the file and build again"
            )
        manifest[name] = dict(entry)
    for record in records:
        table = str(record.get("config", {}).get("corpus", ""))
        corpus, split = corpus_and_split(str(record["partition"]), table)
        entry = manifest.get(corpus.name, {})
        manifest[corpus.name] = _entry(corpus, split, record, entry)
    for name, entry in manifest.items():
        before = (previous or {}).get(name, {})
        entry["generated_at"] = before.get("generated_at", generated_at)
        if entry != before:
            entry["generated_at"] = generated_at
    ordered = {name: manifest[name] for name in sorted(manifest, key=_place)}
    out.mkdir(parents=True)
    text = json.dumps(ordered, indent=2, ensure_ascii=False)
    (out / names.MANIFEST).write_text(text, encoding="utf-8")
    files = [file for entry in ordered.values() for file in entry["files"].values()]
    return RawManifestSummary(
        files={names.MANIFEST: FileNote(content_sha256=_content(ordered))},
        corpora=len(ordered),
        splits=len(files),
        records=sum(file["records"] for file in files),
        rejected=sum(file["rejected"] for file in files),
    )


def _is_entry(entry: object) -> bool:
    """Whether an entry of the previous manifest has what is merged."""
    if not isinstance(entry, dict):
        return False
    files, shapes = entry.get("files"), entry.get("source_shape")
    return (
        isinstance(shapes, dict)
        and isinstance(files, dict)
        and all(
            isinstance(file, dict)
            and all(isinstance(file.get(key), int) for key in ("records", "rejected"))
            for file in files.values()
        )
    )


def nine(corpus: Corpus) -> dict[str, Any]:
    """The nine keys of a corpus, in their order."""
    fields = asdict(corpus)
    entry = {key: fields[key] for key in NINE_KEYS}
    return entry | {key: list(entry[key]) for key in ("splits", "extra_columns")}


def _entry(
    corpus: Corpus, split: str, record: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """The entry of a corpus with one more split, or with that split replaced."""
    counts = record["counts"]
    if (file := file_entry(record, corpus.name, split)) is None:
        path = names.normalized(corpus.name, split)
        raise GristmillError(f"the record of {record['partition']} has no {path}: build it again")
    shapes = {
        key.removeprefix(_SHAPES): counts[key] for key in sorted(counts) if key.startswith(_SHAPES)
    }
    return nine(corpus) | {
        "licence": asdict(corpus.licence),
        "source_shape": _by_split(corpus, before.get("source_shape"), split, shapes),
        "files": _by_split(corpus, before.get("files"), split, file),
        "generated_at": before.get("generated_at"),
        "schema_version": SCHEMA,
    }


def file_entry(record: Mapping[str, Any], corpus: str, split: str) -> dict[str, Any] | None:
    """What the manifest says of the file of a split, or of its parts; None where it has none.

    record: of the split, as JSON.
    """
    path = names.normalized(corpus, split)
    folder = f"{path.removesuffix('.jsonl')}/"
    written = [
        each
        for each in record["outputs"]
        if each["path"] == path or each["path"].startswith(folder)
    ]
    if not written:
        return None
    return {
        "path": path,
        "sha256": sha256_of_parts([each["sha256"] for each in written]),
        "bytes": sum(each["bytes"] for each in written),
        "records": record["counts"].get("records"),
        "rejected": record["counts"].get("rejected"),
    } | (
        {"parts": [{key: each[key] for key in PART_KEYS} for each in written]}
        if written[0]["path"] != path
        else {}
    )


def _by_split(
    corpus: Corpus, before: Mapping[str, Any] | None, split: str, value: Mapping[str, Any]
) -> dict[str, Any]:
    values = {**(before or {}), split: dict(value)}
    return {name: values[name] for name in corpus.splits if name in values}


def _place(name: str) -> tuple[int, str]:
    """Corpora in the order of the seed; what this version does not know comes last."""
    known = list(CORPORA)
    return (known.index(name) if name in CORPORA else len(known), name)


def _content(manifest: Mapping[str, Mapping[str, Any]]) -> str:
    """The digest of a manifest without its times."""
    content = {
        name: {key: value for key, value in entry.items() if key != "generated_at"}
        for name, entry in manifest.items()
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_READ_BYTES: Final = 1 << 20
_EQUAL: Final = ("seq_len", "world_size", "tokenizer_sha256")
"""What all shards of one folder must have in common."""


@dataclass(frozen=True)
class ManifestSummary(Summary):
    """Sums over all splits."""

    splits: int
    shards: int
    sequences: int
    examples: int
    text_tokens: int
    eos_tokens: int
    pad_tokens: int


def write_manifest(
    tokenized: Path, out: Path, partitions: Sequence[str], *, progress: Progress = SILENT
) -> ManifestSummary:
    """Write `manifest.json` and `index.jsonl`.

    tokenized: the folder of all shards.
    out: folder to write, which must not exist.
    partitions: keys of the published splits, in any order.
    progress: gets the stage "manifest", in files: one for each split.

    Raises GristmillError where there is no split, or where two shards differ in seq_len, world
    size or vocabulary, and BadInput for a damaged meta file or an index that is gone. Memory
    grows with the shards of one split alone.
    """
    if not partitions:
        raise GristmillError(f"{tokenized}: no split is published: build shards before a manifest")
    folders = sorted((corpus.name, split) for corpus, split in map(corpus_and_split, partitions))
    out.mkdir(parents=True)
    sums: dict[str, int] = dict.fromkeys(("shards", "sequences", *_COUNTED), 0)
    with HashedFile(out / names.MANIFEST) as manifest:
        for entry in manifest_entries(_summed(_checked(all_metas(tokenized, folders)), sums)):
            manifest.write(entry)
    examples = 0
    with (
        HashedFile(out / names.INDEX) as index,
        progress.stage("manifest", "files", len(folders)) as stage,
    ):
        for corpus, split in folders:
            for data in _read(tokenized / names.split_index(corpus, split)):
                examples += data.count(b"\n")
                index.write(data)
            stage.advance(1)
    files = {
        name: FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)
        for name, file, rows in (
            (names.MANIFEST, manifest, sums["shards"]),
            (names.INDEX, index, examples),
        )
    }
    return ManifestSummary(files=files, splits=len(folders), examples=examples, **sums)


_COUNTED: Final = ("text_tokens", "eos_tokens", "pad_tokens")


def all_metas(tokenized: Path, folders: Iterable[tuple[str, str]]) -> Iterator[Meta]:
    """Yield the metas of some splits in the order of their paths. Raises as `read_meta`."""
    for corpus, split in folders:
        yield from metas(tokenized, corpus, split)


def different(one: Meta, other: Meta) -> str | None:
    """What two shards of one folder must not differ in, None where they do not."""
    for name in _EQUAL:
        if getattr(one, name) != getattr(other, name):
            return (
                f"{other.path} has {name} {getattr(other, name)}, {one.path} has "
                f"{getattr(one, name)}: build all splits with one config, "
                "set in [reasoning.gpt2_shards] of the data root's gristmill.toml, not in a drop"
            )
    return None


def _checked(found: Iterable[Meta]) -> Iterator[Meta]:
    first = None
    for meta in found:
        first = first or meta
        if problem := different(first, meta):
            raise GristmillError(f"no manifest over shards of several kinds: {problem}")
        yield meta


def _summed(found: Iterable[Meta], sums: dict[str, int]) -> Iterator[Meta]:
    for meta in found:
        sums["shards"] += 1
        sums["sequences"] += meta.num_sequences
        for name in _COUNTED:
            sums[name] += getattr(meta, name)
        yield meta


def _read(path: Path) -> Iterator[bytes]:
    try:
        with opened(path) as file:
            while data := file.read(_READ_BYTES):
                yield data
    except FileNotFoundError as error:
        raise BadInput(path, "is gone: build the shards of this split again") from error
