"""The cache of versions that readers of this host fetched from mirrors.

Each set of versions that was opened has a data root of its own in the cache, named by what is in
it. It is filled by a pull, under a lock, and not changed afterwards, so a reader keeps its
generation whatever is pushed later. Source: `docs/mirror.md#readers`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.keys import refusal
from gristmill.mirror import versions
from gristmill.mirror.layout import LAST, Place, Version, sha256_of, wrong_name
from gristmill.mirror.pulling import is_whole, pull
from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.versions import stale
from gristmill.provenance.inventory import Entry
from gristmill.publish import atomic_fs, locks

MIRROR: Final = "GRISTMILL_MIRROR"
"""Environment variable with the URL of the mirror of addresses that begin with `mirror://`."""

_FORM = re.compile(
    r"(?P<name>[^@#]+?)(@(?P<partition>[^@#/]+))?(#(?P<number>[^@#/]*))?(//(?P<inside>[^@#]+))?"
)
_SHOWN = "mirror://NAME[@PARTITION][#NUMBER][//INSIDE] or mirror+URL!NAME..."


CACHE: Final = "GRISTMILL_MIRROR_CACHE"
"""Environment variable with the folder of the cache; default `gristmill/mirror` in the user's."""
OFFLINE: Final = "GRISTMILL_MIRROR_OFFLINE"
"""Environment variable: where it is 1, the cache alone is read."""

_DIGITS: Final = 20
_DATA, _LOCK, _SET = "data", "lock", "versions.json"
_DAY: Final = 86_400
_REFUSED: Final = {errno.EROFS, errno.EACCES, errno.EPERM}

Versions = list[tuple[Entry, int]]
"""Artifact partitions with the number of a version."""


def cache_folder() -> Path:
    """The folder of the cache; it need not be there."""
    if named := os.environ.get(CACHE):
        return Path(named).absolute()
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above).absolute() / "gristmill/mirror"


def fetched(address: str) -> Path:
    """The local path of what an address names, fetched into the cache where it is not there.

    Of several processes of a host one fetches, and the others wait. Raises MirrorError for a text
    of another form, where the mirror cannot be read, has no such artifact or version, or, offline,
    where the cache does not have it or cannot be written; GristmillError where the fetch fails.
    A cache that cannot be written is read where it is whole.
    """
    wanted = parsed(address)
    of_mirror = cache_folder() / sha256_of(wanted.url.encode())[:_DIGITS]
    note = of_mirror / "names" / f"{sha256_of(_title(wanted).encode())[:_DIGITS]}.json"
    is_offline = os.environ.get(OFFLINE) == "1"
    chosen = _noted(note) if is_offline or wanted.number is not None else None
    if chosen is None and is_offline:
        raise MirrorError(f"{address}: is not in the cache {cache_folder()}, and {OFFLINE} is 1")
    if chosen is None:
        chosen = _chosen(Store(wanted.url, make=False), wanted, address)
    root = of_mirror / "sets" / _digest(chosen)
    try:
        with locks.locked(root / _LOCK, address, wait=True):
            if not _is_there(root / _DATA, chosen):
                if is_offline:
                    raise MirrorError(f"{address}: is not whole in the cache, and {OFFLINE} is 1")
                _fetch(root / _DATA, wanted.url, chosen)
            _write(note, root / _SET, chosen)
    except OSError as error:
        # Nothing fetches or prunes in a folder that refuses writes, so that no lock is needed.
        if error.errno not in _REFUSED or not _is_there(root / _DATA, chosen):
            raise MirrorError(
                f"{address}: cannot be put into the cache {cache_folder()}: {error.strerror}: "
                f"name a folder that can be written in {CACHE}"
            ) from error
    path = root / _DATA / wanted.artifact
    return path / wanted.inside if wanted.inside else path


def _title(wanted: Address) -> str:
    return f"{wanted.name}#{wanted.number or ''}"


def _chosen(store: Store, wanted: Address, address: str) -> Versions:
    """The versions that an address means now, by a listing of the mirror."""
    known = versions.numbers(store, wanted.artifact)
    if wanted.number is None:
        means = [place for place in known if versions.means(wanted.name, place.entry, "")]
        chosen = _fitting(store, {place: known[place][-1] for place in means})
    else:
        place = Place(Entry(wanted.artifact, wanted.partition))
        chosen = [(place.entry, wanted.number)] if wanted.number in known.get(place, ()) else []
    if chosen:
        return chosen
    if wanted.number is not None and known:
        listed = ", ".join(place.entry.title for place in list(known)[:5])
        raise MirrorError(
            f"{address}: there is no version {wanted.number} of {wanted.name} in {store.url}, "
            f"which has {listed}: a number is of one artifact or one partition"
        )
    if known or versions.numbers(store):
        raise MirrorError(f"{address}: there is no artifact {wanted.name} in {store.url}")
    raise MirrorError(f"{address}: {store.url} is no mirror, or an empty one: it has no version")


def _fitting(store: Store, newest: Mapping[Place, int]) -> Versions:
    """The newest versions, without nested ones that are of another data version of their outer."""
    artifacts = {place.entry.artifact: place for place in newest}
    read: dict[Place, Version] = {}
    for place in newest:
        above = [path.as_posix() for path in PurePosixPath(place.entry.artifact).parents]
        for each in (artifacts[path] for path in above if path in artifacts):
            for needed in (each, place):
                read[needed] = read.get(needed) or versions.read(store, needed, newest[needed])
    taken = {place.entry: version for place, version in read.items()}
    left_out = {place for place, version in read.items() if stale(version, taken)}
    return [(place.entry, number) for place, number in newest.items() if place not in left_out]


