"""`staged.json` and its journal, on a local disk. Source: `docs/formats/reasoning.md#staging`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.provenance.record import read_bytes, wrong_path

STAGED: Final = "staged.json"
JOURNAL: Final = "staging.jsonl"
"""Lines of a staging that is under way, or was killed; `staged.json` has them at its end."""
LOCK: Final = ".staging.lock"
SHARDS: Final = "shards"
ALIGNMENT: Final = "alignment"
"""Folders below the job's, laid out as those of the data root."""
VERSION: Final = 1


@dataclass(frozen=True)
class Entry:
    """One staged file.

    bytes: size. sha256: hex.
    own: whether staging put it there; False for a file that was there before, and is left there.
    """

    path: str
    bytes: int
    sha256: str
    own: bool = True


@dataclass(frozen=True)
class Staged:
    """What is staged for a job.

    alignment: the folder of the alignments, absolute; None where none was staged.
    manifest_sha256: of the bytes of its manifest.
    """

    job: str
    source: str
    alignment: str | None
    manifest_sha256: str
    world_size: int
    ranks: tuple[int, ...]
    corpora: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    entries: Mapping[str, Entry] = field(default_factory=dict)


def temporary(path: Path) -> Path:
    """Name of a file while it is copied."""
    return path.with_name(f".{path.name}.staging")


def write(folder: Path, staged: Staged) -> None:
    """Write `staged.json` in one step, and flush it."""
    entries = [asdict(entry) for _, entry in sorted(staged.entries.items())]
    value = {"version": VERSION, **asdict(staged), "entries": entries}
    path = folder / STAGED
    with temporary(path).open("wb") as file:
        file.write(json.dumps(value, indent=2).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary(path).replace(path)


def read(folder: Path) -> Staged | None:
    """What is staged in a job's folder; None where nothing was staged to the end.

    Raises BadInput where `staged.json` has another form, or leads out of the folder.
    """
    path = folder / STAGED
    try:
        value = json.loads(read_bytes(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no JSON: {error}: remove the folder by hand") from error
    try:
        if value.pop("version") != VERSION:
            raise BadInput(path, f"is not of version {VERSION}: remove the folder by hand")
        entries = {entry.path: entry for entry in map(_entry, value.pop("entries"))}
        value |= {name: tuple(value[name]) for name in ("ranks", "corpora", "splits")}
        staged = Staged(**value, entries=entries)
        if not all(type(rank) is int for rank in (*staged.ranks, staged.world_size)):
            raise TypeError("ranks")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            path, f"is not of the form of staged.json ({error!r}): remove the folder by hand"
        ) from error
    return staged


def refuse_missing(root: Path, paths: Iterable[str], rank: int, world_size: int) -> None:
    """Raise BadInput where a staged folder lacks shards that a reader needs, and say what it has.

    root: the folder of all shards; nothing is done for one that was not staged.
    """
    if not isinstance(root, Path) or root.name != SHARDS or (known := read(root.parent)) is None:
        return
    missing = next((path for path in paths if not (root / path).exists()), None)
    if missing is None:
        return
    ranks = f"rank{'' if len(known.ranks) == 1 else 's'} {', '.join(map(str, known.ranks))}"
    chosen = "".join(
        f", {name} {', '.join(some)}"
        for name, some in (("corpora", known.corpora), ("splits", known.splits))
        if some
    )
    raise BadInput(
        root / missing,
        f"is missing: staged for {ranks} of {known.world_size}{chosen}; opened as rank {rank} "
        f"of {world_size}: give the reader the same rank, world_size, corpora and splits, or stage "
        "what is missing",
    )


class Journal:
    """The journal of one staging: a line before each file is copied, and one after."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL

    def begin(self, path: str) -> None:
        """Note that a file is copied to its temporary name."""
        self._append({"path": path})

    def end(self, entry: Entry) -> None:
        """Note what a file is, before it gets its name."""
        self._append(asdict(entry))

    def mend(self) -> None:
        """Cut off a line that a kill left without its end."""
        with suppress(FileNotFoundError), self.path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)

    def read(self) -> tuple[set[str], dict[str, Entry]]:
        """The paths that were begun, and the files that were finished.

        A line that a kill cut off is left out.
        """
        try:
            lines = read_bytes(self.path).split(b"\n")[:-1]
        except FileNotFoundError:
            return set(), {}
        begun, ended = set(), {}
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                begun.add(_checked_path(value["path"]))
                if len(value) > 1:
                    ended[value["path"]] = _entry(value)
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                raise BadInput(self.path, f"is damaged: {error!r}", number) from error
        return begun, ended

    def close(self) -> None:
        """Remove the journal."""
        self.path.unlink(missing_ok=True)

    def _append(self, value: Mapping[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(value).encode() + b"\n")


def _entry(value: Any) -> Entry:
    """One entry. Raises TypeError or ValueError for another form."""
    entry = Entry(**value)
    kinds = {"path": str, "bytes": int, "sha256": str, "own": bool}
    for spec in fields(Entry):
        if type(getattr(entry, spec.name)) is not kinds[spec.name]:
            raise TypeError(spec.name)
    _checked_path(entry.path)
    return entry


def _checked_path(path: str) -> str:
    if (wrong := wrong_path(path)) is not None:
        raise ValueError(f"the path {path!r} {wrong}")
    return path
