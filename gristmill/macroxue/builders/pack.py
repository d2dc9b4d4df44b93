"""Build `macroxue/pack` from a raw drop. Source: docs/formats/macroxue.md#raw-drop.

A part is some consecutive runs, and one file with all their rows. The rows of a part have
preliminary run ids and valuation types, because these depend on the parts before it; the ledger
makes them final.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import NamedFile
from gristmill.macroxue.config import Layout, PackConfig
from gristmill.macroxue.format.files import (
    Run,
    content_sha256,
    json_text,
    signed64,
    write_lines,
    write_metadata,
    write_valuation_types,
)
from gristmill.macroxue.format.rows import STEP_FORMATS, Rows, ShardWriter, to_layout
from gristmill.macroxue.raw.drops import AnyRun, Drop, find_runs
from gristmill.macroxue.raw.read_run import Scanner, notes_of, read_run
from gristmill.macroxue.raw.read_steps import read_steps
from gristmill.macroxue.raw.step_files import StepRun
from gristmill.macroxue.raw.strict_parser import Names, RunFacts
from gristmill.macroxue.read.stream import identity
from gristmill.printable import printable
from gristmill.run.parts import PartStore, needs_file, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

# Zipped bytes from which it pays to load the compiled scanner (half a second, in which the strict
# parser reads 12,000 lines), and to start worker processes (half a second, in which one process
# packs 1.5 million rows).
_SCANNER_PAYS = 400_000
_WORKERS_PAY = 100_000_000
# A run of many small drops loads the scanner, too: zipped bytes of all drops of this process.
_met = Counter[str]()


PART_BYTES = 4_000_000
"""Zipped bytes of a part: about 130,000 rows of real logs, 6 MB in its file."""

_BATCH_ROWS = 1 << 15
_MEND = '; mend the game, take it out, or set on_error = "quarantine" to set it aside'
# What is likely where a rule is broken in every game of a drop, by what the rule begins with.
_LIKELY = {
    "board holds rank": "a board holds exponents, 1 for the tile 2, not tiles",
    "gzip: Error -4": "a log that is not zipped needs `gzip`, whatever its name",
    "not UTF-8 at byte": "write UTF-8, and zip it once",
    "not JSON: Expecting value at character 0": "write objects, without a byte order mark",
}


@dataclass(frozen=True)
class Part:
    """The task of a worker; run_id in the rows counts from first_id, the place in the drop.

    scanner: whether the drops of the process are large enough to load the compiled scanner.
    """

    name: str
    runs: tuple[AnyRun, ...]
    first_id: int
    layout: Layout
    on_error: str
    scanner: bool

    @property
    def size(self) -> int:
        """Zipped bytes of the steps files."""
        return sum(run.steps_size for run in self.runs)


def cut_parts(runs: Sequence[AnyRun], layout: Layout, on_error: str, scanner: bool) -> list[Part]:
    """Cut runs into parts of about PART_BYTES, the same for any number of workers."""
    parts: list[Part] = []
    first = size = 0
    for at, run in enumerate(runs):
        size += run.steps_size
        if size >= PART_BYTES or at == len(runs) - 1:
            own = tuple(runs[first : at + 1])
            # A digest of drop, name and size of each run, so that no part of other runs is used.
            listed = json.dumps([each.key for each in own]).encode()
            name = f"rows-{len(parts):06d}-{hashlib.sha256(listed).hexdigest()[:12]}"
            parts.append(Part(name, own, first, layout, on_error, scanner))
            first, size = at + 1, 0
    return parts


def _entry(facts: RunFacts) -> dict[str, Any]:
    """The facts of a run as JSON, for the summary of its part."""
    meta = facts.meta
    return {
        "rows": facts.rows,
        "seed": meta.seed,
        "score": meta.score,
        "max_tile": meta.max_tile,
        "depth": meta.depth,
        "seconds": meta.seconds,
        "meta_bytes": facts.meta_file.size,
        "meta_sha256": facts.meta_file.hex,
        "steps_bytes": facts.steps_file.size,
        "steps_sha256": facts.steps_file.hex,
        "kinds": sorted(facts.kinds.items()),
        "ranks": sorted(facts.ranks.items()),
        "notes": notes_of(facts),
    }


def make_part(part: Part, path: Path) -> dict[str, Any]:
    """Read the runs of a part and write their rows to a file.

    Returns as JSON `names`, the valuation names by the ids in the rows, and `runs`, of each run its
    facts, or `file`, `row` and `rule` if it was set aside.
    """
    with NamedFile(path, "wb") as file:

        def sink(rows: Rows) -> None:
            octets = to_layout(rows, part.layout).view(np.uint8).data
            while octets:
                octets = octets[file.write(octets) :]

        return _read_part(part, Names(), sink, file)


def _read_part(
    part: Part, names: Names, sink: Callable[[Rows], None], file: NamedFile | None = None
) -> dict[str, Any]:
    """Give the rows of a part to `sink`; returns what `make_part` does.

    file: where `sink` puts them, which loses those of a run that is set aside; None: none is.
    """
    scanner: Scanner | None = None
    # A scanner that is already loaded costs nothing.
    if part.scanner or "gristmill.macroxue.raw.fast_scanner" in sys.modules:
        from gristmill.macroxue.raw.fast_scanner import scan

        scanner = scan
    entries: list[dict[str, Any]] = []
    for at, files in enumerate(part.runs):
        start, known, run_id = file.tell() if file else 0, len(names.known), part.first_id + at
        try:
            if isinstance(files, StepRun):
                facts = read_steps(files, run_id, names, sink)
            else:
                facts = read_run(files, run_id, names, sink, scanner)
            entries.append(_entry(facts))
        except BadInput as error:
            if part.on_error != "quarantine" or file is None:
                hints = (hint for begin, hint in _LIKELY.items() if error.rule.startswith(begin))
                hint = next((f" ({hint})" for hint in hints), "")
                raise BadInput(error.file, error.rule + hint + _MEND, error.row) from error
            file.seek(start)
            file.truncate()
            del names.known[known:]
            name = files.name_of(error.file)
            entries.append({"file": name, "row": error.row, "rule": error.rule})
    return {"names": list(names.known), "runs": entries}


def _finished(
    tasks: Sequence[Part],
    names: Names,
    writer: ShardWriter,
    parts: PartStore | None,
    workers: int,
    out: Path,
) -> Generator[tuple[Path | None, dict[str, Any]]]:
    """Yield file and summary of each part; None for one whose final rows are written already.

    names: of the parts before, where one worker makes a part that needs no file.
    """
    if workers > 1 or tasks[0].on_error == "quarantine":
        named = ((part.name, part) for part in tasks)
        for _, path, summary in run_parts(make_part, named, parts, workers, scratch=out):
            yield path, summary
        return

    def sink(rows: Rows) -> None:
        writer.write(to_layout(rows, tasks[0].layout))

    for part in tasks:
        if needs_file(parts, part.name):
            own = [(part.name, part)]
            for _, path, summary in run_parts(make_part, own, parts, 1, scratch=out):
                yield path, summary
        else:
            yield None, _read_part(part, names, sink)


def read_rows(path: Path, layout: Layout) -> Iterator[Rows]:
    """Yield the rows of a finished part in batches; each overwrites the one before."""
    rows = np.empty(_BATCH_ROWS, STEP_FORMATS[layout].dtype)
    octets = rows.view(np.uint8).data
    with path.open("rb", buffering=0) as file:
        while True:
            filled = 0
            while filled < len(octets) and (got := file.readinto(octets[filled:])):
                filled += got
            if not filled:
                return
            yield rows[: filled // rows.itemsize]


@dataclass(frozen=True)
class PackSummary(Summary):
    """Counts of a pack, which docs/numbers.md explains."""

    runs: int
    rows: int
    shards: int
    quarantined: int
    quarantined_by_rule: Mapping[str, int]
    unpaired: int
    unpaired_logs: int
    repeated_runs: int
    count_mismatches: int
    warnings: int
    empty_runs: int
    score_min: int
    score_max: int
    seconds_played: float
    rows_by_valuation_type: Mapping[str, int]
    rows_by_max_rank: Mapping[str, int]
    runs_by_highest_tile: Mapping[str, int]


def _workers(config: PackConfig, size: int, parts: int) -> int:
    """Number of processes; size: zipped bytes of all steps files."""
    if config.workers:
        return min(config.workers, parts)
    return min(len(os.sched_getaffinity(0)), parts) if size >= _WORKERS_PAY else 1


def _where(drops: Path | Sequence[Path]) -> str:
    return ", ".join(map(str, [drops] if isinstance(drops, str | Path) else drops))


def pack(
    drops: Path | Sequence[Path],
    out: Path,
    config: PackConfig,
    parts: PartStore | None = None,
    *,
    session: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> PackSummary:
    """Pack raw drops: write the rows, tables and side files of their runs.

    drops: folder of a raw drop, or of several, in the order of their rows.
    out: folder to make; it must not exist.
    config: layout, shards, quarantine and workers.
    parts: store of finished parts, from which a killed build continues; default none.
    session: further keys of the table `session`; default none.
    progress: gets the stage "read" in zipped bytes of steps files; default silent.
    links: what happens to links in the drops; default: they are refused.

    Returns the counts. Raises BadInput with file, line and rule for a run that breaks one, for a
    drop without runs or rows, and where more runs are set aside than `quarantine_share` allows;
    ValueError for a key of `session` that the pack has itself; OSError as it comes.
    """
    out = Path(out)
    drop = find_runs(drops, links)
    if not drop.runs:
        raise BadInput(
            _where(drops),
            "no run found: a run is a *.meta.json or *.meta.json.gz with its .jsonl.gz next to it",
        )
    out.mkdir(parents=True)
    size = sum(run.steps_size for run in drop.runs)
    _met["bytes"] += size
    pays = _met["bytes"] >= _SCANNER_PAYS
    tasks = cut_parts(drop.runs, config.layout, config.on_error, pays)
    workers = _workers(config, size, len(tasks))
    ledger = Ledger(drop, _where(drops), config.quarantine_share)
    with (
        ShardWriter(out, STEP_FORMATS[config.layout], config.shard_rows) as writer,
        # Closing it ends the workers at once when a run breaks a rule.
        closing(_finished(tasks, ledger.names, writer, parts, workers, out)) as finished,
        progress.stage("read", unit="bytes", total=size) as stage,
    ):
        for part, (path, summary) in zip(tasks, finished, strict=True):
            ids, kinds = ledger.add(part, summary)
            if path:
                _copy_rows(part, path, ids, kinds, writer)
            stage.advance(part.size)
    ledger.check_rows()
    write_metadata(out / "metadata.db", ledger.run_table, ledger.session(session or {}))
    write_valuation_types(out / "valuation_types.json", ledger.names.known, config.enum_form)
    files = {name: FileNote(rows=rows) for name, rows in writer.written}
    contents = content_sha256(out / "metadata.db")
    files["metadata.db"] = FileNote(rows=ledger.runs, content_sha256=contents)
    files["valuation_types.json"] = FileNote(rows=len(ledger.names.known))
    files |= ledger.write_notes(out)
    return _summary(ledger, files, len(writer.written))


def _copy_rows(
    part: Part,
    path: Path,
    ids: npt.NDArray[np.uint32] | None,
    kinds: npt.NDArray[np.uint8] | None,
    writer: ShardWriter,
) -> None:
    """Copy the rows of a part to the shards, with final ids by their place, and final kinds."""
    for rows in read_rows(path, part.layout):
        if ids is not None:
            rows["run_id"] = ids[rows["run_id"] - part.first_id]
        if kinds is not None:
            rows["valuation_type"] = kinds[rows["valuation_type"]]
        writer.write(rows)


def _summary(ledger: Ledger, files: dict[str, FileNote], shards: int) -> PackSummary:
    kinds: Counter[str] = ledger.kinds
    scores = [run.max_score for run in ledger.run_table]
    tiles = Counter(run.highest_tile for run in ledger.run_table)
    return PackSummary(
        files=files,
        runs=ledger.runs,
        rows=ledger.rows,
        shards=shards,
        quarantined=len(ledger.quarantine),
        quarantined_by_rule=ledger.quarantined_by_rule(),
        unpaired=ledger.noted["unpaired_meta"],
        unpaired_logs=ledger.noted["unpaired_log"],
        repeated_runs=ledger.runs - len(set(map(identity, ledger.run_table))),
        count_mismatches=ledger.noted["count_mismatch"],
        warnings=len(ledger.warnings),
        empty_runs=ledger.noted["empty_run"],
        score_min=min(scores),
        score_max=max(scores),
        seconds_played=ledger.seconds(),
        rows_by_valuation_type={name: kinds[name] for name in ledger.names.known},
        rows_by_max_rank={str(rank): ledger.ranks[rank] for rank in sorted(ledger.ranks)},
        runs_by_highest_tile={str(tile): tiles[tile] for tile in sorted(tiles)},
    )


_CURE: Final = "mend these files, or take their games out of the drop"
_MOST_RULES: Final = 20


def _named(entry: Mapping[str, Any]) -> str:
    line = "" if entry["row"] is None else f" line {entry['row']}"
    return f"{entry['file']}{line}: {entry['rule']}"


class Ledger:
    """The facts of all runs, part by part, with final ids; memory grows with runs, not rows."""

    def __init__(self, drop: Drop, where: str, quarantine_share: float) -> None:
        self.names = Names()
        self.run_table: list[Run] = []
        self.rows = 0
        self.trace: list[dict[str, Any]] = []
        self.warnings: list[dict[str, Any]] = []
        self.quarantine: list[dict[str, Any]] = []
        self.kinds: Counter[str] = Counter()
        self.ranks: Counter[int] = Counter()
        self.noted: Counter[str] = Counter()
        self._drop = drop
        self._where = where
        # 0.29 * 100 is below 29 in binary fractions.
        self._most = math.floor(quarantine_share * len(drop.runs) + 1e-9)
        self._depths: list[int | None] = []
        self._seconds: list[float | None] = []
        for note in drop.notes:
            self._warn(note)

    @property
    def runs(self) -> int:
        """Number of runs that were kept so far; also the id of the next run."""
        return len(self.run_table)

    def _warn(self, note: dict[str, Any]) -> None:
        self.warnings.append(note)
        self.noted[note["kind"]] += 1

    def add(
        self, part: Part, summary: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8] | None]:
        """Add the counts and lines of a part; parts come in order.

        Returns what `_copy_rows` takes: ids uint32 and kinds uint8. Raises BadInput
        where more runs are set aside than `quarantine_share` allows.
        """
        names: list[str] = summary["names"]
        kinds = np.array([self.names.id_of(name) for name in names], np.uint8)
        ids = np.zeros(len(part.runs), np.uint32)
        for at, (files, entry) in enumerate(zip(part.runs, summary["runs"], strict=True)):
            if "rule" in entry:
                self._set_aside(files, entry)
                continue
            ids[at] = self.runs
            self._keep(files, entry, names)
        return (
            ids if self.quarantine else None,
            None if np.array_equal(kinds, np.arange(len(kinds))) else kinds,
        )

    def _set_aside(self, files: AnyRun, entry: Mapping[str, Any]) -> None:
        self.quarantine.append(
            {"drop": files.drop, "meta": files.meta_name, "steps": files.steps_name, **entry}
        )
        if len(self.quarantine) > self._most:
            rule = f"{len(self.quarantine)} of {len(self._drop.runs)} runs are bad and"
            rule += f" quarantine_share allows {self._most}; the last is {_named(entry)}"
            raise BadInput(self._where, f"{rule}; {_CURE}, or raise quarantine_share")

    def check_rows(self) -> None:
        """Raise BadInput where no run was kept, whatever quarantine_share allows, or no row."""
        if not self.runs:
            bad = self.quarantine
            last = _named(bad[-1])
            rule = f"none of its {len(bad)} runs can be read; the last is {last}; {_CURE}"
            raise BadInput(self._where, rule)
        if self.rows == 0:
            raise BadInput(self._where, f"{self.runs} runs, but no step in any of them")

    def quarantined_by_rule(self) -> dict[str, int]:
        """Runs that were set aside by the rule that they break, the most frequent rules first."""
        rules = Counter(printable(entry["rule"]) for entry in self.quarantine)
        counted = dict(rules.most_common(_MOST_RULES))
        others = len(self.quarantine) - sum(counted.values())
        return counted | ({"other rules": others} if others else {})

    def _keep(self, files: AnyRun, entry: Mapping[str, Any], names: list[str]) -> None:
        run_id = self.runs
        place = {"run_id": run_id, "drop": files.drop, "meta": files.meta_name}
        self.trace.append(
            {
                **place,
                "steps": files.steps_name,
                **{key: entry[key] for key in ("meta_bytes", "meta_sha256")},
                **{key: entry[key] for key in ("steps_bytes", "steps_sha256")},
                "rows": entry["rows"],
                "first_row": self.rows,
                **files.raw_place,
            }
        )
        seed, score = signed64(entry["seed"]), signed64(entry["score"])
        self.run_table.append(Run(run_id, seed, entry["rows"], score, entry["max_tile"]))
        self.rows += entry["rows"]
        self._depths.append(entry["depth"])
        self._seconds.append(entry["seconds"])
        for kind, count in entry["kinds"]:
            self.kinds[names[kind]] += count
        for rank, count in entry["ranks"]:
            self.ranks[rank] += count
        for note in entry["notes"]:
            self._warn({"kind": note["kind"], **place, **note})

    def seconds(self) -> float:
        """Sum of the metas' seconds, correctly rounded; the largest float64 if it is above it."""
        try:
            return math.fsum(value for value in self._seconds if value is not None)
        except OverflowError:
            return sys.float_info.max

    def session(self, extras: Mapping[str, str]) -> dict[str, str]:
        """The table `session` with the keys of docs/formats/macroxue.md#session-keys."""
        keys = {
            "source": ", ".join(sorted({run.source for run in self._drop.runs})),
            "drop": ",".join(self._drop.names),
            "drops": json_text(self._drop.names),
            "depth": json_text(sorted({depth for depth in self._depths if depth is not None})),
            "seconds": json_text(self.seconds()),
            "runs_depth": json_text(self._depths),
            "runs_seconds": json_text(self._seconds),
        }
        if taken := keys.keys() & extras.keys():
            raise ValueError(f"session keys {sorted(taken)} are reserved for the pack: rename them")
        return keys | dict(extras)

    def write_notes(self, out: Path) -> dict[str, FileNote]:
        """Write trace.jsonl, and warnings.jsonl and quarantine.jsonl if they have lines."""
        notes = {}
        for name, lines in (
            ("trace.jsonl", self.trace),
            ("warnings.jsonl", self.warnings),
            ("quarantine.jsonl", self.quarantine),
        ):
            if lines:
                write_lines(out / name, lines)
                notes[name] = FileNote(rows=len(lines))
        return notes
