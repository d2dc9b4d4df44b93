"""The README.md of a dataset repository: its head names the rows of each pushed artifact."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

import yaml

from gristmill.contract import GristmillError
from gristmill.exports.card import Head, completed, head, parted, rows_in, size_rank
from gristmill.exports.table import Split
from gristmill.provenance import Record

README: Final = "README.md"
PARQUET: Final = "parquet"
"""The folder of a repository with rows that are pushed as Parquet, below it by artifact."""
_REPLACED: Final = ("configs", "dataset_info", "size_categories")
_BODY: Final = """# {name}

Each folder with a `provenance.json`, or `provenance/`, is an artifact that Gristmill built. The
record lists its files with their sha256, what they were made from, and the settings.
`gristmill verify --no-inputs` compares a download with it, and `gristmill trace` leads from a row
to its raw bytes.
"""


def rows_of(splits: Sequence[Split], record: Record) -> tuple[Head, str]:
    """What the head of a README.md says of the rows of an artifact, and why it says nothing.

    splits: of the folder, if any. record: of the partition that is pushed.
    """
    if any(not each.file for each in splits):
        return {}, "load_dataset does not open it: push it with --parquet"
    above, rows = record.artifact, rows_in(splits, [record])
    inside = [replace(each, file=f"{above}/{each.file}") for each in splits]
    try:
        return (head(inside, [record], rows, above) if splits else {}), ""
    except GristmillError as error:
        return {}, f"load_dataset does not open it: {error}"


def readme(
    before: str, found: Mapping[str, Head], removed: Collection[str], name: str
) -> tuple[str, dict[str, str]]:
    """The README.md of a repository after a push; by artifact, what a person should know of it.

    before: the one that stands, "" for none. found: what `rows_of` says, by the artifact's title.

    Raises BadInput where the head that stands is no YAML.
    """
    kept = yaml.safe_load(parted(before, README)[0]) or {}
    standing = _named(kept.get("configs"))
    configs = {key: each for key in standing if (each := _left(standing[key], removed))}
    infos = _named(kept.get("dataset_info"))
    infos = {key: infos[key] for key in infos if key in configs or key not in standing}
    for each in (each for said in found.values() for each in said["configs"]):
        key = each["config_name"]
        if key in configs and _formats(configs[key]) != _formats(each):  # now as Parquet
            del configs[key]
            infos.pop(key, None)
    notes: dict[str, str] = {}
    taken = []
    for title, said in found.items():
        formats = set().union(*map(_formats, configs.values()))
        own = set().union(*map(_formats, said["configs"]))
        if formats and own != formats:
            of, others = ", ".join(sorted(own)), ", ".join(sorted(formats))
            notes[title] = f"load_dataset does not open it: its rows are {of}, others {others}"
            continue
        taken.append(said)
        for each in said["configs"]:
            key = each["config_name"]
            configs[key] = _joined(configs[key], each) if key in configs else each
        infos |= _named(said.get("dataset_info"))
        licence, stated = said.get("license", "not known"), kept.get("license")
        if stated not in (None, licence):
            notes[title] = f"its licence is {licence}, and README.md says {stated}"
    merged = {"configs": [*configs.values()], "dataset_info": [*infos.values()]}
    after = _of_all(taken, kept, not standing) | {key: merged[key] for key in merged if merged[key]}
    if not taken and configs == standing:
        return before, notes
    return completed(before or _BODY.format(name=name), after, README, _REPLACED), notes


def _of_all(taken: Sequence[Head], kept: Head, is_first: bool) -> Head:
    """What the head says of all rows; of several sizes the largest, which is not too large."""
    licences = {each.get("license") for each in taken}
    sizes = [size for each in (kept, *taken) for size in each.get("size_categories", [])]
    found = {
        "license": licences.pop() if is_first and len(licences) == 1 else None,
        "language": sorted({code for each in taken for code in each.get("language", [])}),
        "size_categories": sorted(set(sizes), key=size_rank)[-1:],
        "tags": ["gristmill"],
    }
    return {key: value for key, value in found.items() if value}


def _named(entries: Any) -> dict[str, dict[str, Any]]:
    """Entries of the head by the name of their config; a single one may be no list."""
    listed = [entries] if isinstance(entries, Mapping) else entries or []
    return {str(each.get("config_name", "default")): dict(each) for each in listed}


def _files(config: Head) -> Iterator[tuple[str, list[str]]]:
    """The files of each split of a config, in any form that the library takes."""
    given = config.get("data_files") or []
    for each in [given] if isinstance(given, str) else given:
        split, path = ("train", each) if isinstance(each, str) else (each["split"], each["path"])
        yield split, [path] if isinstance(path, str) else path


def _formats(config: Head) -> set[str]:
    return {PurePosixPath(path).suffix for _, paths in _files(config) for path in paths} - {""}


def _left(config: Head, removed: Collection[str]) -> Head | None:
    """A config without the files that are removed; None where nothing is left."""
    files = list(_files(config))
    if not any(path in removed for _, paths in files for path in paths):
        return config
    left = ((split, [path for path in paths if path not in removed]) for split, paths in files)
    listed = [{"split": split, "path": paths} for split, paths in left if paths]
    return {**config, "data_files": listed} if listed else None


def _joined(before: Head, after: Head) -> Head:
    """A config with the files of two: those of several partitions."""
    files: dict[str, set[str]] = {}
    for split, paths in (*_files(before), *_files(after)):
        files.setdefault(split, set()).update(paths)
    listed = [{"split": split, "path": sorted(paths)} for split, paths in files.items()]
    return {**before, "data_files": listed}
