"""Laws of packs, pools, values and views, and of the games in them.

Were the games played by the rules of 2048? Tiles above 65536 are judged by their true ranks, rows
of unknown ranks as far as their mask allows. In the same pass notes say what is unusual and breaks
no law. Source: docs/formats/macroxue.md#pack-laws and the headings behind it,
docs/formats/macroxue.md#game-laws, docs/formats/macroxue.md#game-notes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.laws import MOST, Few, or_unreadable
from gristmill.macroxue.builders.pool import pool_members
from gristmill.macroxue.builders.values import SETTINGS
from gristmill.macroxue.config import SIDES, ValueConfig
from gristmill.macroxue.format.files import (
    MAX_NAMES,
    TOKENIZER,
    Description,
    Run,
    iter_lines,
    read_description,
    read_gaps,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
    run_of,
    signed64,
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
from gristmill.macroxue.raw.drops import UNPAIRED
from gristmill.macroxue.raw.step_files import StepRun
from gristmill.macroxue.read.stream import (
    Batch,
    Gather,
    Played,
    StepStream,
    counts_on,
    identity,
    played,
    run_facts,
)
from gristmill.macroxue.read.trace import trace
from gristmill.macroxue.rules.game import (
    DIRECTIONS,
    KINDS,
    TrueRanks,
    board_scores,
    broken,
    fresh,
    line_table,
    move,
    packed_scores,
)
from gristmill.printable import printable
from gristmill.run.progress import current_progress


def place(row: np.void, number: int) -> str:
    """The name of a row in violations: run, step and row."""
    return f"run {row['run_id']} step {row['step_index']} (row {number})"


ROW_LAWS: Final = {
    "move_legal": "{move} changes nothing on this board",
    "follows": "the board is not the one before, moved, with one new tile of rank 1 or 2",
    "board_eval": "{board_eval} is not what the formula gives for the board",
    "max_rank": "the board has a higher rank than max_rank {max_rank}",
    "value_legal": "{branch_evs}: a move that the board does not allow has a value "
    "(ev_legal {ev_legal})",
    "value_of_move": "{branch_evs}: the chosen move {move} has no value (ev_legal {ev_legal})",
    "ranks_unknown": "ranks above 65536 cannot be found (max_rank {max_rank})",
    "search_legality": "ev_legal {ev_legal} has a move that the board does not allow",
    "chosen_ev": "the chosen move {move} has no expected value",
}
"""Laws and notes on single rows: what is wrong, with the names of columns and the {move}."""


class Finder(Few):
    """The first violations of each law, of rows and runs."""

    def __init__(self, pack: Path | None = None, most: int = MOST) -> None:
        """Begin; `most` violations of a law are named."""
        super().__init__("further places", "{more} more", most)
        self._pack = pack

    def rows(self, batch: Batch, **laws: npt.NDArray[np.bool_]) -> Iterator[Violation]:
        """A violation for each wrong row; laws: the wrong rows of laws of ROW_LAWS."""
        for law, wrong in laws.items():
            for at in self._first(law, wrong):
                row = batch.rows[at]
                columns = {name: row[name] for name in row.dtype.names}
                direction = int(row["move_dir"])
                move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
                where = place(row, batch.start + at) + self._raw(int(row["run_id"]))
                found = ROW_LAWS[law].format(move=move_name, **columns)
                yield Violation(law, where, found)

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
Given = ParamSpec("Given")


def _opened(laws: Callable[Given, Iterator[Violation]]) -> Callable[Given, Iterator[Violation]]:
    """Laws that end with `files_open` where a file cannot be read."""

    @wraps(laws)
    def judged(*given: Given.args, **named: Given.kwargs) -> Iterator[Violation]:
        return or_unreadable(laws(*given, **named), law="files_open")

    return judged


@_opened
def pack_laws(path: Path, without: Collection[str] = ()) -> Iterator[Violation]:
    """Find what breaks the laws of a pack.

    without: those of DATABASE, NAMES and TRACE that another program need not write; the laws that
        need them are left out. Default: none.
    """
    files = step_files(path)
    shards = [open_steps(file) for file in files]
    runs = [] if DATABASE in without else read_runs(path / DATABASE)
    kinds = MAX_NAMES if NAMES in without else len(read_valuation_types(path / NAMES))
    yield from shard_laws(files, shards)
    if DATABASE not in without:
        yield from run_laws(shards, runs)
    yield from row_laws(shards, kinds)
    if not {DATABASE, TRACE} & set(without):
        yield from or_unreadable(_trace_laws("trace", iter_lines(path / TRACE), runs), law="trace")


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


def _trace_laws(
    law: str,
    numbered: Iterable[tuple[int, dict[str, Any]]],
    runs: list[Run],
    owners: Sequence[str] | None = None,
) -> Iterator[Violation]:
    """Check that trace.jsonl has one line a run, with rows and first row.

    owners: packs of the runs of a pool. Its lines name them, and no origin twice; those of a pack
        have both digests, which a member without a trace does not give a pool.
    """
    lines = [line for _, line in numbered]
    if not len(lines) == len(runs) == len(runs if owners is None else owners):
        yield Violation(law, TRACE, f"{len(lines)} lines for {len(runs)} runs")
        return
    first_row, origins = 0, set()
    for at, (line, run) in enumerate(zip(lines, runs, strict=True)):
        place = (line.get("run_id"), line.get("rows"), line.get("first_row"))
        is_right = place == (run.id, run.steps, first_row)
        if owners is None:
            hashes = [str(line.get(key, "")) for key in ("meta_sha256", "steps_sha256")]
            is_right &= all(len(text) == 64 for text in hashes)
        else:
            source = (line.get("from") or [{}])[0]
            origin = (source.get("pack", ""), source.get("run_id", -1))
            is_right &= origin[0] == owners[at] and origin not in origins
            origins.add(origin)
        if not is_right:
            yield Violation(law, f"{TRACE} line {at + 1}", f"is not the line of {run}")
            return
        first_row += run.steps


def pack_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pack; another program need not write all of its files."""
    without = subject.missing({DATABASE: "runs", NAMES: "row_valuation_type", TRACE: "trace"})
    return pack_laws(subject.folder, without)


