"""The digest of the code that decides an asset's output, for fingerprints."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from gristmill.code import definitions
from gristmill.code.definitions import Place, Sources
from gristmill.hashing import sha256_sources
from gristmill.run import kernels

MOST: Final = 4_000
"""Sources of a file; with more, those that this process did not use are left out."""

Facts = Mapping[str, tuple[str, ...]]
"""By the sha256 of a source, words without spaces."""


LEFT_OUT: Final = {
    "gristmill.code.definitions": "finds the digest itself",
    "gristmill.data_root": "finds the drops and settings of a build",
    "gristmill.families": "finds the drops and settings of a build",
    "gristmill.hashing": "sha256 of files, which has one right value",
    "gristmill.lazy_exports": "imports names when they are used",
    "gristmill.provenance": "describes what was built",
    "gristmill.publish": "puts into place what was built",
    "gristmill.run": "shares the work among processes, keeps its parts, and shows its progress",
    "gristmill.settings": "checks settings, whose values are in the fingerprint",
    "gristmill.untrusted.child": "runs a function in a process with limits",
    "gristmill.untrusted.child_main": "runs a function in a process with limits",
    "gristmill.untrusted.toml": "reads settings and recipes, whose values are in the fingerprint",
}
"""Modules and packages that decide no byte of an artifact, and why."""


@dataclass(frozen=True)
class Code:
    """The code of one asset's builder.

    entries: dotted names of the functions that write the artifact; all that they reach belongs
        to the code, too.
    libraries: distributions whose version can change the output.
    compatible_with: digests of earlier code that gives the same output. A record
        with one of them stays current. `tests/goldens` holds each of them to that.
    undigested: the digest of the code that wrote records without a digest, which
        is the code of 0.2.0. Default None: there are no such records.
    """

    entries: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    compatible_with: tuple[str, ...] = ()
    undigested: str | None = None

    @property
    def digest(self) -> str:
        """The hex sha256 of the definitions that the entries reach.

        Raises ModuleNotFoundError where an entry is in no package, GristmillError where nothing
        has its name.
        """
        return _digest(self.entries)

    @property
    def equal_digests(self) -> tuple[str, ...]:
        """The digests of all code that gives the same output, this code's first."""
        return (self.digest, *self.compatible_with)

    def is_equal(self, digest: str | None) -> bool:
        """Whether code with a digest gives the same output; None is the code of 0.2.0."""
        return (digest or self.undigested) in (None, *self.equal_digests)


def definitions_of(entries: Collection[str]) -> set[Place]:
    """Returns the definitions that functions reach, themselves included.

    Errors as for `Code.digest`.
    """
    if not entries:
        return set()
    sources = _sources(next(iter(entries)).partition(".")[0])
    return sources.reached([sources.defined(entry) for entry in entries], is_left_out)


def is_left_out(place: Place) -> bool:
    """Whether a definition is in one of the modules that decide nothing.

    place: of the definition. The module `builds` of a family gives a builder what the fingerprint
        has: inputs and config.
    """
    is_builds = place.module.endswith(".builds")
    return is_builds or any(f"{place.module}.".startswith(f"{name}.") for name in LEFT_OUT)


@cache
def _digest(entries: tuple[str, ...]) -> str:
    if not entries:
        return hashlib.sha256().hexdigest()
    package = entries[0].partition(".")[0]
    known, key = _kept(), hashlib.sha256(f"{_sum(package)} {entries}".encode()).hexdigest()
    if key not in known:
        sources = _sources(package)
        lines = sorted(sources.line(place) for place in definitions_of(entries))
        known[key] = (hashlib.sha256("".join(lines).encode()).hexdigest(),)
        # Sources that somebody edits while they are read have no digest that may be kept.
        if sha256_sources(definitions.folder_of(package)) == _sum(package):
            keep_facts(_file(), {key: known[key]})
    return known[key][0]


@cache
def _sources(package: str) -> Sources:
    return Sources(package)


@cache
def _sum(package: str) -> str:
    """What changes with any source of a package, so that what is kept is of these sources."""
    return sha256_sources(definitions.folder_of(package))


@cache
def _kept() -> dict[str, tuple[str, ...]]:
    """Digests that earlier processes found, by sources and entries."""
    return read_facts(_file())


@cache
def _file() -> str:
    # Another rule of these modules finds another digest in the same sources.
    rules = [Path(file).read_bytes() for file in (__file__, definitions.__file__)]
    return f"code-digests-{hashlib.sha256(b''.join(rules)).hexdigest()[:16]}"


def read_facts(name: str) -> dict[str, tuple[str, ...]]:
    """Returns what earlier processes kept; nothing where there is no file, or a damaged one.

    name: of the file. It changes with the rule by which the facts are found.
    """
    folder = kernels.cache_folder()
    return {} if folder is None else _read(folder / name)


def keep_facts(name: str, facts: Facts) -> None:
    """Add facts to those that are kept; where they cannot be written, nothing happens."""
    folder = kernels.cache_folder()
    if folder is None:
        return
    # Another process may have added others since: at worst they are found once more.
    kept = {**_read(folder / name), **facts}
    if len(kept) > MOST:
        kept = dict(facts)
    body = "".join(f"{' '.join((source, *words))}\n" for source, words in sorted(kept.items()))
    data = f"{_checked(body)}\n{body}".encode()
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).replace(folder / name)
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        check, _, body = path.read_text().partition("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    if check != _checked(body):
        return {}
    lines = (line.split(" ") for line in body.splitlines())
    return {source: tuple(words) for source, *words in lines}


def _checked(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
