"""The packs that go into a pool, opened: what may be merged, and their place in the pool.

How rows are poured is the business of `merger.py`, what the tables of a pool
say that of `pool_tables.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_session
from gristmill.macroxue.format.valuation_types import MAX_NAMES, read_valuation_types
from gristmill.macroxue.read.step_stream import StepStream


@dataclass
class Member:
    """One pack of a pool, opened.

    names: its enum. trace: its lines by place of the run, None where it has no
    trace.jsonl. warnings: lines of its warnings.jsonl. first_id, first_row: where
    its runs and rows begin in the pool. joined: its runs with their new ids.
    """

    name: str
    stream: StepStream
    names: tuple[str, ...]
    session: dict[str, str]
    trace: list[dict[str, Any]] | None
    warnings: list[dict[str, Any]]
    first_id: int = 0
    first_row: int = 0
    joined: list[Run] = field(default_factory=list)

    @staticmethod
    def open(folder: Path, name: str) -> Member:
        """Open a pack with all that a merge needs of it; BadInput names the file at fault."""
        stream = StepStream(folder)
        names = read_valuation_types(folder / "valuation_types.json")
        trace = _read_trace(folder / "trace.jsonl", stream.runs)
        noted = folder / "warnings.jsonl"
        warnings = read_lines(noted) if noted.exists() else []
        session = read_session(folder / "metadata.db")
        return Member(name, stream, names, session, trace, warnings)


def _read_trace(path: Path, runs: Sequence[Run]) -> list[dict[str, Any]] | None:
    if not path.exists():
        return None
    lines = read_lines(path)
    if [line.get("run_id") for line in lines] != [run.id for run in runs]:
        raise BadInput(path, "does not have one line for each run of metadata.db, in order")
    for number, line in enumerate(lines, 1):
        if not isinstance(line.get("from", []), list):
            raise BadInput(path, "`from` is no list of packs", number)
    return lines


def refuse_nesting(packs: Sequence[Path], out: Path) -> None:
    """Raise BadInput unless two folders or more stand apart from each other and from `out`.

    The original could delete or overwrite its own input (docs/formats/macroxue.md#nested-folders).
    """
    if len(packs) < 2:
        raise BadInput(", ".join(map(str, packs)) or "no pack", "a merge needs two packs or more")
    for pack in packs:
        if not pack.is_dir():
            raise BadInput(pack, "is not a folder: give the folder of a pack")
    real = [(pack, pack.resolve(strict=True)) for pack in packs] + [(out, out.resolve())]
    for at, (pack, place) in enumerate(real):
        for other, elsewhere in real[:at]:
            if place == elsewhere:
                raise BadInput(pack, f"is the same folder as {other}: give each one once")
            if place.is_relative_to(elsewhere) or elsewhere.is_relative_to(place):
                raise BadInput(
                    pack, f"and {other} lie in one another: packs and output must stand apart"
                )


def open_members(packs: Sequence[Path], names: Sequence[str]) -> list[Member]:
    """Open the packs under these names, or where empty those of their folders."""
    names = names or tuple(pack.resolve().name for pack in packs)
    if len(names) != len(packs):
        raise ValueError(f"{len(names)} names for {len(packs)} packs")
    for at, name in enumerate(names):
        if name in names[:at]:
            raise BadInput(
                packs[at],
                f"another pack is called {name!r} too: call them apart by MergeConfig(names=...)",
            )
    return [Member.open(pack, name) for pack, name in zip(packs, names, strict=True)]


def joined_names(members: Sequence[Member]) -> tuple[str, ...]:
    """The names of the first member by id, then the new names of the next, and so on.

    Source: docs/formats/macroxue.md#joined-names.
    """
    names: dict[str, None] = {}
    for member in members:
        names |= dict.fromkeys(member.names)
        if len(names) > MAX_NAMES:
            raise BadInput(
                member.stream.folder / "valuation_types.json",
                f"with the packs before it makes {len(names)} names: {MAX_NAMES} fit the column",
            )
    return tuple(names)


def joined_runs(members: Sequence[Member]) -> int:
    """Give every member its place in the pool and its runs their new ids, in order.

    Returns how many runs equal an earlier one in everything but the id.
    """
    met: set[tuple[int, int, int, int]] = set()
    run_id = row = repeated = 0
    for member in members:
        member.first_id, member.first_row = run_id, row
        for run in member.stream.runs:
            facts = (run.seed, run.steps, run.max_score, run.highest_tile)
            repeated += facts in met
            met.add(facts)
            member.joined.append(Run(run_id, *facts))
            run_id += 1
        row += member.stream.rows
    return repeated
