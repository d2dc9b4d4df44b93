"""Versions in a mirror as readers of this host open them: pulled into a data root of their own.

What an address means is a set of versions, whose data root in the cache is filled once and not
changed afterwards, so a reader keeps its generation. Source: `docs/mirror.md#readers`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.keys import refusal
from gristmill.mirror.pulling import pull_versions, stands
from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.versions import DATA_VERSION, Version, readable, wanted_of
from gristmill.provenance.inventory import Entry
from gristmill.publish import locks

MIRROR: Final = "GRISTMILL_MIRROR"
"""Environment variable with the URL of the mirror of addresses that begin with `mirror://`."""
CACHE: Final = "GRISTMILL_MIRROR_CACHE"
"""Environment variable with the folder of the cache; default `gristmill/mirror` in the user's."""

_FORM = re.compile(
    r"(mirror://|mirror\+(?P<url>[^!]+)!)(?P<name>[^@#]+?)(@(?P<partition>[^@#/]+))?"
    r"(#(?P<version>[^@#/]+))?(//(?P<inside>[^@#]+))?"
)


def cache_folder() -> Path:
    """The folder of the cache; it need not be there."""
    if named := os.environ.get(CACHE):
        return Path(named).absolute()
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above).absolute() / "gristmill/mirror"


def fetched(address: str) -> Path:
    """The local path of what an address names, pulled into the cache where it is not there.

    Of several processes of a host one pulls, and the others wait. What the cache has of an address
    with a data version needs no mirror, and what it has whole is not written. Raises MirrorError
    for a text of another form, or where the mirror cannot be read or has no such version,
    GristmillError where the pull fails.
    """
    if (found := _FORM.fullmatch(address)) is None:
        raise MirrorError(
            f"{address}: is no address in a mirror: write "
            "mirror://NAME[@PARTITION][#DATA_VERSION][//INSIDE] or mirror+URL!NAME..."
        )
    url = found["url"] or os.environ.get(MIRROR, "")
    if not url:
        raise MirrorError(f"{address}: set {MIRROR} to the URL of the mirror, as of a pull")
    name, partition, pin, inside = found.group("name", "partition", "version", "inside")
    keys = [*name.split("/"), *([partition] if partition else [])]
    if reason := next((reason for key in keys if (reason := refusal(key))), None):
        raise MirrorError(f"{address}: {reason}")
    if inside and {"", ".", ".."} & {*inside.split("/")}:
        raise MirrorError(f"{address}: {inside!r} is no path in the artifact")
    entry, set_of = Entry(name, partition), [url, name, partition, pin]
    if not (pin and DATA_VERSION.fullmatch(pin) and stands(_root(set_of), Version(entry, "", pin))):
        store = Store(url, make=False)
        known = readable(store, name)
        wanted = wanted_of(store, known, [entry.name], pin or "")
        set_of += [] if pin else [each.sha256 for each in wanted]
        root = _root(set_of)
        if not all(stands(root, each) for each in wanted):
            with locks.locked(root.parent / f"{root.name}.lock", address, wait=True):
                for done in pull_versions(root, store, known, wanted, replace=True):
                    if done.error is not None:
                        raise GristmillError(f"{url}: {done.title}: {done.error}")
    return _root(set_of) / name / (inside or "")


def _root(set_of: list[str | None]) -> Path:
    """The data root in the cache for a set of versions."""
    return cache_folder() / provenance.digest(set_of)[:20]
