"""Build `macroxue/values`: rewards and returns. Source: docs/formats/macroxue.md#value-sidecar."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.rows import VALUE_FORMAT, VALUE_ROW_DTYPE, Rows, ShardWriter
from gristmill.macroxue.read.stream import Batch, StepStream
from gristmill.macroxue.rules.game import capped_ranks, move, true_ranks
from gristmill.run.progress import SILENT, Progress

SETTINGS = "values.json"
"""Name of the file with the settings."""


@dataclass(frozen=True)
class ValueSummary(Summary):
    """Counts of a sidecar."""

    runs: int
    rows: int
    shards: int
    rows_above_65536: int
    rows_followed: int
    rows_solved: int
    rows_unknown: int
    idle_moves: int
    scores_matched: int
    scores_differ: int
    reward_sum: int


def value_sidecar(
    pack: Path, out: Path, config: ValueConfig, *, progress: Progress = SILENT
) -> ValueSummary:
    """Write the value sidecar of a pack or pool.

    pack: its folder.
    out: folder to make; it must not exist.
    config: gamma, reward_scale, epsilon and compat.
    progress: gets the stage "values" in rows; default silent.

    Returns the counts. Memory grows with the longest run, not with the pack. Raises BadInput for
    an empty pack or shard, for rows that do not agree with metadata.db, for a step_index that
    falls within a run, and for a move_dir above 3.
    """
    out = Path(out)
    stream = StepStream(Path(pack))
    out.mkdir(parents=True)
    counts = Counter[str]()
    single = [file.path.name for file in stream.files] == ["steps.npy"]
    cuts = 0 if single else [file.rows for file in stream.files]
    with (
        ShardWriter(out, VALUE_FORMAT, cuts, "values") as writer,
        progress.stage("values", unit="rows", total=stream.rows) as stage,
    ):
        for batch in stream.batches(whole_runs=True):
            _check(stream, batch)
            writer.write(_values(stream, batch, config, counts))
            stage.advance(len(batch.rows))
    settings = {**asdict(config), "rows": stream.rows, "runs": len(stream.runs)}
    (out / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")
    files = {name: FileNote(rows=rows) for name, rows in writer.written}
    return ValueSummary(
        files=files | {SETTINGS: FileNote()},
        runs=len(stream.runs),
        rows=stream.rows,
        shards=len(writer.written),
        rows_above_65536=counts["masked"],
        rows_followed=counts["followed"],
        rows_solved=counts["solved"],
        rows_unknown=counts["unknown"],
        idle_moves=counts["idle"],
        scores_matched=counts["matched"],
        scores_differ=counts["differ"],
        reward_sum=counts["reward"],
    )


def h(returns: npt.NDArray[np.float64], epsilon: float) -> npt.NDArray[np.float64]:
    """Each return x as sign(x) * (sqrt(|x| + 1) - 1 + epsilon * |x|): float64 [N]."""
    size = np.abs(returns)
    squeezed: npt.NDArray[np.float64] = np.sign(returns) * (np.sqrt(size + 1) - 1 + epsilon * size)
    return squeezed


def _values(stream: StepStream, batch: Batch, config: ValueConfig, counts: Counter[str]) -> Rows:
    """The value rows of a batch of whole runs; adds to the counts."""
    from gristmill.macroxue.rules.discount import discounted

    rows, as_decoded = batch.rows, config.compat == "reference"
    known = capped_ranks(rows) if as_decoded else true_ranks(rows, batch.run_starts())
    _, reward, changed = move(known.ranks, np.ascontiguousarray(rows["move_dir"]))
    ends = np.cumsum(batch.counts)
    totals = np.diff(np.concatenate([[0], np.cumsum(reward)])[np.concatenate([[0], ends])])
    runs = stream.runs[batch.first_run : batch.first_run + len(batch.counts)]
    matches = [
        run.max_score == int(total)
        for run, total, count in zip(runs, totals, batch.counts, strict=True)
        if count
    ]
    counts.update(
        masked=known.masked,
        followed=known.followed,
        solved=known.solved,
        unknown=known.unknown_rows,
        idle=int(np.count_nonzero(~changed)),
        matched=sum(matches),
        differ=len(matches) - sum(matches),
        reward=int(reward.sum()),
    )
    values = np.empty(len(rows), VALUE_ROW_DTYPE)
    values["run_id"], values["step_index"] = rows["run_id"], rows["step_index"]
    points = reward.astype(np.float32)
    values["reward"] = points
    values["reward_scaled"] = points.astype(np.float64) * config.reward_scale
    returns = discounted(points, batch.counts, config.gamma)
    values["return_raw"], values["return_scaled"] = returns, h(returns, config.epsilon)
    return values


def _check(stream: StepStream, batch: Batch) -> None:
    """Raise BadInput for a move above 3 and for a step_index that falls within a run."""
    rows = batch.rows
    wrong = np.flatnonzero(rows["move_dir"] > 3)
    if len(wrong):
        at = int(wrong[0])
        place = f"run {int(rows['run_id'][at])}, step {int(rows['step_index'][at])}"
        rule = f"has move_dir {int(rows['move_dir'][at])}: moves are 0 to 3"
        raise BadInput(stream.folder, f"row {batch.start + at} ({place}) {rule}")
    falls = rows["step_index"][1:] < rows["step_index"][:-1]
    falls &= rows["run_id"][1:] == rows["run_id"][:-1]
    if falls.any():
        at = int(np.flatnonzero(falls)[0]) + 1
        before, step = rows["step_index"][at - 1 : at + 1].tolist()
        place = f"run {int(rows['run_id'][at])}: step_index {step} after {before} (row"
        cure = "a return needs the steps of a run in order"
        raise BadInput(stream.folder, f"{place} {batch.start + at}): {cure}")
