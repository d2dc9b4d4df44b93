"""The tables of an artifact, and how one is opened: by its folder's record, else by its files."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.browse.columns import Columns, of_values
from gristmill.browse.lines import Form, Lines, csv_table, jsonl
from gristmill.browse.source import OF_CONTENTS, Record, Source, Stored, Table, cell
from gristmill.browse.table import Picture
from gristmill.contract import BadInput, GristmillError
from gristmill.dispatch import kinds_at, recorded_assets
from gristmill.families import (
    Kind,
    Request,
    catalogs,
    columns_of,
    kind_of_asset,
    other_kind,
)
from gristmill.provenance import inventory
from gristmill.provenance.record import wrong_path
from gristmill.untrusted.files import opened

_MOST_JSON: Final = 64 << 20


@dataclass(frozen=True)
class Files:
    """What records say of the files in a folder, and where the places of lines are kept.

    folder: of the artifact. outputs: by path in it. keep: as for `open_table`.
    """

    folder: Path
    outputs: Mapping[str, provenance.Output] = field(default_factory=dict)
    keep: Path | None = None

    def jsonl(self, name: str) -> Lines:
        """The rows of a JSONL file by its path in the folder. Raises BadInput as `Lines`."""
        return jsonl(self._path(name), *self._known(name), self.keep)

    def csv(self, name: str) -> Lines:
        """The rows of a CSV file by its path in the folder. Raises BadInput as `Lines`."""
        rows, size = self._known(name)
        return csv_table(self._path(name), rows, size, self.keep)

    def lines(self, name: str, form: Form) -> Lines:
        """The rows of another file by its path in the folder. Raises BadInput as `Lines`."""
        return Lines(self._path(name), form, *self._known(name), self.keep)

    def checked(self, name: str) -> Path:
        """The path of a file. Raises BadInput where its size is not the recorded one."""
        path, (_, size) = self._path(name), self._known(name)
        try:
            found = path.stat().st_size
        except OSError as error:
            raise BadInput(path, f"cannot be read ({error.strerror}): build it again") from error
        if size not in (None, found):
            rule = f"has {found:,} bytes, and {size:,} were recorded: build the artifact again"
            raise BadInput(path, rule)
        return path

    def _path(self, name: str) -> Path:
        if reason := wrong_path(name):
            raise BadInput(self.folder, f"the path {name!r} {reason}: build the artifact again")
        return self.folder / name

    def _known(self, name: str) -> tuple[int | None, int | None]:
        output = self.outputs.get(name)
        return (None, None) if output is None else (output.rows, output.bytes)


def tables_of(place: Path, kind: str | None = None, partition: str | None = None) -> list[str]:
    """The names of the tables of an artifact, the main one first.

    place: its folder. kind: key of its asset; None (default) where its record or files say it.
    partition: of an artifact that shares its folder with others; None (default) for all of them.

    Raises GristmillError where the folder holds nothing that a family knows.
    """
    found = declared_tables(place, kind)
    wanted = [stored for _, stored in found if partition in (None, stored.partition)]
    return list(dict.fromkeys(stored.name for stored in wanted))


def open_table(
    place: Path, kind: str | None = None, name: str | None = None, keep: Path | None = None
) -> Table:
    """Open a table of an artifact.

    place: its folder. kind: key of its asset; None (default) where its record or files say it.
    name: of the table, as `tables_of` names it; None (default) for the main one.
    keep: a folder outside of all artifacts, where the places of lines are kept between processes;
        None (default) keeps them in this process alone.

    The sizes of files are compared with the record; what a row shows is read as `gristmill show`
    does. Raises GristmillError where there is no such table, or where it cannot be read.
    """
    found = declared_tables(place, kind, keep)
    for asset, stored in found:
        if name in (None, stored.name):
            return open_stored(place, asset, stored)
    names = ", ".join(stored.name for _, stored in found)
    raise GristmillError(f"{place} has no table {name}: it has {names or 'none'}")


def open_stored(place: Path, asset: str, stored: Stored) -> Table:
    """Open a table that `declared_tables` returned. Raises as `open_table`."""
    of_kind = kind_of_asset(asset) or other_kind(asset)
    texts = {each.name.rpartition(".")[2]: each.text for each in columns_of(asset)}
    texts |= {each.name: each.text for each in columns_of(asset)}
    return Table(place, asset, stored, texts, _Origin(place, of_kind, stored).of)


def pictured_table(place: Path, record: provenance.Record) -> Table | None:
    """Open the main table of a published artifact; None where its rows have no pictures.

    place: its folder. record: its own; those of others in the folder are not read.

    Raises as `open_table`.
    """
    files = Files(place, {output.path: output for output in record.outputs})
    declared = _tables(record.asset, files, [record.partition])
    main = next((each for each in declared if each.partition in ("", record.partition)), None)
    if main is None or main.pictures is Stored.pictures:
        return None
    return open_stored(place, record.asset, main)


def first_picture(
    place: Path, record: provenance.Record, sample: Callable[[Path], int]
) -> Picture | None:
    """The picture of the row that stands for an artifact; None where it has none that can be drawn.

    sample: takes the folder, and returns the number of that row. place, record: see above.
    """
    try:
        table = pictured_table(place, record)
        rows = table.rows(sample(place), 1, inf) if table is not None else ()
        return next((each for row in rows for each in row.pictures()), None)
    except (GristmillError, *OF_CONTENTS):
        return None


def declared_tables(
    place: Path, kind: str | None = None, keep: Path | None = None
) -> list[tuple[str, Stored]]:
    """The tables of a folder, each with the key of its asset, the main one first.

    Arguments and errors are those of `open_table`.
    """
    inventory.check_links(place)
    assets = recorded_assets(place)
    outputs = _outputs(place, assets)
    own = [asset for asset in dict.fromkeys(assets.values()) if kind in (None, asset)]
    if not own:
        if kind is not None and kind_of_asset(kind) is None and other_kind(kind) is None:
            raise GristmillError(f"{kind} is no asset that has tables")
        own = [kind] if kind is not None else [each.asset for each in kinds_at(place)]
    files = Files(place, outputs, keep)
    found = []
    for asset in own:
        partitions = [p for p, recorded in assets.items() if recorded == asset]
        found += [(asset, stored) for stored in _tables(asset, files, partitions)]
    return found


def _outputs(place: Path, assets: Mapping[str | None, str]) -> Mapping[str, provenance.Output]:
    found = dict[str, provenance.Output]()
    for each in assets:
        path = provenance.record_path(place, each, each is not None)
        record = provenance.read_record(path)
        if wrong := next(inventory.wrong_paths(record), None):
            raise BadInput(path, f"{wrong}: build the artifact again")
        found |= {output.path: output for output in record.outputs}
    return found


def _tables(asset: str, files: Files, partitions: Sequence[str | None]) -> Iterator[Stored]:
    yield from _vocabulary(asset, files)
    for each in catalogs():
        if any(kind.asset == asset for kind in (*each.kinds, *each.others)):
            declared = list(each.tables(asset, files.folder, files))
            yield from declared
            if not declared:
                yield from _json_files(files, partitions)


def _json_files(files: Files, partitions: Sequence[str | None]) -> Iterator[Stored]:
    """The JSON files of artifacts that hold nothing else, as manifests and reports."""
    # Of reports the newest is the first.
    for partition in sorted(partitions, key=str, reverse=True):
        path = provenance.record_path(files.folder, partition, partition is not None)
        for output in provenance.read_record(path).outputs:
            if output.path.endswith((".json", ".jsonl")):
                yield Stored(
                    output.path,
                    partial(_json, files, output.path),
                    searchable=("key", "value", "example_id"),
                    partition=partition or "",
                    sample=lambda _, name=partition or "0": (name, {}),  # type: ignore[misc]
                )


def _json(files: Files, name: str) -> Source:
    return files.jsonl(name) if name.endswith("l") else _members(files.checked(name))


def _members(path: Path) -> Columns:
    """The members of a JSON file, each with its path in it."""
    from gristmill.untrusted.json_text import load_json

    try:
        with opened(path) as file:
            octets = file.read(_MOST_JSON + 1)
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror}): build it again") from error
    if len(octets) > _MOST_JSON:
        raise BadInput(path, f"has more than {_MOST_JSON >> 20} MiB, the most that is shown")
    try:
        members = _leaves("", load_json(octets, path))
        return of_values(path, [{"key": key, "value": value} for key, value in members])
    except ValueError as error:
        raise BadInput(path, f"is no JSON ({error}): build it again") from error


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for at, inner in enumerate(value):
            yield from _leaves(f"{name}[{at}]", inner)
    else:
        yield name, str(cell(value))


def _vocabulary(asset: str, files: Files) -> Iterator[Stored]:
    from gristmill.vocabularies.pinned import VOCABULARIES

    for each in VOCABULARIES:
        if asset == f"tokenizers/{each.name}":
            yield Stored(
                each.name,
                partial(files.lines, each.relative, _RANKED),
                searchable=("text",),
                slow=("text", "bytes"),
                partition=each.name,
                sample=lambda _, name=each.name: (name, {}),  # type: ignore[misc]
            )


def _ranked(octets: bytes) -> Mapping[str, Any]:
    token, _, rank = octets.partition(b" ")
    base64.b64decode(token, validate=True)
    return {"rank": int(rank), "base64": token.decode()}


def _token(values: Mapping[str, Any]) -> bytes:
    return base64.b64decode(values["base64"])


_RANKED: Final = Form(
    _ranked,
    more={
        "text": lambda values: _token(values).decode("utf-8", "replace"),
        "bytes": lambda values: _token(values).hex(),
    },
)
"""Lines of a vocabulary: a token in base64, and its rank."""


class _Origin:
    """Where the rows of a table came from, as `gristmill trace` says."""

    def __init__(self, place: Path, kind: Kind | None, stored: Stored) -> None:
        self._place, self._kind, self._stored = place, kind, stored

    def of(self, record: Record) -> Sequence[Mapping[str, object]]:
        from gristmill.provenance.trace_inputs import inputs_of

        if self._stored.sample is None:
            return ()
        sample, options = self._stored.sample(record)
        if self._kind is None or self._kind.trace is None:
            return [each.facts() for each in inputs_of(self._place, sample=sample)]
        steps = self._kind.trace(Request(self._place, sample, dict(options)))
        return [each.facts() for each in steps]
