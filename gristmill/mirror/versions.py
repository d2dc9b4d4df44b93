"""Which versions a mirror has, which of them names mean, and adding one.

A version is created under the number after the highest, and never changed. Source:
`docs/mirror.md#versions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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

    place: of the artifact partition.
    draft: the version; its number is one above the highest that was listed.

    Returns the version with its number, and whether this call created it: another pusher may have
    sent the same data meanwhile. Raises MirrorError where no number is left.
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
