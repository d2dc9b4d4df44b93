"""Addresses that readers take: a local folder, or a version in a mirror that is kept in a cache."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from gristmill.contract import BadInput

_MARKS = ("mirror://", "mirror+")
_COLLAPSED = ("mirror:/", "mirror+")


def located(address: Path | str) -> Path:
    """The local folder that an address names, once it is there.

    address: a path; or as text `mirror://NAME[@PARTITION][#DATA_VERSION][//INSIDE]`, or
        `mirror+URL!NAME...`. Such a version is fetched into the cache, unless it is there.

    Any other address is returned as an absolute path, so that a pickle of the reader leads to the
    same folder in a process with another working directory. Raises MirrorError as
    `gristmill.mirror.cache.fetched`, BadInput for a Path that was made of an address.
    """
    text = os.fspath(address)
    if isinstance(address, str) and text.startswith(_MARKS):
        folder: Path = import_module("gristmill.mirror.cache").fetched(text)
        return folder
    if not isinstance(address, str) and text.startswith(_COLLAPSED):
        raise BadInput(text, "is an address in a mirror: give it as text, since a Path changes it")
    return Path(address).absolute()