@_opened
def pool_laws(path: Path) -> Iterator[Violation]:
    """Find what breaks the laws of a pool: files, runs, rows, members and trace."""
    session, lines = read_session(path / DATABASE), [*iter_lines(path / TRACE)]
    for found in pack_laws(path, [TRACE]):
        yield found
        if found.law == "files_open":
            return
    runs = read_runs(path / DATABASE)
    try:
        members = pool_members(path)
        yield from member_laws(members, runs, session)
        owners = [member["name"] for member in members for _ in range(member["runs"])]
        yield from _trace_laws("origin", lines, runs, owners)
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
        if stated != (made := (first_run, first_row, rows)):
            yield Violation("members", f"pack {name}", f"{stated}, its runs make {made}")
        for key in member["session"]:
            if f"{name}/{key}" not in session:
                yield Violation("session_carried", f"pack {name}", f"key {key!r} is missing")
        first_run, first_row = first_run + count, first_row + rows
    if first_run != len(runs):
        yield Violation("members", "packs", f"count {first_run} runs, metadata.db has {len(runs)}")


def pool_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a pool."""
    return pool_laws(subject.folder)


@_opened
def value_laws(path: Path, pack: Path, marked: Collection[int] = ()) -> Iterator[Violation]:
    """Find what breaks the laws of a value sidecar; marked: ids of runs whose values are NaN."""
    stream, files = StepStream(pack), value_files(path)
    column = Gather([open_values(file) for file in files])
    try:
        settings: dict[str, Any] = json.loads((path / SETTINGS).read_bytes())
        ValueConfig(**{each.name: settings[each.name] for each in fields(ValueConfig)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(path / SETTINGS, f"cannot be used: {error!r}") from error
    expected = [file.rows for file in stream.files]
    names = [file.path.name.replace("steps", "values", 1) for file in stream.files]
    if [*column.counts] != expected or [file.name for file in files] != names:
        found = f"rows {[*column.counts]}, the steps have {expected}"
        yield Violation("values_shards", path.name, found)
        return
    for batch in stream.batches(whole_runs=False):
        steps, start = batch.rows, batch.start
        values = column.rows(np.arange(start, start + len(steps)))
        wrong = values["run_id"] != steps["run_id"]
        wrong |= values["step_index"] != steps["step_index"]
        if wrong.any():
            at = int(wrong.argmax())
            found = f"values are of run {values['run_id'][at]} step {values['step_index'][at]}"
            yield Violation("values_aligned", place(steps[at], start + at), found)
            return
        is_marked = np.isin(steps["run_id"], list(marked))
        for name in VALUE_COLUMNS:
            wrong = np.where(is_marked, ~np.isnan(values[name]), ~np.isfinite(values[name]))
            if wrong.any():
                at = int(wrong.argmax())
                law, found = "values_finite", f"{name} {values[name][at]}"
                if is_marked[at]:
                    law, found = "values_of_gaps", "a run in the table gaps has a value"
                elif np.isposinf(values[name][at]):
                    found += ", beyond float32: choose a smaller gamma, reward_scale or epsilon"
                yield Violation(law, place(steps[at], start + at), found)
                return


def value_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of values; the input is their pack."""
    (pack,) = subject.inputs
    return value_laws(subject.folder, pack)


