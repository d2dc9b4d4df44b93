"""The states of a data root's drops, each judged once, for `gristmill ls` and `verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill import families, provenance
from gristmill.contract import GristmillError, Violation
from gristmill.data_root import DataRoot
from gristmill.inbox import READY, REFUSED, Judgement, Standing, present_drops
from gristmill.inbox.listing import Account
from gristmill.layout import DROPS
from gristmill.provenance import find_artifacts
from gristmill.provenance.list_artifacts import CURRENT, list_artifacts
from gristmill.provenance.raw_inputs import drop_of


class DropStates:
    """What the drops of a data root are now. Nothing is hashed."""

    def __init__(self, root: Path) -> None:
        self._lake = DataRoot(root)
        self._known: dict[Path, tuple[Judgement, Account | None]] = {}

    def of(self, drop: Path) -> tuple[Judgement, Account | None]:
        """The judgement of a drop, and its account; None where it has none.

        drop: an entry of an inbox. What is in no inbox, as a vocabulary, is ready.
        """
        if drop not in self._known:
            self._known[drop] = self._judged(drop)
        return self._known[drop]

    def idle(self) -> Iterator[Standing]:
        """Yield the drops that nothing is built from; the key is the path below `drops/`."""
        for inbox, kind in families.inboxes().items():
            found = present_drops(self._lake.inbox(inbox), self._lake.asked(inbox), kind.shape)
            for drop in found.out_of_order:
                yield Standing(f"{inbox}/{drop.key}", drop.state, drop.since, drop.reason)

    def is_taken(self, drop: Path) -> bool:
        """Whether something was built from a drop that is ready, and all of that is current."""
        below = f"{drop.relative_to(self._lake.root).as_posix()}"
        listed = list_artifacts(self._lake.root, state_of=lambda _: self.of)
        states = {item.state for item in listed if below in item.drops}
        return states == {CURRENT}

    def _judged(self, drop: Path) -> tuple[Judgement, Account | None]:
        kinds = families.inboxes()
        inbox = "/".join(drop.relative_to(self._lake.root / DROPS).parts[:-1])
        if inbox not in kinds or drop.name in kinds[inbox].shape.reserved:
            return Judgement(READY), None
        made = list[Account]()
        found = self._lake.judged(inbox, drop, made)
        return found, made[-1] if made else None


def of_artifacts(path: Path) -> tuple[list[Violation], list[str]]:
    """What is wrong with the drops that artifacts were made from, and notes on them."""
    states: dict[Path, DropStates] = {}
    drops: dict[Path, Path] = {}
    changes: dict[Path, str] = {}
    for item in find_artifacts.artifacts(path.absolute()):
        try:
            record = provenance.read_record(item.record_path)
            root = item.data_root(record)
            inputs = provenance.read_inputs(record, item.record_path) if root else []
        except (GristmillError, OSError, ValueError):
            continue  # reported by whoever verifies the record
        if root is None:
            continue
        raw = [given.path for given in inputs if given.path and given.data_version is None]
        drops |= {drop: root for path in raw if (drop := drop_of(root, root / path)) is not None}
        kind = families.kind_of_asset(record.asset)
        if kind is not None and (file := kind.file_of(root, record.partition)) is not None:
            drops[file] = root
            changes[file] = kind.change_of(file, root, record.config, raw)
    violations, notes = [], []
    for drop, root in drops.items():
        found, _ = states.setdefault(root, DropStates(root)).of(drop)
        if found.state == REFUSED:
            violations.append(Violation("drop", str(drop), f"is refused: {found.reason}"))
        elif found.reason:
            notes.append(f"{drop.relative_to(root)}: {found.line}")
        elif changes.get(drop):
            notes.append(changes[drop])
    return violations, notes
