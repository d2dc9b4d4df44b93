"""Notes on datasets of puzzles: what is unusual in their sources, but breaks no law.

Source: docs/formats/puzzles.md#notes
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, Violation
from gristmill.provenance import Record
from gristmill.puzzles.format.names import SOURCES
from gristmill.puzzles.format.sources import SourceFile, Sources, read_sources

_NAMED: Final = 5
_REPEATED: Final = "repeat an earlier one of their split"
_AMBIGUOUS: Final = "have another number of solutions than one"


def puzzle_notes(folder: Path) -> Iterator[Violation]:
    """Find what is unusual in the sources of a dataset; the check `noteworthy` warns of it.

    Yields these notes, each with a number and examples:
    equal_tasks: ARC tasks that have the pairs of an earlier one; they are kept.
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


def rows_left_out(record: Record) -> Iterator[Violation]:
    """Yield which rows of tables or banks are left out, with their number and the first lines.

    repeated_puzzles: an earlier row of their split is the same.
    ambiguous_puzzles: Sudokus with more than one solution, where `unique` is "drop".

    record: of a dataset.
    """
    for law, first, count, said in (
        ("repeated_puzzles", "first_repeats/", "duplicates_removed", _REPEATED),
        ("ambiguous_puzzles", "first_ambiguous/", "ambiguous_dropped", _AMBIGUOUS),
    ):
        lines = [
            f"{name.removeprefix(first)} line {line}"
            for name, line in record.counts.items()
            if name.startswith(first)
        ]
        # Of ARC `duplicates_removed` counts draws, and there are no such lines.
        if lines:
            rule = (
                f"{record.counts.get(count, 0):,} rows {said}, and are left out; the first of each "
                f"file: {', '.join(lines[:_NAMED])}"
            )
            yield Violation(law, SOURCES, rule)
