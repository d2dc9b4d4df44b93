"""A mix file: the sources of a run and how much of each, in TOML.

Source: docs/formats/loading.md#mix-file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pydantic

from gristmill.contract import BadInput, GristmillError
from gristmill.dispatch import kinds_at
from gristmill.lazy_exports import Call
from gristmill.loading.plan import MOST_EPOCHS, Plan, mixture
from gristmill.loading.source import Source
from gristmill.untrusted.toml import read_toml

if TYPE_CHECKING:
    from gristmill.loading.past import Past

_MEASURES: Final = {"epochs": "epochs", "tokens": "tokens", "weight": "weights"}
"""The key of a source, and the argument of `mixture`."""
_WHOLE: Final = ("seed", "window", "samples")
_HEAD: Final = (*_WHOLE, "max_epochs", "source")


def read_mix(file: Path | str, data_root: Path | str = "data") -> Plan:
    """The plan of a mix file, whose paths are below the data root.

    Raises BadInput for a file that is no mix file, or a source that cannot be opened so.
    """
    path, root = Path(file).resolve(), Path(data_root)
    found, tables = _tables(path)
    measures = {key for table in tables.values() for key in _MEASURES if key in table}
    if len(measures) != 1:
        raise BadInput(path, f"its sources say one of {', '.join(_MEASURES)}: the same for all")
    (measure,) = measures
    sources = {name: _opened(path, name, table, root) for name, table in tables.items()}
    amounts = {name: table.get(measure) for name, table in tables.items()}
    for name, amount in amounts.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            raise BadInput(path, f"source.{name}: {measure} is {amount!r}: a number is needed")
    for key in _WHOLE:
        if type(found.get(key, 0)) is not int or found.get(key, 0) < 0:
            raise BadInput(path, f"{key} is {found[key]!r}: a whole number of at least 0 is needed")
    try:
        mixed = mixture(
            sources,
            samples=found.get("samples"),
            max_epochs=found.get("max_epochs", MOST_EPOCHS),
            **{_MEASURES[measure]: amounts},
        )
        return Plan(mixed, seed=found.get("seed", 0), window=found.get("window", 0))
    except (GristmillError, TypeError) as error:
        raise BadInput(path, str(error)) from error


def _tables(path: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """All of a mix file, and the table of each source by its name."""
    found = read_toml(path, root=path.parent)
    if unknown := sorted(set(found) - set(_HEAD)):
        raise BadInput(path, f"{unknown[0]} is no key: use {', '.join(_HEAD)}")
    tables = found.get("source")
    if not isinstance(tables, Mapping) or not all(isinstance(t, Mapping) for t in tables.values()):
        raise BadInput(path, "has no table [source.NAME]: name each source, with its path")
    return found, tables


def options_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source: the keys of its table beside its path and amount."""
    return {key: value for key, value in table.items() if key not in ("path", *_MEASURES)}


def read_plan(
    state: Mapping[str, Any], file: Path, data_root: Path, pulled: Path | None = None
) -> tuple[Plan, list[Past]]:
    """The plan of a state, also where artifacts were built again since; and what of it is gone.

    file: the mix file of the run. pulled: a data root with other versions; default None.

    Raises GristmillError for what is no state, and where a version is neither published nor kept.
    """
    from gristmill.loading.past import source_of
    from gristmill.loading.state import sources_of

    path, (_, tables) = file.resolve(), _tables(file.resolve())
    here = dict[tuple[str, int], Source]()
    for root in filter(None, (data_root, pulled)):
        for name, table in tables.items():
            # What cannot be opened any more was removed, or a part of it: what is kept says more.
            with suppress(GristmillError, OSError):
                own = _opened(path, name, table, root)
                here[own.identity.text, int(own.cuts[-1])] = own
    options = [options_of(table) for table in tables.values()]
    sources, past = list[Source](), list["Past"]()
    for identity, samples in sources_of(state):
        if (source := here.get((identity.text, samples))) is None:
            source, rows = source_of(data_root, identity, samples, options)
            if state["window"] and source is rows and rows.shards != len(rows.cuts) - 1:
                raise GristmillError(
                    f"{identity.artifact}: its version was replaced, and where its {rows.shards} "
                    f"shards begin is not kept: the order of a window of {state['window']} follows "
                    "from that: pull that version (gristmill pull) to ask for the run's samples"
                )
            past.append(rows)
        sources.append(source)
    segments = [(first, tuple(quotas)) for first, quotas in state["segments"]]
    return Plan.of(sources, segments, state["seed"], state["window"]), past


def read_state(file: Path) -> dict[str, Any]:
    """The state in a file of JSON. Raises BadInput for anything else."""
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise BadInput(file, f"is no JSON: {error}: give the state of a Loader") from error
    if not isinstance(found, dict) or not found.get("batches"):
        raise BadInput(file, "is no state of a Loader: write loader.state_dict() as JSON")
    return found


def _opened(file: Path, name: str, table: Mapping[str, Any], root: Path) -> Source:
    """The source of one table."""
    options = options_of(table)
    paths = table.get("path")
    listed = [paths] if isinstance(paths, str) else paths
    if not isinstance(listed, list) or not listed or not all(isinstance(p, str) for p in listed):
        raise BadInput(file, f"source.{name}: path is {paths!r}: a folder or a list of folders")
    kinds = kinds_at(root / listed[0])
    late = next((kind.source for kind in kinds if kind.source is not None), None)
    if not isinstance(late, Call):
        raise BadInput(file, f"source.{name}: the loader takes no artifacts of {kinds[0].asset}")
    function = pydantic.validate_call(config=pydantic.ConfigDict(strict=True))(late.function)
    try:
        opened: Source = function([root / each for each in listed], **options)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput(file, f"source.{name}: {where}: {first['msg']}") from error
    return opened
