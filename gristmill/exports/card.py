"""The card of a dataset repository: its README.md, whose head says what `load_dataset` opens.

A README of the person's own is kept: its head gets the keys that it lacks. Source:
`docs/consumers.md#datasets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.project import grouped, splits_at
from gristmill.exports.table import Split, columns_of
from gristmill.provenance import Record

_SIZES: Final = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
_TYPES: Final = {"float": "float32", "double": "float64"}
_MARK: Final = "---\n"


def head(place: Path, records: Sequence[Record]) -> dict[str, Any]:
    """What the head of a card says of an artifact.

    place: its folder. records: of its partitions.

    Raises GristmillError for a folder without rows, and where rows are in no file that other
    programs read: `gristmill project` writes these as Parquet.
    """
    splits = splits_at(place)
    if missing := next((each for each in splits if not each.file), None):
        raise GristmillError(
            f"{place}: the rows of {missing.name} are in arrays, which other programs do not read: "
            f"write them by `gristmill project {place} OUT`"
        )
    configs, infos = [], []
    for name in dict.fromkeys(each.table for each in splits):
        own = [each for each in splits if each.table == name]
        files = [
            {"split": split, "path": [each.file for each in group]}
            for (_, split), group in grouped(own).items()
        ]
        configs.append({"config_name": name or "default", "data_files": files})
        if own[0].file.endswith(".jsonl"):
            infos.append({"config_name": name or "default", "features": features(own)})
    licences = {each.licence for each in splits}
    named = {each.file: 0 for each in splits}
    rows = sum(out.rows or 0 for each in records for out in each.outputs if out.path in named)
    said: dict[str, Any] = {"license": licences.pop()} if len(licences) == 1 else {}
    if not said.get("license"):
        said = {}
    said |= {"size_categories": [size_category(rows)], "tags": ["gristmill"], "configs": configs}
    return said | ({"dataset_info": infos} if infos else {})


def size_category(rows: int) -> str:
    """The category of the hub for a number of rows."""
    if rows < 1000:
        return "n<1K"
    place = (len(str(rows)) - 1) - 3
    return f"{_SIZES[place]}<n<{_SIZES[place + 1]}" if place < len(_SIZES) - 1 else "n>1T"


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


def card(place: Path, records: Sequence[Record], before: str = "") -> str:
    """The text of a README.md.

    place: folder of an artifact. records: of its partitions. before: the README that stands.

    A key that stands is kept with its comments, and so is all below the head. Raises BadInput
    where the head that stands is no YAML; else as `head`.
    """
    found = head(place, records)
    standing, body = _parted(before, place)
    kept = yaml.safe_load(standing) if standing else {}
    lines = "".join(
        yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True)
        for key, value in found.items()
        if key not in (kept or {})
    )
    return f"{_MARK}{standing}{lines}{_MARK}{body or _body(records)}"


def _parted(text: str, place: Path) -> tuple[str, str]:
    """The head of a README without its marks, and what is below it."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith(_MARK):
        return "", text
    inside, mark, body = text.removeprefix(_MARK).partition(f"\n{_MARK}")
    try:
        found = yaml.safe_load(inside)
    except yaml.YAMLError as error:
        raise BadInput(place / "README.md", f"its head is no YAML: mend it ({error})") from error
    if not mark or not isinstance(found, Mapping | None):
        raise BadInput(place / "README.md", "its head has no end, or no keys: mend it")
    return inside + "\n", body


def _body(records: Sequence[Record]) -> str:
    """What a card says of how the artifact was made."""
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
        lines.append(f"| {each.partition or ''} | `{each.data_version[:12]}` | [{path}]({path}) |")
    lines.append(f"\n`gristmill trace` leads from a row to its raw bytes: `{first.asset}`.\n")
    return "\n".join(lines)
