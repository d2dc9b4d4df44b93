"""What an inbox holds: folders or files as drops, and the partition key of each."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, kind_refusal, real_path


@dataclass(frozen=True)
class Shape:
    """What one drop is in an inbox: a folder, or a file with one of these endings.

    endings: of file names; none where a drop is a folder.
    folders: whether a folder is a drop, too, where there are endings; its key is its name.
        Default False.
    key_in: finds the key in a file's name, or returns None, and the file is
        refused. Default None: the key is the name without its ending.
    any_case: whether endings may have capitals; default False.
    reserved: names of entries that are no drops and are left out, as folders that a family has
        in its inbox for other files.
    """

    endings: tuple[str, ...] = ()
    key_in: Callable[[str], str | None] | None = None
    any_case: bool = False
    reserved: tuple[str, ...] = ()
    folders: bool = False

    @property
    def settles(self) -> str:
        """When a drop of this shape has arrived, in words."""
        folder = (
            "A folder whose files keep names, sizes and times for settle_seconds, or for two "
            "looks if it holds .done or SHA256SUMS,"
        )
        if not self.endings:
            return folder
        named = " or ".join(self.endings)
        file = (
            f"A {named} file that keeps size and time for settle_seconds, or for two looks if "
            "NAME.done or NAME.sha256 is beside it,"
        )
        return f"{file} or {folder[0].lower()}{folder[1:]}" if self.folders else file

    def key(self, entry: os.DirEntry[str]) -> str:
        """The partition key of an entry."""
        return self.key_of(entry.name)

    def key_of(self, name: str) -> str:
        """The partition key of an entry by its name."""
        if self.folders and not self.ending_of(name):
            return name
        if self.key_in is not None:
            return self.key_in(name) or name
        return name[: len(name) - len(self.ending_of(name))]

    def keys_in(self, text: str, name: str) -> list[str]:
        """The keys in a list: one a line, or the name of a drop or a link to it.

        text: empty lines and lines that begin with `#` are skipped. name: of the list, for errors.

        Raises BadInput for a line that names none, and for a list without keys.
        """
        found: dict[str, None] = {}
        for number, line in enumerate(text.splitlines(), 1):
            entry = line.strip()
            if not entry or entry.startswith("#"):
                continue
            key = self.key_of(entry.partition("?")[0].rpartition("/")[2])
            if reason := keys.refusal(key):
                raise BadInput(name, f"{reason}: write one partition a line", number)
            found[key] = None
        if not found:
            raise BadInput(name, "has no partition: write one a line")
        return list(found)

    def ending_of(self, name: str) -> str:
        """The ending of a name as it is written; empty where it is none of `endings`."""
        known = name.lower() if self.any_case else name
        ending = next((each for each in self.endings if known.endswith(each)), "")
        return name[len(name) - len(ending) :]

    def refusal(self, entry: os.DirEntry[str], links: LinkRule = REFUSE_LINKS) -> str | None:
        """Why this entry is no drop, whatever it contains; None where it is one.

        links: what happens to an entry that is a link; default: it is refused.

        Raises OSError where its kind cannot be read.
        """
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode) and links.follow:
            try:
                path = Path(entry.path)
                mode = real_path(path, root=path.parent, links=links).lstat().st_mode
            except BadInput as error:
                return error.rule
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return kind_refusal(mode)
        if not self.endings:
            if not stat.S_ISDIR(mode):
                return "a drop is a folder: put the files into one"
        elif self.folders and stat.S_ISDIR(mode):
            if ending := self.ending_of(entry.name):
                return f"is a folder, and its name ends in {ending}: give it another name"
        elif not (stat.S_ISREG(mode) and self.ending_of(entry.name)):
            return f"only files that end in {' or '.join(self.endings)} belong here"
        elif self.key_in is not None and self.key_in(entry.name) is None:
            return "its name does not say which partition it is"
        return keys.refusal(self.key(entry))


FOLDER = Shape()
TOML = Shape((".toml",))
