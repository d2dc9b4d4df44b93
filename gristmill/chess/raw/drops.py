"""A drop of chess, one file of a month: what it is by its ending, and the account of it.

Source: docs/formats/chess.md#drops
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from gristmill.chess.raw import collections
from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.endings import MONTH_ENDINGS, ending_in, ending_of
from gristmill.chess.raw.months import has_ended, month_in
from gristmill.chess.raw.unpack import begin_notes, check_begin, left_out_of, one_pgn, opened_zip
from gristmill.contract import BadInput
from gristmill.data_root import DataRoot
from gristmill.inbox.account import Account
from gristmill.inbox.marks import real_paths, samples_beside
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of a drop, and of the members of a ZIP, by its first bytes or its directory.

    drop: the file of a month, or the folder of a collection.
    links: what happens to links; default: they are refused.

    Raises BadInput for a drop that is refused; OSError where it cannot be read.
    """
    if not ending_in(drop.name, MONTH_ENDINGS) and drop.is_dir():
        return collections.account(drop, links)
    month = month_in(drop.name)
    if month is None or not has_ended(month, datetime.now(UTC)):
        raise BadInput(
            drop,
            f"{month or drop.name} is not a month that has ended, from 2020-06 on: put the month "
            "into the file's name, as lichess_elite_2024-01.zip, or put the games into a folder, "
            "which is a collection",
        )
    ending = ending_of(drop)
    left_out: dict[str, str] = {}
    if ending == ".zip":
        with (
            open_file(drop, root=drop.parent, links=links) as file,
            opened_zip(file, drop) as archive,
        ):
            size = os.fstat(file.fileno()).st_size
            members = left_out_of(archive, one_pgn(archive, drop, size, Limits()))
        left_out = {f"{drop.name}/{name}": reason for name, reason in members.items()}
    notes = begin_notes(drop.name, check_begin(drop, links, month=month))
    return Account({"": [drop.name]}, left_out | samples_beside(drop, month_in), notes)


def drop_of(root: DataRoot, month: str) -> Path | None:
    """The drop of a month, None where there is none.

    Raises BadInput if several files have the month in their names.
    """
    files = [path for path in _drops(root) if month_in(path.name) == month]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise BadInput(
            files[0].parent, f"{len(files)} files have the month {month}: {names}: keep one"
        )
    return files[0] if files else None


def available(root: DataRoot) -> list[str]:
    """The months and collections that need no download, sorted: with a drop, or a built PGN.

    A month whose drop is refused is one of them if its PGN is built: it fails, and the inbox says
    why of the others.
    """
    built = {item.folder.name for item in root.artifacts("chess/raw")}
    return sorted({*root.taken("chess"), *built})


def _drops(root: DataRoot) -> list[Path]:
    inbox = root.inbox("chess")
    by_month: dict[str | None, list[Path]] = {}
    for path in sorted(inbox.iterdir()) if inbox.is_dir() else []:
        if path.name.lower().endswith(MONTH_ENDINGS) and not path.name.startswith("."):
            by_month.setdefault(month_in(path.name), []).append(path)
    return sorted(path for files in by_month.values() for path in real_paths(files))