class _Chosen(Store):
    """A mirror of which only some versions are listed, so that a pull takes these."""

    def __init__(self, url: str, chosen: Versions) -> None:
        super().__init__(url, make=False)
        self._listed = [Place(entry).version(number) for entry, number in chosen]

    def keys(self, prefix: str) -> list[str]:
        """The keys of these versions that are below `prefix`."""
        return [key for key in self._listed if key.startswith(prefix)]


def _fetch(root: Path, url: str, chosen: Versions) -> None:
    for done in pull(root, _Chosen(url, chosen), replace=True):
        if done.error is not None:
            raise GristmillError(f"{url}: {done.title}: {done.error}")


def _is_there(root: Path, chosen: Versions) -> bool:
    """Whether all artifacts stand, with the sizes and times of their records."""
    for entry, _ in chosen:
        try:
            record = provenance.read_record(entry.record(root))
        except (GristmillError, OSError):
            return False
        if not is_whole(root / entry.artifact, record):
            return False
    return True


def _write(note: Path, described: Path, chosen: Versions) -> None:
    """Note which versions an address means, for openings without the mirror."""
    text = json.dumps([[entry.artifact, entry.partition, number] for entry, number in chosen])
    for path in (note, described):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(text)
        new.replace(path)  # its time is that of the last opening, by which `prune` goes


def _noted(note: Path) -> Versions | None:
    """What an address meant when it was opened last; None where that cannot be read."""
    try:
        listed = json.loads(note.read_text())
        found = [(Entry(artifact, partition), number) for artifact, partition, number in listed]
        is_right = all(
            type(number) is int and 0 < number <= LAST and wrong_name(entry) is None
            for entry, number in found
        )
    except (AttributeError, OSError, RecursionError, TypeError, ValueError):
        return None
    return found if is_right else None


def _digest(chosen: Versions) -> str:
    lines = (f"{entry.title} {number}\n" for entry, number in chosen)
    return sha256_of("".join(lines).encode())[:_DIGITS]


def sets(cache: Path) -> Iterator[Path]:
    """The folders of a cache that hold versions, each with a data root `data`."""
    yield from sorted(cache.glob("*/sets/*"))


def prune(cache: Path, days: float, now: float | None = None) -> list[Path]:
    """Remove what no reader opened by its address for some days, and return those folders.

    cache: as `cache_folder` gives it.
    days: since the last opening, at least 0; what was never whole counts as old.
    now: seconds since 1970; default the clock.

    What is being fetched stays. A reader that has a removed folder open reads on; a worker that
    opens it by its pickle afterwards fails. Raises ValueError for a number of days below 0.
    """
    if days < 0:
        raise ValueError(f"days {days}: must be at least 0")
    end, removed = (time.time() if now is None else now) - days * _DAY, []
    for folder in sets(cache):
        with suppress(locks.Busy), locks.locked(folder / _LOCK, folder.name):
            used = folder / _SET
            if not used.exists() or used.stat().st_mtime <= end:
                used.unlink(missing_ok=True)
                if (folder / _DATA).exists():
                    atomic_fs.remove_tree(folder / _DATA)
                    removed.append(folder)
    return removed


@dataclass(frozen=True)
class Address:
    """What an address names.

    partition: of a shared folder; None for all that is at or below the path.
    number: of the version; None for the newest.
    """

    url: str
    artifact: str
    partition: str | None = None
    number: int | None = None
    inside: str = ""

    @property
    def name(self) -> str:
        """The name that a pull takes."""
        return self.artifact + (f"@{self.partition}" if self.partition else "")


def parsed(text: str) -> Address:
    """The parts of an address.

    Raises MirrorError for a text of another form, and where GRISTMILL_MIRROR is needed and not set.
    """
    if text.startswith("mirror://"):
        url, rest = os.environ.get(MIRROR, ""), text.removeprefix("mirror://")
        if not url:
            raise MirrorError(f"{text}: set {MIRROR} to the URL of the mirror, as of a pull")
    else:
        url, mark, rest = text.removeprefix("mirror+").partition("!")
        if not (url and mark):
            raise MirrorError(f"{text}: is no address in a mirror: write {_SHOWN}")
    found = _FORM.fullmatch(rest)
    if found is None:
        raise MirrorError(f"{text}: is no address in a mirror: write {_SHOWN}")
    name, partition, number, inside = found.group("name", "partition", "number", "inside")
    keys = [*name.split("/"), *([partition] if partition else [])]
    if reason := next((reason for key in keys if (reason := refusal(key))), None):
        raise MirrorError(f"{text}: {reason}")
    if number is not None and not re.fullmatch(r"[1-9][0-9]{0,7}", number):
        raise MirrorError(f"{text}: the version {number!r} is no number from 1")
    if inside and any(part in ("", ".", "..") for part in inside.split("/")):
        raise MirrorError(f"{text}: {inside!r} is no path in the artifact")
    return Address(url, name, partition, int(number) if number else None, inside or "")
