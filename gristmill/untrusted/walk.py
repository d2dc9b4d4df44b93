"""All files of a drop, without following links: what each entry is, and why one is refused."""

from __future__ import annotations

import bz2
import lzma
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from gristmill.contract import BadInput, GristmillError, is_of_machine, os_reason
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

    root, links: as for `files.open_file`. Links to folders inside the drop are refused.
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


_READ_BYTES: Final = 1 << 18
_TEXT_BYTES: Final = 1 << 20
# One byte of zstd can unpack to 32 KiB, so small reads bound what one read unpacks to.
_ZSTD_READ_BYTES: Final = 1 << 10
# The largest that `zstd --long` packs with. Its memory is taken as far as there is text.
_ZSTD_WINDOW: Final = 1 << 31
_XZ_MEMORY: Final = 256 << 20
_MEMBERS: Final = 100_000
"""Members or frames of one file, at most."""
_BEGINS: Final = {
    "gzip": (b"\x1f\x8b",),
    "bzip2": (b"BZh",),
    "xz": (b"\xfd7zXZ\0",),
    # A frame, or one that is skipped.
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([at]) + b"\x2a\x4d\x18" for at in range(0x50, 0x60))),
}
_REPACKED: Final = {
    "xz": "pack it again with a smaller dictionary, as `xz -d | xz -6` does",
    "zstd": "pack it again with a smaller window, as `zstd -d --long=31 | zstd` does",
}


@dataclass(frozen=True)
class Rules:
    """What errors say of a file: {name} is the packing, {error} what its library says.

    many: {most} members or frames are exceeded; {parts} is what the packing calls them.
    memory: it needs too much memory; {repacked} says how to pack it again.
    behind: bytes behind a member are none; empty: the library says so.
    """

    many: str = "has more than {most:,} {parts}: pack it again"
    memory: str = "takes too much memory to unpack ({error}): {repacked}"
    dictionary: str = "needs a dictionary ({error}): pack it again without one"
    broken: str = "is broken {name} ({error}): get it again"
    cut: str = "ends in the middle of its {name} data: get it again"
    behind: str = "has bytes behind its {name} data that are none: pack it again"
    package: str = "zstandard"


class _Gzip:
    """A decompressor of one gzip member, with the face of those of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


def _xz() -> Any:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


_PACKINGS: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "gz": ("gzip", _Gzip),
    "bz2": ("bzip2", bz2.BZ2Decompressor),
    "xz": ("xz", _xz),
    "zst": ("zstd", _zstd),
}
"""By ending of the file: the name of the packing, and what makes a decompressor of one member."""


def unpack(file: BinaryIO, path: Path, ending: str, rules: Rules = Rules()) -> Iterator[bytes]:
    """Yield the text of all members of a packed file, in parts of 1 MiB or what one read gives.

    Raises BadInput for a damaged file, and for one with too many members; GristmillError where
    `.zst` is read without zstandard.
    """
    name, new = _PACKINGS[ending]
    parts, read_bytes, most = "members", _READ_BYTES, [_TEXT_BYTES]
    errors: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, lzma.LZMAError)
    if name == "zstd":  # a decompressor of it gives all text of a read
        parts, read_bytes, most = "frames", _ZSTD_READ_BYTES, []
        errors = (_zstd_error(path, rules), MemoryError)
    member, members = None, 0
    try:
        while data := file.read(read_bytes):
            while data:
                if member is None:
                    if members and most:
                        data = data.lstrip(b"\0")  # padding between members
                        if not data:
                            break
                    _check_begin(data, path, name, members, rules)
                    member, members = new(), members + 1
                    if members > _MEMBERS:
                        raise BadInput(path, rules.many.format(most=_MEMBERS, parts=parts))
                yield from _texts(member, data, *most)
                data = b""
                if member.eof:
                    data, member = member.unused_data, None
    except errors as error:
        if is_of_machine(error):
            raise
        raise _broken(path, name, error, rules) from error
    if member is not None or not members:
        raise BadInput(path, rules.cut.format(name=name))


def _texts(member: Any, data: bytes, *most: int) -> Iterator[bytes]:
    """What a member unpacks from `data`, in parts of `most` bytes where that is given."""
    yield member.decompress(data, *most)
    while most and not member.eof and (text := member.decompress(b"", *most)):
        yield text


def _zstd_error(path: Path, rules: Rules) -> type[Exception]:
    try:
        from zstandard import ZstdError
    except ImportError as error:
        rule = f"{path}: .zst needs zstandard: pip install {rules.package}"
        raise GristmillError(rule) from error
    return ZstdError


def _check_begin(data: bytes, path: Path, name: str, members: int, rules: Rules) -> None:
    """Raise BadInput for what does not begin as a member or frame."""
    if any(begin.startswith(data[: len(begin)]) for begin in _BEGINS[name]):
        return
    if not members:
        rule = f"is broken {name}, or none: give it the ending of what it is, or pack it again"
        raise BadInput(path, rule)
    if rules.behind:
        raise BadInput(path, rules.behind.format(name=name))


def _broken(path: Path, name: str, error: BaseException, rules: Rules) -> BadInput:
    """The error for what a decompressor does not take."""
    text = str(error).lower()
    rule = rules.broken
    if "memory" in text:
        rule = rules.memory
    elif "dictionary" in text:
        rule = rules.dictionary
    return BadInput(path, rule.format(name=name, error=error, repacked=_REPACKED.get(name, "")))
