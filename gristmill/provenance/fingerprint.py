"""Fingerprints: digests of everything that decides the payload of an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gristmill.provenance.record import Input, Tokenizer, config_fields, digest
from gristmill.settings.fields import COUNTED_BEFORE, fields_with


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
