"""Drops of conversations: their recipe, their files, and the partitions that they give."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, NothingToBuild
from gristmill.corpora.raw.chat.messages import Messages
from gristmill.corpora.raw.chat.recipe import Chat, read_chat_file
from gristmill.corpora.raw.drops import CORPUS, account_of
from gristmill.data_root import DataRoot
from gristmill.inbox.account import Account
from gristmill.printable import printable
from gristmill.settings.tables import Settings
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

INBOX: Final = "chat"
RAW, CONVERSATIONS = "chat/raw", "chat/conversations"
PLACE: Final = "chat/conversations"
"""Folder of the artifacts below the data root."""
_TEMPLATES: Final = (".jinja", ".jinja2", ".j2")
"""Endings of the templates that a recipe may name, which hold no rows."""


def chat_of(drop: Path, links: LinkRule = REFUSE_LINKS) -> Chat:
    """The recipe of a drop. Raises BadInput where it has none, or a wrong one."""
    if not os.path.lexists(drop / CORPUS):
        name = printable(drop.name)
        raise BadInput(
            drop,
            f'has no {CORPUS}: write one with schema = 1, kind = "chat", name = "{name}" and '
            'messages = "name of the column", or let `gristmill look` propose it',
        )
    chat = read_chat_file(drop / CORPUS, drop.name, links)
    try:
        Messages(chat)
    except ValueError as error:
        raise BadInput(drop / CORPUS, str(error)) from error
    return chat


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a drop. Raises BadInput for a drop that is refused."""
    chat = chat_of(drop, links)
    found = account_of(drop, chat.corpus, links, _TEMPLATES)
    count = len({name for names in found.taken.values() for name in names})
    if chat.is_synth and count < chat.shards:
        files = "1 file" if count == 1 else f"{count} files"
        cure = f"write shards = {count} into {CORPUS}, or divide the rows into more files"
        raise BadInput(drop, f"{files}: {chat.shards} shards need a file each: {cure}")
    return found


def keys_of(path: Path) -> list[str]:
    """The partitions that a drop gives. path: the drop, a folder that is not refused."""
    return chat_of(path, DataRoot(path.parents[2]).rules(INBOX)[0]).partitions


def files_of(root: DataRoot, partition: str) -> tuple[Path, Chat, dict[str, list[Path]], Account]:
    """The drop of a partition, its recipe, its files by split, and its account.

    Raises NothingToBuild where the drop is not there, GristmillError where it is refused,
    ValueError for a key that is none, or a number that the recipe does not give.
    """
    name, _, number = partition.rpartition("__")
    if not name or not number.isdecimal():
        raise ValueError(f"{partition!r} is no <name>__<two digits>")
    if not os.path.lexists(root.inbox(INBOX) / name):
        raise NothingToBuild(f"there is no drop drops/{INBOX}/{name}")
    folder, account = root.ready_drop(INBOX, name)
    chat = chat_of(folder, root.link_rule())
    if partition not in chat.partitions:
        raise ValueError(
            f"{partition}: the recipe of drops/{INBOX}/{name} has shards = {chat.shards}"
        )
    files = {split: [folder / each for each in names] for split, names in account.taken.items()}
    return folder, chat, files, account


def settings_of(root: DataRoot, partition: str) -> Settings:
    """What files give for a partition: the file of its drop, else the data root's."""
    drop = root.inbox(INBOX) / partition.rpartition("__")[0]
    return root.settings(CONVERSATIONS, drop if drop.is_dir() else None)


def available(root: DataRoot) -> Sequence[str]:
    """The partitions that the drops give, and those that are published, sorted."""
    dropped = {key for name in root.taken(INBOX) for key in keys_of(root.inbox(INBOX) / name)}
    return sorted(dropped | set(root.partitions_of(CONVERSATIONS, PLACE)))
