"""What a takedown is to do and has done: a file that a killed one continues with, and its report.

Source: `docs/takedowns.md#killed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.corpora.raw.forgotten import key_of
from gristmill.inbox.copying import write_whole
from gristmill.layout import WORK
from gristmill.run import locks
from gristmill.takedowns.search import normalised, octets_of

NAMED, LEFT_OUT, ERASED, REBUILT = "named", "left out", "erased", "rebuilt"
_PLAN: Final = "plan.json"
Facts = dict[str, Any]


@dataclass
class Plan:
    """A takedown: what it is to do, what is done (`state`), and what was found.

    rows: by drop, as `reasoning/gsm8k`, file, row and hash of each row that goes.
    texts: that are looked for. stays: place, file and row of rows that hold a text and stay.
    affected: what is built again: asset, partition, name, data version and bytes of each, after
        those that it is made from.
    holds, stands_still, stands_since_rows_stay: place, file, row and column of texts: before
        anything is done; and after it, where none should stand, and where rows stay.
    """

    drop: str
    reason: str
    erased: bool
    texts: list[str]
    texts_of_other_rows: int = 0
    rows: dict[str, list[Facts]] = field(default_factory=dict)
    stays: list[Facts] = field(default_factory=list)
    affected: list[Facts] = field(default_factory=list)
    holds: list[Facts] = field(default_factory=list)
    stands_still: list[Facts] = field(default_factory=list)
    stands_since_rows_stay: list[Facts] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    mirrored: list[str] = field(default_factory=list)
    not_reached: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    begun: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y%m%dT%H%M%S"))
    state: str = NAMED

    def keep(self, root: Path, state: str = NAMED) -> None:
        """Write the plan whole or not at all, in a state; only its owner reads it."""
        self.state = state
        write_whole(folder_of(root) / _PLAN, json.dumps(asdict(self)).encode(), 0o600)

    def report(self, root: Path) -> dict[str, Any]:
        """The plan as JSON says it to anybody: with keyed hashes in place of texts."""
        hash_of = partial(blake2b, key=key_of(root), digest_size=16)
        texts = [hash_of(octets_of(normalised(each))).hexdigest() for each in self.texts]
        return {"format": "gristmill.takedown", "version": 1, **asdict(self), "texts": texts}

    def end(self, root: Path, lines: Iterable[str]) -> Path:
        """Write the report, and remove the plan, which has the texts; returns the report's path."""
        path = folder_of(root) / f"{self.begun}.json"
        write_whole(path, json.dumps(self.report(root), indent=1).encode())
        write_whole(path.with_suffix(".txt"), "".join(f"{line}\n" for line in lines).encode())
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
