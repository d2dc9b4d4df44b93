"""Laws of packs, pools, values and views without their sources, and how they name their places.

Source: docs/formats/macroxue.md#pack-laws and the headings behind it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.laws import MOST, Few, or_unreadable
from gristmill.macroxue.builders.pool import pool_members
from gristmill.macroxue.builders.values import SETTINGS, ranks_for, run_values
from gristmill.macroxue.config import SIDES, ValueConfig, ViewConfig
from gristmill.macroxue.format.files import (
    MAX_NAMES,
    TOKENIZER,
    Description,
    Run,
    read_description,
    read_gaps,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
)
from gristmill.macroxue.format.rows import (
    ROWS,
    VALUE_COLUMNS,
    VALUES,
    Rows,
    as_bytes,
    file_name,
    open_steps,
    open_values,
    step_files,
    value_files,
)
from gristmill.macroxue.raw.annotations import Annotations
from gristmill.macroxue.read.stream import Batch, Gather, StepStream, identity
from gristmill.macroxue.read.trace import trace
from gristmill.macroxue.rules.game import DIRECTIONS, move
from gristmill.macroxue.rules.scores import KINDS, BinRules, branches
from gristmill.printable import printable


def place(row: np.void, number: int) -> str:
    """The name of a row in violations: run, step and row."""
    return f"run {row['run_id']} step {row['step_index']} (row {number})"


class Finder(Few):
    """The first violations of each law, of rows and runs."""

    def __init__(self, pack: Path | None = None, most: int = MOST) -> None:
        """Begin; `most` violations of a law are named."""
        super().__init__("further places", "{more} more", most)
        self._pack = pack

    def rows(
        self, law: str, batch: Batch, wrong: npt.NDArray[np.bool_], found: str
    ) -> Iterator[Violation]:
        """A violation for each wrong row; `found` may hold {move} and the names of columns."""
        for at in self._first(law, wrong):
            row = batch.rows[at]
            columns = {name: row[name] for name in row.dtype.names}
            direction = int(row["move_dir"])
            move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
            where = place(row, batch.start + at) + self._raw(int(row["run_id"]))
            yield Violation(law, where, found.format(move=move_name, **columns))

    def places(
        self, law: str, rows: Rows, start: int, wrong: npt.NDArray[np.bool_]
    ) -> Iterator[Violation]:
        """A violation for each wrong row, with the whole row as what was found."""
        for at in self._first(law, wrong):
            yield Violation(law, place(rows[at], start + at), str(rows[at]))

    def _first(self, law: str, wrong: npt.NDArray[np.bool_]) -> list[int]:
        numbers: npt.NDArray[np.int64] = np.flatnonzero(wrong)
        return list(map(int, numbers[: self.take(law, len(numbers))]))

    def run(self, law: str, run_id: int, found: str) -> Iterator[Violation]:
        """A violation of a run."""
        if self.take(law):
            yield Violation(law, f"run {run_id}{self._raw(run_id)}", found)

    def _raw(self, run_id: int) -> str:
        """The raw file of a run, behind its place; empty where no trace leads to it."""
        with suppress(GristmillError, OSError):
            if self._pack is not None and (found := trace(self._pack, run_id))["steps"] is not None:
                run = "" if found["raw_run"] is None else f"run {found['raw_run']} "
                return f", {run}of {found['drop']}/{printable(found['steps'])}"
        return ""


# Rows that are checked together.
_BATCH_ROWS = 1 << 18


DATABASE, NAMES, TRACE = "metadata.db", "valuation_types.json", "trace.jsonl"


def pack_laws(path: Path, without: Collection[str] = ()) -> Iterator[Violation]:
    """Find what breaks the laws of a pack; where a file cannot be read, only `files_open`.

    without: those of DATABASE, NAMES and TRACE that another program need not write; the laws that
        need them are left out. Default: none.
    """
    try:
        files = step_files(path)
        shards = [open_steps(file) for file in files]
        runs = [] if DATABASE in without else read_runs(path / DATABASE)
        kinds = MAX_NAMES if NAMES in without else len(read_valuation_types(path / NAMES))
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)
        return
    yield from shard_laws(files, shards)
    if DATABASE not in without:
        yield from run_laws(shards, runs)
    yield from row_laws(shards, kinds)
    if not {DATABASE, TRACE} & set(without):
        yield from trace_laws(path / TRACE, runs)


def shard_laws(files: list[Path], shards: list[Rows]) -> Iterator[Violation]:
    """Check one_layout, shards_numbered and shards_full."""
    for i, (file, rows) in enumerate(zip(files, shards, strict=True)):
        if rows.dtype != shards[0].dtype:
            yield Violation("one_layout", file.name, f"{rows.dtype.itemsize} bytes a row")
        if file.name not in ("steps.npy", f"steps-{i:05d}.npy"):
            yield Violation("shards_numbered", file.name, f"is file {i} of the pack")
        last = i == len(files) - 1
        if len(rows) == 0 or (not last and len(rows) != len(shards[0])):
            yield Violation("shards_full", file.name, f"{len(rows)} rows")
        if len(rows) > len(shards[0]):
            yield Violation("shards_full", file.name, f"{len(rows)} rows, more than the first")


def run_laws(shards: list[Rows], runs: list[Run]) -> Iterator[Violation]:
    """Check run_ids, row_total and runs_contiguous."""
    total = sum(len(rows) for rows in shards)
    ends = np.cumsum([run.steps for run in runs], dtype=np.int64)
    if [run.id for run in runs] != list(range(len(runs))):
        yield Violation("run_ids", "metadata.db", "ids are not 0, 1, 2, ... without gaps")
    if not runs or ends[-1] != total:
        steps = int(ends[-1]) if runs else 0
        yield Violation("row_total", "metadata.db", f"runs have {steps} steps, files {total} rows")
        return
    base = 0
    for rows in shards:
        for at in range(0, len(rows), _BATCH_ROWS):
            ids = rows["run_id"][at : at + _BATCH_ROWS]
            owners = np.searchsorted(ends, np.arange(base + at, base + at + len(ids)), "right")
            wrong = np.flatnonzero(ids != owners)
            if len(wrong):
                first = int(wrong[0])
                where = place(rows[at + first], base + at + first)
                owner = int(owners[first])
                yield Violation("runs_contiguous", where, f"is among the rows of run {owner}")
                return
        base += len(rows)


def row_laws(shards: list[Rows], kinds: int) -> Iterator[Violation]:
    """Check the laws row_move_dir to row_padding."""
    base, finder = 0, Finder()
    for rows in shards:
        yield from _row_laws(rows, base, kinds, finder)
        base += len(rows)
    yield from finder.rest()


def _row_laws(rows: Rows, base: int, kinds: int, finder: Finder) -> Iterator[Violation]:
    bits = np.arange(4, dtype=np.uint8)
    cells = np.uint64(4) * np.arange(15, -1, -1, dtype=np.uint64)
    for at in range(0, len(rows), _BATCH_ROWS):
        batch = rows[at : at + _BATCH_ROWS]
        masked = np.flatnonzero(batch["tile_65536_mask"])
        nibbles = (batch["board"][masked, None] >> cells) & np.uint64(15)
        marked = (batch["tile_65536_mask"][masked, None] >> np.arange(16, dtype=np.uint16)) & 1
        capped = np.ones(len(batch), bool)
        capped[masked] = ((marked == 0) | (nibbles == 15)).all(axis=1)
        legal = (batch["ev_legal"][:, None] >> bits) & 1
        evs = batch["branch_evs"]
        checks = {
            "move_dir": batch["move_dir"] < 4,
            "valuation_type": batch["valuation_type"] < kinds,
            "ev_legal": batch["ev_legal"] < 16,
            "tile_65536_mask": capped,
            "branch_evs": (~np.isnan(evs) & ((legal == 1) | (evs == 0))).all(axis=1),
        }
        if rows.dtype.itemsize == 48:
            checks["padding"] = (as_bytes(batch)[:, 26:28] == 0).all(axis=1)
        for column, good in checks.items():
            yield from finder.places(f"row_{column}", batch, base + at, ~good)


def trace_laws(path: Path, runs: list[Run]) -> Iterator[Violation]:
    """Check that trace.jsonl has one line a run, with rows, first row and both digests."""
    try:
        lines = read_lines(path)
    except BadInput as error:
        yield Violation("trace", path.name, str(error))
        return
    if len(lines) != len(runs):
        yield Violation("trace", path.name, f"{len(lines)} lines for {len(runs)} runs")
        return
    first_row = 0
    for number, (line, run) in enumerate(zip(lines, runs, strict=True), 1):
        place = (line.get("run_id"), line.get("rows"), line.get("first_row"))
        hashes = [line.get(key, "") for key in ("meta_sha256", "steps_sha256")]
        if place != (run.id, run.steps, first_row) or any(len(str(text)) != 64 for text in hashes):
            yield Violation("trace", f"{path.name} line {number}", f"is not the line of {run}")
            return
        first_row += run.steps


def pack_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pack; another program need not write all of its files."""
    without = subject.missing({DATABASE: "runs", NAMES: "row_valuation_type", TRACE: "trace"})
    return pack_laws(subject.folder, without)


