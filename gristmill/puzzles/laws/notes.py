"""Notes on datasets of puzzles: what is unusual in their sources, but breaks no law.

Source: docs/formats/puzzles.md#notes
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, Violation
from gristmill.provenance import RECORD, read_record
from gristmill.puzzles.format.names import SOURCES
from gristmill.puzzles.format.sources import SourceFile, Sources, read_sources

_NAMED: Final = 5
_FIRST: Final = "first_repeats/"


def puzzle_notes(folder: Path) -> Iterator[Violation]:
    """Find what is unusual in the sources of a dataset; the check `noteworthy` warns of it.

    Yields these notes, each with a number and examples:
    equal_tasks: ARC tasks that have the pairs of an earlier one; they are kept.
    repeated_puzzles: rows of tables or banks that an earlier one is the same as; they are left out.
    sources: they cannot be read.
    """
    try:
        sources = read_sources(folder / SOURCES)
    except BadInput as error:
        yield Violation("sources", error.file, error.rule)
        return
    if equal := equal_tasks(sources):
        named = ", ".join(f"{one} = {two}" for one, two in equal[:_NAMED])
        more = ", ..." if len(equal) > _NAMED else ""
        rule = f"{len(equal):,} tasks have the pairs of an earlier one: {named}{more}"
        yield Violation("equal_tasks", SOURCES, rule)
    record = folder / RECORD
    if sources.files and record.exists():
        yield from _repeated(read_record(record).counts)


def equal_tasks(sources: Sources) -> list[tuple[str, str]]:
    """The ARC tasks that have the pairs of an earlier one, and that one: paths of their files.

    sources: of the dataset. None of another kind of puzzle is among them.
    """
    first_of: dict[str, str] = {}
    pairs = [
        (first_of.setdefault(str(file.facts["task_hash"]), _named(file)), _named(file))
        for file in sources.files
        if "task_hash" in file.facts
    ]
    return [(path, first) for first, path in pairs if path != first]


def _named(file: SourceFile) -> str:
    """The path of a file, and the task in it where the file has several."""
    return f"{file.path} {file.facts['task']}" if "task" in file.facts else file.path


def _repeated(counts: dict[str, int | float]) -> Iterator[Violation]:
    first = [
        f"{name.removeprefix(_FIRST)} line {line}"
        for name, line in counts.items()
        if name.startswith(_FIRST)
    ]
    # Of ARC this counts draws, and there are no such lines.
    if first:
        rule = (
            f"{counts.get('duplicates_removed', 0):,} rows repeat an earlier one of their split,"
            f" and are left out; the first of each file: {', '.join(first[:_NAMED])}"
        )
        yield Violation("repeated_puzzles", SOURCES, rule)
