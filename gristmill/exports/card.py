"""The card of a dataset repository: its README.md, whose head says what `load_dataset` opens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml

from gristmill import families, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.dispatch import recorded_assets
from gristmill.exports.table import Split, columns_of, grouped
from gristmill.provenance import Record

Head = dict[str, Any]
"""The head of a card, by key."""

_SIZES: Final = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
_TYPES: Final = {"float": "float32", "double": "float64"}
_MARK: Final = "---\n"
_LANGUAGE: Final = re.compile(r"languages/([a-z]{2,3})")


def splits_at(place: Path) -> list[Split]:
    """The splits in the folder of an artifact, in their order.

    place: the folder. Raises GristmillError where it is of no asset that has rows.
    """
    assets = dict.fromkeys(recorded_assets(place).values())
    found = [each for asset in assets for each in families.splits_of(asset, place)]
    if not found:
        raise GristmillError(f"{place}: is no folder of an artifact that has rows")
    return found


def records_at(place: Path) -> list[Record]:
    """The records of the partitions in the folder of an artifact."""
    assets = recorded_assets(place)
    paths = (provenance.record_path(place, each, each is not None) for each in assets)
    return [provenance.read_record(path) for path in paths]


def head(splits: Sequence[Split], records: Sequence[Record], rows: int, above: str = "") -> Head:
    """What the head of a card says of rows in files.

    splits: of an artifact, each with the path of its file in the repository; the features are those
    of all. records: of the partitions whose files are named. rows: how many these have.
    above: path of the artifact in the repository, which names its configs; default: it is the
    repository.

    Raises GristmillError as `columns_of`.
    """
    configs, infos = [], []
    partitions = {"", *(each.partition for each in records)}
    brought = [each for each in splits if each.partition in partitions]
    for table in dict.fromkeys(each.table for each in brought):
        own = [each for each in splits if each.table == table]
        groups = grouped(each for each in own if each.partition in partitions)
        name = config_name(above, table)
        files = [
            {"split": split, "path": [each.file for each in group]}
            for (_, split), group in groups.items()
        ]
        configs.append({"config_name": name, "data_files": files})
        if own[0].file.endswith(".jsonl"):
            infos.append({"config_name": name, "features": features(own)})
    languages = filter(None, map(_LANGUAGE.fullmatch, _counted(records)))
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


def _counted(records: Iterable[Record]) -> Iterable[str]:
    return (name for each in records for name, count in each.counts.items() if count)


def rows_in(splits: Iterable[Split], records: Iterable[Record]) -> int:
    """The rows of the files of splits, as the records count them."""
    files = {each.file for each in splits}
    return sum(out.rows or 0 for each in records for out in each.outputs if out.path in files)


def size_category(rows: int) -> str:
    """The category of the hub for a number of rows."""
    if rows < 1000:
        return "n<1K"
    place = (len(str(rows)) - 1) - 3
    return f"{_SIZES[place]}<n<{_SIZES[place + 1]}" if place < len(_SIZES) - 1 else "n>1T"


def size_rank(category: str) -> int:
    """The place of a category of the hub among all; -1 for another text."""
    every = ["n<1K", *(f"{a}<n<{b}" for a, b in pairwise(_SIZES)), "n>1T"]
    return every.index(category) if category in every else -1


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
    splits, records = splits_at(place), records_at(place)
    if missing := next((each for each in splits if not each.file), None):
        raise GristmillError(
            f"{place}: the rows of {missing.name} are in arrays, which other programs do not read: "
            f"write them by `gristmill project {place} OUT`"
        )
    found = head(splits, records, rows_in(splits, records))
    return completed(before or body(records), found, place / "README.md")


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


def body(records: Sequence[Record], is_beside: bool = True) -> str:
    """What a card says of how an artifact was made. is_beside: whether the records are, too."""
    first = records[0]
    lines = [
        f"# {Path(first.artifact).name}\n",
        f"`{first.asset}`, built by Gristmill. Each record lists all files with their sha256, what "
        "they were made from, and the settings.\n",
        "| partition | data version | record |",
        "|---|---|---|",
    ]
    for each in records:
        shared = each.partition is not None and len(records) > 1
        path = f"provenance/{each.partition}.json" if shared else "provenance.json"
        shown = f"[{path}]({path})" if is_beside else f"`{first.artifact}/{path}`"
        lines.append(f"| {each.partition or ''} | `{each.data_version[:12]}` | {shown} |")
    lines.append(f"\n`gristmill trace` leads from a row to its raw bytes: `{first.asset}`.\n")
    return "\n".join(lines)
