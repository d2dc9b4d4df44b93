"""The metadata of an event: numbers to plot, documents to read, the record of the artifact."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import dagster as dg

from assets import choices
from assets.checking.equal_inputs import equal_inputs, named
from gristmill import families, markdown, provenance
from gristmill.asset import Asset
from gristmill.browse.opening import declared_tables, open_stored
from gristmill.browse.table import Picture
from gristmill.browse.web.asked import Asked
from gristmill.contract import GristmillError
from gristmill.markdown import stored_size
from gristmill.printable import cut, plain, printable
from gristmill.provenance import Input, Record
from gristmill.publish.build import Published

_MOST_RECORDS, _MOST_ROWS, _LONGEST = 20, 8, 120
EQUAL: Final = "equal raw files"
"""Name of the row of equal raw files."""
_BY_SHARD: Final = frozenset({"synth/raw", "synth/ready_harmony"})
"""Raw assets whose partitions are the shards that are built from a drop, not the drops."""


def drop_rows(record: Record, root: Path) -> dict[str, dg.MetadataValue | str]:
    """Returns the raw drops of an artifact, over any number of steps, as rows of an event.

    Each drop is a link to the partition of its raw asset in the UI. A link has no host, so that it
    leads to the server that shows the page. At most 8 are listed; none for an artifact that was
    downloaded, sampled, or made from all partitions of another.
    """
    found: dict[str, str] = {}
    for name, address in _raw_drops(record, root):
        # A drop that several partitions were built from is shown without one.
        same = found.get(name, address) == address
        found[name] = address if same else address.partition("&")[0]
    names = ["source drop"] if len(found) == 1 else [f"source drop/{name}" for name in found]
    rows: dict[str, dg.MetadataValue | str] = {
        cut(printable(name), _LONGEST): dg.MetadataValue.url(address)
        for name, address in zip(names, found.values(), strict=True)
    }
    if len(rows) > _MOST_ROWS:
        first = dict(list(rows.items())[:_MOST_ROWS])
        return {**first, "more source drops": f"{len(rows) - _MOST_ROWS:,}"}
    return rows


def equal_rows(record: Record, root: Path) -> dict[str, str]:
    """Returns the raw files of an artifact that have the same bytes as a row of its event."""
    groups = equal_inputs(_inputs(record, root))
    return {EQUAL: cut(named(groups), _LONGEST_LIST)} if groups else {}


def _raw_drops(record: Record, root: Path) -> Iterator[tuple[str, str]]:
    """Name of each drop, and the page of its partition in the UI."""
    todo, seen = [record], {(record.artifact, record.partition)}
    while todo:
        holder = todo.pop(0)
        for item in _inputs(holder, root):
            if item.data_version is None:
                yield from _page(item, holder)
            elif (item.path, item.partition) not in seen and len(seen) < _MOST_RECORDS:
                seen.add((str(item.path), item.partition))
                if (made_from := _record(item, root)) is not None:
                    todo.append(made_from)


def _inputs(record: Record, root: Path) -> list[Input]:
    path = provenance.published_record_path(root / record.artifact, record.partition)
    if record.inputs_file is None or path is None:
        return list(record.inputs)
    try:
        return provenance.read_inputs(record, path)
    except GristmillError:
        return []  # the check `intact` reports it


def _record(item: Input, root: Path) -> Record | None:
    """The record of an input that still has the version that was used."""
    path = provenance.published_record_path(root / str(item.path), item.partition)
    try:
        record = None if path is None else provenance.read_record(path)
    except GristmillError:
        return None  # the check `intact` reports it
    return record if record is not None and record.data_version == item.data_version else None


def _page(item: Input, holder: Record) -> Iterator[tuple[str, str]]:
    parts = PurePosixPath(item.path or "").parts
    if item.asset is None or parts[:1] != ("drops",) or len(parts) < 3:
        return
    partition = holder.partition if item.asset in _BY_SHARD else item.partition
    if partition is not None:
        address = (
            f"/assets/{quote(item.asset)}?view=partitions&partition={quote(partition, safe='')}"
        )
        yield "/".join(parts[1:3]), address


NAME: Final = "columns"
"""The metadata entry of the columns. One called `dagster/column_schema` would stand open above all
others, with the picture out of sight below it."""
_COLUMN_BYTES: Final = 300
"""Bytes that Dagster stores around each column, a little more than they are."""


PartitionPreview = Callable[[Published], Mapping[str, str | int | float]]

MOST_BYTES: Final = 100_000
"""Most bytes of an event, as Dagster stores it."""
MOST_NUMBERS: Final = 150
"""Most numbers of an event."""
_NUMBER_BYTES, _NOTES_BYTES = 35_000, 10_000
_LONGEST_NAME = 100
# Most bytes of a record: that of the samples of ARC, with 31 files, has 10,614.
_RECORD_BYTES = 12_000
_CUT_TEXT = 1000
# What Dagster writes around a value: its type and its class.
_AROUND = 200
# What stands around the metadata of an event.
_EVENT = 1000
_LONGEST_LIST = 1000
_RESERVED = (
    *(
        "path",
        "samples",
        "status",
        "account",
        "not checked",
        "notes",
        "provenance",
        "bytes",
        "seconds",
        "peak_memory_mb",
    ),
    *("config changed", "tokenizer", "source drop", "zero", EQUAL),
)


def event_metadata(
    published: Published, preview_of: PartitionPreview = lambda _: {}
) -> dict[str, Any]:
    """Returns the metadata of an event: numbers to plot, documents to read, the record.

    preview_of: returns further documents and numbers by title; default none.

    The whole has at most MOST_BYTES. If it would have more, numbers and documents are cut with a
    count of what was left out, and the record has an entry `cut` that says which fields were.

    Raises ValueError if a title of the preview is also a count of the record.
    """
    record = published.record
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.path(plain(str(published.folder))),
        "status": "built" if published.rebuilt else "unchanged",
        "samples": dg.MetadataValue.url(
            Asked(record.artifact, record.asset, record.partition or "").address("rows")
        ),
    }
    metadata |= _notes(published) | _rows(published)
    previewed = preview_of(published)
    if shared := set(previewed) & set(record.counts):
        raise ValueError(
            f"{record.asset}: the preview and the record's counts both have {shared.pop()!r}: "
            "rename it in the preview"
        )
    documents = {title: text for title, text in previewed.items() if isinstance(text, str)}
    figures = {title: value for title, value in previewed.items() if not isinstance(value, str)}
    size = sum(output.bytes for output in record.outputs)
    counted = {**figures, **_named_once(record, figures, size)}
    lists = _lists(record.asset, counted)
    counted = {name: value for name, value in counted.items() if name.split("/")[0] not in lists}
    zero = [name for name in counted if _is_zero(name, counted[name], published.before)]
    if zero:
        metadata["zero"] = cut(", ".join(map(printable, zero)), _LONGEST_LIST)
    metadata |= {group: line for group, line in lists.items() if line}
    numbers = bounded_numbers({name: counted[name] for name in counted if name not in zero})
    numbers["bytes"] = size
    numbers["seconds"] = record.seconds
    numbers["peak_memory_mb"] = round(record.peak_memory_bytes / 1e6, 1)
    if "rows" in numbers:
        numbers["dagster/partition_row_count"] = numbers["rows"]
    left = MOST_BYTES - _EVENT - _stored(metadata) - _stored(numbers)
    left -= stored_bytes(record.asset)
    whole = bounded_record(record.model_dump(mode="json"), _RECORD_BYTES)
    texts = bounded_documents(documents, left - _size(whole))
    metadata |= {title: dg.MetadataValue.md(text) for title, text in texts.items()}
    metadata |= numbers
    metadata |= column_metadata(record.asset)
    metadata["provenance"] = dg.MetadataValue.json(whole)
    # The first row is seen on the overview without scrolling.
    return {title: metadata[title] for title in ("picture",) if title in metadata} | metadata


def picture_of(asset: Asset, published: Published) -> dict[str, str]:
    """Returns the picture of an artifact: of one row of its main table, if Dagster shows it inline.

    An artifact without rows or pictures, or with a damaged file, which its checks report, has none.
    """
    try:
        pictures = _pictures(asset, published)
    except GristmillError:
        return {}
    text = markdown.image(pictures[0].title, pictures[0].svg) if pictures else ""
    return {"picture": text} if 0 < len(text) <= markdown.INLINE else {}


def _pictures(asset: Asset, published: Published) -> Sequence[Picture]:
    folder, partitions = published.folder, ("", published.record.partition)
    declared = (stored for _, stored in declared_tables(folder, asset.asset))
    main = next((stored for stored in declared if stored.partition in partitions), None)
    if main is None:
        return ()
    rows = open_stored(folder, asset.asset, main).rows(asset.sample(folder), 1, inf)
    return rows[0].pictures() if rows else ()


def _notes(published: Published) -> dict[str, Any]:
    """What became of the drop, what nobody checked, notes, and what the config changed."""
    found: dict[str, Any] = {}
    if published.account:
        found["account"] = plain(published.account, _NOTES_BYTES)
    if published.not_checked:
        found["not checked"] = plain(published.not_checked, _NOTES_BYTES)
    changed = map(markdown.escape, choices.change_lines(published))
    for title, lines in (("notes", published.notes), ("config changed", list(changed))):
        if lines:
            text = markdown.shortened(markdown.bullets(lines), _NOTES_BYTES)
            found[title] = dg.MetadataValue.md(text)
    return found


def _rows(published: Published) -> dict[str, Any]:
    """The config that matters, the vocabulary, and the raw drops, one row each."""
    record = published.record
    rows: dict[str, Any] = {**choices.config_rows(record)}
    if record.tokenizer is not None:
        rows["tokenizer"] = record.tokenizer.name
    root = choices.data_root(published)
    return rows | drop_rows(record, root) | equal_rows(record, root)


def _lists(asset: str, counts: Mapping[str, int | float]) -> dict[str, str]:
    """The groups of counts that are listed, not plotted, one line each."""
    kind = families.kind_of_asset(asset)
    found: dict[str, list[str]] = {}
    for name, count in counts.items():
        group, _, own = name.partition("/")
        if kind is not None and own and group in kind.listed:
            found.setdefault(group, []).extend([f"{printable(own)}: {count:,}"] * bool(count))
    return {group: cut(", ".join(parts), _LONGEST_LIST) for group, parts in found.items()}


def _named_once(
    record: Record, figures: Mapping[str, int | float], size: int
) -> Mapping[str, int | float]:
    """The counts of a record without those that the event has under another name."""
    kind = families.kind_of_asset(record.asset)
    own = set(kind.rows) if kind is not None and len(kind.rows) == 1 else set()
    return {
        name: value
        for name, value in record.counts.items()
        if not (name in own and name != "rows" and figures.get("rows") == value)
        and not (name == "bytes" and value == size)
    }


def _is_zero(name: str, value: float, before: Record | None) -> bool:
    """Whether a count is not worth a plot: it is 0, and was 0 in the record that stood."""
    counted = isinstance(value, int) and value == 0 and name != "rows"
    return counted and not (before and before.counts.get(name))


def bounded_numbers(counts: Mapping[str, int | float]) -> dict[str, Any]:
    """Returns the numbers of an event, the first ones if there are too many.

    Numbers that a builder names come before those that a drop names. What is left out is counted in
    `counts left out`. A name such as `languages/en` may be text of a drop: it is cut and made
    printable, and it takes no name that an event has already.
    """
    numbers: dict[str, Any] = {}
    size = 0
    # Stable: otherwise the order of the record stays.
    for name in sorted(counts, key=lambda name: "/" in name):
        shown = cut(printable(name), _LONGEST_NAME)
        if shown in _RESERVED or shown.startswith("dagster/"):
            shown = f"counts/{shown}"
        cost = markdown.stored_size(shown) + _AROUND
        if shown in numbers or len(numbers) == MOST_NUMBERS or size + cost > _NUMBER_BYTES:
            continue
        numbers[shown] = counts[name]
        size += cost
    if more := len(counts) - len(numbers):
        numbers["counts left out"] = f"{more:,}; all are in the record on disk"
    return numbers


def bounded_documents(documents: Mapping[str, str], most: int) -> dict[str, str]:
    """Returns the documents of an event, the longest ones cut until all fit."""
    sizes = {title: _stored({title: text}) for title, text in documents.items()}
    room, bounded = most, {}
    # From the shortest on, each may take an equal part of what the shorter ones left.
    for number, title in enumerate(sorted(sizes, key=lambda title: sizes[title])):
        part = room // (len(sizes) - number)
        if sizes[title] > part:
            around = sizes[title] - markdown.stored_size(documents[title])
            bounded[title] = markdown.shortened(documents[title], max(part - around, 1000))
            room -= markdown.stored_size(bounded[title]) + around
        else:
            bounded[title] = documents[title]
            room -= sizes[title]
    return {title: bounded[title] for title in documents}


def bounded_record(record: dict[str, Any], most: int) -> dict[str, Any]:
    """Returns a record unchanged if it fits, else without what is too long in it.

    A cut record has the entry `cut`: what was left out of each field.
    """
    if _size(record) <= most:
        return record
    result = {name: _cut_texts(value) for name, value in record.items()}
    notes: dict[str, str] = {
        name: "long texts are cut" for name in record if result[name] != record[name]
    }
    if result.pop("counts", None) is not None:
        notes["counts"] = "are the numbers of this event"
    for name, value in result.items():
        if isinstance(value, list):
            # Of an input most fields may be null.
            result[name] = [_without_nulls(item) for item in value]
    result["cut"] = notes
    while _size(result) > most:
        fields = [name for name in record if name in result and _size(result[name]) > 100]
        if not fields:
            break
        longest = max(fields, key=lambda name: _size(result[name]))
        value = result[longest]
        if not isinstance(value, list | dict) or len(value) <= 1:
            notes[longest] = "left out"
            del result[longest]
            continue
        kept = len(value) // 2
        result[longest] = (
            value[:kept] if isinstance(value, list) else dict(list(value.items())[:kept])
        )
        notes[longest] = f"the first {kept:,} of {len(record[longest]):,}"
    return result


def _without_nulls(item: Any) -> Any:
    return {k: v for k, v in item.items() if v is not None} if isinstance(item, dict) else item


def _cut_texts(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, _CUT_TEXT)
    if isinstance(value, list):
        return [_cut_texts(item) for item in value]
    if isinstance(value, dict):
        return {cut(name, _CUT_TEXT): _cut_texts(item) for name, item in value.items()}
    return value


def _stored(metadata: Mapping[str, Any]) -> int:
    """Bytes of some metadata as Dagster stores them, a little more than they are."""
    return sum(
        markdown.stored_size(name) + _size(getattr(value, "value", value)) + _AROUND
        for name, value in metadata.items()
    )


def _size(value: Any) -> int:
    return len(json.dumps(value))


@cache
def column_schema(asset: str) -> dg.TableSchema | None:
    """Returns the columns of an asset's artifacts; None where they are no tables."""
    columns = families.columns_of(asset)
    if not columns:
        return None
    return dg.TableSchema(
        columns=[dg.TableColumn(each.name, each.type, each.text) for each in columns]
    )


def column_metadata(asset: str) -> dict[str, Any]:
    """Returns the entry for an event; empty where the artifacts are no tables."""
    schema = column_schema(asset)
    return {} if schema is None else {NAME: dg.MetadataValue.table_schema(schema)}


@cache
def stored_bytes(asset: str) -> int:
    """Returns the bytes of the entry as Dagster stores it, a little more than they are."""
    schema = column_schema(asset)
    return sum(
        _COLUMN_BYTES + stored_size(f"{column.name}{column.type}{column.description}")
        for column in (schema.columns if schema else ())
    )
