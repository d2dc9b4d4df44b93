"""The tables and side files of `macroxue/pack`: runs, session, trace, warnings, quarantine."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, FileNote
from gristmill.macroxue.builders.pack_parts import Part
from gristmill.macroxue.format.jsonl import json_text, write_lines
from gristmill.macroxue.format.metadata_db import Run, signed64
from gristmill.macroxue.raw.drops import AnyRun, Drop
from gristmill.macroxue.raw.run_facts import Names
from gristmill.printable import printable

_CURE: Final = "mend these files, or take their games out of the drop"
_MOST_RULES: Final = 20


def _named(entry: Mapping[str, Any]) -> str:
    line = "" if entry["row"] is None else f" line {entry['row']}"
    return f"{entry['file']}{line}: {entry['rule']}"


class Ledger:
    """The facts of all runs, collected part by part; its memory grows with runs, not with rows.

    It also gives run ids, first rows and valuation types their final values.
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
        # 0.29 * 100 is below 29 in binary fractions.
        self._most = math.floor(quarantine_share * len(drop.runs) + 1e-9)
        self._depths: list[int | None] = []
        self._seconds: list[float | None] = []
        for note in drop.notes:
            self._warn(note)

    @property
    def runs(self) -> int:
        """Number of runs that were kept so far; also the id of the next run."""
        return len(self.run_table)

    def _warn(self, note: dict[str, Any]) -> None:
        self.warnings.append(note)
        self.noted[note["kind"]] += 1

    def add(
        self, part: Part, summary: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8] | None]:
        """Add the counts and lines of a part; parts come in order.

        Returns what `_copy_rows` of `pack.py` takes: ids uint32 and kinds uint8. Raises BadInput
        where more runs are set aside than `quarantine_share` allows.
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

    def _set_aside(self, files: AnyRun, entry: Mapping[str, Any]) -> None:
        self.quarantine.append(
            {"drop": files.drop, "meta": files.meta_name, "steps": files.steps_name, **entry}
        )
        if len(self.quarantine) > self._most:
            raise BadInput(
                self._where,
                f"{len(self.quarantine)} of {len(self._drop.runs)} runs are bad and"
                f" quarantine_share allows {self._most}; the last is {_named(entry)}; {_CURE}, or"
                " raise quarantine_share",
            )

    def check_rows(self) -> None:
        """Raise BadInput where no run was kept, whatever quarantine_share allows, or no row."""
        if not self.runs:
            bad = self.quarantine
            last = _named(bad[-1])
            rule = f"none of its {len(bad)} runs can be read; the last is {last}; {_CURE}"
            raise BadInput(self._where, rule)
        if self.rows == 0:
            raise BadInput(self._where, f"{self.runs} runs, but no step in any of them")

    def quarantined_by_rule(self) -> dict[str, int]:
        """Runs that were set aside by the rule that they break, the most frequent rules first."""
        rules = Counter(printable(entry["rule"]) for entry in self.quarantine)
        counted = dict(rules.most_common(_MOST_RULES))
        others = len(self.quarantine) - sum(counted.values())
        return counted | ({"other rules": others} if others else {})

    def _keep(self, files: AnyRun, entry: Mapping[str, Any], names: list[str]) -> None:
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
                **files.raw_place,
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
        """Sum of the metas' seconds, correctly rounded; the largest float64 if it is above it."""
        try:
            return math.fsum(value for value in self._seconds if value is not None)
        except OverflowError:
            return sys.float_info.max

    def session(self, extras: Mapping[str, str]) -> dict[str, str]:
        """The table `session` with the keys of docs/formats/macroxue.md#session-keys."""
        keys = {
            "source": ", ".join(sorted({run.source for run in self._drop.runs})),
            "drop": ",".join(self._drop.names),
            "drops": json_text(self._drop.names),
            "depth": json_text(sorted({depth for depth in self._depths if depth is not None})),
            "seconds": json_text(self.seconds()),
            "runs_depth": json_text(self._depths),
            "runs_seconds": json_text(self._seconds),
        }
        if taken := keys.keys() & extras.keys():
            raise ValueError(f"session keys {sorted(taken)} are reserved for the pack: rename them")
        return keys | dict(extras)

    def write_notes(self, out: Path) -> dict[str, FileNote]:
        """Write trace.jsonl, and warnings.jsonl and quarantine.jsonl if they have lines."""
        notes = {}
        for name, lines in (
            ("trace.jsonl", self.trace),
            ("warnings.jsonl", self.warnings),
            ("quarantine.jsonl", self.quarantine),
        ):
            if lines:
                write_lines(out / name, lines)
                notes[name] = FileNote(rows=len(lines))
        return notes