def pool_laws(path: Path) -> Iterator[Violation]:
    """Find what breaks the laws of a pool: files, runs, rows, members and trace.

    Lines of trace.jsonl need no digests, because a member may lack a trace.
    """
    try:
        session, trace = read_session(path / DATABASE), read_lines(path / TRACE)
    except (BadInput, OSError) as error:
        place = (error.file, error.rule) if isinstance(error, BadInput) else (str(path), str(error))
        yield Violation("files_open", *place)
        return
    for broken in pack_laws(path, without=[TRACE]):
        yield broken
        if broken.law == "files_open":
            return
    runs = read_runs(path / DATABASE)
    try:
        members = pool_members(path)
        yield from member_laws(members, runs, session)
        yield from origin_laws(trace, members, runs)
    except BadInput as error:
        yield Violation("members", "packs", error.rule)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        yield Violation("members", "packs", f"not what merge writes: {error!r}")


def member_laws(
    members: list[dict[str, Any]], runs: list[Run], session: dict[str, str]
) -> Iterator[Violation]:
    """Check members and session_carried."""
    first_run = first_row = 0
    for member in members:
        name, count = member["name"], member["runs"]
        rows = sum(run.steps for run in runs[first_run : first_run + count])
        stated = (member["first_run"], member["first_row"], member["rows"])
        if stated != (first_run, first_row, rows):
            yield Violation(
                "members", f"pack {name}", f"{stated}, its runs make {first_run, first_row, rows}"
            )
        for key in member["session"]:
            if f"{name}/{key}" not in session:
                yield Violation("session_carried", f"pack {name}", f"key {key!r} is missing")
        first_run, first_row = first_run + count, first_row + rows
    if first_run != len(runs):
        yield Violation("members", "packs", f"count {first_run} runs, metadata.db has {len(runs)}")


