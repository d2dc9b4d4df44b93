"""What a takedown is to do and has done: a file that a killed one continues with, and its report.

Source: `docs/takedowns.md#killed`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.layout import WORK
from gristmill.run import locks

TAKEDOWNS: Final = "takedowns"
NAMED, LEFT_OUT, ERASED, REBUILT = "named", "left out", "erased", "rebuilt"
STATES: Final = (NAMED, LEFT_OUT, ERASED, REBUILT)


@dataclass
class Plan:
    """A takedown. What is done is `state`, one of `STATES`.

    rows: by drop, as `reasoning/gsm8k`, `[file, row, hash, name]` of each row that goes.
    texts: that are looked for. left: places that hold a text and stay, as `[place, row, column]`.
    affected: `[asset, partition]` of artifacts, each after those that it is made from.
    """

    drop: str
    rows: dict[str, list[list[Any]]]
    texts: list[str]
    left: list[list[Any]]
    affected: list[list[str]]
    erases: bool
    reason: str
    shared: int = 0
    steps: list[str] = field(default_factory=list)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    begun: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y%m%dT%H%M%S"))
    state: str = NAMED
    counts: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def keep(self, root: Path, state: str = "") -> None:
        """Write the plan whole or not at all, in a state; only its owner reads it."""
        self.state = state or self.state
        _write(folder_of(root) / "plan.json", json.dumps(asdict(self)), 0o600)

    def end(self, root: Path, report: Mapping[str, Any], text: str) -> Path:
        """Write the report, and remove the plan, which has the texts; returns the report's path."""
        path = folder_of(root) / f"{self.begun}.json"
        _write(path, json.dumps(report, indent=1), 0o644)
        _write(path.with_suffix(".txt"), text, 0o644)
        (folder_of(root) / "plan.json").unlink()
        return path


def folder_of(root: Path) -> Path:
    """Where plans and reports of a data root are."""
    return root / WORK / TAKEDOWNS


def under_way(root: Path) -> Plan | None:
    """The takedown that was begun and has not ended; None without one."""
    try:
        return Plan(**json.loads((folder_of(root) / "plan.json").read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        path = folder_of(root) / "plan.json"
        raise GristmillError(
            f"{path}: is damaged ({error}): remove it, and name the rows again"
        ) from error


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


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    with suppress(FileNotFoundError):
        hidden.unlink()
    with os.fdopen(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
