"""Laws of training views, without their sources. Source: docs/formats/macroxue.md#view-laws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.laws import or_unreadable
from gristmill.macroxue.config import ViewConfig
from gristmill.macroxue.format.annotations import ROWS, VALUES, file_name
from gristmill.macroxue.format.metadata_db import read_gaps
from gristmill.macroxue.format.rows import VALUE_COLUMNS, Rows
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.format.view_files import (
    SIDES,
    TOKENIZER,
    Description,
    read_description,
)
from gristmill.macroxue.laws.pack import row_laws, shard_laws
from gristmill.macroxue.laws.values import value_laws
from gristmill.macroxue.raw.annotations import Annotations
from gristmill.macroxue.read.splits import identity
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.ev_bins import KINDS, BinRules, branches

DATABASE, NAMES = "metadata.db", "valuation_types.json"


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a view."""
    tolerance = float(subject.config.get("zero_tolerance", ViewConfig.zero_tolerance))
    return or_unreadable(_laws(subject, tolerance), law="files_open")


def _laws(subject: Subject, zero_tolerance: float) -> Iterator[Violation]:
    folder, view = subject.folder, read_description(subject.folder)
    for name in view.linked:
        state = (folder / name).stat()
        if state.st_nlink > 1 and state.st_mode & 0o222:
            yield Violation("read_only", name, "is a link that can be written to: chmod a-w")
    for side in view.sides:
        for broken in _side_laws(folder / side, view, recomputed=not subject.has_record):
            where = f"{side}/: {broken.where}" if side else broken.where
            yield Violation(broken.law, where, broken.found)
    if view.sides == SIDES:
        yield from _shared_games(folder)
    first = folder / view.sides[0]
    if (first / TOKENIZER).exists():
        yield from _bin_laws(first, zero_tolerance)


def _side_laws(side: Path, view: Description, recomputed: bool) -> Iterator[Violation]:
    files = step_files(side)
    shards = [open_steps(file) for file in files]
    yield from shard_laws(files, shards)
    yield from row_laws(shards, len(read_valuation_types(side / NAMES)))
    stream = StepStream(side)
    runs = {run.id: at for at, run in enumerate(stream.runs)}
    marked = set()
    for gap in read_gaps(side / DATABASE):
        marked.add(gap.run_id)
        bounds = stream.run_bounds(runs[gap.run_id]) if gap.run_id in runs else (0, 0)
        if gap.step_index not in stream.read(*bounds)["step_index"]:
            yield Violation("gap_run", DATABASE, f"{gap} is not a step of a run of the view")
    yield from value_laws(side, side, marked, recomputed)
    yield from _nan_laws(side, marked)
    if view.annotations:
        yield from _annotation_laws(side, files, shards)


def _nan_laws(side: Path, marked: set[int]) -> Iterator[Violation]:
    """The values of runs with gaps are NaN."""
    for file in value_files(side) if marked else ():
        rows = open_values(file)
        own = rows[np.isin(rows["run_id"], list(marked))]
        if not all(np.isnan(own[name]).all() for name in VALUE_COLUMNS):
            yield Violation("values_of_gaps", file.name, "a run in the table gaps has a value")


def _shared_games(folder: Path) -> Iterator[Violation]:
    train, held = ({identity(run) for run in StepStream(folder / side).runs} for side in SIDES)
    for game in sorted(train & held)[:1]:
        found = f"{len(train & held)} games, the first with seed {game[0]}"
        yield Violation("game_on_both_sides", ", ".join(SIDES), found)


def _annotation_laws(side: Path, files: list[Path], shards: list[Rows]) -> Iterator[Violation]:
    annotated = Annotations(side)
    for stem in (ROWS, VALUES):
        maps = annotated.maps.get(stem, [])
        for number, (rows, steps) in enumerate(zip(maps, shards, strict=len(maps) > 0)):
            same = len(rows) == len(steps) and all(
                np.array_equal(rows[name], steps[name]) for name in ("run_id", "step_index")
            )
            if not same:
                where = file_name(stem, number)
                yield Violation(
                    "annotations_aligned",
                    where,
                    f"has other runs or steps than {files[number].name}",
                )


def _bin_laws(side: Path, zero_tolerance: float) -> Iterator[Violation]:
    """Check bin_edges: by counting how many differences are below and up to each edge."""
    try:
        fitted = json.loads((side / TOKENIZER).read_bytes())
        metadata: dict[str, Any] = fitted["metadata"]
        edges = {kind: np.array(fitted[kind]["bin_edges"], np.float64) for kind in KINDS}
        rules = BinRules(int(fitted["search"]["failure_cutoff"]), zero_tolerance)
        rows_of = {kind: metadata[kind]["rows"] for kind in KINDS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(side / TOKENIZER, f"is not a tokenizer: {error!r}") from error
    names = read_valuation_types(side / NAMES)
    ids = {kind: names.index(kind) if kind in names else len(names) for kind in KINDS}
    stream = StepStream(side)
    below = {kind: np.zeros(len(edges[kind]), np.int64) for kind in KINDS}
    upto = {kind: np.zeros(len(edges[kind]), np.int64) for kind in KINDS}
    total, rows = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for batch in stream.batches(whole_runs=False):
        for kind in KINDS:
            own = batch.rows[batch.rows["valuation_type"] == ids[kind]]
            found = np.sort(branches(own, kind, rules).below)
            below[kind] += np.searchsorted(found, edges[kind], "left")
            upto[kind] += np.searchsorted(found, edges[kind], "right")
            total[kind] += len(found)
            rows[kind] += len(own)
    for kind in KINDS:
        if rows[kind] != rows_of[kind]:
            yield Violation("bin_edges", TOKENIZER, f"{kind}: has {rows[kind]} rows")
        elif not _are_quantiles(edges[kind], below[kind], upto[kind], total[kind]):
            yield Violation("bin_edges", TOKENIZER, f"{kind}: its edges are not the quantiles")


def _are_quantiles(
    edges: npt.NDArray[np.float64],
    below: npt.NDArray[np.int64],
    upto: npt.NDArray[np.int64],
    total: int,
) -> bool:
    """Whether edges can be quantiles at even distances of numbers that are counted around them."""
    places = np.linspace(0, 1, len(edges)) * (total - 1)
    # An edge that ties with the one before it was raised by a step of 1e-9, and may have passed
    # a number.
    raised = np.array([False, *(later - edge <= 2e-9 for edge, later in pairwise(edges))])
    low = (below <= np.ceil(places)) | raised
    high = upto >= np.floor(places) + 1
    is_last = np.arange(len(edges)) == len(edges) - 1
    return bool((low | is_last).all() and high.all() and (np.diff(edges) > 0).all())
