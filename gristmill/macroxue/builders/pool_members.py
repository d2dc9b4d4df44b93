"""The members of `macroxue/pool`: opened packs, their places, joined runs and names.

See also `pool.py`: their rows; `pool_sidefiles.py`: session, trace and warnings of a pool.

Source: `docs/formats/macroxue.md#nested-folders`, `docs/formats/macroxue.md#joined-names`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput
from gristmill.layout import published_path
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_session
from gristmill.macroxue.format.valuation_types import MAX_NAMES, read_valuation_types
from gristmill.macroxue.read.step_stream import StepStream


@dataclass
class Member:
    """A pack that is merged.

    name: in the pool.
    stream: its rows and runs.
    names: its valuation names, by id.
    session: its table `session`.
    trace: lines of its trace.jsonl, one a run; None without the file.
    warnings: lines of its warnings.jsonl.
    first_id: id of its first run in the pool.
    first_row: number of its first row in the pool.
    joined: its runs with their ids in the pool.
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
        """Open a pack.

        folder: of the pack.
        name: in the pool.

        Raises BadInput with the file that cannot be used.
        """
        stream = StepStream(folder)
        names = read_valuation_types(folder / "valuation_types.json")
        trace = _read_trace(folder / "trace.jsonl", stream.runs)
        path = folder / "warnings.jsonl"
        warnings = read_lines(path) if path.exists() else []
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
            raise BadInput(path, "`from` is not a list of packs", number)
    return lines


def refuse_nesting(packs: Sequence[Path], out: Path) -> None:
    """Raise BadInput for fewer than two packs, and for folders that are equal or nested."""
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
                inner, outer = (pack, other) if place.is_relative_to(elsewhere) else (other, pack)
                raise BadInput(
                    inner, f"is inside {outer}: give packs and an output that are separate folders"
                )


def open_members(packs: Sequence[Path], names: Sequence[str]) -> list[Member]:
    """Open the members of a pool.

    names: their names in the pool; if there are none, the names of the folders.

    Raises BadInput for two members of one name; ValueError for another number of names.
    """
    names = names or tuple(published_path(pack).name for pack in packs)
    if len(names) != len(packs):
        raise ValueError(f"{len(names)} names for {len(packs)} packs")
    for at, name in enumerate(names):
        if name in names[:at]:
            raise BadInput(
                packs[at],
                f"another pack is called {name!r} too: give each a name by MergeConfig(names=...)",
            )
    return [Member.open(pack, name) for pack, name in zip(packs, names, strict=True)]


def joined_names(members: Sequence[Member]) -> tuple[str, ...]:
    """The valuation names of a pool, by id. Raises BadInput for more than 255 names."""
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
    """Set the place of each member in the pool, and the ids of its runs.

    members: in order; first_id, first_row and joined are set.

    Returns the number of runs that equal an earlier run in everything but the id.
    """
    known: set[tuple[int, int, int, int]] = set()
    run_id = row = repeated = 0
    for member in members:
        member.first_id, member.first_row = run_id, row
        for run in member.stream.runs:
            facts = (run.seed, run.steps, run.max_score, run.highest_tile)
            repeated += facts in known
            known.add(facts)
            member.joined.append(Run(run_id, *facts))
            run_id += 1
        row += member.stream.rows
    return repeated
