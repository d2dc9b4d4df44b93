"""What a takedown is to do and has done: a file that a killed one continues with, and its report.

Source: `docs/takedowns.md#killed`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.layout import WORK
from gristmill.run import locks

NAMED, LEFT_OUT, ERASED, REBUILT = "named", "left out", "erased", "rebuilt"
_PLAN: Final = "plan.json"


@dataclass
class Plan:
    """A takedown. What is done is `state`.

    rows: by drop, as `reasoning/gsm8k`, `[file, row, hash]` of each row that goes.
    texts: that are looked for. left: rows that hold a text and stay, as `[place, file, row]`.
    affected: `[asset, partition]` of artifacts, each after those that it is made from.
    """

    drop: str
    rows: dict[str, list[list[Any]]]
    texts: list[str]
    left: list[list[Any]]
    erases: bool
    reason: str
    shared: int = 0
    affected: list[list[str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    begun: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y%m%dT%H%M%S"))
    state: str = NAMED
    counts: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def named(self) -> list[tuple[str, str, int]]:
        """Drop, file and row of each row that goes."""
        return [(name, file, row) for name, rows in self.rows.items() for file, row, _ in rows]

    def keep(self, root: Path, state: str = NAMED) -> None:
        """Write the plan whole or not at all, in a state; only its owner reads it."""
        self.state = state
        write(folder_of(root) / _PLAN, json.dumps(asdict(self)).encode(), 0o600)

    def end(self, root: Path, report: Mapping[str, Any], lines: Iterable[str]) -> Path:
        """Write the report, and remove the plan, which has the texts; returns the report's path."""
        path = folder_of(root) / f"{self.begun}.json"
        write(path, json.dumps(report, indent=1).encode())
        write(path.with_suffix(".txt"), "".join(f"{line}\n" for line in lines).encode())
        (folder_of(root) / _PLAN).unlink()
        return path


def folder_of(root: Path) -> Path:
    """Where plans and reports of a data root are."""
    return root / WORK / "takedowns"


def under_way(root: Path) -> Plan | None:
    """The takedown that was begun and has not ended; None without one."""
    path = folder_of(root) / _PLAN
    try:
        return Plan(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        rule = f"is damaged ({error}): remove it, and name the rows again"
        raise GristmillError(f"{path}: {rule}") from error


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the lock of takedowns. Raises GristmillError while another one is under way."""
    try:
        with locks.locked(folder_of(root) / "lock", "a takedown"):
            yield
    except locks.Busy as error:
        holder = str(error).partition(" by ")[2].partition(";")[0]
        raise GristmillError(
            f"{root}: another takedown is under way, of {holder}: call this one when that has ended"
        ) from error


def write(path: Path, octets: bytes, mode: int = 0o644) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.unlink(missing_ok=True)
    with os.fdopen(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
