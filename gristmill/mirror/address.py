"""The addresses by which readers name versions in a mirror. Source: `docs/mirror.md#readers`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from gristmill.keys import refusal
from gristmill.mirror.store import MirrorError

MIRROR: Final = "GRISTMILL_MIRROR"
"""Environment variable with the URL of the mirror of addresses that begin with `mirror://`."""

_FORM = re.compile(
    r"(?P<name>[^@#]+?)(@(?P<partition>[^@#/]+))?(#(?P<number>[^@#/]*))?(//(?P<inside>[^@#]+))?"
)
_SHOWN = "mirror://NAME[@PARTITION][#NUMBER][//INSIDE] or mirror+URL!NAME..."


@dataclass(frozen=True)
class Address:
    """What an address names.

    artifact: path of an artifact, as in a data root.
    partition: of a shared folder; None for all that is at or below the path.
    number: of the version; None for the newest.
    inside: path in the artifact's folder; "" for the folder.
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
