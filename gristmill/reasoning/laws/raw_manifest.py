"""Laws of the manifest of normalised files. Source: `docs/formats/reasoning.md#raw-manifest`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any, Final

from gristmill.contract import Violation
from gristmill.corpora.corpus import CORPORA
from gristmill.provenance import SHARED_RECORDS, Record, read_record
from gristmill.reasoning.builders.raw_manifest import MORE_KEYS, NINE_KEYS, nine
from gristmill.reasoning.format import names

_FILE_KEYS: Final = ("path", "sha256", "bytes", "records", "rejected")
_LICENCE_KEYS: Final = ("id", "url", "redistributable", "training_allowed", "confirmed")
_FOLDER: Final = PurePosixPath(names.NORMALIZED).name
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def raw_manifest_laws(
    folder: Path, records: Mapping[str, str] | None = None
) -> Iterator[Violation]:
    """Yield what a raw manifest breaks.

    records: digests of the records that it was written from, by partition; default: not known.
    """
    path = folder / names.MANIFEST
    try:
        text = path.read_bytes().decode("utf-8")
        manifest = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Violation("readable", names.MANIFEST, f"cannot be read: {error}")
        return
    if not isinstance(manifest, dict):
        yield Violation("readable", names.MANIFEST, "is no JSON object")
        return
    if text != json.dumps(manifest, indent=2, ensure_ascii=False):
        yield Violation("form", names.MANIFEST, "is not JSON with indent 2 and no final newline")
    for name, entry in manifest.items():
        own = _recorded(folder, name)
        has_recipe = any(record.config.get("corpus") for record in own)
        yield from _entry_violations(name, entry, name in CORPORA and not has_recipe)
        for record in own:
            # The record of a split that was built since is not what the manifest is made from.
            if (records or {}).get(str(record.partition)) == record.digest:
                yield from _as_recorded(entry, record)


def _recorded(folder: Path, name: str) -> list[Record]:
    """The records of the splits of a corpus."""
    places = [folder, *(each / _FOLDER for each in folder.absolute().parents)]
    place = next((each for each in places if (each / SHARED_RECORDS).is_dir()), folder)
    return [*map(read_record, (place / SHARED_RECORDS).glob(f"{name}__*.json"))]


def _as_recorded(entry: Any, record: Record) -> Iterator[Violation]:
    """Yield where the file of a split is another one than in the record of that split."""
    split = str(record.partition).rpartition("__")[2]
    files = entry.get("files") if isinstance(entry, dict) else None
    file = files.get(split) if isinstance(files, dict) else None
    named = tuple(file.get(key) for key in _FILE_KEYS) if isinstance(file, dict) else ()
    counts = tuple(record.counts.get(key) for key in _FILE_KEYS[3:])
    if named not in {(each.path, each.sha256, each.bytes, *counts) for each in record.outputs}:
        yield Violation("files", f"{names.MANIFEST}: {record.partition}", "is not as recorded")


def _entry_violations(name: str, entry: Any, is_built_in: bool) -> Iterator[Violation]:
    where = f"{names.MANIFEST}: {name}"
    if not isinstance(entry, dict):
        yield Violation("keys", where, "is no object")
        return
    keys = (*NINE_KEYS, *MORE_KEYS)
    if tuple(entry)[: len(NINE_KEYS)] != NINE_KEYS or tuple(entry) != keys:
        yield Violation("keys", where, f"has the keys {', '.join(map(str, entry))}")
        return
    if entry["name"] != name:
        yield Violation("corpus", where, f"its name is {entry['name']!r}")
    if is_built_in:
        corpus = CORPORA[name]
        known = {**nine(corpus), "licence": asdict(corpus.licence)}
        for key, value in known.items():
            if entry[key] != value:
                yield Violation("corpus", where, f"{key} is {entry[key]!r}, expected {value!r}")
    licence = entry["licence"]
    if not isinstance(licence, dict) or tuple(licence) != _LICENCE_KEYS:
        yield Violation("licence", where, f"the licence is {licence!r}")
    yield from _file_violations(where, name, entry)


def _file_violations(where: str, name: str, entry: Mapping[str, Any]) -> Iterator[Violation]:
    files, shapes, splits = entry["files"], entry["source_shape"], entry["splits"]
    if not isinstance(files, dict) or not isinstance(shapes, dict):
        yield Violation("files", where, "files or source_shape is no object")
        return
    known = splits if isinstance(splits, list) else []
    if list(files) != [split for split in known if isinstance(split, str) and split in files]:
        yield Violation("files", where, f"files has {', '.join(files)}")
    if list(shapes) != list(files):
        yield Violation("shapes", where, f"source_shape has {', '.join(shapes)}")
        return
    for split, file in files.items():
        place = f"{where}: {split}"
        if not isinstance(file, dict) or tuple(file) != _FILE_KEYS:
            yield Violation("files", place, f"is {file!r}")
            continue
        if file["path"] != names.normalized(name, split):
            yield Violation("files", place, f"the path is {file['path']!r}")
        if not isinstance(file["sha256"], str) or not _SHA256.fullmatch(file["sha256"]):
            yield Violation("files", place, f"the sha256 is {file['sha256']!r}")
        for key in ("bytes", "records", "rejected"):
            if type(file[key]) is not int or file[key] < 0:
                yield Violation("files", place, f"{key} is {file[key]!r}")
        counts = shapes[split]
        numbers = counts.values() if isinstance(counts, dict) else [None]
        if not all(type(number) is int for number in numbers) or sum(numbers) != file["records"]:
            yield Violation("shapes", place, f"{counts!r} for {file['records']} records")
