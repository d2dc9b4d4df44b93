"""Raw drops: finding runs in a folder, and their order.

See also `gzip_files.py`: the texts of their files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import BadInput
from gristmill.inbox.sample_mark import not_samples
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import Entry, list_files

_PLAIN, _ZIPPED, _STEPS = b".meta.json", b".meta.json.gz", b".jsonl.gz"


@dataclass(frozen=True)
class RunFiles:
    """The two raw files of one run (docs/formats/macroxue.md#run-files).

    drop: name of the drop folder.
    meta, steps: paths of the meta file and the steps file.
    meta_name, steps_name: their POSIX paths relative to the drop.
    steps_size: bytes of the zipped steps file.
    folder: the drop folder; the files are opened from it. Default their own folders.
    links: what happens to links in it; default: they are refused.
    """

    drop: str
    meta: Path
    steps: Path
    meta_name: str
    steps_name: str
    steps_size: int
    folder: Path | None = None
    links: LinkRule = REFUSE_LINKS


@dataclass(frozen=True)
class Drop:
    """The runs of one drop or several.

    names: of the drop folders, in the given order.
    runs: in run order (docs/formats/macroxue.md#run-order).
    notes: what was left out and why, by path; lines of warnings.jsonl.
    """

    names: tuple[str, ...]
    runs: tuple[RunFiles, ...]
    notes: tuple[dict[str, str], ...]


def _utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _shown(parts: tuple[bytes, ...]) -> str:
    return b"/".join(parts).decode("utf-8", "backslashreplace")


def _files(
    root: Path, links: LinkRule, notes: list[dict[str, str]]
) -> dict[tuple[bytes, ...], Entry]:
    """The regular files with UTF-8 names by the components of their paths.

    Raises BadInput for any other entry, OSError where a folder cannot be read.
    """

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
    return files


def _stem(name: bytes) -> bytes:
    return name.removesuffix(_ZIPPED) if name.endswith(_ZIPPED) else name.removesuffix(_PLAIN)


def _find(root: Path, links: LinkRule) -> Drop:
    name = _shown((os.fsencode(root.resolve().name),))
    notes: list[dict[str, str]] = []
    runs = []
    games: set[tuple[bytes, ...]] = set()
    files = _files(root, links, notes)
    # Tuples of bytes compare component by component, each as raw bytes
    # (docs/formats/macroxue.md#run-order).
    for parts in sorted(parts for parts in files if parts[-1].endswith((_PLAIN, _ZIPPED))):
        meta = root.joinpath(*map(os.fsdecode, parts))
        game = (*parts[:-1], _stem(parts[-1]))
        if game in games:
            raise BadInput(
                meta, "this game also has a .meta.json: one of the two is stale; remove that one"
            )
        games.add(game)
        steps = files.get((*parts[:-1], game[-1] + _STEPS))
        if steps is None:
            notes.append({"kind": "unpaired_meta", "path": _shown(parts)})
            continue
        path, size = root / steps.name, steps.stat.st_size
        runs.append(RunFiles(name, meta, path, _shown(parts), steps.name, size, root, links))
    left = not_samples(root, (name for run in runs for name in (run.meta_name, run.steps_name)))
    runs = [run for run in runs if not {run.meta_name, run.steps_name} <= left.keys()]
    notes.sort(key=lambda note: note["path"])
    return Drop((name,), tuple(runs), tuple({"drop": name, **note} for note in notes))


def find_runs(drops: Path | Sequence[Path], links: LinkRule = REFUSE_LINKS) -> Drop:
    """Find the runs of one drop folder, or of several in the given order.

    drops: folder or folders, walked recursively. They may themselves be links.
    links: what happens to links in them; default: they are refused.

    A run is a regular file `*.meta.json` or `*.meta.json.gz` with a `.jsonl.gz` of the same stem
    next to it. Meta files without partner, and names that are not UTF-8, are left out and noted.

    Raises BadInput where a folder is missing, equals or contains another one, has a game with
    both spellings of a meta file, or holds a link, pipe, socket or device. Raises OSError where a
    folder cannot be read.
    Source: docs/formats/macroxue.md#discovery and docs/formats/macroxue.md#both-meta-spellings.
    """
    roots = [Path(drops)] if isinstance(drops, str | Path) else list(map(Path, drops))
    resolved = [root.resolve() for root in roots]
    for i, folder in enumerate(resolved):
        if not folder.is_dir():
            raise BadInput(roots[i], "no such folder of raw drops")
        for other in (*resolved[:i], *resolved[i + 1 :]):
            if folder == other or other in folder.parents:
                raise BadInput(
                    roots[i],
                    f"equals {other.name} or lies in it: its games would be packed twice; name"
                    " each folder once",
                )
    each = [_find(root, links) for root in roots]
    return Drop(
        tuple(drop.names[0] for drop in each),
        tuple(run for drop in each for run in drop.runs),
        tuple(note for drop in each for note in drop.notes),
    )


def raw_files(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a drop that can change its pack.

    drop: one drop folder.
    links: what happens to links in it; default: they are refused.

    Returns both files of each run, then the meta files without partner. Raises as `find_runs`.
    """
    content = find_runs(drop, links)
    paired = [file for run in content.runs for file in (run.meta, run.steps)]
    unpaired = [drop / note["path"] for note in content.notes if note["kind"] == "unpaired_meta"]
    return [*paired, *unpaired]


def refusal(folder: Path, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Why a drop that has settled cannot be packed, by its file names alone; None if it can.

    folder: one drop folder.
    links: what happens to links in it; default: they are refused.

    Raises OSError where it cannot be read.
    """
    try:
        if find_runs(folder, links).runs:
            return None
    except BadInput as error:
        return str(error)
    return "no game in it: it needs a `.meta.json` or `.meta.json.gz` with a `.jsonl.gz` next to it"
