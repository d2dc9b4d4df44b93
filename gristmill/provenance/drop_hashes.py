"""The sums of a drop's files that are known, so that none is hashed twice."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from gristmill import families
from gristmill.layout import DROPS, WORK
from gristmill.provenance import stamp_notes
from gristmill.provenance.stamp_notes import Stamp
from gristmill.untrusted.files import CLOCK_TICK_NS, REFUSE_LINKS, LinkRule, stat_file


class DropHashes:
    """The sums of one drop."""

    def __init__(self, root: Path, drop: Path) -> None:
        self._drop = drop
        name = "@".join(drop.relative_to(root / DROPS).parts)
        self._file = root / WORK / DROPS / f"{name}.json"

    @cached_property
    def _kept(self) -> dict[str, tuple[str, Stamp]]:
        split = ((key.partition(" "), stamp) for key, stamp in stamp_notes.read(self._file).items())
        return {name: (sha256, stamp) for (sha256, _, name), stamp in split}

    def known(self, name: str, stamp: Stamp) -> str | None:
        """The sha256 of a file that has this stamp; None where it is not known.

        name: its path in the drop; that of a drop that is a file is the file's name.
        """
        sha256, kept = self._kept.get(name, ("", None))
        return sha256 if kept == stamp else None

    def of_now(self, name: str, links: LinkRule = REFUSE_LINKS) -> str | None:
        """The sha256 of a file as it is on the disk; None where it is not known."""
        if name not in self._kept:
            return None
        path = self._drop / name if self._drop.is_dir() else self._drop
        found = stat_file(path, root=self._drop.parent, links=links)
        return self.known(name, stamp_notes.stamp_of(found))

    def keep(self, hashed: Mapping[str, tuple[str, Stamp]], *, is_own: bool = False) -> None:
        """Keep sums, with the stamps from before the files were hashed.

        hashed: sha256 and stamp by name, as for `known`.
        is_own: whether this process wrote the files; default False: the sum of a file that changed
            a moment ago is not kept.
        """
        latest = time.time_ns() - (0 if is_own else CLOCK_TICK_NS)
        new = {name: each for name, each in hashed.items() if is_own or each[1][4] < latest}
        if not new:
            return
        self.__dict__.pop("_kept", None)  # another process may have kept others meanwhile
        kept = {
            name: each
            for name, each in self._kept.items()
            if os.path.lexists(self._drop / name if name != self._drop.name else self._drop)
        }
        kept |= new
        self.__dict__["_kept"] = kept
        entries = {f"{sha256} {name}": stamp for name, (sha256, stamp) in kept.items()}
        stamp_notes.write(self._file, entries)


def drop_of(root: Path, path: Path) -> Path | None:
    """The drop that a raw file belongs to; None for a file outside of `drops/`."""
    parts = path.relative_to(root).parts
    if parts[0] != DROPS:
        return None
    # An inbox may be in another one, as `puzzles/recipes`.
    inboxes = {tuple(name.split("/")) for name in families.inboxes()}
    depth = max((len(each) for each in inboxes if parts[1 : len(each) + 1] == each), default=1)
    return root.joinpath(*parts[: depth + 2]) if len(parts) > depth + 1 else None


def name_in(drop: Path, path: Path) -> str:
    """The name of a file in a drop, as for `DropHashes.known`."""
    return drop.name if path == drop else path.relative_to(drop).as_posix()
