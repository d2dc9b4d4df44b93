"""Laws of a value sidecar and its pack. Source: docs/formats/macroxue.md#value-laws."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.macroxue.builders.values import SETTINGS, ranks_for, run_values
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.rows import VALUE_COLUMNS
from gristmill.macroxue.format.shards import open_values, value_files
from gristmill.macroxue.laws.pack import place
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import move

SAMPLE_RUNS = 64
"""Runs of a view whose values are computed again, spread evenly over it."""


def value_laws(
    path: Path, pack: Path, marked: Collection[int] = (), recomputed: bool = False
) -> Iterator[Violation]:
    """Find what breaks the laws of a value sidecar.

    marked: ids of runs whose values are NaN; default: none.
    recomputed: whether values are computed again, in SAMPLE_RUNS runs (default False).
    """
    try:
        stream = StepStream(pack)
        files = value_files(path)
        values = [open_values(file) for file in files]
        settings: dict[str, Any] = json.loads((path / SETTINGS).read_bytes())
        config = ValueConfig(
            **{name: settings[name] for name in ("gamma", "reward_scale", "epsilon", "compat")}
        )
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield Violation("files_open", SETTINGS, f"cannot be used: {error!r}")
        return
    counts = [len(rows) for rows in values]
    expected = [file.rows for file in stream.files]
    names = [file.path.name.replace("steps", "values", 1) for file in stream.files]
    if counts != expected or [file.name for file in files] != names:
        yield Violation("values_shards", path.name, f"rows {counts}, the steps have {expected}")
        return
    column = Gather(values)
    try:
        yield from _alignment(stream, column, marked)
        if recomputed:
            yield from _recomputed(stream, column, config, marked)
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _alignment(stream: StepStream, column: Gather, marked: Collection[int]) -> Iterator[Violation]:
    for batch in stream.batches(whole_runs=False):
        steps, start = batch.rows, batch.start
        values = column.rows(np.arange(start, start + len(steps)))
        wrong = (values["run_id"] != steps["run_id"]) | (
            values["step_index"] != steps["step_index"]
        )
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            origin = f"values are of run {values['run_id'][at]} step {values['step_index'][at]}"
            yield Violation("values_aligned", place(steps[at], start + at), origin)
            return
        judged = ~np.isin(steps["run_id"], list(marked))
        for name in VALUE_COLUMNS:
            bad = np.flatnonzero(~np.isfinite(values[name]) & judged)
            if len(bad):
                at = int(bad[0])
                found = f"{name} {values[name][at]}"
                if np.isposinf(values[name][at]):
                    found += ", beyond float32: choose a smaller gamma, reward_scale or epsilon"
                yield Violation("values_finite", place(steps[at], start + at), found)
                return


def _recomputed(
    stream: StepStream, column: Gather, config: ValueConfig, marked: Collection[int]
) -> Iterator[Violation]:
    count = min(SAMPLE_RUNS, len(stream.runs))
    for chosen in np.unique(np.linspace(0, len(stream.runs) - 1, count).astype(np.int64)).tolist():
        start, stop = stream.run_bounds(chosen)
        if start == stop or stream.runs[chosen].id in marked:
            continue
        batch = stream.batch(start, stop)
        moves = np.ascontiguousarray(batch.rows["move_dir"])
        if int(moves.max()) > 3:
            yield Violation(
                "values_recomputed", f"run {stream.runs[chosen].id}", "has a move_dir above 3"
            )
            return
        _, reward, _ = move(ranks_for(batch, config).ranks, moves)
        expected = run_values(batch.rows, reward, batch.counts, config)
        recorded = column.rows(np.arange(start, stop))
        for name in VALUE_COLUMNS:
            wrong = expected[name].view(np.uint32) != recorded[name].view(np.uint32)
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                yield Violation(
                    "values_recomputed",
                    place(recorded[at], start + at),
                    f"{name} {recorded[name][at]}, the game gives {expected[name][at]}",
                )
                return


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of values; the input is their pack."""
    (pack,) = subject.inputs
    return value_laws(subject.folder, pack)
