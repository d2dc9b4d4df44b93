"""Which versions a mirror has, which of them names mean and a pull takes, and adding one.

A version is created under the number after the highest, and never changed. Pulling belongs to
`pulling.py`. Source: docs/mirror.md#versions, docs/mirror.md#pull.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gristmill.contract import GristmillError
from gristmill.mirror.layout import (
    AGAIN,
    LAST,
    Manifest,
    Place,
    Version,
    WrongVersion,
    object_key,
    parsed_manifest,
    parsed_version,
    prefix,
)
from gristmill.mirror.store import MirrorError, Store, WrongObject
from gristmill.provenance.inventory import Entry
from gristmill.run import amounts

T = TypeVar("T")
Numbers = Mapping[Place, Sequence[int]]
"""The numbers of an artifact partition's versions, ascending."""


def numbers(store: Store, artifact: str = "") -> dict[Place, list[int]]:
    """All versions of the artifacts at or below a path, by artifact partition in their order."""
    found: dict[Place, list[int]] = {}
    for key in store.keys(prefix(artifact)):
        if (parsed := Place.of(key)) is not None:
            found.setdefault(parsed[0], []).append(parsed[1])
    return {place: sorted(found[place]) for place in sorted(found, key=_order)}


def _order(place: Place) -> tuple[list[str], str]:
    return place.entry.artifact.split("/"), place.entry.partition or ""


def read(store: Store, place: Place, number: int) -> Version:
    """One version. Raises MirrorError where there is none, WrongVersion where it is no version."""
    try:
        data = store.read(place.version(number))
    except WrongObject as error:
        raise WrongVersion(f"version {number} of {place.entry.title}: {error}") from error
    if data is None:
        raise MirrorError(f"{store.url}: there is no version {number} of {place.entry.title}")
    return parsed_version(data, place, number)


def read_manifest(store: Store, place: Place, version: Version) -> Manifest:
    """The manifest of a version. Raises MirrorError where it is missing or differs."""
    try:
        data = store.read(object_key(version.manifest))
    except WrongObject as error:
        raise MirrorError(f"{error}: {AGAIN}") from error
    if data is None:
        raise MirrorError(
            f"{store.url}: the manifest of version {version.number} of {place.entry.title} is "
            f"gone: {AGAIN}"
        )
    return parsed_manifest(data, version, place)


def newest(store: Store, known: Numbers, threads: int) -> dict[Place, Version | WrongVersion]:
    """The newest version of each artifact partition, or why it cannot be read."""

    def read_one(item: tuple[Place, Sequence[int]]) -> Version | WrongVersion:
        try:
            return read(store, item[0], item[1][-1])
        except WrongVersion as error:
            return error

    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(known, pool.map(read_one, known.items()), strict=True))


def add(store: Store, place: Place, draft: Version) -> tuple[Version, bool]:
    """Create a version under the first number that is free, from that of `draft` on.

    draft: the version; its number is one above the highest that was listed.
    """
    number = draft.number
    while True:
        if number > LAST:
            raise MirrorError(
                f"{store.url}: {place.entry.title} has a version {LAST}, after which no number is "
                f"left: move {place.version(LAST)} away"
            )
        version = draft.model_copy(update={"number": number})
        if store.create(place.version(number), version.to_bytes()):
            return version, True
        number += 1
        try:
            there = read(store, place, version.number)
        except WrongVersion:
            continue  # whose number is taken all the same
        if there.writer == draft.writer:
            return there, True  # the answer to our own write was lost
        if there.is_of(draft.data_version, draft.fingerprint, draft.outer):
            return there, False


def chosen(
    items: Iterable[tuple[Entry, str, T]], names: Sequence[str], where: str
) -> list[tuple[Entry, str, T]]:
    """Those of `items` (name, asset, anything) that names mean, all without names.

    names: an artifact's path in the data root, a folder above some, `path@partition` for one
        partition of a shared folder, or an asset as `macroxue/pack`.
    where: what was searched, for the error.

    Raises GristmillError for a name that means nothing.
    """
    listed = list(items)
    if not names:
        return listed
    wanted = [name.strip("/") for name in names]
    for name in wanted:
        if not any(means(name, entry, asset) for entry, asset, _ in listed):
            raise GristmillError(f"{where}: no artifact or asset {name} is here")
    return [item for item in listed if any(means(name, *item[:2]) for name in wanted)]


def means(name: str, entry: Entry, asset: str) -> bool:
    """Whether a name means an artifact partition: see `chosen`."""
    return name == asset or name == entry.name or f"{entry.artifact}/".startswith(f"{name}/")


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
    known: Numbers,
    names: Sequence[str],
    number: int | None,
    sha256: str | None,
    threads: int,
) -> list[Wanted]:
    """The artifact partitions that names mean, each with the version that is asked for."""
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
        if not names or any(means(name.strip("/"), place.entry, "") for name in names)
    }
    found = {
        name for name in names if any(means(name.strip("/"), place.entry, "") for place in by_path)
    }
    # Only the versions say which asset an artifact is of: they are read where a name is no path.
    has_assets = bool(set(names) - found)
    last = newest(store, known if has_assets else by_path, threads)
    items = [
        (place.entry, version.asset if isinstance(version, Version) else "", place)
        for place, version in last.items()
    ]
    places = [place for _, _, place in chosen(items, names, store.url)]
    if has_assets and is_newest:
        # What cannot be read may be of that asset.
        wrong = (place for place in last if isinstance(last[place], WrongVersion))
        places += [place for place in wrong if place not in places]
    if is_newest:
        found_at = ((place.entry, last[place]) for place in places)
        taken = {entry: version for entry, version in found_at if isinstance(version, Version)}
        return [_newest(place, last[place], taken) for place in places]
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
        version = read(store, place, number)
        if sha256 not in (None, version.sha256):
            raise MirrorError(
                f"{store.url}: version {number} of {place.entry.title} has the sha256 "
                f"{version.sha256}, and {sha256} was asked for"
            )
        return Wanted(place, version)
    for each in reversed(numbers):
        with suppress(WrongVersion):
            version = read(store, place, each)
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
    """Why a nested version does not belong into what is taken with it, None where it does."""
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


def lines(url: str | Store, names: Sequence[str] = (), threads: int = 8) -> Iterator[str]:
    """A line for each version, the newest first: what it is, when it was pushed, and its sha256.

    url, names: as for `pull`.

    Raises MirrorError where the mirror cannot be read, GristmillError for a name that means
    nothing.
    """
    store = url if isinstance(url, Store) else Store(url, make=False)
    known = numbers(store)
    last = newest(store, known, threads)
    items = [
        (place.entry, version.asset if isinstance(version, Version) else "", place)
        for place, version in last.items()
    ]
    for entry, _, place in chosen(items, names, store.url):
        for number in reversed(known[place]):
            try:
                version = read(store, place, number)
            except WrongVersion as error:
                yield str(error)
                continue
            yield (
                f"{entry.title}: version {number}, data version {version.data_version[:12]}, "
                f"pushed {version.pushed}, {version.files:,} files, "
                f"{amounts.size(version.total_bytes)}, sha256 {version.sha256}"
            )
