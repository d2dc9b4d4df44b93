"""All files of a drop, without following links: what each entry is, and why one is refused."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gristmill.contract import BadInput, os_reason
from gristmill.untrusted.files import (
    REFUSE_LINKS,
    LinkRule,
    hole_refusal,
    kind_refusal,
    open_folder,
    open_inner,
    stat_file,
)

_MOST_LEVELS = 64


class Entry(NamedTuple):
    """One entry of a drop that is no folder.

    name: POSIX path relative to the drop; bytes that are not UTF-8 as surrogates.
    refusal: why it is no regular file; None where it is one.
    folder_owner: user id of the folder that holds the entry; for a followed link of the target.
    """

    name: str
    stat: os.stat_result
    refusal: str | None
    folder_owner: int


def list_files(
    folder: Path,
    *,
    root: Path,
    links: LinkRule = REFUSE_LINKS,
    deep: bool = True,
    enter: Callable[[str], bool] = lambda _: True,
) -> Iterator[Entry]:
    """Yield every entry at and below a folder that is no folder itself, in no order.

    folder: the drop, `root` or below it. It may itself be a link if links are followed.
    root, links: as for `files.open_file`. Links to folders inside the drop are refused.
    deep: whether subfolders are listed too; default True.
    enter: takes the path of a subfolder relative to the drop, returns whether to list it;
        default: all are listed.

    An entry that vanishes meanwhile is yielded with a stat of zeros and no refusal.
    Raises BadInput for a folder that is a link or nested too deep, OSError where one
    cannot be read.
    """
    with open_folder(folder, root=root, links=links) as descriptor:
        yield from _listed(descriptor, "", folder, links, lambda inner: deep and enter(inner))


def _listed(
    descriptor: int, prefix: str, drop: Path, links: LinkRule, enter: Callable[[str], bool]
) -> Iterator[Entry]:
    if prefix.count("/") > _MOST_LEVELS:
        raise BadInput(drop / prefix, f"folders nested deeper than {_MOST_LEVELS} levels")
    owner = os.fstat(descriptor).st_uid
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = prefix + entry.name
            try:
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    if enter(name):
                        with open_inner(descriptor, entry.name) as inner:
                            yield from _listed(inner, f"{name}/", drop, links, enter)
                    continue
            except FileNotFoundError:
                yield Entry(name, os.stat_result((0,) * 10), None, owner)
                continue
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(drop / name)) from error
            refusal = kind_refusal(found.st_mode)
            if links.follow and stat.S_ISLNK(found.st_mode):
                found, refusal = _followed(drop / name, links, found)
                # The target is in a folder that the owner of the data root named.
                yield Entry(name, found, refusal, found.st_uid)
                continue
            refusal = refusal or hole_refusal(entry.name, descriptor, found)
            yield Entry(name, found, refusal, owner)


def _followed(
    path: Path, links: LinkRule, link: os.stat_result
) -> tuple[os.stat_result, str | None]:
    """The stat of a link's target, and why it is refused."""
    try:
        return stat_file(path, root=path.parent, links=links), None
    except BadInput as error:
        return link, error.rule
    except OSError as error:
        return link, f"is a link whose target cannot be read: {os_reason(error)}"


def visible_files(
    drop: Path, links: LinkRule = REFUSE_LINKS, besides: Collection[str] = ()
) -> dict[str, int]:
    """The bytes of the files of a drop and of the folders below it, by name, sorted.

    links: what happens to files that are links; default: they are refused.

    What is hidden is left out: files and folders whose name begins with a dot. Raises BadInput
    for a link, pipe, socket or device, and for a folder that cannot be read.
    """
    found = {}
    try:
        for entry in list_files(
            drop, root=drop, links=links, enter=lambda name: not is_hidden(name)
        ):
            if is_hidden(entry.name) or entry.name in besides:
                continue
            if entry.refusal is not None:
                raise BadInput(drop / entry.name, entry.refusal)
            if entry.stat.st_mode:  # else it vanished meanwhile
                found[entry.name] = entry.stat.st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(drop, f"cannot be read: {os_reason(error)}") from error
    return dict(sorted(found.items()))


def is_hidden(name: str) -> bool:
    """Return whether the last part of a path begins with a dot."""
    return name.rpartition("/")[2].startswith(".")


def hard_links(entries: Iterable[Entry]) -> tuple[dict[str, str], list[str]]:
    """Files with more names than the drop holds: (reasons of those refused by name, the others).

    A file is refused if it also belongs to another user than the folder it is in: someone may
    have linked a file into the drop that he cannot read himself.
    """
    files = [entry for entry in entries if entry.refusal is None and entry.stat.st_nlink > 1]
    names = Counter((entry.stat.st_dev, entry.stat.st_ino) for entry in files)
    refused: dict[str, str] = {}
    noted: list[str] = []
    for entry in files:
        found = entry.stat
        if found.st_nlink <= names[found.st_dev, found.st_ino]:
            continue
        if found.st_uid != entry.folder_owner:
            refused[entry.name] = (
                f"belongs to user {found.st_uid}, its folder to user {entry.folder_owner}, and it "
                "has other names (hard links) outside of the drop: copy the file"
            )
        else:
            noted.append(entry.name)
    return refused, noted
