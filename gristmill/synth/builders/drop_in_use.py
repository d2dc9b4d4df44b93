"""The drop that a data root's Harmony dataset is built from, by its settings.

See also `source.py`: which drops are complete, and which of several is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import ARRIVING, GONE, READY, REFUSED, UNREAD
from gristmill.inbox.account import Account, Unread
from gristmill.inbox.kind import IsThere
from gristmill.inbox.present import judged_now
from gristmill.synth.builders import source as sources
from gristmill.synth.builders.source import Source
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import LinkRule

HARMONY: Final = "synth/harmony"
RAW: Final = "synth/raw"


def raw_file_count(lake: DataRoot, folder: Path) -> int:
    """Returns how many raw files make a drop complete.

    folder: the drop; its own `gristmill.toml` comes before that of the data root.

    Raises BadInput if the settings are wrong.
    """
    return int(lake.settings(RAW, folder).get("files", raw.FILES))


def source_of(lake: DataRoot) -> Source:
    """Returns the drop that `synth_harmony/` is built from.

    lake: the data root.

    Raises NotReady if there is no drop, if none has arrived, or if several have and the settings
    name none of them; GristmillError with the reasons if one is refused and none is ready.
    """
    setting = lake.settings(HARMONY).get("drop")
    states = set()

    def files_of(folder: Path) -> int:
        found, _ = judged_now(folder, lake.asked(folder.parent.name, alone=True))
        states.add(found.state)
        if found.state != READY:
            named = "" if str(folder) in found.reason else f"{folder}: "
            raise GristmillError(f"{named}{found.reason}")
        return raw_file_count(lake, folder)

    try:
        return sources.chosen(lake.root / "drops", setting, files_of, lake.rules(sources.RAW)[0])
    except GristmillError as error:
        if REFUSED in states and READY not in states:
            raise
        state = UNREAD if READY in states else ARRIVING if states else GONE
        raise NotReady(state, str(error)) from error


def account(inbox: str) -> Callable[[Path, LinkRule], Account]:
    """Returns what makes the account of a drop of an inbox; it raises GristmillError for a refusal.

    inbox: `RAW` or `READY` of `source.py`.
    """

    def of_drop(drop: Path, links: LinkRule) -> Account:
        count = raw_file_count(DataRoot(drop.parents[2]), drop)
        return sources.account(Source(inbox, drop), count, links)

    return of_drop


def needs(drop: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Unread for a drop that is not the one in use.

    drop: that is not refused. root: the data root.
    """
    try:
        used = source_of(DataRoot(root))
    except GristmillError as error:
        raise Unread(str(error)) from error
    if used.folder != drop:
        raise Unread(
            f"{used.name} is the drop in use: to use this drop, name it in gristmill.toml as "
            "[synth.harmony] drop"
        )
