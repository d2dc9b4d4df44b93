"""Build `macroxue/training_view`: a pack or pool as a folder that the trainer opens.

Files that are as in the source become hard links without permission to write; rows are copied
where games are split or turned.
Source: docs/formats/macroxue.md#training-view, docs/formats/macroxue.md#annotations.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.macroxue.builders.pool import PACKS_KEY
from gristmill.macroxue.builders.values import SETTINGS
from gristmill.macroxue.config import SIDES, TRAIN, VALIDATION, Layout, ViewConfig
from gristmill.macroxue.format.files import (
    DESCRIPTION,
    TOKENIZER,
    Description,
    Gap,
    Run,
    add_gaps,
    content_with_gaps_sha256,
    read_session,
    read_valuation_types,
    tokenizer,
    write_description,
    write_metadata,
    write_valuation_types,
)
from gristmill.macroxue.format.rows import (
    MANIFEST,
    PACKED46,
    ROWS,
    STEP_FORMATS,
    VALUE_COLUMNS,
    VALUE_FORMAT,
    VALUES,
    Rows,
    ShardWriter,
    copied,
    file_name,
    open_values,
    to_layout,
    unannotated,
    value_files,
)
from gristmill.macroxue.raw.annotations import Annotations
from gristmill.macroxue.read.stream import (
    Batch,
    Gather,
    RunIds,
    StepStream,
    gaps_of,
    held_by_hash,
    played,
    queried,
    refuse_sharing,
)
from gristmill.macroxue.rules.game import (
    FITS_INT32,
    BinRules,
    Fit,
    true_ranks,
    turned,
    turned_annotations,
)
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.npy_header import npy_header

_VALUES_AGAIN: Final = "build the values of its packs again"
BATCH_ROWS: Final = 1 << 15
"""Rows that are held at once, where no run is longer."""


def _judged(stream: StepStream, progress: Progress) -> tuple[dict[int, Gap], set[int]]:
    """Play all games of a pack or pool: the gaps by run, and the runs without images.

    These have a tile whose rank cannot be found, or is so high that an image's board_eval may not
    fit int32.
    """
    gaps: dict[int, Gap] = {}
    imageless: set[int] = set()
    with progress.stage("gaps", unit="rows", total=stream.rows) as stage:
        for batch in stream.batches(whole_runs=True, most=BATCH_ROWS):
            games = played(batch)
            known = games.known
            wrong = known.unknown | (known.ranks.max(axis=1, initial=0) > FITS_INT32)
            imageless |= set(np.unique(batch.rows["run_id"][wrong]).tolist())
            gaps |= {gap.run_id: gap for gap in gaps_of(batch, stream.runs, games)}
            stage.advance(len(batch.rows))
    return gaps, imageless


class JoinedValues:
    """The values of the rows of a pack, or of a pool by those of its members.

    folders: value sidecars, one after another as their rows are in the stream.
    settings: gamma, reward_scale, epsilon and compat, which are equal in all of them.
    """

    def __init__(self, folders: Sequence[Path], stream: StepStream) -> None:
        self._folders, self._stream = folders, stream
        self.files = [value_files(folder) for folder in folders]
        self._maps = [Gather([open_values(file) for file in files]) for files in self.files]
        self._firsts = np.cumsum([0, *map(len, self._maps)])
        if int(self._firsts[-1]) != stream.rows:
            rule = f"has {stream.rows} rows, but the values have {int(self._firsts[-1])}"
            raise BadInput(stream.folder, f"{rule}: {_VALUES_AGAIN}")
        # Runs of a member are numbered from the first run that it has in the pool.
        self._shifts = [
            stream.batch(first, first + 1).rows["run_id"] - values.rows(np.zeros(1, int))["run_id"]
            for first, values in zip(self._firsts.tolist(), self._maps, strict=False)
        ]
        self.settings = self._settings()

    def _settings(self) -> dict[str, Any]:
        found = []
        for folder in self._folders:
            try:
                settings = json.loads((folder / SETTINGS).read_bytes())
                found.append({k: v for k, v in settings.items() if k not in ("rows", "runs")})
            except (OSError, ValueError, AttributeError) as error:
                raise BadInput(folder / SETTINGS, f"cannot be used: {error!r}") from error
            if found[-1] != found[0]:
                rule = f"the values have other settings than {self._folders[0]}: build both with"
                raise GristmillError(f"{folder}: {rule} the same [macroxue.values]")
        return found[0]

    def of(self, batch: Batch) -> Rows:
        """The values of consecutive rows [N], with their run ids; BadInput for other rows."""
        rows, parts = batch.rows, []
        stop = batch.start + len(rows)
        for at, values in enumerate(self._maps):
            first, last = int(self._firsts[at]), int(self._firsts[at + 1])
            if first < stop and batch.start < last:
                own = np.arange(max(batch.start, first), min(stop, last))
                parts.append(values.rows(own - first))
                parts[-1]["run_id"] += self._shifts[at]
        values_of = np.concatenate(parts) if len(parts) > 1 else parts[0]
        for column in ("run_id", "step_index"):
            wrong = np.flatnonzero(values_of[column] != rows[column])
            if len(wrong):
                rule = f"row {batch.start + int(wrong[0])} has another {column} in the values"
                raise BadInput(self._stream.folder, f"{rule}: {_VALUES_AGAIN}")
        return values_of


class AnnotationWriter:
    """Writes the annotations of one side of a view.

    annotated: rows that have an annotation. notes: of the files, complete after `finish`.
    """

    def __init__(self, folder: Path, annotations: Annotations, shards: Sequence[int]) -> None:
        self._folder, self._annotations, self._shards = folder, annotations, shards
        self._masks: dict[int, int] = {}
        self._ends = np.cumsum(shards)
        self._row = self.annotated = 0
        self.notes: dict[str, FileNote] = {}
        for stem, maps in annotations.maps.items():
            for number, rows in enumerate(shards):
                name = file_name(stem, number)
                dtype = maps[0].dtype
                shape = (rows,) if stem in (ROWS, VALUES) else (rows, *dtype["bins"].shape)
                plain = dtype if stem in (ROWS, VALUES) else "<f4"
                (folder / name).write_bytes(npy_header(plain, shape))
                self.notes[name] = FileNote(rows=rows)

    def add(self, steps: Rows, runs: Mapping[int, Run], symmetry: int, images: int) -> None:
        """Write the annotations of whole games, by their rows [N] and runs in the source."""
        cuts = np.flatnonzero(np.diff(steps["run_id"])) + 1
        for own in np.split(np.arange(len(steps)), cuts) if len(steps) else ():
            rows = steps[own[0] : own[-1] + 1]
            run = int(rows["run_id"][0])
            places = self._annotations.places(runs[run], rows)
            found = np.flatnonzero(places >= 0)
            self.annotated += len(found)
            view_run = run * images + symmetry
            for stem, maps in self._annotations.maps.items():
                said = unannotated(maps[0].dtype, len(rows))
                said[found] = self._annotations.take(stem, places[found])
                said = turned_annotations(stem, said, symmetry)
                if stem in (ROWS, VALUES):
                    said["run_id"], said["step_index"] = view_run, rows["step_index"]
                if stem == ROWS and len(found):
                    mask = int(np.bitwise_or.reduce(said["policy_kind_mask"]))
                    self._masks[view_run] = mask
                self._write(stem, said)
            self._row += len(rows)

    def _write(self, stem: str, said: npt.NDArray[Any]) -> None:
        """Append rows to the files of a stem, from the present row on."""
        at = 0
        while at < len(said):
            number = int(np.searchsorted(self._ends, self._row + at, "right"))
            take = min(int(self._ends[number]) - self._row - at, len(said) - at)
            with (self._folder / file_name(stem, number)).open("ab") as file:
                file.write(said[at : at + take].tobytes())
            at += take

    def finish(self) -> None:
        """Write the manifest: that of the student, with the runs of the view."""
        runs = [
            {"run_id": run, "policy_kind_mask": mask} for run, mask in sorted(self._masks.items())
        ]
        text = json.dumps({**self._annotations.manifest, "runs": runs}, indent=2)
        (self._folder / MANIFEST).write_text(text + "\n")
        self.notes[MANIFEST] = FileNote()


NAMES: Final = "valuation_types.json"
DATABASE: Final = "metadata.db"
READ_ONLY: Final = 0o444
COUNTED: Final = ("rows", "legal_branches", "failure_branches", "zero_disadvantage")
"""What tokenizer.json counts of each kind."""
_NO_LINK: Final = {errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOTSUP}


@dataclass(frozen=True)
class ViewSummary(Summary):
    """Counts of a view."""

    runs: int
    rows: int
    runs_by_side: Mapping[str, int]
    rows_by_side: Mapping[str, int]
    runs_left_out: int
    gaps_by_reason: Mapping[str, int]
    games_without_images: int
    linked: int
    rows_without_value: int
    annotated_rows: int


@dataclass
class _Side:
    """One folder of a view while it is written."""

    name: str
    folder: Path
    images: int
    runs: Mapping[int, Run]
    steps: ShardWriter | None = None
    values: ShardWriter | None = None
    annotations: AnnotationWriter | None = None
    table: list[Run] = field(default_factory=list)
    notes: dict[str, FileNote] = field(default_factory=dict)


def training_view(
    source: Path,
    values: Sequence[Path],
    out: Path,
    config: ViewConfig,
    *,
    annotations: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
    known: Mapping[str, FileNote] | None = None,
    progress: Progress = SILENT,
) -> ViewSummary:
    """Make a training view of a pack or pool.

    source: its folder.
    values: value sidecar of the pack, or of each member of the pool in the order of its rows.
    out: folder to make; it must not exist.
    config: split, gaps, symmetries and bins.
    annotations: folder that the trainer's annotator wrote; default: none.
    links: what happens to links in it; default: they are refused.
    known: notes with sha256 and bytes of files that become links, by path of the source; default:
        they are hashed when the view is published.
    progress: gets the stages "gaps" and "view" in rows; default silent.

    Returns the counts. Memory grows with the longest run and with the number of different
    differences of branch values, not with the rows. Raises BadInput for a source or values that
    StepStream or JoinedValues refuse, for gaps with gaps="refuse", and for annotations of other
    games; GristmillError for a side without games, and for values that do not fill the bins;
    ValueError for a query that gives another side's games, sqlite3.DatabaseError for one that is no
    SELECT.
    """
    stream, source, out = StepStream(Path(source)), Path(source), Path(out)
    names = read_valuation_types(source / NAMES)
    joined = JoinedValues(values, stream)
    notes = None if annotations is None else Annotations(annotations, links)
    sides = _sides(stream, out, config)
    found, imageless = _judged(stream, progress)
    used = {run for side in sides for run in side.runs}
    gaps = {run: gap for run, gap in found.items() if run in used}
    if gaps and config.gaps == "refuse":
        raise _gap(source, next(iter(gaps.values())), len(gaps))
    view = _View(stream, joined, notes, names, config, sides, gaps, imageless)
    for side in sides:
        side.folder.mkdir(parents=True)
    links_made = view.link(known or {}) if view.is_whole else []
    with ExitStack() as stack, progress.stage("view", unit="rows", total=stream.rows) as stage:
        view.open(stack)
        for batch in stream.batches(whole_runs=True, most=BATCH_ROWS) if view.reads else ():
            view.add(batch)
            stage.advance(len(batch.rows))
    view.finish()
    described = Description(
        tuple(side.name for side in sides),
        config.images,
        tuple(links_made),
        annotations.name if annotations else "",
    )
    write_description(out, described)
    return view.summary({DESCRIPTION: FileNote()}, len(links_made))


def _gap(source: Path, gap: Gap, count: int) -> BadInput:
    said = "does not follow from the row before" if gap.reason == "board" else "is not the last one"
    rule = f"run {gap.run_id} has missing steps, as have {count - 1} other runs: step"
    cure = 'build with gaps = "mark", or leave these runs out by queries'
    return BadInput(source, f"{rule} {gap.step_index} {said}: {cure}")


def _sides(stream: StepStream, out: Path, config: ViewConfig) -> list[_Side]:
    """The folders of a view. Raises GristmillError for one without rows."""
    runs = {run.id: run for run in stream.runs}
    if max(runs) * config.images >= 1 << 32:
        rule = f"has run {max(runs)}: images have no run_id of 32 bits"
        raise GristmillError(f"{stream.folder}: {rule}")
    if config.train_query:
        train, held = (
            _asked(stream, runs, name, getattr(config, name))
            for name in ("train_query", "validation_query")
        )
        try:
            refuse_sharing(stream.runs, train, held)
        except ValueError as error:
            raise GristmillError(f"{stream.folder}: {error}") from error
    elif config.validation_share:
        held = held_by_hash(stream.runs, config.validation_share, config.split_seed)
        train = np.setdiff1d(np.array(list(runs), np.uint32), held)
    else:
        return [_Side("", out, config.images, runs)]
    sides = []
    for name, ids in zip(SIDES, (train, held), strict=True):
        own = {run: runs[run] for run in ids.tolist()}
        if not sum(run.steps for run in own.values()):
            rule = f"no step is in {name}/: choose another validation_share or split_seed, or other"
            raise GristmillError(f"{stream.folder}: {rule} queries")
        sides.append(_Side(name, out / name, config.images if name == TRAIN else 1, own))
    return sides


def _asked(stream: StepStream, runs: Mapping[int, Run], name: str, sql: str) -> RunIds:
    """The runs of a query of the config. Raises GristmillError, naming it, where it gives none."""
    path = stream.folder / DATABASE
    try:
        return queried(path.read_bytes(), path, runs, sql)
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise GristmillError(f"{path}: {name} = {sql!r}: {error}") from error


@dataclass
class _View:
    """A view while it is written; `add` takes all batches of the source in order.

    is_whole: whether the steps are those of the source, file by file.
    reads: whether any row must be read.
    """

    stream: StepStream
    joined: JoinedValues
    annotations: Annotations | None
    names: Sequence[str]
    config: ViewConfig
    sides: Sequence[_Side]
    gaps: Mapping[int, Gap]
    imageless: Container[int]

    def __post_init__(self) -> None:
        config, files = self.config, self.joined.files
        self._images = config.images
        self.is_whole = self.sides[0].name == "" and self._images == 1
        links_values = self.is_whole and not self.gaps and len(files) == 1
        self._linked_values = files[0] if links_values else []
        self.reads = bool(not links_values or config.num_bins or self.annotations)
        rules = BinRules(config.search_failure_cutoff, config.zero_tolerance)
        self._fit = Fit(self.names, rules) if config.num_bins else None
        is_packed = self.stream.files[0].dtype == PACKED46
        self._layout: Layout = "packed46" if is_packed else "aligned48"

    def link(self, known: Mapping[str, FileNote]) -> list[str]:
        """Make hard links of the files that stay as they are; returns their names."""
        (side,) = self.sides
        rows = [file.rows for file in self.stream.files]
        for files in ([file.path for file in self.stream.files], self._linked_values):
            for path, count in zip(files, rows, strict=False):
                link_read_only(path, side.folder / path.name)
                side.notes[path.name] = known.get(str(path), FileNote(rows=count))
        return sorted(side.notes)

    def open(self, stack: ExitStack) -> None:
        """Open what is written row by row; `stack` closes it."""
        single = [file.path.name for file in self.stream.files] == ["steps.npy"]
        whole = 0 if single else [file.rows for file in self.stream.files]
        for side in self.sides:
            cuts: int | Sequence[int] = whole if self.is_whole else self.config.shard_rows
            if not self.is_whole:
                writer = ShardWriter(side.folder, STEP_FORMATS[self._layout], cuts)
                side.steps = stack.enter_context(writer)
            if not self._linked_values:
                writer = ShardWriter(side.folder, VALUE_FORMAT, cuts, "values")
                side.values = stack.enter_context(writer)
            side.table = [
                replace(run, id=run.id * self._images + symmetry)
                for run in side.runs.values()
                for symmetry in range(self._images_of(side, run.id))
            ]
            if self.annotations is not None:
                # The rows of each steps file that a ShardWriter of these cuts writes.
                rows = sum(run.steps for run in side.table)
                size = cuts or rows
                shards = (
                    [min(size, rows - at) for at in range(0, rows, size)]
                    if isinstance(size, int)
                    else size
                )
                side.annotations = AnnotationWriter(side.folder, self.annotations, shards)

    def _images_of(self, side: _Side, run_id: int) -> int:
        return 1 if run_id in self.imageless else side.images

    def add(self, batch: Batch) -> None:
        """Write the rows of whole runs to their sides."""
        values = None if self._linked_values else self.joined.of(batch)
        if values is not None and self.gaps:
            marked = self._rows_of(batch, self.gaps)
            for name in VALUE_COLUMNS:
                values[name][marked] = np.nan
        for side in self.sides:
            if self.is_whole:
                self._put(side, batch.rows, batch.rows, values)
                continue
            own = self._rows_of(batch, side.runs)
            if not own.any() or values is None:
                continue
            rows, valued = copied(batch.rows, own), values[own]
            if side.images == 1:
                self._put(side, rows, rows, valued)
                continue
            cuts = np.flatnonzero(np.diff(rows["run_id"])) + 1
            for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
                game, found = rows[start:stop], valued[start:stop]
                known = true_ranks(game, np.zeros(1, np.int64))
                for symmetry in range(self._images_of(side, int(game["run_id"][0]))):
                    self._put(side, game, turned(game, symmetry, known.ranks), found, symmetry)

    def _rows_of(self, batch: Batch, runs: Container[int]) -> npt.NDArray[np.bool_]:
        """Whether each row of a batch is of some runs, by their ids: bool [N]."""
        own = self.stream.runs[batch.first_run : batch.first_run + len(batch.counts)]
        return np.repeat([run.id in runs for run in own], batch.counts)

    def _put(
        self, side: _Side, origin: Rows, rows: Rows, values: Rows | None, symmetry: int = 0
    ) -> None:
        """Write rows [N], the images of `origin` under a symmetry, and their values."""
        if self._fit is not None and side.name != VALIDATION:
            self._fit.add(rows)
        if side.annotations is not None:
            side.annotations.add(origin, side.runs, symmetry, self._images)
        ids = origin["run_id"] * self._images + symmetry
        if side.steps is not None:
            side.steps.write(self._numbered(to_layout(rows, self._layout), ids))
        if side.values is not None and values is not None:
            side.values.write(self._numbered(values, ids))

    def _numbered(self, rows: Rows, ids: npt.NDArray[np.uint32]) -> Rows:
        """Rows [N] with the run ids of the view."""
        if self._images > 1:
            rows = copied(rows)
            rows["run_id"] = ids
        return rows

    def finish(self) -> None:
        """Write the tables of each side. Raises GristmillError for values that fill no bins."""
        session = read_session(self.stream.folder / DATABASE)
        if not self.is_whole:
            session.pop(PACKS_KEY, None)  # it counts the runs of the source
        fitted = self._fitted()
        for side in self.sides:
            path, notes = side.folder / DATABASE, side.notes
            write_metadata(path, side.table, session)
            marked = {run.id: self.gaps.get(run.id // self._images) for run in side.table}
            add_gaps(path, [replace(gap, run_id=run) for run, gap in marked.items() if gap])
            digest = content_with_gaps_sha256(path)
            notes[DATABASE] = FileNote(rows=len(side.table), content_sha256=digest)
            write_valuation_types(side.folder / NAMES, self.names)
            notes[NAMES] = FileNote(rows=len(self.names))
            rows = sum(run.steps for run in side.table)
            settings = {**self.joined.settings, "rows": rows, "runs": len(side.table)}
            (side.folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")
            if fitted is not None:
                (side.folder / TOKENIZER).write_bytes(fitted)
            for writer in filter(None, (side.steps, side.values)):
                notes.update({name: FileNote(rows=count) for name, count in writer.written})
            if side.annotations is not None:
                side.annotations.finish()
                notes.update(side.annotations.notes)

    def _fitted(self) -> bytes | None:
        if self._fit is None:
            return None
        bins, edges, counts = self.config.num_bins, {}, {}
        for kind, found in self._fit.kinds.items():
            try:
                edges[kind] = found.edges(bins)
            except ValueError as error:
                rule = f"no tokenizer.json can be made, {kind} rows: {error}: choose fewer num_bins"
                raise GristmillError(f"{self.stream.folder}: {rule}, or 0 for none") from error
            counts[kind] = {name: found.counts[name] for name in COUNTED}
        return tokenizer(bins, self.config.search_failure_cutoff, edges, counts)

    def summary(self, files: Mapping[str, FileNote], linked: int) -> ViewSummary:
        """The counts. files: notes beside those of the sides. linked: number of links."""
        named = {side.name or "all": side.table for side in self.sides}
        rows = {name: sum(run.steps for run in table) for name, table in named.items()}
        taken = {run for side in self.sides for run in side.runs}
        written = [side.annotations for side in self.sides if side.annotations is not None]
        turned_runs = [run for side in self.sides if side.images > 1 for run in side.runs]
        kinds = self._fit.kinds.values() if self._fit is not None else ()
        return ViewSummary(
            files={
                **files,
                **{
                    (f"{side.name}/{name}" if side.name else name): note
                    for side in self.sides
                    for name, note in side.notes.items()
                },
            },
            runs=sum(map(len, named.values())),
            rows=sum(rows.values()),
            runs_by_side={name: len(table) for name, table in named.items()},
            rows_by_side=rows,
            runs_left_out=len(self.stream.runs) - len(taken),
            gaps_by_reason=Counter(gap.reason for gap in self.gaps.values()),
            games_without_images=sum(run in self.imageless for run in turned_runs),
            linked=linked,
            rows_without_value=sum(found.counts["unvalued"] for found in kinds),
            annotated_rows=sum(writer.annotated for writer in written),
        )


def link_read_only(source: Path, target: Path) -> None:
    """Make a hard link of a file that nobody may write to; a copy where none is possible."""
    try:
        source.chmod(READ_ONLY)
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source, target)
        target.chmod(READ_ONLY)
