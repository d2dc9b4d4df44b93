"""What was built from what: the record of an artifact, and comparing records with the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports
from gristmill.provenance.environment import fingerprint, recipe, recorded_values
from gristmill.provenance.record import (
    INPUTS,
    INPUTS_LIMIT,
    INPUTS_LIMIT_BYTES,
    RECORD,
    SCHEMA_VERSION,
    SHARED_RECORDS,
    Input,
    InputsFile,
    Notes,
    Output,
    Record,
    Replaced,
    Tokenizer,
    canonical,
    config_fields,
    data_version,
    digest,
    holds_record,
    inputs_path,
    outputs_of,
    published_record_path,
    published_version,
    read_inputs,
    read_record,
    record_path,
    split_inputs,
)

if TYPE_CHECKING:
    from gristmill.provenance.verification import verify

__all__, __getattr__ = lazy_exports(__name__)
