"""What a pack tells beside its rows: run table, session, trace, warnings, quarantine.

The ledger takes the summaries of parts in order and settles what parts cannot
know: final run ids, first rows and valuation ids.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote
from gristmill.macroxue.build.pack_parts import Part
from gristmill.macroxue.format.metadata_db import Run, signed64
from gristmill.macroxue.raw.drops import Drop, RunFiles
from gristmill.macroxue.raw.read_run import Names

SOURCE = "macroxue self-play logs"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Ledger:
    """Grows with the number of runs, not of rows.

    run_table: rows of `runs`. trace, warnings, quarantine: lines of the files of
    these names. kinds: rows by valuation name. ranks: rows by max_rank. noted:
    warnings by kind.
    """

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
        # 0.29 of 100 runs are 29, whatever binary fractions make of it.
        self._most = math.floor(quarantine_share * len(drop.runs) + 1e-9)
        self._depths: list[int | None] = []
        self._seconds: list[float | None] = []
        for note in drop.notes:
            self._warn(note)

    @property
    def runs(self) -> int:
        """Runs kept so far; the next one's id."""
        return len(self.run_table)

    def _warn(self, note: dict[str, Any]) -> None:
        self.warnings.append(note)
        self.noted[note["kind"]] += 1

    def add(
        self, part: Part, summary: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8] | None]:
        """Add the counts and lines of a part.

        Returns maps for its rows' run_id (by place in the part) and valuation_type;
        None where the numbers are final already.

        Raises BadInput where more runs are set aside than allowed.
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

    def _set_aside(self, files: RunFiles, entry: Mapping[str, Any]) -> None:
        self.quarantine.append(
            {"drop": files.drop, "meta": files.meta_name, "steps": files.steps_name, **entry}
        )
        if len(self.quarantine) > self._most:
            raise BadInput(
                self._where,
                f"{len(self.quarantine)} of {len(self._drop.runs)} runs are bad and"
                f" quarantine_share allows {self._most}; the last is {entry['file']}"
                f" line {entry['row']}: {entry['rule']}",
            )

    def _keep(self, files: RunFiles, entry: Mapping[str, Any], names: list[str]) -> None:
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
        """Sum of the metas' seconds, correctly rounded whatever the order.

        The largest float64 where the sum is above that.
        """
        try:
            return math.fsum(value for value in self._seconds if value is not None)
        except OverflowError:
            return sys.float_info.max

    def session(self, extras: Mapping[str, str]) -> dict[str, str]:
        """Keys of the session table, and the publisher's own.

        source (text), drop (name of the drop's folder, of several joined by commas),
        drops (the same as a JSON list), depth (JSON list of the
        depths met), seconds (their sum), runs_depth and runs_seconds (JSON lists
        by run id, null where the meta has no such number).
        """
        keys = {
            "source": SOURCE,
            "drop": ",".join(self._drop.names),
            "drops": _json(self._drop.names),
            "depth": _json(sorted({depth for depth in self._depths if depth is not None})),
            "seconds": _json(self.seconds()),
            "runs_depth": _json(self._depths),
            "runs_seconds": _json(self._seconds),
        }
        if taken := keys.keys() & extras.keys():
            raise ValueError(f"session keys {sorted(taken)} are the packer's own")
        return keys | dict(extras)

    def write_notes(self, out: Path) -> dict[str, FileNote]:
        """Write trace.jsonl, and warnings.jsonl and quarantine.jsonl where not empty."""
        notes = {}
        for name, lines in (
            ("trace.jsonl", self.trace),
            ("warnings.jsonl", self.warnings),
            ("quarantine.jsonl", self.quarantine),
        ):
            if lines:
                _write_lines(out / name, lines)
                notes[name] = FileNote(rows=len(lines))
        return notes


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(_json(line) + "\n" for line in lines)
