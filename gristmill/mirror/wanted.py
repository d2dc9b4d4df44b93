"""Which versions a pull takes: what names and numbers mean, and what belongs together.

Pulling them belongs to `pulling.py`. Source: `docs/mirror.md#pull`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.mirror import versions
from gristmill.mirror.layout import Place, Version, WrongVersion
from gristmill.mirror.store import MirrorError, Store
from gristmill.provenance.inventory import Entry


@dataclass(frozen=True)
class Wanted:
    """An artifact partition, and the version of it that a pull takes.

    version: None where it cannot be read.
    skipped: why the version is not taken, None where it is.
    error: why the version cannot be read, None where it can.
    """

    place: Place
    version: Version | None
    skipped: str | None = None
    error: str | None = None


def wanted_versions(
    store: Store,
    known: versions.Numbers,
    names: Sequence[str],
    number: int | None,
    sha256: str | None,
    threads: int,
) -> list[Wanted]:
    """The artifact partitions that names mean, each with the version that is asked for.

    Raises MirrorError as the store and where no version has the number or the sha256,
    GristmillError for a name that means nothing, and for one version of several artifacts.
    """
    is_newest = number is None and sha256 is None
    if not is_newest and len(names) == 1:
        name = names[0].strip("/")
        # The artifact itself, though others are nested in it; no other version need be right.
        for place in known:
            if place.entry.name == name:
                return [_of_number(store, place, known[place], number, sha256)]
    by_path = {
        place: numbers
        for place, numbers in known.items()
        if not names or any(versions.means(name.strip("/"), place.entry, "") for name in names)
    }
    found = {
        name
        for name in names
        if any(versions.means(name.strip("/"), place.entry, "") for place in by_path)
    }
    # Only the versions say which asset an artifact is of: they are read where a name is no path.
    has_assets = bool(set(names) - found)
    newest = versions.newest(store, known if has_assets else by_path, threads)
    items = [
        (place.entry, version.asset if isinstance(version, Version) else "", place)
        for place, version in newest.items()
    ]
    places = [place for _, _, place in versions.chosen(items, names, store.url)]
    if has_assets and is_newest:
        # What cannot be read may be of that asset.
        wrong = (place for place in newest if isinstance(newest[place], WrongVersion))
        places += [place for place in wrong if place not in places]
    if is_newest:
        read = ((place.entry, newest[place]) for place in places)
        taken = {entry: version for entry, version in read if isinstance(version, Version)}
        return [_newest(place, newest[place], taken) for place in places]
    if len(places) != 1:
        raise GristmillError(
            f"a version is of one artifact, and {len(places)} are asked for: name one"
        )
    return [_of_number(store, places[0], known[places[0]], number, sha256)]


def _of_number(
    store: Store, place: Place, numbers: Sequence[int], number: int | None, sha256: str | None
) -> Wanted:
    """The version of a number, with a sha256 where one is given, or the newest with the sha256."""
    if number is not None:
        version = versions.read(store, place, number)
        if sha256 not in (None, version.sha256):
            raise MirrorError(
                f"{store.url}: version {number} of {place.entry.title} has the sha256 "
                f"{version.sha256}, and {sha256} was asked for"
            )
        return Wanted(place, version)
    for each in reversed(numbers):
        with suppress(WrongVersion):
            version = versions.read(store, place, each)
            if version.sha256 == sha256:
                return Wanted(place, version)
    raise MirrorError(
        f"{store.url}: no version of {place.entry.title} has the sha256 {sha256}: `gristmill pull "
        f"{store.url} {place.entry.name} --list` lists what there is"
    )


def _newest(
    place: Place, version: Version | WrongVersion, taken: Mapping[Entry, Version]
) -> Wanted:
    if isinstance(version, Version):
        return Wanted(place, version, stale(version, taken))
    cure = "push it again, or pull an earlier one by --version"
    return Wanted(place, None, error=f"{version}: {cure}")


def stale(version: Version, taken: Mapping[Entry, Version]) -> str | None:
    """Why a nested version does not belong into what is taken with it, None where it does.

    taken: the versions that are taken, by artifact partition.
    """
    outer = None if version.outer is None else taken.get(Entry(version.outer.artifact))
    if version.outer is None or outer is None:
        return None
    if version.outer.data_version == outer.data_version:
        return None
    return (
        f"version {version.number} is of another data version of {outer.artifact} than version "
        f"{outer.number} of that"
    )


def waves(wanted: Sequence[Wanted]) -> list[list[Wanted]]:
    """`wanted` in groups, so that an artifact comes in a group before those nested in it."""
    artifacts = {each.place.entry.artifact for each in wanted}
    groups: dict[int, list[Wanted]] = {}
    for each in wanted:
        above = {path.as_posix() for path in Path(each.place.entry.artifact).parents}
        groups.setdefault(len(above & artifacts), []).append(each)
    return [groups[depth] for depth in sorted(groups)]