@_opened
def view_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of a view."""
    folder, view = subject.folder, read_description(subject.folder)
    for name in view.linked:
        state = (folder / name).stat()
        if state.st_nlink > 1 and state.st_mode & 0o222:
            yield Violation("read_only", name, "is a link that can be written to: chmod a-w")
    for side in view.sides:
        for each in _side_laws(folder / side, view):
            where = f"{side}/: {each.where}" if side else each.where
            yield Violation(each.law, where, each.found)
    if view.sides == SIDES:
        train, held = ({identity(run) for run in StepStream(folder / side).runs} for side in SIDES)
        for game in sorted(train & held)[:1]:
            found = f"{len(train & held)} games, the first with seed {game[0]}"
            yield Violation("game_on_both_sides", ", ".join(SIDES), found)
    first = folder / view.sides[0]
    if (first / TOKENIZER).exists():
        yield from _bin_laws(first)


def _side_laws(side: Path, view: Description) -> Iterator[Violation]:
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
    yield from value_laws(side, side, marked)
    if view.annotations:
        yield from _annotation_laws(side, files, shards)


def _annotation_laws(side: Path, files: list[Path], shards: list[Rows]) -> Iterator[Violation]:
    annotated = Annotations(side)
    for stem in (ROWS, VALUES):
        maps = annotated.maps.get(stem, [])
        for number, (rows, steps) in enumerate(zip(maps, shards, strict=len(maps) > 0)):
            if len(rows) != len(steps) or any(
                not np.array_equal(rows[name], steps[name]) for name in ("run_id", "step_index")
            ):
                found = f"has other runs or steps than {files[number].name}"
                yield Violation("annotations_aligned", file_name(stem, number), found)


def _bin_laws(side: Path) -> Iterator[Violation]:
    """Check bin_edges; what else they are, `verify --rebuild` compares."""
    try:
        fitted = json.loads((side / TOKENIZER).read_bytes())
        bins = int(fitted["num_bins"])
        edges = {kind: np.array(fitted[kind]["bin_edges"], np.float64) for kind in KINDS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(side / TOKENIZER, f"is not a tokenizer: {error!r}") from error
    for kind, own in edges.items():
        if own.shape != (bins + 1,) or not (np.diff(own) > 0).all():
            yield Violation("bin_edges", TOKENIZER, f"{kind}: its edges do not part {bins} bins")


@_opened
def game_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in the games of a pack or pool; the check `noteworthy` warns of it."""
    stream = StepStream(path)
    notes = Notes(stream, path)
    with current_progress().stage("game notes", "rows", stream.rows) as stage:
        for batch in stream.batches(whole_runs=True):
            yield from notes.of(batch, played(batch))
            stage.advance(len(batch.rows))
    yield from notes.rest()


