"""What decides a payload, as a digest, and what a build ran on: versions, git commit, memory."""

from __future__ import annotations

import contextlib
import platform as machine
import resource
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gristmill.provenance.record import Input, Tokenizer, config_fields, digest
from gristmill.settings.fields import COUNTED_BEFORE, fields_with

_NAMED = (
    "gristmill",
    "dagster",
    "numpy",
    "numba",
    "pyarrow",
    "polars",
    "isal",
    "orjson",
    "zstandard",
    "tiktoken",
    "gigatoken",
    "openai-harmony",
    "megatron-core",
    "torch",
    "chess",
    "jinja2",
    "tokenizers",
    "sentencepiece",
)
RECORDED_LATER = frozenset({"jinja2", "tokenizers", "sentencepiece"})
"""Libraries that a record of 0.9.0 does not list, though they decided its output."""
NAMED_LATER = frozenset({"sentencepiece"})
"""Those of them that no fingerprint of 0.9.0 has; where they are not there, none has them."""


@cache
def libraries() -> dict[str, str]:
    """Versions of Python, SQLite and the installed libraries that can change the output."""
    import sqlite3

    versions = {"python": machine.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _NAMED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


@cache
def platform() -> str:
    """The operating system, its version and the processor's architecture."""
    return machine.platform()


@cache
def git_sha() -> str | None:
    """Commit of the checkout this library runs from, `-dirty` where it was changed.

    None where it does not run from a checkout.
    """
    import subprocess

    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def reset_peak_memory() -> None:
    """Start a new high-water mark for `peak_memory_bytes`, where the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_bytes() -> int:
    """Largest resident set since the reset, of this process or one of its dead children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with contextlib.suppress(OSError, StopIteration, ValueError, IndexError):
        status = Path("/proc/self/status").read_text().splitlines()
        own = int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) * 1024
    return max(own, children)


def fingerprint(recipe: str, code_digest: str, libraries: Mapping[str, str]) -> str:
    """Digest of everything that decides the payload; equal fingerprints need no rebuild.

    recipe: as `recipe` returns it.
    code_digest: of the builder's syntax trees.
    libraries: versions of the libraries that can change the output, by distribution.
    """
    return digest({"recipe": recipe, "code": code_digest, "libraries": dict(libraries)})


def recipe(
    code_version: str,
    config: object,
    inputs: Iterable[Input],
    tokenizer: Tokenizer | None = None,
    recorded: Mapping[str, Any] | None = None,
) -> str:
    """Digest of what is built from what: code version, config, inputs and vocabulary.

    recorded: values of the config as a record has them, in place of the config's
        own; default none.

    It is the fingerprint of records of schema version 1.
    """
    fields = config_fields(config, affecting_output=True) | dict(recorded or {})
    return digest(
        {
            "code_version": code_version,
            "config": fields,
            "inputs": sorted(item.identity for item in inputs),
            "tokenizer": tokenizer.sha256 if tokenizer else None,
        }
    )


def recorded_values(config: object, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recorded config that a recipe took though `config` says them otherwise.

    config: an instance of a config dataclass.
    recorded: the config of a record.

    These are the fields that counted when the record was written and cannot change
    the output (`COUNTED_BEFORE`), and numbers that are equal in another
    spelling, such as 1 and 1.0.
    """
    own = config_fields(config)
    counted = config_fields(config, affecting_output=True)
    before = fields_with(type(config), COUNTED_BEFORE)
    return {
        name: value
        for name, value in recorded.items()
        if name in own and (name in before or (name in counted and _same(own[name], value)))
    }


def _same(one: object, other: object) -> bool:
    """Whether two values are numbers, equal and not of one type."""
    kinds = {type(one), type(other)}
    return kinds == {int, float} and one == other
