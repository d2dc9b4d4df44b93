"""What must hold of a value sidecar and the pack that it belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.build.values import SETTINGS, ranks_for, run_values
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.shards import open_values, value_files
from gristmill.macroxue.laws.report import place
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import move

SAMPLE_RUNS = 64


def value_laws(path: Path, pack: Path, sample_runs: int = SAMPLE_RUNS) -> Iterator[Violation]:
    """Laws of the sidecar in `path` of the pack in `pack` (docs/formats/macroxue.md#value-laws).

    values_shards: as many files and rows in each as the steps have.
    values_aligned: run_id and step_index are the steps', on every row.
    values_finite: no column holds NaN or infinity.
    values_recomputed: all four columns, bit for bit, on runs spread evenly over the
        pack, from the config in values.json; `sample_runs` of 0 means every run.
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
    wanted = [file.rows for file in stream.files]
    renamed = [file.path.name.replace("steps", "values", 1) for file in stream.files]
    if counts != wanted or [file.name for file in files] != renamed:
        yield Violation("values_shards", path.name, f"rows {counts}, the steps have {wanted}")
        return
    column = Gather(values)
    try:
        yield from _alignment(stream, column)
        yield from _recomputed(stream, column, config, sample_runs)
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _alignment(stream: StepStream, column: Gather) -> Iterator[Violation]:
    for stretch in stream.stretches(whole_runs=False):
        steps, start = stretch.rows, stretch.start
        values = column.rows(np.arange(start, start + len(steps)))
        wrong = (values["run_id"] != steps["run_id"]) | (
            values["step_index"] != steps["step_index"]
        )
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            found = f"values are of run {values['run_id'][at]} step {values['step_index'][at]}"
            yield Violation("values_aligned", place(steps[at], start + at), found)
            return
        for name in ("reward", "reward_scaled", "return_raw", "return_scaled"):
            bad = np.flatnonzero(~np.isfinite(values[name]))
            if len(bad):
                at = int(bad[0])
                yield Violation(
                    "values_finite", place(steps[at], start + at), f"{name} {values[name][at]}"
                )
                return


def _recomputed(
    stream: StepStream, column: Gather, config: ValueConfig, sample_runs: int
) -> Iterator[Violation]:
    count = min(sample_runs or len(stream.runs), len(stream.runs))
    for chosen in np.unique(np.linspace(0, len(stream.runs) - 1, count).astype(np.int64)).tolist():
        start, stop = stream.run_bounds(chosen)
        if start == stop:
            continue
        stretch = stream.stretch(start, stop)
        moves = np.ascontiguousarray(stretch.rows["move_dir"])
        if int(moves.max()) > 3:
            yield Violation(
                "values_recomputed", f"run {stream.runs[chosen].id}", "has no such move"
            )
            return
        _, reward, _ = move(ranks_for(stretch, config).ranks, moves)
        expected = run_values(stretch.rows, reward, stretch.counts, config)
        found = column.rows(np.arange(start, stop))
        for name in ("reward", "reward_scaled", "return_raw", "return_scaled"):
            wrong = expected[name].view(np.uint32) != found[name].view(np.uint32)
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                yield Violation(
                    "values_recomputed",
                    place(found[at], start + at),
                    f"{name} {found[name][at]}, the game gives {expected[name][at]}",
                )
                return