def origin_laws(
    trace: list[dict[str, Any]], members: list[dict[str, Any]], runs: list[Run]
) -> Iterator[Violation]:
    """Check that each run has its line in trace.jsonl, and an origin that no other run has."""
    owners = [member["name"] for member in members for _ in range(member["runs"])]
    if not len(trace) == len(runs) == len(owners):
        yield Violation("origin", "trace.jsonl", f"{len(trace)} lines for {len(runs)} runs")
        return
    first_row = 0
    origins: set[tuple[str, int]] = set()
    for number, (line, run, owner) in enumerate(zip(trace, runs, owners, strict=True), 1):
        place = (line.get("run_id"), line.get("rows"), line.get("first_row"))
        source = (line.get("from") or [{}])[0]
        origin = (source.get("pack", ""), source.get("run_id", -1))
        if place != (run.id, run.steps, first_row) or origin[0] != owner or origin in origins:
            yield Violation("origin", f"trace.jsonl line {number}", f"is not the line of {run}")
            return
        origins.add(origin)
        first_row += run.steps


def pool_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pool."""
    return pool_laws(subject.folder)


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


def value_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of values; the input is their pack."""
    (pack,) = subject.inputs
    return value_laws(subject.folder, pack)


DATABASE, NAMES = "metadata.db", "valuation_types.json"


def view_law(subject: Subject) -> Iterator[Violation]:
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
