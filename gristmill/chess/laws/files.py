"""Read the files of an artifact: a missing or malformed file is a violation, not an error.

Source: docs/formats/chess.md#laws
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TextIO

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject

Law = Callable[..., Iterator[Violation]]
# Errors that a damaged file can cause.
_MALFORMED = (
    OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError, BadInput
)  # fmt: skip


def law(check: Law) -> Law:
    """Decorate a law: its violations name paths relative to the artifact, and it raises nothing.

    check: generator of violations; takes a subject, or the artifact's folder.

    Returns the law. Where a file lacks a key or has a value of the wrong type, the law
    ends with the violation `artifact_complete`.
    """

    def without_errors(of: Subject | Path, path: Path) -> Iterator[Violation]:
        try:
            yield from check(of)
        except KeyError as error:
            yield Violation("artifact_complete", path.name, f"a file has no {error}")
        except _MALFORMED as error:
            yield Violation("artifact_complete", path.name, f"{type(error).__name__}: {error}")

    @wraps(check)
    def with_relative_paths(of: Subject | Path) -> Iterator[Violation]:
        path = of.folder if isinstance(of, Subject) else of
        for violation in without_errors(of, path):
            where = violation.where.replace(f"{path}/", "")
            yield Violation(violation.law, where, violation.found.replace(f"{path}/", ""))

    return with_relative_paths


def read_json(path: Path) -> tuple[dict[str, Any], list[Violation]]:
    """Read a JSON object that has at least one key.

    path: the file.

    Returns the object and no violation, or an empty object and the violation `readable_json`.
    """
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return {}, [Violation("readable_json", str(path), repr(error))]
    if not isinstance(value, dict) or not value:
        return {}, [Violation("readable_json", str(path), "not a JSON object, or an empty one")]
    return value, []


def missing_keys(value: dict[str, Any], where: Path, *names: str) -> list[Violation]:
    """Check that a JSON object has some keys.

    value: the object.
    where: the file that holds it.
    names: the keys.

    Returns the violation `has_key` for each missing key.
    """
    return [
        Violation("has_key", str(where), f"has no {name!r}") for name in names if name not in value
    ]


def difference(name: str, where: Path | str, found: Any, recorded: Any) -> list[Violation]:
    """Check that a value is the recorded one.

    name: name of the law that demands it.
    where: the file or the place in it.
    found: the value in the artifact.
    recorded: the value that a report of the artifact names.

    Returns one violation where they differ, else none.
    """
    if found == recorded:
        return []
    return [Violation(name, str(where), f"found {found!r}, recorded {recorded!r}")]


def count_csv_rows(path: Path) -> int:
    """Count the rows of a CSV file, the head included.

    path: the file; a field may be of any length.

    Raises ValueError or OSError for a file that cannot be read.
    """
    with open_csv(path) as file:
        return sum(1 for _ in csv.reader(file))


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    """Open a CSV file for `csv.reader`, with fields of any length.

    Raises ValueError or OSError for a file that cannot be read.
    """
    # An error text may be as long as its PGN. The limit holds for the process.
    limit = csv.field_size_limit(max(path.stat().st_size + 1, 1 << 17))
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield file
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(limit)