class Notes:
    """The notes on the batches of one pack, for a caller that reads them."""

    def __init__(self, stream: StepStream, path: Path) -> None:
        names = read_valuation_types(path / "valuation_types.json")
        self._search = names.index("search") if "search" in names else len(names)
        self._stream, self._finder, self._path = stream, Finder(path), path

    def of(self, batch: Batch, facts: Played) -> Iterator[Violation]:
        """Yields the notes on some rows; arguments as `played` takes and returns them."""
        rows, known, stated = batch.rows, facts.known, batch.rows["ev_legal"]
        # Tuple rows have a value for each move, and a search may leave a legal move out.
        is_search = rows["valuation_type"] == self._search
        yield from self._finder.rows(
            batch,
            ranks_unknown=known.unknown,
            search_legality=is_search & (stated & ~facts.legal != 0) & ~known.unknown,
            chosen_ev=(stated >> facts.moves) & 1 == 0,
        )
        for index, own, points, gapless in run_facts(batch, facts.reward):
            run, first = self._stream.runs[index], known.ranks[own.start]
            late, sums = f"starts with {np.count_nonzero(first)} tiles", f"rewards sum to {points}"
            differs = signed64(points) != run.max_score
            for law, holds, found in (
                ("gaps", not gapless, "step_index does not count 0, 1, 2, ..."),
                ("started_late", not fresh(first), late),
                ("score_differs", differs, f"{sums}, max_score is {run.max_score}"),
            ):
                if holds:
                    yield from self._finder.run(law, run.id, found)

    def rest(self) -> Iterator[Violation]:
        """Yields the notes on whole games and on the drop, and the number of further notes."""
        first_of: dict[tuple[int, ...], int] = {}
        for run in self._stream.runs:
            first = first_of.setdefault(identity(run), run.id)
            if first != run.id:
                found = f"the same seed, steps, score and highest tile as run {first}"
                yield from self._finder.run("repeated_game", run.id, found)
        for line in _warnings(self._path):
            kind = str(line.get("kind"))
            if kind in UNPAIRED:
                where = printable(str(line.get("path")))
                yield from self._finder.at(kind, where, UNPAIRED[kind])
        yield from self._finder.rest()


def _warnings(path: Path) -> list[dict[str, Any]]:
    """The lines of warnings.jsonl of a pack; none without the file."""
    warnings = path / "warnings.jsonl"
    return read_lines(warnings) if warnings.exists() else []


_line_scores = cache(line_table)  # it costs as much as the laws of a short game
# Rows of large tiles whose board_eval is computed together.
_VALUED_ROWS = 1 << 13
_MOST_VALUED = 3
"""Rows of a law of values that are named: where one is wrong, mostly all of them are."""


@_opened
def game_laws(
    path: Path, noted: list[Violation] | None = None, *, has_record: bool = True
) -> Iterator[Violation]:
    """Find games of a pack or pool that break the rules of 2048.

    noted: gets what `game_notes` yields, found in the same pass; default: nobody asks.
    has_record: False for a folder that another program may have made; default True.
    """
    stream = StepStream(path)
    session = read_session(path / DATABASE)
    sources = {text for key, text in session.items() if key.rpartition("/")[2] == "source"}
    is_of_others = sources == {StepRun.source} or not (sources or has_record)
    # Their rows differ from their num_moves.
    lines = [line for line in _warnings(path) if line.get("kind") == "count_mismatch"]
    excused = {run_of(line) for line in lines}
    finder, few = Finder(path), Finder(path, most=_MOST_VALUED)
    notes = None if noted is None else Notes(stream, path)
    with current_progress().stage("game laws", "rows", stream.rows) as stage:
        for batch in stream.batches(whole_runs=True):
            facts = played(batch)
            yield from _batch_laws(stream, batch, facts, excused, finder)
            if is_of_others:  # the logs of the player itself need not keep these
                stated, evs = batch.rows["ev_legal"], batch.rows["branch_evs"]
                # A program may write 0 where there is no value, as the player does.
                valued = stated & np.packbits(evs != 0, axis=1, bitorder="little")[:, 0]
                yield from few.rows(
                    batch,
                    value_legal=(valued & ~facts.legal != 0) & ~facts.known.unknown,
                    value_of_move=(stated != 0) & ((stated >> facts.moves) & 1 == 0),
                )
            if notes is not None and noted is not None:
                noted += notes.of(batch, facts)
            stage.advance(len(batch.rows))
    yield from finder.rest()
    yield from few.rest()
    if notes is not None and noted is not None:
        noted += notes.rest()


