"""What lies in a mirror: the names of its objects, and what its two kinds of JSON files say.

Objects are parts of files, named by their sha256. A manifest, an object as well, lists the parts of
all files of one version. A version is one small file, created once, that names the manifest.
Source: `docs/mirror.md#layout`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gristmill.keys import refusal
from gristmill.mirror.store import MOST, MirrorError
from gristmill.provenance.inventory import Entry
from gristmill.provenance.record_file import wrong_path

FORMAT: Final = 1
PART_BYTES: Final = 16 << 20
"""Bytes of a part; the last one of a file has fewer."""

AGAIN: Final = "push the artifact again with --read-back, which writes wrong objects again"
"""What a person does about an object that the mirror lost or changed."""

_ARTIFACTS, _OBJECTS, _MARK = "artifacts", "objects", "@"
_DIGITS: Final = 8
LAST: Final = 10**_DIGITS - 1
"""The highest number of a version."""
_SHA256 = r"^[0-9a-f]{64}$"
_VERSION = re.compile(rf"(?!0+\.)[0-9]{{{_DIGITS}}}\.json")


class WrongVersion(MirrorError):
    """An object in the place of a version that is none; the other artifacts are as they were."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class File(_Frozen):
    """One file of an artifact: path in its folder, bytes, sha256, and the sha256 of its parts."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=_SHA256)
    parts: list[Annotated[str, Field(pattern=_SHA256)]]

    def sizes(self, part_bytes: int) -> Iterator[tuple[int, int, str]]:
        """Offset, bytes and sha256 of each part."""
        for index, sha256 in enumerate(self.parts):
            start = index * part_bytes
            yield start, min(part_bytes, self.bytes - start), sha256


class Manifest(_Frozen):
    """All files of one version of an artifact partition."""

    format: int = FORMAT
    artifact: str
    partition: str | None
    shared: bool
    record: str
    part_bytes: int = Field(ge=1, le=1 << 30)
    files: list[File]

    def to_bytes(self) -> bytes:
        """The manifest as it lies in the mirror. Raises MirrorError where no pull would read it."""
        data = self.model_dump_json().encode() + b"\n"
        if len(data) > MOST:
            raise MirrorError(
                f"{self.artifact}: its manifest has {len(data):,} bytes, and a mirror takes "
                f"{MOST:,}: build it in several partitions, or in larger files"
            )
        return data

    @property
    def total_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)


class Outer(_Frozen):
    """What a nested artifact was pushed in: the path of that artifact, and its data version."""

    artifact: str
    data_version: str


class Version(_Frozen):
    """The pointer: version `number` of an artifact partition is what `manifest` lists.

    outer: what it is nested in, None otherwise; it is right in that data version alone.
    writer: differs for every push, so that a pusher knows its own after a lost answer.
    total_bytes, files: of the artifact, the record included.
    """

    format: int = FORMAT
    number: int = Field(ge=1)
    artifact: str
    asset: str
    partition: str | None
    data_version: str
    fingerprint: str
    record: str
    outer: Outer | None
    manifest: str = Field(pattern=_SHA256)
    total_bytes: int
    files: int
    writer: str
    pushed: str

    def to_bytes(self) -> bytes:
        """The version as it lies in the mirror."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @property
    def sha256(self) -> str:
        """Of the version as it lies in the mirror. It pins all that a pull of it publishes."""
        return sha256_of(self.to_bytes())

    def is_of(self, data_version: str, fingerprint: str, outer: Outer | None) -> bool:
        """Whether it holds the data of this data version, made in the same way, in the same."""
        own = (self.data_version, self.fingerprint, self.outer)
        return own == (data_version, fingerprint, outer)


@dataclass(frozen=True)
class Place:
    """An artifact partition in a mirror. It has the name that it has in a data root."""

    entry: Entry

    @property
    def folder(self) -> str:
        """Prefix of the keys of its versions."""
        return f"{_ARTIFACTS}/{self.entry.artifact}/{_MARK}{self.entry.partition or ''}"

    def version(self, number: int) -> str:
        """Key of a version."""
        return f"{self.folder}/{number:0{_DIGITS}}.json"

    @staticmethod
    def of(key: str) -> tuple[Place, int] | None:
        """The place and the number of a version's key, None for any other key."""
        first, *above, own, name = key.split("/") if key.count("/") >= 3 else ("", "", "")
        if first != _ARTIFACTS or own[:1] != _MARK or not _VERSION.fullmatch(name):
            return None
        place = Place(Entry("/".join(above), own[1:] or None))
        return None if wrong_name(place.entry) else (place, int(name[:_DIGITS]))


def prefix(artifact: str = "") -> str:
    """Prefix of the versions of all artifacts at or below a path."""
    return f"{_ARTIFACTS}/{artifact}".rstrip("/")


def object_key(sha256: str) -> str:
    """Key of an object."""
    return f"{_OBJECTS}/{sha256[:2]}/{sha256}"


def sha256_of(data: bytes) -> str:
    """Hex sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def wrong_name(entry: Entry) -> str | None:
    """Why a mirror cannot hold an artifact of this name, None where it can.

    Every part of its path, and its partition, is a key: it means one thing to every store.
    """
    *above, name = entry.artifact.split("/")
    if entry.artifact.startswith("drops/") or entry.artifact == "drops":
        return "drops are no artifacts"
    keys = [*above, name] if entry.partition is None else [*above, name, entry.partition]
    return next((reason for key in keys if (reason := refusal(key))), None)


def parsed_version(data: bytes, place: Place, number: int) -> Version:
    """The version of a key. Raises WrongVersion where the object says something else."""
    title = f"version {number} of {place.entry.title}"
    try:
        version = Version.model_validate_json(data)
    except ValidationError as error:
        raise WrongVersion(f"{title}: is no version of a mirror: {_first(error)}") from error
    if version.format != FORMAT:
        raise WrongVersion(f"{title}: has format {version.format}, expected {FORMAT}")
    named = Entry(version.artifact, version.partition if place.entry.partition else None)
    if (named, version.number) != (place.entry, number):
        raise WrongVersion(f"{title}: says that it is version {version.number} of {named.title}")
    outer = version.outer
    if outer is not None and not version.artifact.startswith(f"{outer.artifact}/"):
        raise WrongVersion(f"{title}: says that it is nested in {outer.artifact}")
    return version


def parsed_manifest(data: bytes, version: Version, place: Place) -> Manifest:
    """The manifest of a version. Raises MirrorError where it differs from what it should be."""
    title = f"the manifest of version {version.number} of {place.entry.title}"
    if sha256_of(data) != version.manifest:
        raise MirrorError(f"{title}: has another sha256 than {version.manifest}: {AGAIN}")
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        raise MirrorError(f"{title}: cannot be read: {_first(error)}") from error
    named = Entry(manifest.artifact, manifest.partition if manifest.shared else None)
    if manifest.format != FORMAT or named != place.entry:
        raise MirrorError(f"{title}: has format {manifest.format}, and is of {named.title}")
    seen: set[PurePosixPath] = set()
    for file in manifest.files:
        if reason := wrong_path(file.path):
            raise MirrorError(f"{title}: the path {file.path!r} {reason}")
        if PurePosixPath(file.path) in seen:
            raise MirrorError(f"{title}: the path {file.path!r} is there more than once")
        seen.add(PurePosixPath(file.path))
        if len(file.parts) != -(-file.bytes // manifest.part_bytes):
            raise MirrorError(f"{title}: {file.path} has {len(file.parts)} parts")
    return manifest


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
