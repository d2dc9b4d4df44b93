"""Fingerprints: digests of everything that decides the payload of an artifact.

See also `gristmill.code_digest`: the code. Source: `docs/publishing.md#provenance`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gristmill.provenance.canonical import config_fields, digest
from gristmill.provenance.record import Input, Tokenizer


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
) -> str:
    """Digest of what is built from what: code version, config, inputs and vocabulary.

    It is the fingerprint of records of schema version 1.
    """
    return digest(
        {
            "code_version": code_version,
            "config": config_fields(config, affecting_output=True),
            "inputs": sorted(item.identity for item in inputs),
            "tokenizer": tokenizer.sha256 if tokenizer else None,
        }
    )