def _wrong_evals(rows: Rows, known: TrueRanks) -> npt.NDArray[np.bool_]:
    """Rows whose board_eval is not that of their board, as bool [N]."""
    wrong: npt.NDArray[np.bool_] = (
        packed_scores(rows["board"], _line_scores()) != rows["board_eval"]
    )
    masked = np.flatnonzero(rows["tile_65536_mask"])
    for at in range(0, len(masked), _VALUED_ROWS):
        batch = masked[at : at + _VALUED_ROWS]
        differs = board_scores(known.ranks[batch]) != rows["board_eval"][batch]
        wrong[batch] = np.where(known.unknown[batch], known.unfit[batch], differs)
    return wrong


def _unmoved(rows: Rows, facts: Played) -> npt.NDArray[np.bool_]:
    """Rows whose move changes nothing, whatever their unknown ranks are, as bool [N]."""
    unmoved: npt.NDArray[np.bool_] = ~facts.changed
    if len(unknown := np.flatnonzero(unmoved & facts.known.unknown)):
        # Two of the tiles may be equal, and merge.
        equal = np.minimum(facts.known.ranks[unknown], 16)
        unmoved[unknown] = ~move(equal, facts.moves[unknown])[2]
    return unmoved | (rows["move_dir"] > 3)


def _batch_laws(
    stream: StepStream, batch: Batch, facts: Played, excused: set[int | None], finder: Finder
) -> Iterator[Violation]:
    rows, known, after = batch.rows, facts.known, facts.after
    # The ranks of unknown rows are placeholders; it is only known that they reach 16.
    highest, stated = np.where(known.unknown, 16, known.ranks.max(axis=1)), rows["max_rank"]
    yield from finder.rows(
        batch,
        move_legal=_unmoved(rows, facts),
        follows=broken(known, after, counts_on(rows)),
        board_eval=_wrong_evals(rows, known),
        max_rank=(stated != 0) & (highest > stated),
    )
    reached = np.maximum(highest, np.where(known.unknown, 16, after.max(axis=1)))
    for index, own, points, gapless in run_facts(batch, facts.reward):
        run = stream.runs[index]
        top = int(reached[own].max())
        if run.highest_tile < 1 << top:
            found = f"reaches {1 << top}, but highest_tile is {run.highest_tile}"
            yield from finder.run("highest_tile", run.id, found)
        if run.id in excused or known.unknown[own].any():
            continue
        whole = gapless and fresh(known.ranks[own.start])
        score = run.max_score if run.max_score >= 0 else run.max_score + (1 << 64)
        if points > score or (whole and signed64(points) != run.max_score):
            first, last = (int(rows["step_index"][at]) for at in (own.start, own.stop - 1))
            found = f"rewards of steps {first} to {last} sum to {points}, max_score is {score}"
            yield from finder.run("score", run.id, found)


def game_law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the rules of 2048; a folder without the table of runs has no games."""
    if subject.missing({DATABASE: "games"}):
        return iter(())
    return game_laws(subject.folder, subject.noted, has_record=subject.has_record)
