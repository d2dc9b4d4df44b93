"""The card of a dataset repository: its README.md, whose head says what `load_dataset` opens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import yaml

from gristmill import families, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.dispatch import recorded_assets
from gristmill.exports.messages import Talks
from gristmill.exports.table import Split, columns_of
from gristmill.provenance import Record
from gristmill.provenance.find_artifacts import artifacts

Head = dict[str, Any]
"""The head of a card, by key."""

WHOLE: Final = "all"
"""The config with the rows of all artifacts at a place, where they are one dataset."""
_SIZES: Final = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
_CATEGORIES: Final = ("n<1K", *(f"{a}<n<{b}" for a, b in pairwise(_SIZES)), "n>1T")
_TYPES: Final = {"float": "float32", "double": "float64"}
_MARK: Final = "---\n"
_LANGUAGE: Final = re.compile(r"languages/([a-z]{2,3})")


class Part(NamedTuple):
    """An artifact at a place, or below it. above: its path there; "." for the place itself.

    splits: its rows, each with the path of its file in the artifact. talks: its conversations.
    records: of its partitions, by their path in the artifact.
    """

    above: str
    splits: list[Split]
    talks: list[Talks]
    records: dict[str, Record]


def parts_at(place: Path) -> list[Part]:
    """The artifacts at a place, or all below it. Raises GristmillError where none has rows."""
    below = [*dict.fromkeys(item.folder for item in artifacts(place.absolute()))]
    outer = [each for each in below if not {*each.parents} & {*below}]
    parts = []
    for folder in map(place.absolute().joinpath, outer):
        assets = recorded_assets(folder)
        found, talks = list[Split](), list[Talks]()
        for asset in dict.fromkeys(assets.values()):
            for each in families.splits_of(asset, folder):
                own = "" if each.table else each.whole or f"all.{asset.replace('/', '.')}"
                found.append(replace(each, whole=own if len(outer) > 1 else ""))
            talks += families.talks_of(asset, folder)
        paths = (provenance.record_path(folder, each, each is not None) for each in assets)
        records = {
            each.relative_to(folder).as_posix(): provenance.read_record(each) for each in paths
        }
        above = folder.relative_to(place.absolute()).as_posix()
        if found or talks:
            parts.append(Part(above, found, talks, records))
    if not parts:
        raise GristmillError(f"{place}: is no folder of an artifact that has rows")
    return parts


def splits_of(parts: Sequence[Part]) -> list[Split]:
    """The splits of all artifacts at a place, each with the path of its file there."""
    found = [
        replace(
            each,
            table=".".join(filter(None, (part.above.strip(".").replace("/", "."), each.table))),
            file=(Path(part.above) / each.file).as_posix() if each.file else "",
        )
        for part in parts
        for each in part.splits
    ]
    is_one = len({each.whole for each in found}) == 1
    return [replace(each, whole=WHOLE) for each in found] if is_one and len(parts) > 1 else found


def filled(splits: Iterable[Split], records: Iterable[Record]) -> list[Split]:
    """The splits of an artifact but those whose file has no row: `load_dataset` refuses these."""
    empty = {out.path for each in records for out in each.outputs if out.rows == 0}
    return [each for each in splits if each.file not in empty]


def head(splits: Sequence[Split], records: Sequence[Record], rows: int, above: str = "") -> Head:
    """What the head of a card says of rows in files.

    splits: of an artifact, each with the path of its file in the repository; the features are those
    of all. records: of the partitions whose files are named. rows: how many these have.
    above: path of the artifact in the repository, which names its configs; default: it is the
    repository.

    Raises GristmillError as `columns_of`.
    """
    partitions = {"", *(each.partition for each in records)}
    brought = [each for each in splits if each.partition in partitions]
    wholes = dict.fromkeys(each.whole for each in brought if each.whole)
    named = {name: [each for each in splits if each.whole == name] for name in wholes}
    for table in dict.fromkeys(each.table for each in brought):
        named[config_name(above, table)] = [each for each in splits if each.table == table]
    configs, infos = [], []
    for name, own in named.items():
        paths: dict[str, list[str]] = {}
        for each in own:
            if each.partition in partitions:
                paths.setdefault(each.name, []).append(each.file)
        files = [{"split": split, "path": listed} for split, listed in paths.items()]
        is_first = {"default": True} if name == WHOLE else {}
        configs.append({"config_name": name, "data_files": files, **is_first})
        if own[0].file.endswith(".jsonl"):
            infos.append({"config_name": name, "features": features(own)})
    counted = (name for each in records for name, count in each.counts.items() if count)
    languages = filter(None, map(_LANGUAGE.fullmatch, counted))
    licences = {each.licence for each in brought}
    found = {
        "license": licences.pop() if len(licences) == 1 else "",
        "language": sorted({each[1] for each in languages}),
        "size_categories": [size_category(rows)],
        "tags": ["gristmill"],
        "configs": configs,
        "dataset_info": infos,
    }
    return {key: value for key, value in found.items() if value}


def config_name(above: str, table: str) -> str:
    """The name of the config of a table: the path of its artifact with dots, then the table."""
    return ".".join(filter(None, (above.replace("/", "."), table))) or "default"


def rows_in(splits: Iterable[Split], records: Iterable[Record]) -> int:
    """The rows of the files of splits, as the records count them."""
    files = {each.file for each in splits}
    return sum(out.rows or 0 for each in records for out in each.outputs if out.path in files)


def size_category(rows: int) -> str:
    """The category of the hub for a number of rows."""
    return _CATEGORIES[min(max(len(str(rows)) - 3, 0), len(_CATEGORIES) - 1)]


def size_rank(category: str) -> int:
    """The place of a category of the hub among all; -1 for another text."""
    return _CATEGORIES.index(category) if category in _CATEGORIES else -1


def features(splits: Iterable[Split]) -> list[dict[str, Any]]:
    """The features of a config as the head declares them; raises as `columns_of`."""
    return [
        {"name": item.name, **({"dtype": "json"} if item.metadata else _feature(item.type))}
        for item in columns_of(splits)
    ]


def _feature(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = _feature(kind.value_type)
        return {"list": inner.get("dtype", inner)}
    return {"dtype": _TYPES.get(str(kind), str(kind))}


def card(place: Path, before: str = "") -> str:
    """The text of a README.md.

    Raises GristmillError for a folder without rows, and where rows are in no file that other
    programs read: `gristmill project` writes these as Parquet. Else as `completed`.
    """
    parts = parts_at(place)
    if missing := next((each for each in splits_of(parts) if not each.file), None):
        raise GristmillError(
            f"{place}: the rows of {missing.name} are in arrays, which other programs do not read: "
            f"write them by `gristmill project {place} OUT`"
        )
    rows = sum(rows_in(each.splits, each.records.values()) for each in parts)
    parts = [each._replace(splits=filled(each.splits, each.records.values())) for each in parts]
    records = [record for each in parts for record in each.records.values()]
    found = head(splits_of(parts), records, rows)
    return completed(before or body(parts), found, place / "README.md")


def completed(before: str, found: Head, shown: Path | str, replaced: Collection[str] = ()) -> str:
    """A README.md whose head has what it lacks.

    A key that stands is kept with its comments, and so is all below the head. Raises BadInput
    where the head that stands is no YAML.
    """
    standing, below = parted(before, shown)
    kept = yaml.safe_load(standing) or {}
    for key in replaced:
        if kept.get(key) != found.get(key):
            standing = re.sub(rf"(?m)^{key}:.*\n(?:[ \t-].*\n|\n)*", "", standing)
            kept = {name: value for name, value in kept.items() if name != key}
    lines = "".join(
        yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True)
        for key, value in found.items()
        if key not in kept
    )
    return f"{_MARK}{standing}{lines}{_MARK}{below}" if standing + lines else below


def parted(text: str, shown: Path | str) -> tuple[str, str]:
    """The head of a README without its marks, and what is below it. Raises as `completed`."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith(_MARK):
        return "", text
    inside, mark, body = text.removeprefix(_MARK).partition(f"\n{_MARK}")
    try:
        found = yaml.safe_load(inside)
    except yaml.YAMLError as error:
        raise BadInput(Path(shown), f"its head is no YAML: mend it ({error})") from error
    if not mark or not isinstance(found, Mapping | None):
        raise BadInput(Path(shown), "its head has no end, or no keys: mend it")
    return inside + "\n", body


def body(parts: Sequence[Part], is_beside: bool = True) -> str:
    """What a card says of how artifacts were made. is_beside: whether the records are, too."""
    listed = [(part, path, record) for part in parts for path, record in part.records.items()]
    first = listed[0][2]
    assets = ", ".join(dict.fromkeys(f"`{record.asset}`" for _, _, record in listed))
    name = Path(first.artifact) if len(parts) == 1 else Path(first.artifact).parent
    lines = [
        f"# {name.name}\n",
        f"{assets}, built by Gristmill. Each record lists all files with their sha256, what "
        "they were made from, and the settings.\n",
        "| partition | data version | record |",
        "|---|---|---|",
    ]
    for part, path, each in listed:
        place = (Path(part.above) / path).as_posix()
        shown = f"[{place}]({place})" if is_beside else f"`{each.artifact}/{path}`"
        lines.append(f"| {each.partition or ''} | `{each.data_version[:12]}` | {shown} |")
    lines.append(f"\n`gristmill trace` leads from a row to its raw bytes: {assets}.\n")
    return "\n".join(lines)
