"""How laws read the files of an artifact: what is missing or malformed is a breach, no error."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput, Violation

Law = Callable[..., Iterator[Violation]]
# What reading a file that is not as it should be can raise.
_MALFORMED = (OSError, ValueError, TypeError, AttributeError, IndexError, BadInput)


def relative(law: Law) -> Law:
    """The law with places told as paths relative to the folder that it is asked about.

    What it asks for and the artifact has not (a file, a key, a number where a
    text stands) ends it, and is told as a breach itself.
    """

    def whole(path: Path, *more: Any, **named: Any) -> Iterator[Violation]:
        try:
            yield from law(path, *more, **named)
        except KeyError as error:
            yield Violation("artifact_complete", path.name, f"a file has no {error}")
        except _MALFORMED as error:
            yield Violation("artifact_complete", path.name, f"{type(error).__name__}: {error}")

    @wraps(law)
    def told(path: Path, *more: Any, **named: Any) -> Iterator[Violation]:
        for violation in whole(path, *more, **named):
            where = violation.where.replace(f"{path}/", "")
            yield Violation(violation.law, where, violation.found.replace(f"{path}/", ""))

    return told


def read_json(path: Path) -> tuple[dict[str, Any], list[Violation]]:
    """A JSON object that says something, or what is wrong with it."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        return {}, [Violation("readable_json", str(path), repr(error))]
    if not isinstance(value, dict) or not value:
        return {}, [Violation("readable_json", str(path), "not an object, or an empty one")]
    return value, []


def lacks(value: dict[str, Any], where: Path, *names: str) -> list[Violation]:
    """A violation for each of these keys that a JSON object lacks."""
    return [
        Violation("has_key", str(where), f"has no {name!r}") for name in names if name not in value
    ]


def csv_rows(path: Path) -> int:
    """Rows of a CSV file, head included, however long a field is. Raises ValueError, OSError."""
    # A PGN may have an error text of any length; the limit is the process's.
    before = csv.field_size_limit(max(path.stat().st_size + 1, 1 << 17))
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return sum(1 for _ in csv.reader(file))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(before)
