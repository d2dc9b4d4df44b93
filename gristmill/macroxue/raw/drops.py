"""Runs of a drop, and what becomes of other files. Source: docs/formats/macroxue.md#discovery."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from gristmill.contract import BadInput
from gristmill.families import Forgets, Unit
from gristmill.inbox.listing import Account
from gristmill.inbox.marks import is_mark, left_out_of, not_samples
from gristmill.macroxue.raw.step_files import STEPS, StepRun, find_steps, proposal, runs_of
from gristmill.printable import printable
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.lines import reads
from gristmill.untrusted.walk import Entry, list_files, unpack, visible_files

_PLAIN, _ZIPPED, _STEPS = b".meta.json", b".meta.json.gz", b".jsonl.gz"
_UNZIPPED: Final = b".jsonl"
_Parts = tuple[bytes, ...]
UNPAIRED: Final = {
    "unpaired_meta": "a meta without its .jsonl.gz",
    "unpaired_log": "a log without its .meta.json",
}
"""Files of a game that lacks the other one, by the kind of their warning."""


@dataclass(frozen=True)
class RunFiles:
    """The two raw files of one run (docs/formats/macroxue.md#run-files).

    folder: the drop folder, from which the files are opened. Default their own folders.
    """

    drop: str
    meta: Path
    steps: Path
    meta_name: str
    steps_name: str
    steps_size: int
    folder: Path | None = None
    links: LinkRule = REFUSE_LINKS

    source: ClassVar = "macroxue self-play logs"
    raw_place: ClassVar[Mapping[str, int]] = {}

    @property
    def key(self) -> list[Any]:
        """What tells the run from the other runs of its drop, and from one that was changed."""
        return [self.drop, self.meta_name, self.steps_size]

    def name_of(self, file: str) -> str:
        """The name in the drop of a file that an error names."""
        return self.meta_name if file == str(self.meta) else self.steps_name


AnyRun = RunFiles | StepRun


@dataclass(frozen=True)
class Drop:
    """The runs of one drop or several."""

    names: tuple[str, ...]
    runs: tuple[AnyRun, ...]
    notes: tuple[dict[str, str], ...]
    others: tuple[str, ...] = ()


def _utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _shown(parts: _Parts) -> str:
    return b"/".join(parts).decode("utf-8", "backslashreplace")


def _files(
    root: Path, links: LinkRule, notes: list[dict[str, str]], strange: list[_Parts]
) -> dict[_Parts, Entry]:
    """The regular files with UTF-8 names by the components of their paths."""

    def enter(folder: str) -> bool:
        name = os.fsencode(folder)
        if _utf8(name):
            return True
        notes.append({"kind": "name_not_utf8", "path": _shown((name,))})
        return False

    files = {}
    for entry in list_files(root, root=root, links=links, enter=enter):
        if entry.refusal is not None:
            raise BadInput(root / entry.name, entry.refusal)
        name = os.fsencode(entry.name)
        if _utf8(name):
            files[tuple(name.split(b"/"))] = entry
        elif name.endswith((_PLAIN, _ZIPPED)):
            notes.append({"kind": "name_not_utf8", "path": _shown((name,))})
        else:
            strange.append(tuple(name.split(b"/")))
    return files


def _is_hidden(parts: _Parts) -> bool:
    return any(part.startswith(b".") for part in parts)


def _find(root: Path, links: LinkRule) -> Drop:
    if found := find_steps(root, links):
        return Drop((found.name,), tuple(runs_of(found)), (), found.others)
    name = _shown((os.fsencode(root.resolve().name),))
    notes: list[dict[str, str]] = []
    runs: list[RunFiles] = []
    games: set[_Parts] = set()
    taken: set[_Parts] = set()
    forgotten: set[_Parts] = set()
    strange: list[_Parts] = []
    files = _files(root, links, notes, strange)
    # Tuples of bytes compare component by component, each as raw bytes
    # (docs/formats/macroxue.md#run-order).
    for parts in sorted(parts for parts in files if parts[-1].endswith((_PLAIN, _ZIPPED))):
        meta = root.joinpath(*map(os.fsdecode, parts))
        game = (*parts[:-1], parts[-1].removesuffix(b".gz").removesuffix(_PLAIN))
        if game in games:
            rule = "this game also has a .meta.json: one of the two is stale; remove that one"
            raise BadInput(meta, rule)
        games.add(game)
        steps = files.get((*parts[:-1], game[-1] + _STEPS))
        if steps is None:
            notes.append({"kind": "unpaired_meta", "path": _shown(parts)})
            continue
        path, size = root / steps.name, steps.stat.st_size
        if not links.forgotten.keys().isdisjoint((meta, path)):
            forgotten |= {parts, (*parts[:-1], game[-1] + _STEPS)}
            continue
        runs.append(RunFiles(name, meta, path, _shown(parts), steps.name, size, root, links))
        taken |= {parts, (*parts[:-1], game[-1] + _STEPS)}
    others = {*strange, *files} - taken - forgotten
    for parts in filter(files.__contains__, others):
        if parts[-1].endswith(_STEPS) and not _is_hidden(parts):
            notes.append({"kind": "unpaired_log", "path": _shown(parts)})
    noted = {note["path"] for note in notes}
    left = not_samples(root, (name for run in runs for name in (run.meta_name, run.steps_name)))
    runs = [run for run in runs if not {run.meta_name, run.steps_name} <= left.keys()]
    notes.sort(key=lambda note: note["path"])
    return Drop(
        (name,),
        tuple(runs),
        tuple({"drop": name, **note} for note in notes),
        tuple(sorted({_shown(parts) for parts in others if not _is_hidden(parts)} - noted)),
    )


def find_runs(drops: Path | Sequence[Path], links: LinkRule = REFUSE_LINKS) -> Drop:
    """Find the runs of one drop folder, or of several in the given order.

    A run is a regular file `*.meta.json` or `*.meta.json.gz` with a `.jsonl.gz` of the same stem
    next to it. Metas and logs without partner, and names that are not UTF-8, are noted.
    """
    roots = [Path(drops)] if isinstance(drops, str | Path) else list(map(Path, drops))
    resolved = [root.resolve() for root in roots]
    for i, folder in enumerate(resolved):
        if not folder.is_dir():
            raise BadInput(roots[i], "no such folder of raw drops")
        for other in (*resolved[:i], *resolved[i + 1 :]):
            if folder == other or other in folder.parents:
                rule = f"equals {other.name} or lies in it: its games would be packed twice; name"
                raise BadInput(roots[i], f"{rule} each folder once")
    each = [_find(root, links) for root in roots]
    return Drop(
        tuple(drop.names[0] for drop in each),
        tuple(run for drop in each for run in drop.runs),
        tuple(note for drop in each for note in drop.notes),
        tuple(name for drop in each for name in drop.others),
    )


def raw_files(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a drop that can change its pack; metas and logs without partner are last."""
    if steps := find_steps(drop, links):
        return [drop / name for name in steps.taken]
    content = find_runs(drop, links)
    paired = [drop / name for run in content.runs for name in (run.meta_name, run.steps_name)]
    return [*paired, *(drop / note["path"] for note in content.notes if note["kind"] in UNPAIRED)]


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a drop, by names alone."""
    if steps := find_steps(drop, links):
        return steps.account()
    found = find_runs(drop, links)
    left_out = {note["path"]: UNPAIRED.get(note["kind"], _NOT_UTF8) for note in found.notes}
    unzipped = set()
    for name in found.others:
        if is_mark(name) or name == FILE:
            continue
        low = name.lower()
        # With its ending in lower case it would be of a game.
        is_capital = low.endswith(_ENDINGS) and not name.endswith(_ENDINGS)
        left_out[name] = _CAPITALS if is_capital else _REPACK if low.endswith(_PACKED) else _OTHER
        stem = name.removesuffix(os.fsdecode(_UNZIPPED))
        for meta in (f"{stem}{os.fsdecode(ending)}" for ending in (_PLAIN, _ZIPPED)):
            if name != stem and meta in left_out:
                left_out[name] = left_out[meta] = "a log that is not zipped"
                unzipped.add(name)
    if not found.runs:
        if text := proposal(drop, links):
            raise BadInput(drop, f"{_BY_STEPS}:\n{text}")
        raise BadInput(drop, _no_game(sorted(unzipped), left_out))
    taken = [name for run in found.runs for name in (run.meta_name, run.steps_name)]
    return Account({"": taken}, left_out | left_out_of(drop, taken))


_NOT_UTF8: Final = "a name that is not UTF-8"
_OTHER: Final = "no file of a game"
_CAPITALS: Final = "an ending in capitals: rename it"
_ENDINGS: Final = tuple(map(os.fsdecode, (_PLAIN, _ZIPPED, _STEPS)))
_PACKED: Final = (".7z", ".bz2", ".rar", ".tar", ".tar.gz", ".tgz", ".xz", ".zip", ".zst")
_TABLES: Final = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".jsonl", ".json")
_REPACK: Final = "packed in a form that is not read: unpack it, and `gzip` each log"
_NEEDED: Final = "it needs a `.meta.json` or `.meta.json.gz` with a `.jsonl.gz` next to it"
_BY_STEPS: Final = (
    f"no game in it, but steps of another program: write a file {STEPS} beside them, with the"
    " columns that mean the fields of a pack, as these do by their names"
)


def _no_game(unzipped: Sequence[str], left_out: Mapping[str, str]) -> str:
    """Why a drop without a game is refused, and what to do."""
    rule = f"no game in it: {_NEEDED}"
    if unzipped:
        return f"{rule}; {unzipped[0]} is not zipped: `gzip` it ({len(unzipped):,} such files)"
    if any(name.lower().endswith(_TABLES) for name in left_out):
        steps = "need named columns in steps*.npy in the drop itself"
        return f"{rule}; boards of 2048 of other programs {steps}, and {STEPS}"
    if left_out:
        name = min(left_out)
        return f"{rule}; {printable(name)}: {left_out[name]}"
    return rule


_FORGOTTEN: Final = (".jsonl.gz", ".meta.json")
_SHOWN: Final = 1 << 12


def forgets() -> Forgets:
    """How logs are forgotten."""
    return Forgets(_units)


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    for name in visible_files(drop):
        ending = next((each for each in _FORGOTTEN if name.endswith(each)), None)
        if ending is None:
            continue
        digest, begin = hashlib.sha256(), b""
        with open_file(drop / name, root=drop) as file:
            for part in unpack(file, drop / name, "gz") if ending.endswith("gz") else reads(file):
                digest.update(part)
                begin += part[: max(_SHOWN - len(begin), 0)]
        # Numbers are not looked for: lists of a file have its sum.
        own = {"begin": begin.decode("utf-8", "replace"), "sum": list(digest.digest())}
        yield Unit(name, 0, name.rpartition("/")[2].removesuffix(ending), own)
