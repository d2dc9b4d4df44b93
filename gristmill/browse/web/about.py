"""What pages say of artifacts beside their rows: state, lineage, checks."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from gristmill import provenance
from gristmill.browse.source import OF_CONTENTS
from gristmill.browse.table import SECONDS
from gristmill.contract import GristmillError
from gristmill.provenance import find_artifacts
from gristmill.provenance.list_artifacts import CURRENT, list_artifacts
from gristmill.provenance.raw_inputs import drop_of

_FRESH: Final = 10.0
"""Seconds, and times of what it took, after which states are looked at again."""

Key = tuple[str, str]
"""An artifact: the path of its folder below the root of the pages, and its partition or ""."""


class Near(NamedTuple):
    """An artifact, or a drop, beside another one in the lineage. key: None for no page of it."""

    asset: str
    partition: str
    key: Key | None = None


@dataclass(frozen=True)
class Known:
    """What is known of all artifacts below a root.

    states: state and reason, as `gristmill ls` says them. made_from, made_into: the lineage.
    error: why states are not known.
    """

    states: Mapping[Key, tuple[str, str]] = field(default_factory=dict)
    made_from: Mapping[Key, Sequence[Near]] = field(default_factory=dict)
    made_into: Mapping[Key, Sequence[Near]] = field(default_factory=dict)
    error: str = ""

    def sums(self, keys: Iterable[Key]) -> list[tuple[str, int]]:
        """How many of some artifacts are current, and how many are not."""
        found = (self.states[key][0] == CURRENT for key in keys if key in self.states)
        return sorted(Counter("current" if each else "out of date" for each in found).items())


class Standing:
    """The states and the lineage of all artifacts below a root, looked at in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._known: Known | None = None
        self._again = 0.0

    def known(self) -> Known | None:
        """What is known; the first time it waits for it, for two seconds at most: then None."""
        with self._lock:
            is_due = self._thread is None or not self._thread.is_alive()
            if is_due and time.monotonic() >= self._again:
                self._thread = threading.Thread(target=self._look, daemon=True)
                self._thread.start()
        if self._known is None and self._thread is not None:
            self._thread.join(SECONDS)
        return self._known

    def _look(self) -> None:
        from gristmill.data_root.states import DropStates

        begin = time.monotonic()
        try:
            listed = list_artifacts(self._root, state_of=lambda above: DropStates(above).of)
            states = {
                (self._below(Path(each.folder)), each.partition or ""): (each.state, each.why)
                for each in listed
            }
            self._known = Known(states, *self._lineage())
        except (GristmillError, *OF_CONTENTS) as error:
            self._known = Known(error=" ".join(str(error).split()))
        end = time.monotonic()
        self._again = end + _FRESH * max(1.0, end - begin)

    def _below(self, folder: Path) -> str:
        return folder.relative_to(self._root).as_posix() if folder != self._root else ""

    def _lineage(self) -> tuple[dict[Key, list[Near]], dict[Key, list[Near]]]:
        before, after = dict[Key, list[Near]](), dict[Key, list[Near]]()
        for item, record, inputs in find_artifacts.readable(find_artifacts.artifacts(self._root)):
            own = Near(record.asset, record.partition or "")
            own = own._replace(key=(self._below(item.folder), own.partition))
            root, given = item.data_root(record) or self._root, dict[Near, None]()
            for each in inputs:
                path = root / (each.path or "")
                if each.data_version is None:
                    drop = drop_of(root, path) if each.is_of_drop else None
                    name = each.path if drop is None else drop.relative_to(root).as_posix()
                    given[Near("", name or each.asset or "")] = None
                    continue
                near = Near(each.asset or "", each.partition or "")
                if path.is_relative_to(self._root):
                    near = near._replace(key=(self._below(path), near.partition))
                    after.setdefault(near.key or ("", ""), []).append(own)
                given[near] = None
            before[own.key or ("", "")] = list(given)
        return before, after


def checks(root: Path, record: provenance.Record) -> list[tuple[str, str, str]]:
    """The checks that looked at an artifact: name, what was found, and `ok`, `note` or `bad`.

    root: the data root. Where none noted anything, the notes of the laws are those of the record.
    """
    from gristmill.data_root.states import subject_of, verdicts

    found = [
        (name, problem, ("note" if warns else "bad") if problem else "ok")
        for name, problem, warns in verdicts(
            root, record.asset, subject_of(record), record.data_version
        )
    ]
    if not any(severity == "note" for *_, severity in found) and record.notes is not None:
        found += [(each.law, f"{each.where}: {each.found}", "note") for each in record.notes.named]
    return found
